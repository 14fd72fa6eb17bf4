"""Texts on disk that people write."""

from pathlib import Path

from dubito.errors import UsageError, one_line


def read_text(path: Path) -> str:
    """The text of a file; raises UsageError that names it."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot read {one_line(str(path))}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{one_line(str(path))} is not UTF-8 text") from None
