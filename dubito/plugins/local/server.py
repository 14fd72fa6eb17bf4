"""A run's local model server: llama.cpp in a separate process."""

import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Final

from dubito.errors import RunStopped, UsageError, one_line
from dubito.experiment.workers import core_count
from dubito.plugins.local.catalog import MISSING_EXTRA, fetch_model, fingerprint, is_path, known_model

CONTEXT: Final = 8192  # tokens of a prompt and its reply, per call in flight
_END_TIMEOUT: Final = 5.0  # seconds


class LocalServer:
    """A running server. It handles as many concurrent calls as it has slots."""

    slot_field = "id_slot"

    def __init__(self, process: "subprocess.Popen[str]", errors: IO[str], slots: int) -> None:
        """Wait until the server has loaded the model. Raises RunStopped if this fails."""
        self._process, self.slots = process, slots
        assert process.stdout is not None
        ready = process.stdout.readline()
        if not ready:
            process.wait()
            errors.seek(0)
            lines = [line for line in errors.read().splitlines() if line.strip()]
            raise RunStopped(
                f"the local model server ended: {one_line(lines[-1] if lines else 'no reason given', 300)}"
            )
        self.address: str = json.loads(ready)["address"]

    @property
    def base_url(self) -> str:
        return f"{self.address}/v1"


class LocalServers:
    """Starts the model servers of a run."""

    def fingerprint(self, model: str) -> str:
        return fingerprint(model)

    def start(self, model: str, in_flight: int, tell: Callable[[str], None]) -> AbstractContextManager[LocalServer]:
        return start_server(model, in_flight, tell)


SERVERS: Final = LocalServers()


@contextmanager
def start_server(model: str, in_flight: int, tell: Callable[[str], None]) -> Iterator[LocalServer]:
    """Serve a model, given by its name in the catalog or a file's path, until the context ends.

    A known model is downloaded if necessary, with a notice to `tell`. Raises UsageError if the extra is missing, and
    RunStopped if the model cannot be downloaded or loaded.
    """
    if find_spec("xllamacpp") is None:
        raise UsageError(MISSING_EXTRA)
    path = Path(model) if is_path(model) else fetch_model(known_model(model), tell)
    threads = core_count()
    # Reading a prompt uses all threads, so another slot would not help much.
    slots = max(1, min(in_flight, threads // 2))
    options = {"path": str(path), "name": path.stem, "context": CONTEXT, "slots": slots, "threads": threads}
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "dubito.plugins.local.serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):  # the process has already ended; the server reports why
                process.stdin.write(json.dumps(options) + "\n")
                process.stdin.flush()
            yield LocalServer(process, errors, slots)
        finally:
            _end(process)


def _end(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()  # which ends it
    try:
        process.wait(_END_TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
