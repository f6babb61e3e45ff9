"""The paper's own work: its benchmark, figures and theorem. The core never imports this."""
