"""``trnspec lsp``: the language server."""

from __future__ import annotations

from trnspec.cli.help import documented, option
from trnspec.errors import library


@documented(
    "lsp",
    ("trnspec lsp", "The command to name in the settings of an editor:"),
    ("trnspec --no-plugins lsp", "The same without code of plugins:"),
)
@option("--stdio", "Protocol", "Talk on standard input and output, as without it; some editors add it.")
def command(*, stdio: bool) -> None:  # noqa: ARG001  # there is no other way
    """Start the language server, for editors: it talks on standard input and output.

    Findings while typing, hover texts, completion, definitions, references, renaming and code actions. The how-to page
    on editors has the settings for VS Code, Neovim, Helix and Zed. Needs the extra: pip install 'trnspec[lsp]'.
    """
    for module in ("lsprotocol", "pygls"):
        library(module, "lsp")
    from trnspec.lsp.server import run

    run()
