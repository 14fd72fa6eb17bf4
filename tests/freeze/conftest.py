"""The shell fixture."""

from tests.cli.conftest import shell

__all__ = ["shell"]
