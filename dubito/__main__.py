"""`python -m dubito`."""

from dubito.cli.main import main

if __name__ == "__main__":
    main()
