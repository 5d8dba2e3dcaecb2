"""The command line in a hostile environment: loops of links, empty names, closed output, large settings."""

import shutil
from pathlib import Path

import pytest

from tests.support.programs import ROOT
from tests.support.tables import tables
from trnspec.api import validate
from trnspec.plugins.api import API, Plugin, Registry


def test_a_loop_of_links(tmp_path) -> None:
    mine, other = tmp_path / "mine", tmp_path / "other"
    (mine / "links").mkdir(parents=True)
    (other / "links").mkdir(parents=True)
    shutil.copy(ROOT / "catalog" / "links" / "efa-v3.yaml", other / "links")
    (mine / "links" / "a.yaml").symlink_to("b.yaml")
    (mine / "links" / "b.yaml").symlink_to("a.yaml")
    from trnspec.builtin import plugin

    known = Registry.of([plugin, Plugin(name="other", api=API, catalogs=(other,))])

    assert validate([str(mine)], registry=known).report.lines() == {("TRN001", 0)}


@pytest.mark.parametrize("args", tables(__file__)["empty_names"])
def test_empty_names(here, args) -> None:
    result = here(*args)

    assert (2, "") == (result.status, result.out)
    assert result.err.splitlines()[0].endswith("the name of a file or a folder is empty")
    assert list(here.folder.iterdir()) == [here.folder / ".git"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("select = " + "[" * 100_000, "nested too deeply"),
        ("x = " + "{a=" * 100_000, "nested too deeply"),
        ("#" * 1_000_001, "more than 1,000,000 bytes"),
        ('select = ["TRN\u0000"]', "trnspec.toml"),
    ],
)
def test_settings(here, text, words) -> None:
    (here.folder / "trnspec.toml").write_text(text)
    result = here("list")

    assert (2, "") == (result.status, result.out)
    error, *hint = result.err.splitlines()
    assert words in error
    assert [] == [line for line in hint if not line.startswith("hint: ")]
    assert len(hint) <= 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk(here) -> None:
    result = here("export", "svg", "trn2.48xlarge", "--output", "/dev/full")

    assert (2, "trnspec: /dev/full: No space left on device\n") == (result.status, result.err)
