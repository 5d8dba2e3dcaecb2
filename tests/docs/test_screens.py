"""The commands of the manual whose pages fit a screen: at most 40 lines of 80 columns."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.support.programs import ROOT, Here
from trnspec.cli.render import SCREEN

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
COMMANDS = sorted(
    {
        line
        for page in PAGES
        for line in re.findall(
            r"^(?:\$ )?trnspec ((?:show|compare|list|audit [a-z0-9.-]+)\b[^\n\\]*)$", page.read_text(), re.MULTILINE
        )
        if not re.search(r"larch|acme|FILE|\[|--(full|host|format|reasons|verdict)\b", line)
    }
)


def test_manual_shows_pages() -> None:
    assert {"show trainium2", "show trn2.48xlarge", "compare trainium1 trainium2"} <= set(COMMANDS)


@pytest.mark.parametrize("line", COMMANDS)
def test_page_fits_a_screen(tmp_path, monkeypatch, capsys, line) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    args = shlex.split(line.partition("#")[0])
    lines = Here(tmp_path, monkeypatch, capsys)(*args).out.splitlines()

    assert 0 < len(lines) <= SCREEN
    assert [each for each in lines if len(each) > 80] == []
