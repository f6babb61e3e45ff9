"""The reproduction of the paper: its benchmark, its figures and its theorem (`pip install 'tdce[paper]'`)."""
