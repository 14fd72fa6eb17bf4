"""A tournament's result as pages to be opened in a browser."""

from pathlib import Path
from typing import Any

from dubito.referee.log import Log
from dubito.referee.standings import Standings


def write_pages(folder: Path, log: Log, result: Standings, manifest: dict[str, Any]) -> Path:
    """Write them into the tournament's folder; the first page."""
    raise NotImplementedError
