"""Batches: OpenAI's files and `/v1/batches`, Anthropic's `/v1/messages/batches`.

An entry is answered as the same request asked at once: its name holds the draw and the try, as Dubito writes it, and
what a batch's request has beyond the usual one (a cache kept for an hour) is no part of its digest. A batch is
processed when it is handed in, and has ended when it is looked at first, unless a fault strikes it.
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
from dubito.house.request import TRY_HEADER, HeardRequest, JsonBody, Refusal, canonical_bytes
from dubito.house.wires import Wire

_DAY: Final = 86_400  # seconds until a batch expires
_LATE: Final = 4  # looks after which a late batch has ended
_NAME_PARTS: Final = 4  # of an entry: batch, draw, request, try
_FILES: Final = "/v1/files"
_OPENAI: Final = "/v1/batches"
_ANTHROPIC: Final = "/v1/messages/batches"
_MESSAGES: Final = "/v1/messages"
_PAGE: Final = 20  # batches, where no limit is said


@dataclass(frozen=True, slots=True)
class _Line:
    """The result of an entry; `answer` is None if it was not processed."""

    name: str
    status: int | None = None
    answer: Any = None


@dataclass(slots=True)
class _Batch:
    """A batch that was handed in."""

    id: str
    path: str  # of its requests
    created: int  # seconds since 1970
    given: JsonBody  # of the request that made it
    lines: list[_Line]
    fault: str | None
    looks: int = 0
    reads: dict[str, int] = field(default_factory=dict)  # of its files

    @property
    def ended(self) -> bool:
        return self.looks >= (_LATE if self.fault == "late_batch" else 1)

    def of_kind(self, good: bool) -> list[_Line]:
        return [line for line in self.lines if (line.status == 200) == good]


class BatchDesk:
    """Takes batches in, and shows their results."""

    def __init__(
        self, core: Core, log: CallLog, wires: Mapping[str, Wire], clock: Callable[[], float] = time.time
    ) -> None:
        self._core, self._log, self._wires, self._clock = core, log, wires, clock
        self._files: dict[str, bytes] = {}
        self._batches: dict[str, _Batch] = {}

    @property
    def routes(self) -> list[Route]:
        return [
            Route(_FILES, self._answering(self._upload), methods=["POST"]),
            Route(f"{_FILES}/{{id}}/content", self._answering(self._content), methods=["GET"]),
            Route(_OPENAI, self._answering(self._openai_in), methods=["POST"]),
            Route(_ANTHROPIC, self._answering(self._anthropic_in), methods=["POST"]),
            *(Route(path, self._answering(self._list_batches), methods=["GET"]) for path in (_OPENAI, _ANTHROPIC)),
            *(
                Route(f"{path}/{{id}}", self._answering(self._show_batch), methods=["GET"])
                for path in (_OPENAI, _ANTHROPIC)
            ),
            Route(f"{_ANTHROPIC}/{{id}}/results", self._answering(self._results), methods=["GET"]),
        ]

    def _answering(self, answer: Callable[[Request, bytes], bytes]) -> Callable[[Request], Any]:
        """An answer as its protocol sends it, or the refusal in its place."""

        async def told(request: Request) -> Response:
            wire = self._wire(request)
            try:
                wire.admit(request.headers)
                content, status = answer(request, await request.body()), 200
            except Refusal as refusal:
                content, status = canonical_bytes(wire.error(refusal, "req_batch")), wire.problems[refusal.kind].status
            return Response(content, status, wire.headers("req_batch", limited=False), media_type="application/json")

        return told

    def _wire(self, request: Request) -> Wire:
        return self._wires[_MESSAGES if request.url.path.startswith(_ANTHROPIC) else "/v1/responses"]

    def _upload(self, request: Request, raw: bytes) -> bytes:
        content = _file_in(request.headers.get("content-type", ""), raw)
        made = f"file-{sha256(content).hexdigest()[:24]}"
        self._files[made] = content
        return canonical_bytes({"id": made, "object": "file", "bytes": len(content), "purpose": "batch"})

    def _openai_in(self, request: Request, raw: bytes) -> bytes:
        given = _object(raw)
        file, path = given.get("input_file_id"), str(given.get("endpoint"))
        if file not in self._files or path not in self._wires:
            raise Refusal("bad_value", name="input_file_id", expected="a file of requests to one endpoint")
        entries = [_object(line) for line in self._files[file].split(b"\n") if line]
        bodies = [(str(entry.get("custom_id")), entry.get("body")) for entry in entries]
        return self._shape(self._taken_in("batch_", path, given, bodies, request.headers))

    def _anthropic_in(self, request: Request, raw: bytes) -> bytes:
        given = _object(raw)
        entries = given.get("requests")
        if not isinstance(entries, list) or not entries:
            raise Refusal("missing", name="requests")
        bodies = [(str(entry.get("custom_id")), _as_at_once(entry.get("params"))) for entry in entries]
        return self._shape(self._taken_in("msgbatch_", _MESSAGES, {}, bodies, request.headers))

    def _taken_in(
        self, kind: str, path: str, given: JsonBody, bodies: Sequence[tuple[str, Any]], headers: Headers
    ) -> _Batch:
        """A new batch, processed."""
        entries = canonical_bytes([[name.partition("-")[2], body] for name, body in bodies])
        fault = self._core.faults.of_batch(entries)
        lines = []
        for place, (name, body) in enumerate(bodies):
            skipped = fault == "failed_batch" or (fault == "expired_batch" and place % 2)
            lines.append(_Line(name) if skipped else self._processed(path, name, body, headers))
        number = sha256(entries + str(len(self._batches)).encode()).hexdigest()[:24]
        batch = _Batch(f"{kind}{number}", path, int(self._clock()), given, lines, fault)
        self._batches[batch.id] = batch
        return batch

    def _processed(self, path: str, name: str, body: Any, headers: Headers) -> _Line:
        wire = self._wires[path]
        parts = name.split("-")
        _, draw, _, number = parts if len(parts) == _NAME_PARTS else ("", "0", "", "1")
        said = {"x-dubito-draw": draw, TRY_HEADER: number}
        answer = self._core.create(
            wire, HeardRequest.of(wire.name, wire.base, path, said, canonical_bytes(body)), headers
        )
        if answer.delivery is not None:  # there is no connection to strike
            self._log.add(answer.call.unsent())
            return _Line(name)
        self._log.add(answer.call)
        return _Line(name, answer.status, _at_batch_tier(answer.content))

    def _find(self, request: Request) -> _Batch:
        batch = self._batches.get(request.path_params["id"])
        if batch is None:
            raise Refusal("unknown_path", method=request.method, path=request.url.path)
        return batch

    def _show_batch(self, request: Request, raw: bytes) -> bytes:
        batch = self._find(request)
        batch.looks += 1
        return self._shape(batch)

    def _list_batches(self, request: Request, raw: bytes) -> bytes:
        """The latest first."""
        kind = "msgbatch_" if request.url.path == _ANTHROPIC else "batch_"
        batches = [batch for name, batch in reversed(self._batches.items()) if name.startswith(kind)]
        after = request.query_params.get("after") or request.query_params.get("after_id")
        names = [batch.id for batch in batches]
        batches = batches[names.index(after) + 1 :] if after in names else batches
        limit = int(request.query_params.get("limit", _PAGE))
        data = [json.loads(self._shape(batch)) for batch in batches[:limit]]
        return canonical_bytes({"object": "list", "data": data, "has_more": len(batches) > limit})

    def _shape(self, batch: _Batch) -> bytes:
        """A batch as its protocol shows it."""
        good, bad = len(batch.of_kind(good=True)), len(batch.of_kind(good=False))
        if batch.path == _MESSAGES:
            return canonical_bytes(_anthropic_shape(batch, good))
        failed = batch.fault == "failed_batch"
        status = "failed" if failed else "expired" if batch.fault == "expired_batch" else "completed"
        message = {"message": "The house takes no batch today.", "code": "invalid_request", "param": None}
        return canonical_bytes(
            {
                **batch.given,
                "id": batch.id,
                "object": "batch",
                "status": status if batch.ended else "in_progress",
                "created_at": batch.created,
                "expires_at": batch.created + _DAY,
                "errors": {"object": "list", "data": [message]} if failed else None,
                "output_file_id": f"{batch.id}.out" if batch.ended and good and not failed else None,
                "error_file_id": f"{batch.id}.err" if batch.ended and bad and not failed else None,
                "request_counts": {"total": len(batch.lines), "completed": good, "failed": bad},
            }
        )

    def _content(self, request: Request, raw: bytes) -> bytes:
        batch, _, kind = request.path_params["id"].partition(".")
        request.path_params["id"] = batch
        found = self._find(request)
        return _file(found, kind, [_openai_line(found, line) for line in found.of_kind(kind == "out")])

    def _results(self, request: Request, raw: bytes) -> bytes:
        batch = self._find(request)
        if not batch.ended:
            raise Refusal("bad_value", name="id", expected="a batch that has ended")
        return _file(batch, "out", [_anthropic_line(line) for line in batch.lines])


def _file_in(kind: str, raw: bytes) -> bytes:
    """The file in a form of several parts."""
    _, _, boundary = kind.partition("boundary=")
    for part in raw.split(b"--" + boundary.strip('"').encode()):
        head, _, content = part.partition(b"\r\n\r\n")
        if b'name="file"' in head:
            return content.removesuffix(b"\r\n")
    raise Refusal("missing", name="file")


def _object(raw: bytes) -> JsonBody:
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Refusal("malformed")
    return found


def _as_at_once(body: Any) -> Any:
    """A request without what only a batch's has: a cache that is kept for an hour."""
    if isinstance(body, list):
        return [_as_at_once(each) for each in body]
    if not isinstance(body, dict):
        return body
    return {name: _as_at_once(each) for name, each in body.items() if (name, each) != ("ttl", "1h")}


