"""Generated code of earlier runs: the classes are the same, and the compiler is asked only once."""

from __future__ import annotations

import builtins
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from running import ROOT

from trnspec.cache import compiled
from trnspec.cache.compiled import Compiled

SCRIPT = "def __hash__(self):\n    return hash((\n                {},\n                self.line,\n    ))\n"


def test_a_text_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it begins with another number, which attrs draws in each process."""
    first = Compiled(str(tmp_path))
    code = first.compile(SCRIPT.format(-12), "<generated>", "exec")
    first.save()
    monkeypatch.setattr(builtins, "compile", None)
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


@pytest.mark.parametrize(("option", "variable"), [("--no-cache", ""), ("--skip-others", "1")])
def test_it_can_be_turned_off(monkeypatch: pytest.MonkeyPatch, option: str, variable: str) -> None:
    monkeypatch.setattr(sys, "argv", ["trnspec", "validate", option])
    monkeypatch.setenv("TRNSPEC_NO_CACHE", variable)
    module = ModuleType("generating")
    compiled.install(module)
    assert "compile" not in vars(module)


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
