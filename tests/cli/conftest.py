"""The command line in a folder of its own."""

import io
import shutil

import pytest

from tests.support.programs import ROOT, Here


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    """The command line in this process, 80 columns wide, with nothing to read; settings are not looked for above its folder."""
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("sys.stdin", io.StringIO())
    (tmp_path / ".git").mkdir()
    return Here(tmp_path, monkeypatch, capsys)


@pytest.fixture
def edited(here):
    """A function that copies the catalog to ``mine`` without its editions, and replaces a text in one of its files."""

    def copy(file: str = "", old: str = "", new: str = "") -> str:
        if not (here.folder / "mine").exists():
            shutil.copytree(ROOT / "catalog", here.folder / "mine", ignore=shutil.ignore_patterns("editions"))
        if file:
            path = here.folder / "mine" / f"{file}.yaml"
            text = path.read_text(encoding="utf-8")
            assert old in text
            path.write_text(text.replace(old, new, 1), encoding="utf-8")
        return "mine"

    return copy
