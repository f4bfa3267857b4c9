"""MCP with the official SDK: the same calls as HTTP, over stdio and streamable HTTP; writes only where allowed."""
