"""The MCP server, whose tools are the endpoints of the HTTP API.

Each request is independent. Its token identifies the seat. A result is only text, because some clients put both the
text and the structured content into the agent's context, and others only one of them.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool
from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from dubito import __version__
from dubito.errors import IllegalOutput
from dubito.files import CheckedModel
from dubito.llm.request import refuse_duplicate_keys
from dubito.seats.remote import AgentAnswer, NotOpen
from dubito.web.agent import ENDPOINTS, describe_input, describe_refusal, to_text

_INSTRUCTIONS: Final = (
    "You play a game against others. Call observe until its state is `decide`. Its messages show what is new: the "
    "rules (in hello), what you know (facts), and what happened (history). Answer the question with act. Repeat until "
    "the state is `over`. If you have forgotten something, observe with `all: true` shows the whole game and all facts."
)


class ToolAnswer(AgentAnswer):
    """An answer from a client that may have turned it into text (anthropics/claude-code#82652)."""

    @property
    def readings(self) -> Sequence[Any]:
        if isinstance(self.answer, str):
            with suppress(ValueError, RecursionError):
                return [self.answer, json.loads(self.answer, object_pairs_hook=refuse_duplicate_keys)]
        return [self.answer]


_INPUTS: Final[Mapping[str, type[CheckedModel]]] = {
    **{name: each.takes for name, each in ENDPOINTS.items()},
    "act": ToolAnswer,
}


class McpApp:
    """The ASGI app for a server without sessions."""

    def __init__(self) -> None:
        self._server: Server[Any] = Server(
            "dubito",
            version=__version__,
            instructions=_INSTRUCTIONS,
            on_list_tools=_list_tools,
            on_call_tool=_call_tool,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # One manager per request, since a shared one would need the server's lifespan.
        manager = StreamableHTTPSessionManager(self._server, json_response=True, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)


async def _list_tools(context: Any, params: Any) -> ListToolsResult:
    tools = [
        Tool(name=name, description=each.about, input_schema=describe_input(each, context.request.scope["answer"]))
        for name, each in ENDPOINTS.items()
    ]
    return ListToolsResult(tools=tools)


async def _call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
    if params.name not in ENDPOINTS:
        return _refuse(f"no tool is named {params.name!r}; choose from {', '.join(ENDPOINTS)}")
    endpoint = ENDPOINTS[params.name]
    try:
        # Numbers and booleans may also be text.
        given = _INPUTS[params.name].model_validate(params.arguments or {}, strict=False)
        content = (await endpoint.use(context.request.scope["seat"], given)).model_dump(by_alias=True)
    except (ValidationError, IllegalOutput, NotOpen) as error:
        return _refuse(describe_refusal(error)[1])
    return CallToolResult(content=[TextContent(text=to_text(content))])


def _refuse(problem: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=problem)], is_error=True)
