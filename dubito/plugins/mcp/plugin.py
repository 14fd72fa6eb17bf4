"""The plugin's part: MCP at the path `/mcp` of `dubito seat`."""

from collections.abc import Mapping

from dubito.errors import UsageError
from dubito.hooks import hookimpl


@hookimpl
def agent_apps() -> Mapping[str, str]:
    return {"/mcp": "dubito.plugins.mcp.plugin:make_app"}


def make_app() -> object:
    """Return the ASGI app. Raises UsageError if the MCP SDK is not installed."""
    try:
        from dubito.plugins.mcp.server import McpApp  # late: the SDK is an extra, and takes a second to load
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types"):
            raise
        raise UsageError("MCP needs the extra `mcp`", hint="pip install 'dubito[mcp]'") from None
    return McpApp()
