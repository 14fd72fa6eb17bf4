"""The log of a run, `run.log`: what happened when, an event a line, as JSON. It is only for reading: no run is
resumed from it."""

import json
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from dubito.errors import RunStopped

LOG: Final = "run.log"


class RunLog:
    """Appends events; any thread may."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / LOG
        self._lock = threading.Lock()

    def __call__(self, event: str, **facts: Any) -> None:
        """Write an event with its facts; raises RunStopped if that cannot be written."""
        line = json.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "event": event, **facts})
        try:
            with self._lock, self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            raise RunStopped(f"cannot write {self._path}: {error.strerror}; is the disk full?") from None
