"""The seats of `dubito seat` as a server of the Model Context Protocol (MCP), for agents."""
