"""The tutorials on plugins do what they say, in an environment outside the repository, command by command."""

import pytest

from tests.docs.conftest import Session
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
def test_every_command(elsewhere, tmp_path, monkeypatch, page, commands) -> None:
    """What is installed is removed again, so each page begins where the reader does."""
    # Built with what is installed once, and not in an environment for each.
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "false")
    session, before = Session(elsewhere.python.parent, tmp_path), elsewhere.files()

    assert commands <= session.follow(ROOT / "docs" / f"{page}.md")
    assert "No plugins are installed.\n" == elsewhere.trnspec("plugin", "list")
    assert before == elsewhere.files()
