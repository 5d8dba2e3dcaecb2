"""Catalogs and documents for the command line."""

import shutil

import pytest

from tests.support.programs import ROOT, SOUND, WRONG, Here, written


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


@pytest.fixture
def here_bad(here) -> Here:
    """The command line in a folder with a sound file and a wrong one."""
    (here.folder / "wire.yaml").write_text(SOUND)
    written(here.folder / "bad" / "wire.yaml", WRONG)
    return here
