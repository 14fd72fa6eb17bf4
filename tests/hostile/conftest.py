"""The shell, and its runs without waits."""

from tests.cli.conftest import shell
from tests.llm.conftest import unhurried

__all__ = ["shell", "unhurried"]
