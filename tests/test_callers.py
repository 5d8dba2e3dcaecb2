"""Public functions and classes of modules have a caller in the package, the plugins, or the documentation."""

import ast
import re
from collections import Counter

from tests.support.programs import ROOT

DEFINED = (ast.FunctionDef, ast.ClassDef)
KNOWN = {
    "trnspec/testing/pytest_plugin.py: pytest_addoption",  # hooks of pytest
    "trnspec/testing/pytest_plugin.py: pytest_configure",
    *(f"trnspec/model/transformers/counting.py: {name}" for name in ("parameters_of", "active_parameters_of")),
}
"""Called by other programs, or by tests only."""


def test_public_functions_have_a_caller() -> None:
    files = {p: p.read_text("utf-8") for p in (ROOT / "trnspec").rglob("*.py")}
    more = [*(ROOT / "plugins").glob("*/src/**/*.py"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "docs").glob("*.py")]
    texts = [*files.values(), *(p.read_text("utf-8") for p in (*more, ROOT / "README.md", ROOT / "pyproject.toml"))]
    words = Counter(word for text in texts for word in re.findall(r"\w+", text))
    found = {
        f"{path.relative_to(ROOT).as_posix()}: {node.name}"
        for path, text in files.items()
        for node in ast.parse(text).body
        # Rules and commands are registered by their decorator.
        if isinstance(node, DEFINED) and not node.name.startswith("_") and not node.decorator_list
        if words[node.name] == 1
    }
    assert len(files) > 300
    assert found - KNOWN == set()
    assert found >= KNOWN
