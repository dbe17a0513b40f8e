"""`python -m eigengame` is the command line."""

from eigengame.cli import main

if __name__ == "__main__":
    main()
