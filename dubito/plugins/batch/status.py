"""What `dubito status` shows about the batches of a run."""

from datetime import UTC, datetime
from typing import Any

from dubito.plugins.batch.wave_log import SentBatch, WaveLog
from dubito.report.documents import AwaitedBatch
from dubito.store.model_log import ModelLog


def list_awaited(log: ModelLog) -> dict[str, Any]:
    """Return the fields about the batches that a run is waiting for."""
    waves = WaveLog(log)
    return {"awaited": [_describe_batch(each) for each in waves.batches()], "to_be_sent": len(waves.unsent_entries())}


def _describe_batch(batch: SentBatch) -> AwaitedBatch:
    return AwaitedBatch(
        account=batch.account,
        id=batch.id,
        requests=batch.entries,
        since=_format_minute(batch.since),
        expires=None if batch.expires is None else _format_minute(batch.expires),
    )


def _format_minute(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M")
