"""`python -m dubito`, and the command `dubito`."""

import sys


def main() -> None:
    """Run the command line; Ctrl-C while its modules are still being loaded ends it as it does later."""
    try:
        from dubito.cli.main import main as command
    except KeyboardInterrupt:
        print("dubito: stopped by Ctrl-C", file=sys.stderr)
        sys.exit(130)
    command()


if __name__ == "__main__":
    main()
