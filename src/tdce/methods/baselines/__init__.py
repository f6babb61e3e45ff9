"""The paper's baselines and NICE, each in a file of its own."""
