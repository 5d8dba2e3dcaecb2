"""``trnspec mcp``: the server for agents."""

from __future__ import annotations

from trnspec.cli.help import documented
from trnspec.errors import library


@documented(
    "mcp",
    ("trnspec mcp", "The command to name in the settings of an agent:"),
    ("trnspec --no-plugins mcp", "The same without code of plugins:"),
)
def command() -> None:
    """Start the MCP server, for agents: it talks on standard input and output.

    Its tools find, show, compare, check and audit figures of the catalog, run evaluators, and plan runs. Every number has
    unit, interval, source and date. The tools write nothing. Needs the extra: pip install 'trnspec[mcp]'.
    """
    for module in ("pydantic", "mcp.server.mcpserver"):
        library(module, "mcp")
    from trnspec.mcp.server import run

    run()
