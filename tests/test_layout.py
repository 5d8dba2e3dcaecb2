"""The structure of the code: sizes of packages and modules, names of classes, the commands of the hooks."""

import re
import tomllib
from collections import Counter
from pathlib import Path

from tests.support.programs import ROOT
from trnspec import yaml

MODULES = sorted(f.relative_to(ROOT).as_posix() for f in (ROOT / "trnspec").rglob("*.py"))
MOST_LINES = 660
MOST_ENTRIES = 32
"""Packages, modules and data files directly in ``trnspec/``."""
MOST_MODULES = 15
MANY_MODULES = {"trnspec/checks/rules", "trnspec/cli", "trnspec/model"}
"""Packages with one module per command, document kind or subject of rules: no limit."""


def test_every_package_is_in_both_tables_of_the_documentation() -> None:
    """With the layers of pyproject.toml."""
    text = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8").partition("## The path")[0]
    packages, layers = text.split("| layer | packages |")
    rows = [set(re.findall(r"`(\w+)`", line.split("|")[1])) for line in packages.splitlines() if line.startswith("| `")]
    order = [set(re.findall(r"`(\w+)`", line)) for line in layers.splitlines() if re.match(r"\| \d+ \|", line)]
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ][0]
    expected = [set(layer.split(" | ")) for layer in contract["layers"]][1:-1]

    assert order == expected
    assert set().union(*rows) == set().union(*expected)


def test_no_module_is_long() -> None:
    lengths = {m: len((ROOT / m).read_text(encoding="utf-8").splitlines()) for m in MODULES}

    assert {m: n for m, n in lengths.items() if n > MOST_LINES} == {}


def test_the_top_level_can_be_read_at_a_glance() -> None:
    entries = [e.name for e in (ROOT / "trnspec").iterdir() if e.name not in ("__pycache__", "_data")]

    assert len(entries) <= MOST_ENTRIES, sorted(entries)


def test_no_package_is_a_heap() -> None:
    """A package with many modules has sub-packages, such as ``perf/sweep``."""
    counts = Counter(Path(m).parent.as_posix() for m in MODULES if Path(m).name != "__init__.py")

    assert {p: n for p, n in counts.items() if n > MOST_MODULES and p not in MANY_MODULES} == {}


def hooks() -> list[dict[str, object]]:
    """The hooks; the YAML reader requires a mapping, so the list is read as a value of one."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    data = yaml.read_text("hooks:\n" + text).data

    assert data is not None
    return data["hooks"]  # type: ignore[return-value]


def test_hooks_are_commands_of_this_version() -> None:
    """Each has the name of a command and options that it has; all of them skip the files of other programs."""
    import importlib

    assert ["trnspec", "trnspec-fmt"] == [hook["id"] for hook in hooks()]
    for hook in hooks():
        program, name, *options = str(hook["entry"]).split()
        command = importlib.import_module(f"trnspec.cli.{name}").command

        assert program == "trnspec"
        assert set(options) <= {option for param in command.params for option in param.opts}


def test_no_class_name_is_used_twice() -> None:
    """One class name for one concept."""
    texts = [(ROOT / m).read_text(encoding="utf-8") for m in MODULES]
    names = Counter(name for text in texts for name in re.findall(r"^class (\w+)", text, re.MULTILINE))

    assert {name for name, number in names.items() if number > 1} == set()
