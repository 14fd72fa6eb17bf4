"""The providers' batch APIs: submit a batch, find it again, poll it, and read its entries.

OpenAI takes a file of requests and returns files of replies. The batch's name is stored in its metadata. Anthropic
takes the requests themselves and stores no name, so a batch is recognized by its entries, which are listed only after
the batch has ended. An entry's name consists of the batch's name, the draw, the request and the try. Entries can come
in any order.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, ClassVar, Final, Protocol

from dubito.errors import one_line
from dubito.llm.protocols.wire import as_mapping, as_objects
from dubito.llm.request import Attempt, RawReply, TryFailed, parse_json
from dubito.model_settings import Api
from dubito.plugins.batch.wave_log import SentBatch

LIFETIME: Final = 86_400.0  # seconds until a batch expires, unless the server reports a time
_NAME_KEY: Final = "dubito"  # key of the batch's name in its metadata
_PAGE_SIZE: Final = 100  # batches
_MAX_CLOCK_LAG: Final = 3600.0  # how many seconds a server's clock can be behind ours
_DIGEST_DIGITS: Final = 16
_ID: Final = re.compile(r"[A-Za-z0-9_.-]{1,200}")
_ONE_HOUR: Final = "1h"
_ENDED: Final = ("completed", "failed", "expired", "cancelled")
_UNPROCESSED: Final = ("batch_expired", "batch_cancelled")


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """A batch's status as reported by its server."""

    id: str
    ended: bool
    expires: float | None = None  # seconds since 1970
    done: int = 0  # entries
    failed: str | None = None  # why the server processed nothing, if it did not
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchEntry:
    """The result of one request in a batch: a body, an error, or neither if the request was never processed."""

    name: str
    body: str | None = None
    status: int | None = None  # an error's status, if reported
    error: Any = None
    is_complete: bool = True  # whether its line can be read


class BatchServer(Protocol):
    """HTTP client for a server's batch API."""

    def get(self, path: str) -> RawReply:
        """Download the content at this path."""

    def post(self, path: str, **content: Any) -> RawReply:
        """Post `content` in the form that the SDK's `post` expects."""


def entry_name(batch: str, attempt: Attempt, number: int) -> str:
    return f"{batch}-{attempt.draw}-{attempt.request.digest[:_DIGEST_DIGITS]}-{number}"


class BatchApi(Protocol):
    """A provider's batch API."""

    max_entries: ClassVar[int]
    max_bytes: ClassVar[int]
    path: ClassVar[str]  # the path under which the server lists batches

    @staticmethod
    def entry_line(name: str, attempt: Attempt) -> bytes:
        """Return a request as a batch entry."""

    @staticmethod
    def submit(server: BatchServer, name: str, path: str, lines: Sequence[bytes]) -> BatchStatus:
        """Create a batch of these entries, all for `path`.

        After a failure, use `find` to check whether the batch was created.
        """

    @staticmethod
    def find(
        server: BatchServer, batch: SentBatch, known: Sequence[str], sleep: Callable[[], None]
    ) -> BatchStatus | None:
        """Return the batch if the server lists it under an id that is not in `known`.

        If entries are listed only after a batch has ended, calls `sleep` between polls.
        """

    @staticmethod
    def get_status(server: BatchServer, id: str) -> BatchStatus:
        """Return the batch's status. Raises NotFound if the server does not have it."""

    @staticmethod
    def read_entries(server: BatchServer, status: BatchStatus) -> Iterator[BatchEntry]:
        """Yield the results of the batch's requests, in any order."""


