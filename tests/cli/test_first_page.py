"""First pages: the commands of the manual print at most 40 lines of 80 columns."""

from __future__ import annotations

import re
import shlex

import pytest

from tests.support.programs import ROOT, Here
from trnspec.evaluation.page import LINES

_COMMAND = re.compile(
    r"^(?:\$ )?trnspec ((?:eval|search|plan|show|compare|list|audit [a-z0-9.-]+)\b(?:.*\\\n)*.*)$", re.MULTILINE
)
_OTHER = re.compile(
    r"--(?:format|pages|part|results|catalog|data|dask|workers|overlay|help|trace|plot|full|host|reasons|verdict)|\.\.\.|merge|acme|larch|no-such|[<>|#]"
    r"|\[OPTIONS|config\.json|p5\.|trn2.48xlarge\.memory\.bandwidth"
)
"""Commands that need files or plugins, or that print no page."""


def examples() -> list[str]:
    """The commands of the manual that print a first page."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = (m.replace("\\\n", " ") for p in pages for m in _COMMAND.findall(p.read_text(encoding="utf-8")))
    return list(dict.fromkeys(" ".join(c.split()) for c in found if not _OTHER.search(c)))


def test_examples_are_found() -> None:
    kinds = {"eval", "search", "plan", "show", "compare", "list", "audit"}
    assert kinds == {example.split()[0] for example in examples()}


@pytest.mark.parametrize(
    "example",
    [pytest.param(e, marks=pytest.mark.slow if e.split()[0] in ("eval", "search", "plan") else ()) for e in examples()],
)
def test_a_first_page_fits(example, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = Here(tmp_path, monkeypatch, capsys)(*shlex.split(example))
    lines = done.out.splitlines()

    assert done.status in (0, 1)
    assert lines or done.status == 1  # no answer
    assert len(lines) <= LINES
    assert max(map(len, lines), default=0) <= 80