def _at_batch_tier(content: bytes) -> Any:
    """The body of an answer, served as a batch; its text where it is no object."""
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
    """Return the results of entries as the lines of a file."""
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


def _openai_line(batch: _Batch, line: _Line) -> JsonBody:
    known = {"id": f"batch_req_{sha256(line.name.encode()).hexdigest()[:24]}", "custom_id": line.name}
    if line.status is None:
        error = {"code": "batch_expired", "message": "This request could not be executed before the batch expired."}
        return {**known, "response": None, "error": error}
    response = {"status_code": line.status, "request_id": "req_batch", "body": line.answer}
    return {**known, "response": response, "error": None}


def _anthropic_line(line: _Line) -> JsonBody:
    if line.status is None:
        result: JsonBody = {"type": "expired"}
    elif line.status == 200:
        result = {"type": "succeeded", "message": line.answer}
    else:
        result = {"type": "errored", "error": line.answer}
    return {"custom_id": line.name, "result": result}


def _anthropic_shape(batch: _Batch, good: int) -> JsonBody:
    expired, errored = (sum(test(line) for line in batch.lines) for test in (_is_expired, _is_errored))
    none = {"processing": len(batch.lines), "succeeded": 0, "errored": 0, "canceled": 0, "expired": 0}
    done = {"processing": 0, "succeeded": good, "errored": errored, "canceled": 0, "expired": expired}
    moments = [datetime.fromtimestamp(batch.created + more, UTC).isoformat() for more in (0, _DAY)]
    return {
        "id": batch.id,
        "type": "message_batch",
        "processing_status": "ended" if batch.ended else "in_progress",
        "request_counts": done if batch.ended else none,
        "created_at": moments[0],
        "expires_at": moments[1],
        "ended_at": moments[0] if batch.ended else None,
        "results_url": f"{_ANTHROPIC}/{batch.id}/results" if batch.ended else None,
        "archived_at": None,
        "cancel_initiated_at": None,
    }


def _is_expired(line: _Line) -> bool:
    return line.status is None


def _is_errored(line: _Line) -> bool:
    return line.status not in (None, 200)
