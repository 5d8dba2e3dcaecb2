"""The house rules that tools can check: floors, lengths, docstrings, the pattern of the hook."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from running import ROOT

from trnspec import yaml
from trnspec.api import registry

MODULES = sorted(f.relative_to(ROOT).as_posix() for f in (ROOT / "trnspec").rglob("*.py"))
MOST_LINES = 600


def test_floors() -> None:
    """A module imports only from the floors below it, and each library has its own place."""
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        check=False,
        text=True,
    )

    assert done.returncode == 0, done.stdout
    assert re.search(r"Contracts: [1-9]\d* kept, 0 broken", done.stdout)


def test_no_module_is_long() -> None:
    lengths = {m: len((ROOT / m).read_text(encoding="utf-8").splitlines()) for m in MODULES}

    assert {m: n for m, n in lengths.items() if n > MOST_LINES} == {}


def undocumented(tree: ast.Module) -> list[str]:
    """The public classes and functions without a docstring, methods of public classes among them."""

    def walk(body: list[ast.stmt], outer: str) -> list[str]:
        found = []
        for node in body:
            if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and node.name[0] != "_":
                if ast.get_docstring(node) is None:
                    found.append(outer + node.name)
                if isinstance(node, ast.ClassDef):
                    found += walk(node.body, f"{outer}{node.name}.")
        return found

    return ([] if ast.get_docstring(tree) else ["the module"]) + walk(tree.body, "")


def test_the_test_sees_what_is_missing() -> None:
    """A class, its method and a function; what begins with an underscore is nobody's business."""
    text = '"""M."""\nclass A:\n    def b(self): ...\n    def _c(self): ...\ndef d():\n    """D."""\ndef e(): ...\n'

    assert undocumented(ast.parse(text)) == ["A", "A.b", "e"]


@pytest.mark.parametrize("module", MODULES)
def test_public_names_have_docstrings(module) -> None:
    tree = ast.parse((ROOT / module).read_text(encoding="utf-8"))
    # The method of a protocol that is private, or one that overrides, is read where it is declared.
    assert undocumented(tree) == []


# The hook.


def hook_pattern() -> str:
    """The pattern in .pre-commit-hooks.yaml; our reader wants a mapping, so the one item is read as such."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    data = yaml.read_text(re.sub(r"^- ", "  ", text)).data

    assert data is not None
    assert data["entry"] == "trnspec validate"
    return str(data["files"])


def matched(files: list[Path]) -> set[str]:
    names = (f.relative_to(ROOT).as_posix() for f in files)
    return {n for n in names if re.search(hook_pattern(), n)}


def test_hook_sees_every_catalog_file() -> None:
    files = list((ROOT / "catalog").rglob("*.yaml"))

    assert {f.relative_to(ROOT).as_posix() for f in files} == matched(files)


def test_hook_knows_the_folder_of_every_kind() -> None:
    names = [f"{k.folder}/x.{end}" for k in registry().kinds.values() for end in ("yaml", "yml")]

    assert names == [n for n in names if re.search(hook_pattern(), n) and re.search(hook_pattern(), f"a/b/{n}")]


def test_hook_leaves_other_files_alone() -> None:
    """The files of the tests, which are wrong on purpose, and what lies in folders with similar names."""
    others = [
        "chips.yaml",
        "mychips/x.yaml",
        "chips/x.json",
        "chips/old/x.yaml",
        "sources/x.yaml.bak",
        "pyproject.toml",
    ]

    assert set() == matched(list((ROOT / "tests" / "data").rglob("*")))
    assert [n for n in others if re.search(hook_pattern(), n)] == []
