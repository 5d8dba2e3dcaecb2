"""The tutorials on plugins do what they say, in an environment outside the repository, command by command."""

from __future__ import annotations

import pytest

from tests.docs.pages import Session
from tests.support.programs import ROOT, Elsewhere, with_pytest

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def elsewhere() -> Elsewhere:
    return with_pytest()


@pytest.mark.parametrize(
    ("page", "commands"),
    [
        ("tutorial/add-a-generation", 22),
        ("tutorial/add-a-kind", 10),
        ("tutorial/write-a-rule", 12),
        ("tutorial/write-an-exporter", 7),
        ("how-to/test-a-catalog", 4),
    ],
)
def test_every_command(elsewhere, tmp_path, page, commands) -> None:
    """What is installed is removed again, so each page begins where the reader does."""
    session = Session(elsewhere.python.parent, tmp_path)

    assert commands <= session.follow(ROOT / "docs" / f"{page}.md")
    assert "No plugins are installed.\n" == elsewhere.trnspec("plugin", "list")


@pytest.mark.parametrize(
    "text",
    [
        "```console\n$ echo one\ntwo\n```\n",
        "```console\n$ false\n```\n",
        "```console\n$ true\n[exit 1]\n```\n",
    ],
)
def test_the_session_sees_a_difference(tmp_path, text) -> None:
    (tmp_path / "page.md").write_text(text)

    with pytest.raises(AssertionError):
        Session(tmp_path, tmp_path).follow(tmp_path / "page.md")


def test_the_session_remembers(tmp_path) -> None:
    """Its folder, and what it has written."""
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ mkdir in\n$ cd in\n```\nNow `a.txt`:\n\n```text\none\n```\n\n```console\n$ cat a.txt; exit 3\none\n[exit 3]\n```\n"
    )

    assert 3 == Session(tmp_path, tmp_path).follow(page)
    assert "one\n" == (tmp_path / "in" / "a.txt").read_text()
