"""The HTTP API of `dubito seat`. An agent observes its games and answers questions, using its seat's token."""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pydantic import BaseModel, ValidationError
from pydantic.json_schema import models_json_schema
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from dubito import __version__
from dubito.errors import IllegalOutput
from dubito.files import CheckedModel, describe_fault
from dubito.seats.remote import (
    Accepted,
    AgentAnswer,
    AgentSeat,
    LegalMoves,
    NotOpen,
    Observation,
    ObserveOptions,
    SeatProgress,
)
from dubito.web.guard import Guard, read_body

OPENAPI: Final = "/openapi.json"
_UNAUTHORIZED: Final = "The token is missing or invalid. Send it in the header `Authorization: Bearer TOKEN`."
_STATUSES: Final = {401: "The token is invalid.", 409: "The question is not open.", 422: "The input is invalid."}


class NoInput(CheckedModel):
    """The input of an endpoint without parameters."""


class RefusedRequest(BaseModel):
    """The reason why a request was refused."""

    error: str


class Endpoint(NamedTuple):
    """An action that an agent can take over HTTP or as a tool."""

    method: str
    about: str
    takes: type[CheckedModel]
    returns: type[BaseModel]
    use: Callable[[AgentSeat, Any], Awaitable[BaseModel]]  # raises NotOpen or IllegalOutput


async def _observe(seat: AgentSeat, options: ObserveOptions) -> BaseModel:
    await seat.wait(options.wait)
    return seat.observe(options.all)


async def _legal_moves(seat: AgentSeat, _: NoInput) -> BaseModel:
    return seat.legal_moves()


async def _act(seat: AgentSeat, answer: AgentAnswer) -> BaseModel:
    await asyncio.wrap_future(seat.submit(answer))
    return Accepted(question=answer.question)


async def _result(seat: AgentSeat, _: NoInput) -> BaseModel:
    return seat.progress()


ENDPOINTS: Final[Mapping[str, Endpoint]] = {
    "observe": Endpoint("GET", "Wait for a question, and return what you see.", ObserveOptions, Observation, _observe),
    "legal_moves": Endpoint("GET", "Return the legal answers to the open question.", NoInput, LegalMoves, _legal_moves),
    "act": Endpoint("POST", "Answer the open question.", AgentAnswer, Accepted, _act),
    "result": Endpoint("GET", "Return how your games ended.", NoInput, SeatProgress, _result),
}


def make_agent_app(
    seats: Sequence[AgentSeat], host: str, allowed: Sequence[str], more: Mapping[str, ASGIApp]
) -> Starlette:
    """Build the web app for these seats. `more` maps paths to apps from plugins."""
    routes = [Route(f"/{name}", use_endpoint, methods=[each.method]) for name, each in ENDPOINTS.items()]
    routes += [Route(path, app, methods=["POST"]) for path, app in more.items()]
    refused = (HTTPException, NotOpen, IllegalOutput, ValidationError, ClientDisconnect, Exception)
    app = Starlette(
        routes=[Route(OPENAPI, show_openapi), *routes],
        middleware=[Middleware(Guard, host=host, allowed=allowed), Middleware(TokenCheck, seats=seats)],
        exception_handlers=dict.fromkeys(refused, _refuse),
    )
    app.router.redirect_slashes = False
    return app


class TokenCheck:
    """Middleware that finds the seat for a request's token. Only the API's description is public."""

    def __init__(self, app: ASGIApp, seats: Sequence[AgentSeat]) -> None:
        self._app, self._seats = app, seats

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != OPENAPI:
            seat = self._find_seat(Request(scope).headers.get("authorization", ""))
            if seat is None:
                response = JSONResponse({"error": _UNAUTHORIZED}, 401, {"WWW-Authenticate": "Bearer"})
                await response(scope, receive, send)
                return
            seat.connect()
            scope["seat"] = seat
        await self._app(scope, receive, send)

    def _find_seat(self, header: str) -> AgentSeat | None:
        """Return the seat for a token. Comparisons take constant time, so that timing reveals nothing."""
        scheme, _, token = header.partition(" ")
        given = token.strip().encode("utf-8", "replace")
        equal = [seat for seat in self._seats if secrets.compare_digest(given, seat.token.encode())]
        return equal[0] if equal and scheme.casefold() == "bearer" else None


async def use_endpoint(request: Request) -> Response:
    endpoint = ENDPOINTS[request.url.path[1:]]
    if endpoint.method == "POST":
        given = endpoint.takes.model_validate_json(await read_body(request))
    else:
        given = endpoint.takes.model_validate_strings(dict(request.query_params), strict=False)
    return _respond((await endpoint.use(request.scope["seat"], given)).model_dump(by_alias=True))


def show_openapi(request: Request) -> Response:
    return _respond(build_openapi())


def _respond(content: Any) -> Response:
    # Escapes all non-ASCII characters because models may write half of a surrogate pair.
    return Response(json.dumps(content), media_type="application/json")


def describe_refusal(error: Exception) -> tuple[int, str]:
    """Return the HTTP status and the message for an error."""
    match error:
        case NotOpen():
            return 409, str(error)
        case IllegalOutput():
            return 422, f"{error.problem}; the question is still open"
        case ValidationError():
            return 422, f"invalid input: {describe_fault(error, 'the body')}"
        case HTTPException():
            hint = f"; {OPENAPI} describes the API" if error.status_code in (404, 405) else ""
            return error.status_code, f"{error.detail}{hint}"
        case _:
            return 500, "The server failed. See its terminal for the error."


def _refuse(request: Request, error: Exception) -> Response:
    status, text = describe_refusal(error)
    return JSONResponse({"error": text}, status, getattr(error, "headers", None))


def build_openapi() -> dict[str, Any]:
    """Build the API's description from the models of its requests and responses."""
    models: list[type[BaseModel]] = [AgentAnswer, RefusedRequest, *(each.returns for each in ENDPOINTS.values())]
    template = "#/components/schemas/{model}"
    _, schemas = models_json_schema([(model, "serialization") for model in models], ref_template=template)
    return {
        "openapi": "3.1.0",
        "info": {"title": "dubito seat", "version": __version__, "description": "Play a seat in the games of a run."},
        "paths": {f"/{name}": {each.method.lower(): _describe(name, each)} for name, each in ENDPOINTS.items()},
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _describe(name: str, endpoint: Endpoint) -> dict[str, Any]:
    responses = {"200": {"description": "OK", "content": _json_content(endpoint.returns)}}
    responses |= {
        str(code): {"description": text, "content": _json_content(RefusedRequest)} for code, text in _STATUSES.items()
    }
    described = {"operationId": name, "summary": endpoint.about, "responses": responses}
    if endpoint.method == "POST":
        return {**described, "requestBody": {"required": True, "content": _json_content(endpoint.takes)}}
    options = endpoint.takes.model_json_schema().get("properties", {})
    return {**described, "parameters": [{"name": key, "in": "query", "schema": each} for key, each in options.items()]}


def _json_content(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
