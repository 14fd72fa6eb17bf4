"""Background responses: `background: true` at `/v1/responses`, fetched by their id.

One is answered as the same request asked at once: the name that Dubito writes into its metadata holds draw and try,
and what it has beyond the usual request is no part of its digest. It has ended when it is looked at first, unless a
fault strikes it.
"""

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dubito.house.core import Core, ServerAnswer
from dubito.house.request import TRY_HEADER, HeardRequest, JsonBody, Refusal, canonical_bytes
from dubito.house.wires import Wire

NAMED: Final = "dubito"  # in the metadata
_PATH: Final = "/v1/responses"
_NAME_PARTS: Final = 4  # batch, draw, request, try
_LATE: Final = 4  # looks after which a late response has ended
_WINDOWS: Final = ("soonest", "2h", "8h")
_OF_WINDOWS: Final = ("background", "background_options")


@dataclass(slots=True)
class _Waiting:
    """A response that was asked for: what is said of it before it has ended, and after."""

    queued: JsonBody
    done: JsonBody
    fault: str | None
    looks: int = 0

    @property
    def ended(self) -> bool:
        return self.looks >= (_LATE if self.fault == "late_response" else 1)


class BackgroundDesk:
    """Takes requests whose replies are fetched later, and shows them."""

    def __init__(self, core: Core, wire: Wire, clock: Callable[[], float] = time.time) -> None:
        self._core, self._wire, self._clock = core, wire, clock
        self._waiting: dict[str, _Waiting] = {}
        self._refused = Counter[str]()  # by name: one that is posted again is another try

    @property
    def routes(self) -> list[Route]:
        return [Route(f"{_PATH}/{{id}}", self._shown, methods=["GET"])]

    def take_in(self, asked: HeardRequest, headers: Headers) -> ServerAnswer:
        """A response that is queued, or the refusal or fault in its place."""
        body = asked.body or {}
        window = (body.get("background_options") or {}).get("completion_window", _WINDOWS[0])
        if window not in _WINDOWS:
            refusal = Refusal("bad_value", name="background_options.completion_window", expected=" or ".join(_WINDOWS))
            return self._core.refuse(self._wire, asked, refusal)
        name = str((body.get("metadata") or {}).get(NAMED, ""))
        live = _as_at_once(asked, name, self._refused[name])
        answer = self._core.create(self._wire, live, headers)
        if answer.status != 200:
            self._refused[name] += 1
            return answer
        made = f"resp_{live.digest_for('background', by_try=True)[:48]}"
        fault = self._core.faults.of_response(live)
        moment = {"id": made, "created_at": int(self._clock()), **{name: body.get(name) for name in _OF_WINDOWS}}
        moment |= {"store": body.get("store", True), "metadata": body.get("metadata") or {}}
        queued = {**_unfinished(live.body or {}, "queued"), **moment}
        done = {**_done(answer.content, live.body or {}, fault), **moment}
        self._waiting[made] = _Waiting(queued, done, fault)
        return replace(answer, content=canonical_bytes(queued), media="application/json")

    async def _shown(self, request: Request) -> Response:
        waiting = self._waiting.get(request.path_params["id"])
        try:
            self._wire.admit(request.headers)
            if waiting is None or waiting.fault == "lost_response":
                raise Refusal("unknown_path", method=request.method, path=request.url.path)
            waiting.looks += 1
            content, status = canonical_bytes(waiting.done if waiting.ended else waiting.queued), 200
        except Refusal as refusal:
            status = self._wire.problems[refusal.kind].status
            content = canonical_bytes(self._wire.error(refusal, "req_look"))
        headers = self._wire.headers("req_look", limited=False)
        return Response(content, status, headers, media_type="application/json")


def _as_at_once(asked: HeardRequest, name: str, refused: int) -> HeardRequest:
    """The request that is answered at once for the same question, with the draw and the try in its name."""
    given = dict(asked.body or {})
    named, store = dict(given.pop("metadata", None) or {}), given.pop("store", None)
    parts = name.split("-")
    named.pop(NAMED, None)
    known = {"metadata": named} if named else {}
    live = {name: value for name, value in given.items() if name not in _OF_WINDOWS} | known
    said: Mapping[str, str] = {"x-dubito-draw": asked.draw, TRY_HEADER: str(asked.try_number)}
    if len(parts) == _NAME_PARTS and parts[3].isdecimal():
        said = {"x-dubito-draw": parts[1], TRY_HEADER: str(int(parts[3]) + refused)}
        live["store"] = False  # as Dubito asks at once
    elif store is not None:
        live["store"] = store
    return HeardRequest.of(asked.protocol, asked.base, asked.path, said, canonical_bytes(live))


def _unfinished(body: JsonBody, status: str, error: Any = None) -> JsonBody:
    """A response without a reply."""
    return {
        "object": "response",
        "model": body.get("model"),
        "status": status,
        "error": error,
        "incomplete_details": None,
        "output": [],
        "usage": None,
        "service_tier": "default",
    }


def _done(content: bytes, body: JsonBody, fault: str | None) -> JsonBody:
    """What has come of a response in the end; one that came to no body of its protocol has failed."""
    try:
        answered = json.loads(content)
    except (ValueError, RecursionError):
        answered = None
    match fault:
        case "failed_response":
            return _unfinished(body, "failed", {"code": "server_error", "message": "The house failed to answer."})
        case "expired_response":
            return _unfinished(body, "failed", {"code": "completion_window_expired", "message": "It was not begun."})
    if not isinstance(answered, dict):
        return _unfinished(body, "failed", {"code": "server_error", "message": "There is no such answer."})
    return answered
