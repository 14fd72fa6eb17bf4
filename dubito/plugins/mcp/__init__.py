"""The seats of `dubito seat` as a Model Context Protocol (MCP) server for agents."""
