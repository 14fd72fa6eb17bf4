"""The HTTP API of `dubito seat`. An agent observes its games and answers questions, using its seat's token."""

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
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
from dubito.llm.answers import Schema
from dubito.llm.request import DuplicateKey
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
from dubito.serve import KNOWN_VISITOR
from dubito.web.guard import Guard, read_body

OPENAPI: Final = "/openapi.json"
_UNAUTHORIZED: Final = "The token is missing or invalid. Send it in the header `Authorization: Bearer TOKEN`."
_STATUSES: Final = {
    400: "The request is not valid HTTP, or a proxy could read it differently.",
    401: "The token is missing or invalid.",
    403: "The request comes from another site.",
    404: "The path is unknown.",
    405: "The path has another method.",
    409: "The question is not open.",
    413: "The body is too long.",
    415: "The body is not application/json.",
    421: "The host name is not this server's.",
    422: "The input is invalid.",
    500: "The server failed.",
    503: "Too many visitors are connected.",
}
ANY: Final[Schema] = {}
_TEXT_STATUSES: Final = (400, 503)  # statuses that can come from the HTTP layer, as plain text


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
    seats: Sequence[AgentSeat], host: str, allowed: Sequence[str], more: Mapping[str, ASGIApp], answer: Schema = ANY
) -> Starlette:
    """Build the web app for these seats.

    `more` maps paths to apps from plugins, and `answer` is the schema of the game's answers.
    """
    routes = [Route(f"/{name}", use_endpoint, methods=[each.method]) for name, each in ENDPOINTS.items()]
    routes += [Route(path, app, methods=["POST"]) for path, app in more.items()]
    refused = (HTTPException, NotOpen, IllegalOutput, ValidationError, DuplicateKey, ClientDisconnect, Exception)
    document = to_text(build_openapi(answer))
    app = Starlette(
        routes=[Route(OPENAPI, lambda request: Response(document, media_type="application/json")), *routes],
        middleware=[Middleware(Guard, host=host, allowed=allowed), Middleware(TokenCheck, seats=seats, answer=answer)],
        exception_handlers=dict.fromkeys(refused, _refuse),
    )
    app.router.redirect_slashes = False
    return app


@dataclass(eq=False)
class TokenCheck:
    """Middleware that finds the seat for a request's token. Only the API's description is public."""

    app: ASGIApp
    seats: Sequence[AgentSeat]
    answer: Schema

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["path"] != OPENAPI:
            scheme, _, token = Request(scope).headers.get("authorization", "").partition(" ")
            given = token.strip().encode("utf-8", "replace")
            # Comparisons take constant time, so that timing reveals nothing.
            equal = [seat for seat in self.seats if secrets.compare_digest(given, seat.token.encode())]
            if not equal or scheme.casefold() != "bearer":
                response = JSONResponse({"error": _UNAUTHORIZED}, 401, {"WWW-Authenticate": "Bearer"})
                await response(scope, receive, send)
                return
            equal[0].connect()
            scope.update({"seat": equal[0], "answer": self.answer, KNOWN_VISITOR: True})
        await self.app(scope, receive, send)


async def use_endpoint(request: Request) -> Response:
    endpoint = ENDPOINTS[request.url.path[1:]]
    if endpoint.method == "POST":
        given = endpoint.takes.model_validate_json(await read_body(request))
    else:
        given = endpoint.takes.model_validate_strings(dict(request.query_params), strict=False)
    content = (await endpoint.use(request.scope["seat"], given)).model_dump(by_alias=True)
    return Response(to_text(content), media_type="application/json")


def to_text(content: Any) -> str:
    """Return short JSON. All non-ASCII characters are escaped because models may write half of a surrogate pair."""
    return json.dumps(content, separators=(",", ":"))


def describe_refusal(error: Exception) -> tuple[int, str]:
    """Return the HTTP status and the message for an error."""
    match error:
        case NotOpen():
            return 409, str(error)
        case IllegalOutput():
            return 422, f"{error.problem}; the question is still open"
        case DuplicateKey():
            return 422, f"invalid input: {error}"
        case ValidationError():
            return 422, f"invalid input: {describe_fault(error, 'the body')}"
        case HTTPException():
            hint = f"; {OPENAPI} describes the API" if error.status_code in (404, 405) else ""
            return error.status_code, f"{error.detail}{hint}"
        case _:
            return 500, "The server failed. See its terminal for the error."


def _refuse(request: Request, error: Exception) -> Response:
    status, text = describe_refusal(error)
    return JSONResponse({"error": text}, status, error.headers if isinstance(error, HTTPException) else None)


def describe_input(endpoint: Endpoint, answer: Schema) -> dict[str, Any]:
    """Return the schema of an endpoint's input, with the schema of the game's answers."""
    schema = endpoint.takes.model_json_schema()
    if "answer" in schema.get("properties", {}):
        schema["properties"]["answer"] |= answer
    return schema


def build_openapi(answer: Schema = ANY) -> dict[str, Any]:
    """Build the API's description from the models of its requests and responses, and the game's answers."""
    models: list[type[BaseModel]] = [AgentAnswer, RefusedRequest, *(each.returns for each in ENDPOINTS.values())]
    template = "#/components/schemas/{model}"
    _, schemas = models_json_schema([(model, "serialization") for model in models], ref_template=template)
    schemas["$defs"]["AgentAnswer"] = describe_input(ENDPOINTS["act"], answer)
    paths = {}
    for name, endpoint in ENDPOINTS.items():
        responses = {"200": {"description": "OK", "content": _json_content(endpoint.returns)}}
        for code, text in _STATUSES.items():
            plain = {"text/plain": {"schema": {"type": "string"}}} if code in _TEXT_STATUSES else {}
            responses[str(code)] = {"description": text, "content": _json_content(RefusedRequest) | plain}
        described: dict[str, Any] = {"operationId": name, "summary": endpoint.about, "responses": responses}
        if endpoint.method == "POST":
            described["requestBody"] = {"required": True, "content": _json_content(endpoint.takes)}
        else:
            options = endpoint.takes.model_json_schema().get("properties", {})
            described["parameters"] = [{"name": key, "in": "query", "schema": each} for key, each in options.items()]
        paths[f"/{name}"] = {endpoint.method.lower(): described}
    return {
        "openapi": "3.1.0",
        "info": {"title": "dubito seat", "version": __version__, "description": "Play a seat in the games of a run."},
        "paths": paths,
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _json_content(model: type[BaseModel]) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
