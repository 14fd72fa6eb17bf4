"""Batches as the providers sell them: handed in, found again, looked at, and read entry by entry.

OpenAI takes a file of requests and gives files of replies; a batch bears its name among its metadata. Anthropic takes
the requests themselves and has no place for a name: there it is known by its entries, which it shows when it has
ended. Each entry bears the batch's name, the draw, the request and the try in its own; they may come in any order.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Final, Protocol

from dubito.errors import one_line
from dubito.llm.protocols import as_mapping, as_objects
from dubito.llm.request import Api, Attempt, RawReply, TryFailed, parse_json
from dubito.store.wave_log import SentBatch

Errand = Callable[..., RawReply]  # (path, **what is sent): a call on a server that is no try of a request

LIFETIME: Final = 86_400.0  # seconds until a batch expires, unless the server states another time
_NAMED: Final = "dubito"  # in the metadata of what is handed in
_A_PAGE: Final = 100  # batches
_BEFORE: Final = 3600.0  # seconds by which a server's clock may be behind ours
_DIGITS: Final = 16  # of a request's digest
_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_HOUR: Final = "1h"
_ENDED: Final = ("completed", "failed", "expired", "cancelled")
_UNPROCESSED: Final = ("batch_expired", "batch_cancelled")


@dataclass(frozen=True, slots=True)
class SeenBatch:
    """A batch as its server has it."""

    id: str
    ended: bool
    expires: float | None = None  # seconds since 1970
    done: int = 0  # entries
    failed: str | None = None  # why none of it was processed, in the server's words
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """What came of one request of a batch: a body, an error, or nothing: it was never processed."""

    name: str
    body: str | None = None
    status: int | None = None  # of an error, if one is said
    error: Any = None  # in the server's words, or what it means
    whole: bool = True  # whether its line can be read


def name_of_entry(batch: str, ask: Attempt, number: int) -> str:
    return f"{batch}-{ask.draw}-{ask.request.digest[:_DIGITS]}-{number}"


class Sells(Protocol):
    """How one provider sells batches."""

    most_entries: ClassVar[int]
    most_bytes: ClassVar[int]
    batches: ClassVar[str]  # the path under which the server lists them

    @staticmethod
    def line(name: str, ask: Attempt) -> bytes:
        """A request as an entry."""

    @staticmethod
    def hand_in(errand: Errand, name: str, path: str, lines: Sequence[bytes]) -> SeenBatch:
        """Create a batch of these entries, all for `path`. After a failure, `find` tells whether it exists."""

    @staticmethod
    def find(errand: Errand, batch: SentBatch, known: Sequence[str], rest: Callable[[], None]) -> SeenBatch | None:
        """Return the batch, if the server has it under an id that is not in `known`.

        Calls `rest` between two looks at a batch that shows its entries only once it has ended.
        """

    @staticmethod
    def look(errand: Errand, id: str) -> SeenBatch:
        """How it stands."""

    @staticmethod
    def entries(errand: Errand, seen: SeenBatch) -> Iterator[BatchEntry]:
        """Yield what came of its requests, in any order."""


class OpenAIBatches:
    """Of the Responses and the Chat Completions API."""

    most_entries: ClassVar[int] = 50_000
    most_bytes: ClassVar[int] = 200_000_000
    batches: ClassVar[str] = "/batches"

    @staticmethod
    def line(name: str, ask: Attempt) -> bytes:
        body = {key: value for key, value in ask.request.body.items() if key != "service_tier"}
        return _entry_line({"custom_id": name, "method": "POST", "url": f"/v1{ask.request.path}", "body": body})

    @staticmethod
    def hand_in(errand: Errand, name: str, path: str, lines: Sequence[bytes]) -> SeenBatch:
        file = errand(
            "/files",
            body={"purpose": "batch"},
            files=[("file", (f"{name}.jsonl", b"".join(lines), "application/jsonl"))],
            options={"headers": {"Content-Type": "multipart/form-data"}},
        )
        return _openai_batch(
            errand(
                OpenAIBatches.batches,
                body={
                    "input_file_id": _id_of(file),
                    "endpoint": f"/v1{path}",
                    "completion_window": "24h",
                    "metadata": {_NAMED: name},
                },
            )
        )

    @staticmethod
    def find(errand: Errand, batch: SentBatch, known: Sequence[str], rest: Callable[[], None]) -> SeenBatch | None:
        for body in _all_batches(errand, OpenAIBatches.batches, "after"):
            if as_mapping(body.get("metadata")).get(_NAMED) == batch.name:
                return _openai_seen(body)
            if isinstance(body.get("created_at"), int) and body["created_at"] < batch.since - _BEFORE:
                break
        return None

    @staticmethod
    def look(errand: Errand, id: str) -> SeenBatch:
        return _openai_batch(errand(f"{OpenAIBatches.batches}/{id}"))

    @staticmethod
    def entries(errand: Errand, seen: SeenBatch) -> Iterator[BatchEntry]:
        for file in seen.files:
            for line in errand(f"/files/{file}/content").raw.split("\n"):
                said = as_mapping(parse_json(line))
                answer, error = as_mapping(said.get("response")), said.get("error")
                entry = BatchEntry(str(said.get("custom_id")), whole="custom_id" in said)
                status = answer.get("status_code")
                if as_mapping(error).get("code") in _UNPROCESSED or not entry.whole:
                    yield entry
                elif error or status != 200:
                    known = status if isinstance(status, int) and status != 200 else None
                    yield replace(entry, status=known, error=error or answer.get("body") or "no answer")
                else:
                    yield replace(entry, body=_within(line, "body", answer.get("body")))


class AnthropicBatches:
    """Of the Messages API."""

    most_entries: ClassVar[int] = 100_000
    most_bytes: ClassVar[int] = 256_000_000
    batches: ClassVar[str] = "/v1/messages/batches"

    @staticmethod
    def line(name: str, ask: Attempt) -> bytes:
        return _entry_line({"custom_id": name, "params": _for_an_hour(ask.request.body)})

    @staticmethod
    def hand_in(errand: Errand, name: str, path: str, lines: Sequence[bytes]) -> SeenBatch:
        body = {"requests": [json.loads(line) for line in lines]}
        return _anthropic_batch(errand(AnthropicBatches.batches, body=body))

    @staticmethod
    def find(errand: Errand, batch: SentBatch, known: Sequence[str], rest: Callable[[], None]) -> SeenBatch | None:
        """By its entries, which are shown once it has ended: one of so many, made then, may be it."""
        for body in _all_batches(errand, AnthropicBatches.batches, "after_id"):
            made = _seconds(body.get("created_at"))
            if made is not None and made < batch.since - _BEFORE:
                break
            seen = _anthropic_seen(body)
            if seen.id in known or sum(_counts(body).values()) != batch.entries:
                continue
            while not seen.ended:
                rest()
                seen = AnthropicBatches.look(errand, seen.id)
            first = next(AnthropicBatches.entries(errand, seen), None)
            if first is not None and first.name.startswith(f"{batch.name}-"):
                return seen
        return None

    @staticmethod
    def look(errand: Errand, id: str) -> SeenBatch:
        return _anthropic_batch(errand(f"{AnthropicBatches.batches}/{id}"))

    @staticmethod
    def entries(errand: Errand, seen: SeenBatch) -> Iterator[BatchEntry]:
        for line in errand(f"{AnthropicBatches.batches}/{seen.id}/results").raw.split("\n"):
            said = as_mapping(parse_json(line))
            result = as_mapping(said.get("result"))
            entry = BatchEntry(str(said.get("custom_id")), whole="custom_id" in said)
            if result.get("type") == "succeeded":
                entry = replace(entry, body=_within(line, "message", result.get("message")))
            elif result.get("type") == "errored":
                entry = replace(entry, error=as_mapping(result.get("error")).get("error") or result.get("error"))
            yield entry


BATCH_API: Final[Mapping[Api, type[Sells]]] = {
    "responses": OpenAIBatches,
    "chat": OpenAIBatches,
    "messages": AnthropicBatches,
}


def body_text(body: Mapping[str, Any]) -> str:
    """Return the JSON that the SDKs send for a body, to the byte.

    A server that writes the fields of an answer in the schema's order must get the same order live and in a batch.
    """
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _entry_line(entry: Mapping[str, Any]) -> bytes:
    return body_text(entry).encode() + b"\n"


def _for_an_hour(value: Any) -> Any:
    """The same, with all that it marks for the cache kept for an hour, unless it says for how long."""
    if isinstance(value, list):
        return [_for_an_hour(each) for each in value]
    if not isinstance(value, dict):
        return value
    mark = value.get("cache_control")
    longer = {"cache_control": {"ttl": _HOUR, **mark}} if isinstance(mark, dict) else {}
    return {key: _for_an_hour(each) for key, each in value.items()} | longer


def _all_batches(errand: Errand, path: str, after: str) -> Iterator[dict[str, Any]]:
    """All batches of the account, the latest first, page by page."""
    last = ""
    while True:
        page = _object_in(errand(f"{path}?limit={_A_PAGE}{f'&{after}={last}' if last else ''}"))
        listed = as_objects(page.get("data"))
        yield from listed
        before, last = last, str(listed[-1].get("id")) if listed else ""
        if not page.get("has_more") or last in ("", before):
            return


def _object_in(received: RawReply) -> dict[str, Any]:
    """Return the body. Raises TryFailed if it is not an object."""
    body = parse_json(received.raw)
    if not isinstance(body, dict):
        raise TryFailed("server", f"something that is no batch, with status {received.status}", billed=True)
    return body


def _id_of(received: RawReply) -> str:
    found = _object_in(received).get("id")
    if not isinstance(found, str) or not _ID.fullmatch(found):
        raise TryFailed("server", f"an answer without an id with status {received.status}", billed=True)
    return found


def _openai_batch(received: RawReply) -> SeenBatch:
    _id_of(received)
    return _openai_seen(_object_in(received))


def _openai_seen(body: Mapping[str, Any]) -> SeenBatch:
    status, failed = body.get("status"), None
    if status == "failed":
        said = [str(error.get("message")) for error in as_objects(as_mapping(body.get("errors")).get("data"))]
        failed = one_line("; ".join(said) or "no reason is said", 240)
    expires, files = body.get("expires_at"), (body.get("output_file_id"), body.get("error_file_id"))
    counts = as_mapping(body.get("request_counts"))
    return SeenBatch(
        str(body.get("id")),
        status in _ENDED,
        float(expires) if isinstance(expires, int) else None,
        sum(each for name in ("completed", "failed") if isinstance(each := counts.get(name), int)),
        failed,
        tuple(file for file in files if isinstance(file, str) and file),
    )


def _anthropic_batch(received: RawReply) -> SeenBatch:
    _id_of(received)
    return _anthropic_seen(_object_in(received))


def _anthropic_seen(body: Mapping[str, Any]) -> SeenBatch:
    ended, expires = body.get("processing_status") == "ended", _seconds(body.get("expires_at"))
    done = sum(number for name, number in _counts(body).items() if name != "processing")
    return SeenBatch(str(body.get("id")), ended, expires, done)


def _counts(body: Mapping[str, Any]) -> dict[str, int]:
    return {name: each for name, each in as_mapping(body.get("request_counts")).items() if isinstance(each, int)}


def _seconds(moment: Any) -> float | None:
    """Since 1970, of a moment as RFC 3339 writes it."""
    try:
        return datetime.fromisoformat(moment).timestamp()
    except (ValueError, TypeError):
        return None


def _within(line: str, name: str, value: Any) -> str:
    """The text of a value in a line of JSON, as it stands there; a body that came as a text is that text."""
    if isinstance(value, str):
        return value
    decoder, mark, at = json.JSONDecoder(), f'"{name}"', 0
    while (at := line.find(mark, at) + 1) > 0:
        begin = at - 1 + len(mark)
        begin += len(line[begin:]) - len(line[begin:].lstrip(" \t:"))
        try:
            found, end = decoder.raw_decode(line, begin)
        except ValueError:
            continue
        if found == value:
            return line[begin:end]
    return json.dumps(value)
