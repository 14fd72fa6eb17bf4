"""Batches: OpenAI's files and `/v1/batches`, and Anthropic's `/v1/messages/batches`.

An entry gets the same answer as the same request outside a batch. Its name contains the draw and the try, in Dubito's
format, and its digest ignores the only field that is specific to batched requests (a cache that lasts an hour). A batch
is processed on submission and has ended by the first poll, unless a fault applies to it.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dubito.house.core import CallLog, Core
from dubito.house.request import TRY_HEADER, HouseRequest, JsonBody, Refusal, canonical_bytes
from dubito.house.wires import Wire

_DAY: Final = 86_400  # seconds until a batch expires
_LATE_POLLS: Final = 4  # number of polls after which a late batch ends
_NAME_PARTS: Final = 4  # parts of an entry's name: batch, draw, request, try
_FILES: Final = "/v1/files"
_OPENAI: Final = "/v1/batches"
_ANTHROPIC: Final = "/v1/messages/batches"
_MESSAGES: Final = "/v1/messages"
_PAGE_SIZE: Final = 20  # number of batches, unless the request sets a limit


@dataclass(frozen=True, slots=True)
class _EntryResult:
    """The result of an entry. `answer` is None if the entry was not processed."""

    name: str
    status: int | None = None
    answer: Any = None


@dataclass(slots=True)
class _Batch:
    id: str
    path: str  # path of its requests
    created: int  # seconds since 1970
    submitted: JsonBody  # the request that created it
    results: list[_EntryResult]
    fault: str | None
    polls: int = 0
    reads: dict[str, int] = field(default_factory=dict)  # number of reads of each file

    @property
    def has_ended(self) -> bool:
        return self.polls >= (_LATE_POLLS if self.fault == "late_batch" else 1)

    def select_results(self, *, is_good: bool) -> list[_EntryResult]:
        return [result for result in self.results if (result.status == 200) == is_good]


class BatchDesk:
    """The endpoints of both batch APIs."""

    def __init__(
        self, core: Core, log: CallLog, wires: Mapping[str, Wire], clock: Callable[[], float] = time.time
    ) -> None:
        self._core, self._log, self._wires, self._clock = core, log, wires, clock
        self._files: dict[str, bytes] = {}
        self._batches: dict[str, _Batch] = {}

    @property
    def routes(self) -> list[Route]:
        return [
            Route(_FILES, self._endpoint(self._upload), methods=["POST"]),
            Route(f"{_FILES}/{{id}}/content", self._endpoint(self._content), methods=["GET"]),
            Route(_OPENAI, self._endpoint(self._submit_openai), methods=["POST"]),
            Route(_ANTHROPIC, self._endpoint(self._submit_anthropic), methods=["POST"]),
            *(Route(path, self._endpoint(self._list_batches), methods=["GET"]) for path in (_OPENAI, _ANTHROPIC)),
            *(
                Route(f"{path}/{{id}}", self._endpoint(self._show_batch), methods=["GET"])
                for path in (_OPENAI, _ANTHROPIC)
            ),
            Route(f"{_ANTHROPIC}/{{id}}/results", self._endpoint(self._results), methods=["GET"]),
        ]

    def _endpoint(self, answer: Callable[[Request, bytes], bytes]) -> Callable[[Request], Any]:
        """Return an endpoint that sends the answer or a refusal in its protocol's format."""

        async def respond(request: Request) -> Response:
            wire = self._wire(request)
            try:
                wire.admit(request.headers)
                content, status = answer(request, await request.body()), 200
            except Refusal as refusal:
                content, status = canonical_bytes(wire.error(refusal, "req_batch")), wire.problems[refusal.kind].status
            return Response(content, status, wire.headers("req_batch", limited=False), media_type="application/json")

        return respond

    def _wire(self, request: Request) -> Wire:
        return self._wires[_MESSAGES if request.url.path.startswith(_ANTHROPIC) else "/v1/responses"]

    def _upload(self, request: Request, raw: bytes) -> bytes:
        content = _parse_file(request.headers.get("content-type", ""), raw)
        file_id = f"file-{sha256(content).hexdigest()[:24]}"
        self._files[file_id] = content
        return canonical_bytes({"id": file_id, "object": "file", "bytes": len(content), "purpose": "batch"})

    def _submit_openai(self, request: Request, raw: bytes) -> bytes:
        body = _parse_object(raw)
        file, path = body.get("input_file_id"), str(body.get("endpoint"))
        if file not in self._files or path not in self._wires:
            raise Refusal("bad_value", name="input_file_id", expected="a file of requests to one endpoint")
        entries = [_parse_object(line) for line in self._files[file].split(b"\n") if line]
        bodies = [(str(entry.get("custom_id")), entry.get("body")) for entry in entries]
        return self._show(self._process("batch_", path, body, bodies, request.headers))

    def _submit_anthropic(self, request: Request, raw: bytes) -> bytes:
        body = _parse_object(raw)
        entries = body.get("requests")
        if not isinstance(entries, list) or not entries:
            raise Refusal("missing", name="requests")
        bodies = [(str(entry.get("custom_id")), _without_hour_cache(entry.get("params"))) for entry in entries]
        return self._show(self._process("msgbatch_", _MESSAGES, {}, bodies, request.headers))

    def _process(
        self, prefix: str, path: str, submitted: JsonBody, bodies: Sequence[tuple[str, Any]], headers: Headers
    ) -> _Batch:
        """Create a batch and process its entries."""
        entries = canonical_bytes([[name.partition("-")[2], body] for name, body in bodies])
        fault = self._core.faults.find_for_batch(entries)
        results = []
        for place, (name, body) in enumerate(bodies):
            is_skipped = fault == "failed_batch" or (fault == "expired_batch" and place % 2)
            results.append(_EntryResult(name) if is_skipped else self._process_entry(path, name, body, headers))
        number = sha256(entries + str(len(self._batches)).encode()).hexdigest()[:24]
        batch = _Batch(f"{prefix}{number}", path, int(self._clock()), submitted, results, fault)
        self._batches[batch.id] = batch
        return batch

    def _process_entry(self, path: str, name: str, body: Any, headers: Headers) -> _EntryResult:
        wire = self._wires[path]
        parts = name.split("-")
        _, draw, _, number = parts if len(parts) == _NAME_PARTS else ("", "0", "", "1")
        own_headers = {"x-dubito-draw": draw, TRY_HEADER: number}
        request = HouseRequest.parse(wire.name, wire.base, path, own_headers, canonical_bytes(body))
        answer = self._core.create(wire, request, headers)
        # An entry with a connection fault is not processed.
        if answer.delivery is not None:
            self._log.add(answer.call.without_response())
            return _EntryResult(name)
        self._log.add(answer.call)
        return _EntryResult(name, answer.status, _with_batch_tier(answer.content))

    def _find(self, request: Request) -> _Batch:
        batch = self._batches.get(request.path_params["id"])
        if batch is None:
            raise Refusal("unknown_path", method=request.method, path=request.url.path)
        return batch

    def _show_batch(self, request: Request, raw: bytes) -> bytes:
        batch = self._find(request)
        batch.polls += 1
        return self._show(batch)

    def _list_batches(self, request: Request, raw: bytes) -> bytes:
        """List batches, newest first."""
        prefix = "msgbatch_" if request.url.path == _ANTHROPIC else "batch_"
        batches = [batch for name, batch in reversed(self._batches.items()) if name.startswith(prefix)]
        after = request.query_params.get("after") or request.query_params.get("after_id")
        names = [batch.id for batch in batches]
        batches = batches[names.index(after) + 1 :] if after in names else batches
        limit = int(request.query_params.get("limit", _PAGE_SIZE))
        data = [json.loads(self._show(batch)) for batch in batches[:limit]]
        return canonical_bytes({"object": "list", "data": data, "has_more": len(batches) > limit})

    def _show(self, batch: _Batch) -> bytes:
        """Return a batch in its protocol's format."""
        good, bad = len(batch.select_results(is_good=True)), len(batch.select_results(is_good=False))
        if batch.path == _MESSAGES:
            return canonical_bytes(_anthropic_object(batch, good))
        has_failed = batch.fault == "failed_batch"
        status = "failed" if has_failed else "expired" if batch.fault == "expired_batch" else "completed"
        message = {"message": "This server is not accepting batches.", "code": "invalid_request", "param": None}
        return canonical_bytes(
            {
                **batch.submitted,
                "id": batch.id,
                "object": "batch",
                "status": status if batch.has_ended else "in_progress",
                "created_at": batch.created,
                "expires_at": batch.created + _DAY,
                "errors": {"object": "list", "data": [message]} if has_failed else None,
                "output_file_id": f"{batch.id}.out" if batch.has_ended and good and not has_failed else None,
                "error_file_id": f"{batch.id}.err" if batch.has_ended and bad and not has_failed else None,
                "request_counts": {"total": len(batch.results), "completed": good, "failed": bad},
            }
        )

    def _content(self, request: Request, raw: bytes) -> bytes:
        request.path_params["id"], _, kind = request.path_params["id"].partition(".")
        batch = self._find(request)
        return _file(batch, kind, [_openai_line(result) for result in batch.select_results(is_good=kind == "out")])

    def _results(self, request: Request, raw: bytes) -> bytes:
        batch = self._find(request)
        if not batch.has_ended:
            raise Refusal("bad_value", name="id", expected="a batch that has ended")
        return _file(batch, "out", [_anthropic_line(result) for result in batch.results])


