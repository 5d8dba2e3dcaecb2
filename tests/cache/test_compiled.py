"""Generated code of earlier runs: the classes are the same, and the compiler is asked only once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest
from running import ROOT

from trnspec.cache import compiled
from trnspec.cache.compiled import Compiled

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = "def __hash__(self):\n    return hash((\n                {},\n                self.line,\n    ))\n"


def test_a_text_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it begins with another number, which attrs draws in each process."""
    first = Compiled(str(tmp_path))
    code = first.compile(SCRIPT.format(-12), "<generated>", "exec")
    first.save()
    monkeypatch.setattr(compiled, "_COMPILE", None)
    assert code == Compiled(str(tmp_path)).compile(SCRIPT.format(345), "<generated>", "exec")


@pytest.mark.parametrize(
    ("source", "filename"), [(SCRIPT.format(1).replace("line", "column"), "<generated>"), (SCRIPT.format(1), "<other>")]
)
def test_other_texts_are_compiled(tmp_path: Path, source: str, filename: str) -> None:
    first = Compiled(str(tmp_path))
    first.compile(SCRIPT.format(1), "<generated>", "exec")
    first.save()
    assert compile(source, filename, "exec", dont_inherit=True) == Compiled(str(tmp_path)).compile(
        source, filename, "exec"
    )


@pytest.mark.parametrize("where", [0, 20, -1])
def test_a_damaged_file_is_not_used(tmp_path: Path, where: int) -> None:
    first = Compiled(str(tmp_path))
    code = first.compile(SCRIPT.format(1), "<generated>", "exec")
    first.save()
    (file,) = tmp_path.iterdir()
    raw = bytearray(file.read_bytes())
    raw[where] ^= 1
    file.write_bytes(raw)
    assert code == Compiled(str(tmp_path)).compile(SCRIPT.format(1), "<generated>", "exec")


@pytest.fixture
def re_compiler(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The compiler of regular expressions, restored after a test."""
    module = import_module("re._compiler")
    for name in ("compile", "_sre"):
        monkeypatch.setattr(module, name, vars(module)[name])
    re.purge()
    yield module
    re.purge()


@pytest.mark.parametrize(
    ("pattern", "flags", "text"),
    [
        (r"(?P<number>[0-9]+)(?:\.(?P<rest>x+))?$", 0, "a 12.xx"),
        (r"(?i)straße|\w{2,3}?", 0, "STRASSE"),
        (rb"[\x80-\xff]+(a)", 0, b"\x90\xffa"),
        (r" a  # comment", re.VERBOSE | re.MULTILINE, "\na"),
        (r"(?<=\n)[^\x00-\x1f\u2028]++", 0, "\nab\u2028"),
    ],
)
def test_expressions_of_earlier_runs_are_the_same(
    tmp_path: Path,
    re_compiler: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    pattern: str | bytes,
    flags: int,
    text: str | bytes,
) -> None:
    expected = re.compile(pattern, flags)
    first = Compiled(str(tmp_path))
    first.patterns(re_compiler)
    re.purge()
    assert expected == re.compile(pattern, flags)
    first.save()
    re.purge()
    monkeypatch.undo()
    monkeypatch.setattr(re_compiler, "_code", None)  # it cannot compile
    for name in ("compile", "_sre"):
        monkeypatch.setattr(re_compiler, name, vars(re_compiler)[name])
    Compiled(str(tmp_path)).patterns(re_compiler)
    again: re.Pattern[Any] = re.compile(pattern, flags)
    assert (expected, expected.groupindex, expected.groups) == (again, again.groupindex, again.groups)
    assert [m.groups() for m in expected.finditer(text)] == [m.groups() for m in again.finditer(text)]
    assert expected.search(text) is not None


def test_wrong_expressions_raise_the_same_error(tmp_path: Path, re_compiler: ModuleType) -> None:
    Compiled(str(tmp_path)).patterns(re_compiler)
    with pytest.raises(re.error, match="unterminated character set"):
        re.compile("[a")


@pytest.mark.parametrize(("option", "variable"), [("--no-cache", ""), ("--skip-others", "1")])
def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch, option: str, variable: str) -> None:
    monkeypatch.setattr(sys, "argv", ["trnspec", "validate", option])
    monkeypatch.setenv("TRNSPEC_NO_CACHE", variable)
    before = import_module("re._compiler").compile
    compiled.install()
    assert "compile" not in vars(import_module("attr._make"))
    assert before is import_module("re._compiler").compile


CHANGED = """
import sys
sys.argv = ["trnspec", "validate", sys.argv[1]]
from trnspec.__main__ import main
try:
    main()
except SystemExit as end:
    print(end.code, *sorted({m.partition(".")[0] for m in sys.modules}), *(m for m in sys.modules if m.startswith("trnspec")))
"""
LIBRARIES = (
    "ruamel",
    "cattrs",
    "jsonschema",
    "referencing",
    "numpy",
    "pandas",
    "pygls",
    "lsprotocol",
    "asyncio",
    "click",
    "json",
)
"""What a changed file that is valid needs no longer: its text is in the usual style, and its values are sound."""
PARTS = (
    "perf",
    "evaluators",
    "evaluation",
    "catalog",
    "lsp",
    "mcp",
    "site",
    "plots",
    "loading.schema",
    "loading.conversion",
    "text_table",
    "checks.rules.measurements",
    "checks.rules.transformers",
)


def test_what_a_changed_file_imports(tmp_path: Path) -> None:
    """No library but attrs and click, and no part of trnspec that has nothing to do with checks."""
    file = tmp_path / "chips" / "trainium2.yaml"
    file.parent.mkdir()
    text = (ROOT / "catalog" / "chips" / "trainium2.yaml").read_text(encoding="utf-8")
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "TRNSPEC_PLUGINS": "none",
    }
    environ.pop("TRNSPEC_NO_CACHE", None)
    for comment in ("", "# changed\n"):
        file.write_text(text + comment, encoding="utf-8")
        command = [sys.executable, "-c", CHANGED, str(file)]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
        status, *modules = done.stdout.splitlines()[-1].split()
        assert "0" == status, done.stdout
        assert {"attr", "trnspec.checks.rules.totals"} <= set(modules)
        assert not set(LIBRARIES).intersection(modules)
        assert [] == [m for m in modules for part in PARTS if f"{m}.".startswith(f"trnspec.{part}.")]
