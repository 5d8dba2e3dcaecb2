"""docs/how-to/connect-an-agent.md: its blocks run, and its table has the tools of the server."""

import re

from tests.docs.conftest import Runner, blocks
from tests.support.programs import ROOT, Here
from trnspec.mcp.server import TOOLS

PAGE = ROOT / "docs" / "how-to" / "connect-an-agent.md"


def test_every_block(tmp_path, monkeypatch, capfd) -> None:
    """The client gives the server its standard error, which has to be a file."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    runner = Runner(Here(tmp_path, monkeypatch, capfd))

    assert blocks(PAGE)

    for block in blocks(PAGE):
        runner.run(block)


def test_the_table_has_every_tool() -> None:
    rows = re.findall(r"^\| `(\w+)` \| `", PAGE.read_text(encoding="utf-8"), re.MULTILINE)

    assert rows == [tool.__name__ for tool in TOOLS]