def _parse_file(kind: str, raw: bytes) -> bytes:
    """Return the file from a multipart form."""
    _, _, boundary = kind.partition("boundary=")
    for part in raw.split(b"--" + boundary.strip('"').encode()):
        head, _, content = part.partition(b"\r\n\r\n")
        if b'name="file"' in head:
            return content.removesuffix(b"\r\n")
    raise Refusal("missing", name="file")


def _parse_object(raw: bytes) -> JsonBody:
    try:
        value = json.loads(raw)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise Refusal("malformed")
    return value


def _without_hour_cache(body: Any) -> Any:
    """Remove the cache that lasts an hour, which only batched requests use, from a request."""
    if isinstance(body, list):
        return [_without_hour_cache(each) for each in body]
    if not isinstance(body, dict):
        return body
    return {name: _without_hour_cache(each) for name, each in body.items() if (name, each) != ("ttl", "1h")}


def _with_batch_tier(content: bytes) -> Any:
    """Return an answer's body with the batch service tier, or its text if the body is not an object."""
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        return content.decode(errors="replace")
    for holder in (body, body.get("usage")):
        if isinstance(holder, dict) and "service_tier" in holder:
            holder["service_tier"] = "batch"
    return body


def _file(batch: _Batch, kind: str, lines: list[JsonBody]) -> bytes:
    """Return the results of the entries as a file with one line each."""
    match batch.fault:
        case "reordered_entries":
            lines = lines[::-1]
        case "doubled_entries":
            lines = [line for line in lines for _ in range(2)]
        case "missing_entries":
            lines = lines[:-1]
    content = b"".join(canonical_bytes(line) + b"\n" for line in lines)
    batch.reads[kind] = batch.reads.get(kind, 0) + 1
    return content[: len(content) // 2] if batch.fault == "unreadable_file" and batch.reads[kind] == 1 else content


def _openai_line(result: _EntryResult) -> JsonBody:
    known = {"id": f"batch_req_{sha256(result.name.encode()).hexdigest()[:24]}", "custom_id": result.name}
    if result.status is None:
        error = {"code": "batch_expired", "message": "This request could not be executed before the batch expired."}
        return {**known, "response": None, "error": error}
    response = {"status_code": result.status, "request_id": "req_batch", "body": result.answer}
    return {**known, "response": response, "error": None}


def _anthropic_line(result: _EntryResult) -> JsonBody:
    if result.status is None:
        content: JsonBody = {"type": "expired"}
    elif result.status == 200:
        content = {"type": "succeeded", "message": result.answer}
    else:
        content = {"type": "errored", "error": result.answer}
    return {"custom_id": result.name, "result": content}


def _anthropic_object(batch: _Batch, good: int) -> JsonBody:
    expired, errored = (sum(test(result) for result in batch.results) for test in (_is_expired, _is_errored))
    unfinished = {"processing": len(batch.results), "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
    done = {"processing": 0, "succeeded": good, "errored": errored, "canceled": 0, "expired": expired}
    times = [datetime.fromtimestamp(batch.created + more, UTC).isoformat() for more in (0, _DAY)]
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if batch.has_ended else "in_progress",
        "request_counts": done if batch.has_ended else unfinished,
        "created_at": times[0],
        "expires_at": times[1],
        "ended_at": times[0] if batch.has_ended else None,
        "results_url": f"{_ANTHROPIC}/{batch.id}/results" if batch.has_ended else None,
        "archived_at": None,
        "cancel_initiated_at": None,
    }


def _is_expired(result: _EntryResult) -> bool:
    return result.status is None


def _is_errored(result: _EntryResult) -> bool:
    return result.status not in (None, 200)
