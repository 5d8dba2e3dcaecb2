"""trnspec.plugins.entry_points: the same entry points as Python's own way, found without it."""

from __future__ import annotations

import importlib.metadata
import sys

import pytest

from trnspec.plugins.entry_points import EntryPoint, imported, installed


@pytest.mark.parametrize("group", ["console_scripts", "trnspec.plugins", "pytest11", "no.such.group"])
def test_the_same_as_importlib_metadata(group) -> None:
    """In this environment, with whatever tools are installed in it."""
    expected = {(e.name, e.value, e.dist.version) for e in importlib.metadata.entry_points(group=group) if e.dist}

    assert expected == {(f.name, f.value, f.version) for f in installed(group)}


TEXT = """\
# a comment
[other]
no = x:y
[a.group]
; one more
one = package.module:obj.attr
two=package [extra]

[a.group.more]
no = x:y
"""


def test_what_a_file_says(tmp_path, monkeypatch) -> None:
    """Comments, other groups, spaces; the name comes from the folder where there is no metadata."""
    folder = tmp_path / "Some_Thing-2.1.dist-info"
    folder.mkdir()
    (folder / "entry_points.txt").write_text(TEXT)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "nowhere"), str(tmp_path / "a.zip")])

    assert [
        EntryPoint("one", "Some_Thing", "2.1", "package.module:obj.attr"),
        EntryPoint("two", "Some_Thing", "2.1", "package [extra]"),
    ] == installed("a.group")


@pytest.mark.parametrize(
    ("value", "expected"),
    [("os:path.join", "join"), ("os : path", "posixpath"), ("json [extra]", "json"), ("os:path.join [x]", "join")],
)
def test_load(value, expected) -> None:
    assert expected == EntryPoint("x", "x", "1", value).load().__name__


def test_slow_ones_are_left_behind(tmp_path, monkeypatch) -> None:
    """Those after them are imported, and nothing is waited for at the end."""
    monkeypatch.syspath_prepend(tmp_path)
    for name, code in {"entry_a": "x = 1", "entry_b": "import time; time.sleep(600)", "entry_c": "x = 3"}.items():
        (tmp_path / f"{name}.py").write_text(code)
    found = imported([EntryPoint(n, n, "1", f"entry_{n}:x") for n in "abcb"], 0.5)

    assert [(1, False), (None, True), (3, False), (None, True)] == [(o.value, o.late) for o in found]


def test_nothing_to_import() -> None:
    assert [] == imported([], 1.0)
