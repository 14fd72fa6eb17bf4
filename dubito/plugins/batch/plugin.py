"""The plugin's parts: what sends the calls of players with `wait: batch`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from dubito.hooks import hookimpl

if TYPE_CHECKING:
    from starlette.routing import Route

    from dubito.house.core import CallLog, Core
    from dubito.house.wires import Wire
    from dubito.llm.budget import Budget
    from dubito.llm.limiter import Timing
    from dubito.model_settings import Api
    from dubito.plugins.batch.waves import Waves
    from dubito.store.model_log import ModelLog


class Sender:
    """See `dubito.hooks.BatchSender`. Its imports are late because every command loads this file."""

    def supports(self, api: "Api") -> bool:
        from dubito.plugins.batch.batches import BATCH_APIS

        return api in BATCH_APIS

    def open_waves(
        self, log: "ModelLog", budget: "Budget", timing: "Timing", *, suspend: bool, in_flight: int
    ) -> "Waves":
        from dubito.plugins.batch.waves import Waves

        return Waves(log, budget, timing, suspend=suspend, in_flight=in_flight)

    def list_awaited(self, log: "ModelLog") -> Mapping[str, Any]:
        from dubito.plugins.batch.status import list_awaited

        return list_awaited(log)

    def house_routes(self, core: "Core", log: "CallLog", wires: "Mapping[str, Wire]") -> "Sequence[Route]":
        from dubito.plugins.batch.house import BatchDesk

        return BatchDesk(core, log, wires).routes


SENDER: Final = Sender()


@hookimpl
def batch_senders() -> Mapping[str, str]:
    return {"batch": "dubito.plugins.batch.plugin:SENDER"}
