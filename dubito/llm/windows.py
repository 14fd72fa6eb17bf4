"""Background responses with a window of completion, as OpenAI sells them: each is a batch of one request.

They are posted and looked at side by side. The server has no list of them, and finds none by its name: where it took
one and its answer, with the id, was lost, nobody can know, and the most that it may cost is assumed.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Final

from dubito.llm.batches import (
    NAMED,
    AnthropicBatches,
    BatchEntry,
    Errand,
    Lost,
    OpenAIBatches,
    SeenBatch,
    Sells,
    entry_line,
    id_of,
    object_in,
)
from dubito.llm.protocols import mapping
from dubito.llm.request import Api, Ask, RawReply, TryFailed, read_json
from dubito.store.wave_log import SentBatch

_HOUR: Final = 3600.0  # seconds
_OPEN: Final = ("queued", "in_progress")
_EXPIRED: Final = "expired"


class _Window:
    """Of the Responses API. It is served at the usual tier, and kept, so that it can be fetched days later."""

    most_entries: ClassVar[int] = 1
    most_bytes: ClassVar[int] = 200_000_000
    batches: ClassVar[str] = "/responses"
    listed: ClassVar[bool] = False
    lasts: ClassVar[float]
    window: ClassVar[str]

    @classmethod
    def line(cls, name: str, ask: Ask) -> bytes:
        body = ask.request.body
        options = {**mapping(body.get("background_options")), "completion_window": cls.window}
        named = {**mapping(body.get("metadata")), NAMED: name}
        return entry_line({**body, "background": True, "background_options": options, "store": True, "metadata": named})

    @staticmethod
    def hand_in(errand: Errand, name: str, path: str, lines: Sequence[bytes]) -> SeenBatch:
        (line,) = lines
        try:
            return _state_of_response(errand(path, body=json.loads(line)))
        except TryFailed as error:
            if error.billed:
                raise Lost(error.reason) from None
            raise

    @staticmethod
    def find(errand: Errand, batch: SentBatch, known: Sequence[str], rest: Callable[[], None]) -> SeenBatch | None:
        raise Lost("the run was stopped before the answer with its id came")

    @staticmethod
    def look(errand: Errand, id: str) -> SeenBatch:
        return _state_of_response(errand(f"{_Window.batches}/{id}"))

    @staticmethod
    def overdue(errand: Errand, id: str) -> SeenBatch:
        return _state_of_response(errand(f"{_Window.batches}/{id}/cancel", body={}))

    @staticmethod
    def entries(errand: Errand, seen: SeenBatch, names: Sequence[str]) -> Iterator[BatchEntry]:
        (name,) = names
        body = seen.body or ""
        yield BatchEntry(name) if _was_left(mapping(read_json(body))) else BatchEntry(name, body=body)


class _TwoHours(_Window):
    lasts = 2 * _HOUR
    window = "2h"


class _EightHours(_Window):
    lasts = 8 * _HOUR
    window = "8h"


_SELLERS: Final[Mapping[str, Mapping[Api, type[Sells]]]] = {
    "batch": {"responses": OpenAIBatches, "chat": OpenAIBatches, "messages": AnthropicBatches},
    "2h": {"responses": _TwoHours},
    "8h": {"responses": _EightHours},
}


def seller_of(api: Api, wait: str) -> type[Sells]:
    return _SELLERS[wait][api]


def _state_of_response(received: RawReply) -> SeenBatch:
    body = object_in(received)
    status = body.get("status")
    if not isinstance(status, str):
        raise TryFailed("server", f"a response without its status with status {received.status}", billed=True)
    return SeenBatch(id_of(received), status not in _OPEN, body=received.raw)


def _was_left(body: Mapping[str, object]) -> bool:
    code = mapping(body.get("error")).get("code")
    expired = body.get("status") in (_EXPIRED, "cancelled") or (isinstance(code, str) and code.endswith(_EXPIRED))
    return expired and not body.get("output") and not body.get("usage")
