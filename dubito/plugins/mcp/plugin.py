"""Adds MCP to `dubito seat` at the path `/mcp`."""

from collections.abc import Mapping

from dubito.errors import UsageError
from dubito.hooks import hookimpl


@hookimpl
def agent_apps() -> Mapping[str, str]:
    return {"/mcp": "dubito.plugins.mcp.plugin:make_app"}


def make_app() -> object:
    """Return the ASGI app. Raises UsageError if the MCP SDK is not installed."""
    try:
        # Imported late because the SDK is optional and takes a second to load.
        from dubito.plugins.mcp.server import McpApp
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise UsageError("MCP needs the extra `mcp`", hint="pip install 'dubito[mcp]'") from None
    return McpApp()
