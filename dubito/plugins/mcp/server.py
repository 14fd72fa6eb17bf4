"""The MCP server, whose tools are the endpoints of the HTTP API.

Each request is independent. Its token identifies the seat.
"""

import json
from typing import Any, Final

from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import CallToolRequestParams, CallToolResult, ListToolsResult, TextContent, Tool
from pydantic import ValidationError
from starlette.types import Receive, Scope, Send

from dubito import __version__
from dubito.errors import IllegalOutput
from dubito.seats.remote import NotOpen
from dubito.web.agent import ENDPOINTS, describe_refusal

_INSTRUCTIONS: Final = (
    "You play a game against others. Call observe until its state is `decide`. Its messages show what happened, the "
    "rules (in hello), and what you know (facts). Answer the question with act. Repeat until the state is `over`."
)


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
        Tool(name=name, description=each.about, input_schema=each.takes.model_json_schema())
        for name, each in ENDPOINTS.items()
    ]
    return ListToolsResult(tools=tools)


async def _call_tool(context: Any, params: CallToolRequestParams) -> CallToolResult:
    if params.name not in ENDPOINTS:
        return _refuse(f"no tool is named {params.name!r}; choose from {', '.join(ENDPOINTS)}")
    endpoint = ENDPOINTS[params.name]
    try:
        given = endpoint.takes.model_validate(params.arguments or {})
        content = (await endpoint.use(context.request.scope["seat"], given)).model_dump(by_alias=True)
    except (ValidationError, IllegalOutput, NotOpen) as error:
        return _refuse(describe_refusal(error)[1])
    text = json.dumps(content)
    return CallToolResult(content=[TextContent(text=text)], structured_content=json.loads(text))


def _refuse(problem: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=problem)], is_error=True)
