"""``trnspec validate`` after a change between two runs of the same command line: the change is found, whatever it is."""

import json
import mmap
import os
import re
import sqlite3
from pathlib import Path

import pytest

from tests.support.programs import SOUND, WRONG, Site, apart


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a sound document; settings are not looked for above it."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "wire.yaml").write_text(SOUND)
    return tmp_path


def add(file: Path) -> None:
    (file.parent / "bad.yaml").write_text(WRONG)


def edit(file: Path) -> None:
    file.write_text(WRONG)


def edit_with_equal_size_and_time(file: Path) -> None:
    status = file.stat()
    file.write_text(SOUND.replace("kind: Link", "kind: Lynk"))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def edit_through_shared_memory(file: Path) -> None:
    with file.open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as shared:
        at = shared.find(b"Link")
        shared[at : at + 4] = b"Lynk"


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({".": add}, "{}"),
        (
            {"__pycache__": edit, "acme-1.0.dist-info": edit_with_equal_size_and_time, "b": edit_through_shared_memory},
            "{}/__pycache__/wire.yaml {}/acme-1.0.dist-info/wire.yaml b/wire.yaml",
        ),
    ],
)
def test_change_of_a_file(folder: Path, changes, paths: str) -> None:
    """In a folder on the path of modules, or with the name of one of Python; however it is written."""
    for inner in changes:
        (folder / inner).mkdir(exist_ok=True)
        (folder / inner / "wire.yaml").write_text(SOUND)
    line = (
        "--no-plugins",
        "validate",
        "--select",
        "TRN1",
        "--format",
        "json",
        *paths.replace("{}", str(folder)).split(),
    )

    def reported() -> set[Path]:
        found = json.loads(apart(*line, cwd=folder, PYTHONPATH=".").out)["diagnostics"]
        return {(folder / d["file"]).parent for d in found}

    before = reported()
    for inner, change in changes.items():
        change(folder / inner / "wire.yaml")

    assert (before, reported()) == (set(), {folder / inner for inner in changes})


RULES = '''
import os, sqlite3
from trnspec.model.link import Link
from trnspec.plugins.api import API, Finding, Plugin, rule

HERE = os.path.dirname(os.path.abspath(__file__))


def limit(code, exceeded):
    @rule(code, f"limit-{code.lower()}", over=Link)
    def check(node, graph):
        """Reports every link once a limit is set."""
        if exceeded():
            yield Finding(("spec",), "too much")

    return check


RULES = (
    limit("ACME001", lambda: os.environ.get("ACME_LIMIT")),
    limit("ACME002", lambda: os.path.exists(os.path.join(HERE, "flag"))),
    limit("ACME003", lambda: sqlite3.connect(os.path.join(HERE, "limits.db")).execute("select * from limits").fetchall()),
)
plugin = Plugin(name="acme", api=API, rules=RULES)
'''


def test_rules_of_a_plugin_that_read_something_else(folder: Path, tmp_path: Path) -> None:
    """The environment, the existence of a file, a database."""
    site = Site(tmp_path / "site")
    site.add("acme", RULES)
    database = sqlite3.connect(site.folder / "limits.db")
    database.execute("create table limits (value)")
    database.commit()

    def codes(**env: str) -> list[str]:
        done = apart("--plugin", "acme", "validate", "wire.yaml", cwd=folder, PYTHONPATH=str(site.folder), **env)
        return re.findall("error (ACME[0-9]+)", done.out) + [done.err] * bool(done.err)

    assert codes() == []
    (site.folder / "flag").write_text("")
    database.execute("insert into limits values (1)")
    database.commit()
    assert codes(ACME_LIMIT="1") == ["ACME001", "ACME002", "ACME003"]
