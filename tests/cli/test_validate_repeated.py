"""``trnspec validate`` after a change between two runs of the same command line: the change is found, whatever it is."""

import mmap
import os
import sqlite3
from pathlib import Path

import pytest

from tests.support.programs import SOUND, WRONG, apart


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
    ("inner", "path", "change", "python_path"),
    [
        (".", ".", add, ""),
        (".", ".", add, "."),
        (".", "{}", add, "."),
        *(
            (name, f"{{}}/{name}/wire.yaml", edit, "")
            for name in ("my__pycache__x", "acme-1.0.dist-info", "__pycache__")
        ),
        (".", "wire.yaml", edit_with_equal_size_and_time, ""),
        (".", "wire.yaml", edit_through_shared_memory, ""),
    ],
)
def test_change_of_a_file(folder: Path, inner: str, path: str, change, python_path: str) -> None:
    """In a folder on the path of modules, or with the name of one of Python; however it is written."""
    (folder / inner).mkdir(exist_ok=True)
    (folder / inner / "wire.yaml").write_text(SOUND)
    line = ("--no-plugins", "validate", path.format(folder))
    before = apart(*line, cwd=folder, PYTHONPATH=python_path).status
    change(folder / inner / "wire.yaml")

    assert (before, apart(*line, cwd=folder, PYTHONPATH=python_path).status) == (0, 1)


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
