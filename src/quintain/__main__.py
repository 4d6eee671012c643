"""`python -m quintain`: the command line without its script."""

from quintain.cli import main

if __name__ == "__main__":
    main()
