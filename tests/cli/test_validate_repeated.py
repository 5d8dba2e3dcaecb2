"""``trnspec validate`` after a change between two runs of the same command line: the change is found, whatever it is."""

from __future__ import annotations

import mmap
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.programs import SOUND, WRONG, Result, apart


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a sound document; settings are not looked for above it."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "wire.yaml").write_text(SOUND)
    return tmp_path


def statuses(path: str, folder: Path, change: Callable[[], None], **env: str) -> list[int]:
    """The exit statuses of a run before a change, and of one after it."""

    def run() -> Result:
        return apart("--no-plugins", "validate", path, cwd=folder, **env)

    before = run().status
    change()
    return [before, run().status]


@pytest.mark.parametrize(("path", "python_path"), [(".", ""), (".", "."), ("{}", ".")])
def test_new_file_in_a_folder_on_the_path_of_modules(folder: Path, path: str, python_path: str) -> None:
    def add() -> None:
        (folder / "bad.yaml").write_text(WRONG)

    assert statuses(path.format(folder), folder, add, PYTHONPATH=python_path) == [0, 1]


@pytest.mark.parametrize("name", ["my__pycache__x", "acme-1.0.dist-info", "__pycache__"])
def test_edited_file_in_a_folder_with_the_name_of_one_of_python(folder: Path, name: str) -> None:
    (folder / name).mkdir()
    file = folder / name / "wire.yaml"
    file.write_text(SOUND)

    def edit() -> None:
        file.write_text(WRONG)

    assert statuses(str(file), folder, edit) == [0, 1]


def test_file_of_the_same_size_and_time(folder: Path) -> None:
    file = folder / "wire.yaml"
    status = file.stat()

    def edit() -> None:
        file.write_text(SOUND.replace("kind: Link", "kind: Lynk"))
        os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))

    assert statuses("wire.yaml", folder, edit) == [0, 1]


def test_file_that_is_written_through_shared_memory(folder: Path) -> None:
    file = folder / "wire.yaml"
    with file.open("r+b") as stream, mmap.mmap(stream.fileno(), 0) as shared:
        shared[:1] = shared[:1]  # the page is dirty before the first run
        at = shared.find(b"Link")

        def write() -> None:
            shared[at : at + 4] = b"Lynk"

        assert statuses("wire.yaml", folder, write) == [0, 1]


RULE = '''
import os, sqlite3
from trnspec.model.link import Link
from trnspec.plugins.api import API, Finding, Plugin, rule

HERE = os.path.dirname(os.path.abspath(__file__))


@rule("ACME001", "acme-limit", over=Link)
def limit(node, graph):
    """Reports every link once a limit is set."""
    if {condition}:
        yield Finding(("spec",), "too much")


plugin = Plugin(name="acme", api=API, rules=(limit,))
'''


@pytest.mark.parametrize(
    "condition",
    [
        "os.environ.get('ACME_LIMIT')",
        "os.path.exists(os.path.join(HERE, 'flag'))",
        "sqlite3.connect(os.path.join(HERE, 'limits.db')).execute('select * from limits').fetchall()",
    ],
    ids=["environment", "exists", "sqlite3"],
)
def test_rule_of_a_plugin_that_reads_something_else(folder: Path, tmp_path: Path, condition: str) -> None:
    """The environment, the existence of a file, a database."""
    site = tmp_path / "site"
    (site / "acme-1.0.dist-info").mkdir(parents=True)
    (site / "acme-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n")
    (site / "acme-1.0.dist-info" / "entry_points.txt").write_text("[trnspec.plugins]\nacme = acme:plugin\n")
    (site / "acme.py").write_text(RULE.replace("{condition}", condition))
    database = sqlite3.connect(site / "limits.db")
    database.execute("create table limits (value)")
    database.commit()

    def codes(**env: str) -> list[str]:
        done = apart("--plugin", "acme", "validate", "wire.yaml", cwd=folder, PYTHONPATH=str(site), **env)
        return [word for word in done.out.split() if word == "ACME001"] + [done.err] * bool(done.err)

    assert codes() == []
    (site / "flag").write_text("")
    database.execute("insert into limits values (1)")
    database.commit()
    assert codes(ACME_LIMIT="1") == ["ACME001"]