class OpenAIBatches:
    """Batches of the Responses API and of Chat Completions."""

    max_entries: ClassVar[int] = 50_000
    max_bytes: ClassVar[int] = 200_000_000
    path: ClassVar[str] = "/batches"

    @staticmethod
    def entry_line(name: str, attempt: Attempt) -> bytes:
        body = {key: value for key, value in attempt.request.body.items() if key != "service_tier"}
        return _entry_line({"custom_id": name, "method": "POST", "url": f"/v1{attempt.request.path}", "body": body})

    @staticmethod
    def submit(server: BatchServer, name: str, path: str, lines: Sequence[bytes]) -> BatchStatus:
        file = server.post(
            "/files",
            body={"purpose": "batch"},
            files=[("file", (f"{name}.jsonl", b"".join(lines), "application/jsonl"))],
            options={"headers": {"Content-Type": "multipart/form-data"}},
        )
        return _openai_batch(
            server.post(
                OpenAIBatches.path,
                body={
                    "input_file_id": _parse_id(file),
                    "endpoint": f"/v1{path}",
                    "completion_window": "24h",
                    "metadata": {_NAME_KEY: name},
                },
            )
        )

    @staticmethod
    def find(
        server: BatchServer, batch: SentBatch, known: Sequence[str], sleep: Callable[[], None]
    ) -> BatchStatus | None:
        for body in _all_batches(server, OpenAIBatches.path, "after"):
            if as_mapping(body.get("metadata")).get(_NAME_KEY) == batch.name:
                return _openai_status(body)
            if isinstance(body.get("created_at"), int) and body["created_at"] < batch.since - _MAX_CLOCK_LAG:
                break
        return None

    @staticmethod
    def get_status(server: BatchServer, id: str) -> BatchStatus:
        return _openai_batch(server.get(f"{OpenAIBatches.path}/{id}"))

    @staticmethod
    def read_entries(server: BatchServer, status: BatchStatus) -> Iterator[BatchEntry]:
        for file in status.files:
            for line in server.get(f"/files/{file}/content").raw.split("\n"):
                fields = as_mapping(parse_json(line))
                answer, error = as_mapping(fields.get("response")), fields.get("error")
                entry = BatchEntry(str(fields.get("custom_id")), is_complete="custom_id" in fields)
                code = answer.get("status_code")
                if as_mapping(error).get("code") in _UNPROCESSED or not entry.is_complete:
                    yield entry
                elif error or code != 200:
                    known = code if isinstance(code, int) and code != 200 else None
                    yield replace(entry, status=known, error=error or answer.get("body") or "no answer")
                else:
                    yield replace(entry, body=_find_source(line, "body", answer.get("body")))


class AnthropicBatches:
    """Batches of the Messages API."""

    max_entries: ClassVar[int] = 100_000
    max_bytes: ClassVar[int] = 256_000_000
    path: ClassVar[str] = "/v1/messages/batches"

    @staticmethod
    def entry_line(name: str, attempt: Attempt) -> bytes:
        return _entry_line({"custom_id": name, "params": _cached_for_an_hour(attempt.request.body)})

    @staticmethod
    def submit(server: BatchServer, name: str, path: str, lines: Sequence[bytes]) -> BatchStatus:
        body = {"requests": [json.loads(line) for line in lines]}
        return _anthropic_batch(server.post(AnthropicBatches.path, body=body))

    @staticmethod
    def find(
        server: BatchServer, batch: SentBatch, known: Sequence[str], sleep: Callable[[], None]
    ) -> BatchStatus | None:
        """Find the batch by comparing entries, which Anthropic lists only after the batch has ended."""
        for body in _all_batches(server, AnthropicBatches.path, "after_id"):
            created = _parse_time(body.get("created_at"))
            if created is not None and created < batch.since - _MAX_CLOCK_LAG:
                break
            status = _anthropic_status(body)
            if status.id in known or sum(_counts(body).values()) != batch.entries:
                continue
            while not status.ended:
                sleep()
                status = AnthropicBatches.get_status(server, status.id)
            first = next(AnthropicBatches.read_entries(server, status), None)
            if first is not None and first.name.startswith(f"{batch.name}-"):
                return status
        return None

    @staticmethod
    def get_status(server: BatchServer, id: str) -> BatchStatus:
        return _anthropic_batch(server.get(f"{AnthropicBatches.path}/{id}"))

    @staticmethod
    def read_entries(server: BatchServer, status: BatchStatus) -> Iterator[BatchEntry]:
        for line in server.get(f"{AnthropicBatches.path}/{status.id}/results").raw.split("\n"):
            fields = as_mapping(parse_json(line))
            result = as_mapping(fields.get("result"))
            entry = BatchEntry(str(fields.get("custom_id")), is_complete="custom_id" in fields)
            if result.get("type") == "succeeded":
                entry = replace(entry, body=_find_source(line, "message", result.get("message")))
            elif result.get("type") == "errored":
                entry = replace(entry, error=as_mapping(result.get("error")).get("error") or result.get("error"))
            yield entry


BATCH_APIS: Final[Mapping[Api, type[BatchApi]]] = {
    "responses": OpenAIBatches,
    "chat": OpenAIBatches,
    "messages": AnthropicBatches,
}


