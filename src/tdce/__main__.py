"""`python -m tdce`: the command line."""

from tdce.cli import main

if __name__ == "__main__":
    main()
