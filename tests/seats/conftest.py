"""The shell fixture, that of the command line."""

from tests.cli.conftest import shell

__all__ = ["shell"]