def body_text(body: Mapping[str, Any]) -> str:
    """Return exactly the JSON that the SDKs send for a body.

    Servers that write answer fields in the schema's order must get the same order in live calls and batches.
    """
    return json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _entry_line(entry: Mapping[str, Any]) -> bytes:
    return body_text(entry).encode() + b"\n"


def _cached_for_an_hour(value: Any) -> Any:
    """Return the value with the duration of each cache mark set to an hour unless it sets its own."""
    if isinstance(value, list):
        return [_cached_for_an_hour(each) for each in value]
    if not isinstance(value, dict):
        return value
    mark = value.get("cache_control")
    long_mark = {"cache_control": {"ttl": _ONE_HOUR, **mark}} if isinstance(mark, dict) else {}
    return {key: _cached_for_an_hour(each) for key, each in value.items()} | long_mark


def _all_batches(server: BatchServer, path: str, after: str) -> Iterator[dict[str, Any]]:
    """Yield all of the account's batches, newest first, page by page."""
    last = ""
    while True:
        page = _parse_object(server.get(f"{path}?limit={_PAGE_SIZE}{f'&{after}={last}' if last else ''}"))
        batches = as_objects(page.get("data"))
        yield from batches
        before, last = last, str(batches[-1].get("id")) if batches else ""
        if not page.get("has_more") or last in ("", before):
            return


def _parse_object(received: RawReply) -> dict[str, Any]:
    """Return the body as an object. Raises TryFailed if it is something else."""
    body = parse_json(received.raw)
    if not isinstance(body, dict):
        raise TryFailed("server", f"an answer that is not a batch, with status {received.status}", billed=True)
    return body


def _parse_id(received: RawReply) -> str:
    batch_id = _parse_object(received).get("id")
    if not isinstance(batch_id, str) or not _ID.fullmatch(batch_id):
        raise TryFailed("server", f"an answer without an id, with status {received.status}", billed=True)
    return batch_id


def _openai_batch(received: RawReply) -> BatchStatus:
    _parse_id(received)
    return _openai_status(_parse_object(received))


def _openai_status(body: Mapping[str, Any]) -> BatchStatus:
    status, failed = body.get("status"), None
    if status == "failed":
        messages = [str(error.get("message")) for error in as_objects(as_mapping(body.get("errors")).get("data"))]
        failed = one_line("; ".join(messages) or "without a reason", 240)
    expires, files = body.get("expires_at"), (body.get("output_file_id"), body.get("error_file_id"))
    counts = as_mapping(body.get("request_counts"))
    return BatchStatus(
        str(body.get("id")),
        status in _ENDED,
        float(expires) if isinstance(expires, int) else None,
        sum(each for name in ("completed", "failed") if isinstance(each := counts.get(name), int)),
        failed,
        tuple(file for file in files if isinstance(file, str) and file),
    )


def _anthropic_batch(received: RawReply) -> BatchStatus:
    _parse_id(received)
    return _anthropic_status(_parse_object(received))


def _anthropic_status(body: Mapping[str, Any]) -> BatchStatus:
    ended, expires = body.get("processing_status") == "ended", _parse_time(body.get("expires_at"))
    done = sum(number for name, number in _counts(body).items() if name != "processing")
    return BatchStatus(str(body.get("id")), ended, expires, done)


def _counts(body: Mapping[str, Any]) -> dict[str, int]:
    return {name: each for name, each in as_mapping(body.get("request_counts")).items() if isinstance(each, int)}


def _parse_time(moment: Any) -> float | None:
    """Convert an RFC 3339 time to seconds since 1970."""
    try:
        return datetime.fromisoformat(moment).timestamp()
    except (ValueError, TypeError):
        return None


def _find_source(line: str, name: str, value: Any) -> str:
    """Return the JSON source of a member's value in a line, or the value itself if it is a string."""
    if isinstance(value, str):
        return value
    decoder, key, at = json.JSONDecoder(), f'"{name}"', 0
    while (at := line.find(key, at) + 1) > 0:
        start = at - 1 + len(key)
        start += len(line[start:]) - len(line[start:].lstrip(" \t:"))
        try:
            candidate, end = decoder.raw_decode(line, start)
        except ValueError:
            continue
        if candidate == value:
            return line[start:end]
    return json.dumps(value)
