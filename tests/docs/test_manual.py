"""The manual: Sphinx builds it without a warning, and its generated pages describe everything that is public."""

import inspect
import re
import subprocess
import sys

import click
import pytest

import trnspec
from tests.support.programs import ROOT, commands
from trnspec.api import registry
from trnspec.cli import calibrate_import

sys.path.insert(0, str(ROOT / "docs"))

from reference_pages import ENGINE, FORMULAS, pages


@pytest.fixture(scope="module")
def generated() -> dict[str, str]:
    return pages()


@pytest.fixture(scope="module")
def known() -> dict[str, click.Command]:
    return dict([*commands()][1:]) | {"trnspec calibrate import": calibrate_import.command}


def test_every_command_and_option_is_described(generated: dict[str, str], known: dict[str, click.Command]) -> None:
    headings = set(re.findall(r"^#+ (trnspec .+)$", generated["commands.md"], re.MULTILINE))
    assert headings == set(known)
    assert {name for name, command in known.items() if not command.help} == set()
    options = {(name, o) for name, c in known.items() for o in c.params if isinstance(o, click.Option) and not o.hidden}
    assert {(name, option.opts[0]) for name, option in options if not option.help} == set()
    assert len(options) > 300


def test_every_kind_and_field_is_described(generated: dict[str, str]) -> None:
    kinds = set(re.findall(r"^## (\w+)$", generated["kinds.md"], re.MULTILINE))
    assert kinds == {k.name for k in registry().kinds.values() if k.spec.__module__.startswith("trnspec.")}
    rows = re.findall(r"^\| `([^`]+)`\S* \| (.*) \| (.*) \|$", generated["kinds.md"], re.MULTILINE)
    assert [path for path, type_, text in rows if not type_.strip() or not text.strip()] == []
    assert len(rows) > 300


def test_every_public_name_is_described(generated: dict[str, str]) -> None:
    names = {n for n in trnspec.__all__ if not n.startswith("_")}
    assert set(re.findall(r"^## (\w+)$", generated["api.md"], re.MULTILINE)) == names
    assert {n for n in names if not inspect.getdoc(getattr(trnspec, n))} == set()
    introduced = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert {n for n in names if f"`{n}`" not in introduced} == set()


@pytest.mark.slow
def test_sphinx_builds_it_without_a_warning(tmp_path) -> None:
    """Dead links, pages that no table of contents has, and docstrings that are not valid are warnings.

    In the plain theme: the tree of pages that the other one draws on each page takes a third of the time, and warns of nothing.
    """
    pytest.importorskip("sphinx")
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", "-D", "html_theme=basic"]
    run = subprocess.run([*build, "docs", str(tmp_path)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (0, "") == (run.returncode, run.stderr)
    assert (tmp_path / "index.html").is_file()
    for page in FORMULAS:
        built = tmp_path / "explanation" / page.relative_to(ROOT / "docs" / "explanation").with_suffix(".html")
        names = ENGINE.findall(page.read_text(encoding="utf-8"))
        links = re.findall(
            r'href="[./]*reference/formulas.html#(?:module-)?trnspec\.([\w.]+)"', built.read_text("utf-8")
        )
        assert links == names, page.name
    listed = re.findall(r"^- \[.+?\]\((.+?)\)", (tmp_path / "llms.txt").read_text(encoding="utf-8"), re.MULTILINE)
    pages = {
        p.relative_to(tmp_path).as_posix()
        for f in ("tutorial", "how-to", "reference", "explanation")
        for p in (tmp_path / f).rglob("*.html")
    }
    assert set(listed) == pages
