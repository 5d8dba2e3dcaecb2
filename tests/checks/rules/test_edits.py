"""Rules on edited documents of the shipped catalog, by tables of edits.

A table in ``edits/*.yaml`` names a rule and a document. An edit maps paths below ``spec`` to values, ``null`` removes one;
``NAME/PATH`` is a path of another document. ``finds`` has the paths of the findings, none if it is missing, and ``hint`` what
their hints begin with. Claims of all documents are removed before; ``claim`` adds one.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.rules import KNOWN, bare, findings, found, shipped
from trnspec.graph.graph import Graph
from trnspec.loading.pipeline import load_document
from trnspec.yaml import read_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.model.document import Node

TABLES = sorted((Path(__file__).parent / "edits").glob("*.yaml"))


def tables() -> Iterator[dict[str, Any]]:
    for file in TABLES:
        yield from read_text(file.read_text("utf-8"), file.name).data["tables"]


def edits() -> Iterator[Any]:
    for table in tables():
        code = table["rule"].partition(" ")[0]
        for number, edit in enumerate(table["edits"], 1):
            yield pytest.param(code, table["document"], edit, id=f"{code}-{table['document']}-{number}")


def edited(name: str, values: dict[str, Any]) -> Node[Any]:
    """The document without claims and with these values."""
    document = shipped().named(name).document
    data = copy.deepcopy(document.data)
    data["claims"] = [values[at] for at in values if at == "claim"]
    for at, value in values.items():
        if at == "claim":
            continue
        *steps, last = at.split(".")
        below = data["spec"]
        for step in steps:
            below = below.setdefault(step, {})
        below[last] = value
        if value is None:
            del below[last]
    node = load_document(read_text(json.dumps(data), document.file), KNOWN).node

    assert node is not None

    return node


def locations(name: str, at: list[str] | str) -> set[tuple[str, str]]:
    split = [path.rpartition("/") for path in ([at] if isinstance(at, str) else at)]
    return {(other or name, path if path.startswith("claims.") else f"spec.{path}") for other, _, path in split}


@pytest.mark.parametrize(("code", "name", "edit"), list(edits()))
def test_findings_of_an_edit(code: str, name: str, edit: dict[str, Any]) -> None:
    by_document: dict[str, dict[str, Any]] = {name: {}}
    for key, value in edit.items():
        if key not in ("finds", "hint"):
            other, _, at = key.rpartition("/")
            by_document.setdefault(other or name, {})[at] = value
    nodes = {other: edited(other, values) for other, values in by_document.items()}
    graph = Graph({**bare().nodes, **nodes})

    assert found(code, graph) == locations(name, edit.get("finds", []))
    assert [f.hint for f in findings(code, graph) if not f.hint.startswith(edit.get("hint", ""))] == []


@pytest.mark.parametrize("code", sorted({table["rule"].partition(" ")[0] for table in tables()}))
def test_no_findings_in_the_shipped_catalog(code: str) -> None:
    assert findings(code, shipped()) == []


def test_codes_and_names_of_the_tables() -> None:
    assert [t["rule"] for t in tables() if t["rule"] not in {f"{r.code.id} {r.code.name}" for r in KNOWN.rules}] == []
