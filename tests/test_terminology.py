"""The terminology of CONTRIBUTING.md, in every text that a user or a contributor reads."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.support.programs import ROOT, commands
from trnspec.api import registry

# Legitimate uses: (file, term as it occurs) -> reason.
ALLOWED: dict[tuple[str, str], str] = {
    ("CONTRIBUTING.md", ""): "the table itself",
    ("docs/reference/evaluate.md", "refused"): "the name of a column of a sweep",
    ("docs/reference/python.md", "refused"): "shown output: the repr of a sweep",
    ("docs/tutorial/write-an-evaluator.md", "refused"): "shown output: a column of a sweep",
}


def terms() -> dict[str, re.Pattern[str]]:
    """The terms of the left column that are in backticks, each with its compiled pattern."""
    section = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("## Terminology: not | use\n", 1)[1]
    left = (re.split(r"(?<!\\)\|", line)[1] for line in section.splitlines() if line.startswith("|"))
    found = (term.replace(r"\|", "|") for cell in left for term in re.findall(r"`([^`]+)`", cell))
    return {term: re.compile(rf"\b(?:{term})\b", re.IGNORECASE) for term in found}


TERMS = terms()
ANY = re.compile("|".join(pattern.pattern for pattern in TERMS.values()), re.IGNORECASE)


def prose(file: Path) -> Iterator[tuple[int, str]]:
    """The texts of a file with their lines: of Python its docstrings and messages, otherwise every line."""
    text = file.read_text("utf-8")
    if file.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
        return
    for node in ast.walk(ast.parse(text)):
        # A constant without a space is an identifier, a key or a format.
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            for number, line in enumerate(node.value.splitlines()):
                yield node.lineno + number, line


def hits(name: str, texts: Iterator[tuple[int, str]]) -> list[str]:
    """Every term that occurs in some texts, as ``file:line: term: text``."""
    return [
        f"{name}:{line}: {match[0]!r} in: {text.strip()}"
        for line, text in texts
        if ANY.search(text)
        for pattern in TERMS.values()
        for match in pattern.finditer(text)
        if (name, match[0].lower()) not in ALLOWED and (name, "") not in ALLOWED
    ]


def files_of(name: str) -> list[Path]:
    """The files of one case: a package with its pages, a module or a page."""
    path = ROOT / name
    return sorted([*path.rglob("*.py"), *path.rglob("*.md")]) if path.is_dir() else [path]


CASES = [
    *(p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "trnspec").iterdir()) if p.suffix == ".py"),
    *(p.parent.relative_to(ROOT).as_posix() for p in sorted((ROOT / "trnspec").glob("*/__init__.py"))),
    *(p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "plugins").glob("*/src"))),
    *(p.relative_to(ROOT).as_posix() for p in sorted((ROOT / "docs").rglob("*.md"))),
    *("README.md", "CONTRIBUTING.md"),
]


def test_the_table_is_read() -> None:
    """A few terms of the table, and an example of each way to match."""
    assert {"told", "nobody", "so many"} <= set(TERMS)
    assert TERMS["rivals?"].search("a rival value")
    assert not TERMS["told"].search("untold")


@pytest.mark.parametrize("name", CASES)
def test_words_of_a_package_or_page(name: str) -> None:
    found = [hit for file in files_of(name) for hit in hits(file.relative_to(ROOT).as_posix(), prose(file))]
    assert found == []


@pytest.mark.parametrize(
    ("path", "command"), list(commands()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_words_of_help_texts(path: str, command: click.Command) -> None:
    """Help texts that are composed at run time, such as those of options made from the inputs of an evaluator."""
    helps = [command.help or "", command.short_help or "", command.epilog or ""]
    helps += [param.help or "" for param in command.params if isinstance(param, click.Option)]
    assert hits(path, enumerate("\n".join(helps).splitlines(), 1)) == []


def test_words_of_summaries() -> None:
    """The one-line descriptions of evaluators and kinds, those of plugins included."""
    known = registry()
    assert hits("evaluators", enumerate((e.summary for e in known.evaluators.values()), 1)) == []
