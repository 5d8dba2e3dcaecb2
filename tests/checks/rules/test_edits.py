"""Rules on edited documents, by tables of edits.

A table in ``edits/*.yaml``, or an edit itself, names a rule and a document: of the shipped catalog, or with ``catalog`` of the
small one or of that of a plugin. An edit maps paths below ``spec``, or of ``metadata``, to values, ``null`` removes one; ``NAME/PATH`` is a path of another document.
``finds`` has the paths of the findings, none if it is missing, and ``count`` their number; ``hint`` is what their hints begin
with, ``message`` and ``names`` what messages and hints contain. Claims of all documents are removed before unless the table has
``claims: kept``; ``claim`` adds one or several.
"""

import copy
import functools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import ROOT
from tests.support.rules import KNOWN, bare, findings, linked, shipped
from trnspec.api import graph as load
from trnspec.graph.graph import Graph
from trnspec.loading.pipeline import load_document
from trnspec.model.document import Node
from trnspec.model.reflection import dotted
from trnspec.yaml import read_text

TABLES = sorted((Path(__file__).parent / "edits").glob("*.yaml"))
EXPECTED = ("rule", "document", "finds", "count", "hint", "message", "names")


def edits() -> Iterator[Any]:
    """Each edit, with its file and line as the name of its test."""
    for file in TABLES:
        document = read_text(file.read_text("utf-8"), file.name)
        for index, table in enumerate(document.data["tables"]):
            for number, edit in enumerate(table["edits"]):
                code, name = (edit.get(key) or table[key] for key in ("rule", "document"))
                line = document.place(("tables", index, "edits", number)).line
                yield pytest.param(
                    code.partition(" ")[0], table, name, edit, id=f"{code[:6]}-{name}-{file.name}:{line}"
                )


def rules() -> set[str]:
    return {edit.get("rule") or table["rule"] for _, table, _, edit in (one.values for one in edits())}


@functools.cache
def of_plugin(name: str) -> Graph:
    return load([str(folder) for folder in (ROOT / "plugins").glob(f"trnspec-{name}/src/*/catalog")])


def listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def base_of(table: dict[str, Any]) -> Graph:
    """The catalog that the edits of a table are made in."""
    if catalog := table.get("catalog"):
        return linked() if catalog == "small" else of_plugin(catalog)
    return shipped() if table.get("claims") == "kept" else bare()


def edited(node: Node[Any], values: dict[str, Any]) -> Node[Any]:
    """The document with these values."""
    data = copy.deepcopy(node.document.data)
    claims = data.pop("claims", []) if node.claims else []
    data["claims"] = [*claims, *listed(values.get("claim", []))]
    for at, value in values.items():
        if at == "claim":
            continue
        *steps, last = at.split(".")
        below = data if steps[:1] == ["metadata"] else data["spec"]
        for step in steps:
            below = below.setdefault(step, {})
        below[last] = value
        if value is None:
            del below[last]
    # A file of its own: prices are rows of one.
    file = Path(node.document.file).with_name(f"{node.name}.yaml")
    changed = load_document(read_text(json.dumps(data), str(file)), KNOWN).node

    assert changed is not None

    return changed


def location(name: str, at: str) -> tuple[str, str]:
    other, _, path = at.rpartition("/")
    return other or name, path if path.startswith(("claims.", "metadata.")) or path == "spec" else f"spec.{path}"


def made(table: dict[str, Any], name: str, edit: dict[str, Any]) -> Graph:
    """The catalog with an edit."""
    graph = base_of(table)
    by_document: dict[str, dict[str, Any]] = {name: {}}
    for key, value in edit.items():
        if key not in EXPECTED:
            other, _, at = key.rpartition("/")
            by_document.setdefault(other or name, {})[at] = value
    nodes = {other: edited(graph.named(other), values) for other, values in by_document.items()}
    return Graph({**graph.nodes, **nodes})


@pytest.mark.parametrize(("code", "table", "name", "edit"), list(edits()))
def test_findings_of_an_edit(code: str, table: dict[str, Any], name: str, edit: dict[str, Any]) -> None:
    graph = made(table, name, edit)
    reported = findings(code, graph)
    names = {node.document.file: node.name for node in graph}

    assert {(names.get(d.where.file, ""), dotted(d.where.path)) for d in reported} == {
        location(name, at) for at in listed(edit.get("finds", []))
    }
    assert len(reported) == edit.get("count", len(reported))
    assert [d.hint for d in reported if not d.hint.startswith(edit.get("hint", ""))] == []
    assert [d.message for d in reported if any(text not in d.message for text in listed(edit.get("message", [])))] == []
    assert [d.hint for d in reported if any(text not in d.hint for text in listed(edit.get("names", [])))] == []


@pytest.mark.parametrize("code", sorted(name[:6] for name in rules()))
def test_no_findings_in_the_shipped_catalog(code: str) -> None:
    assert findings(code, shipped()) == []


def test_codes_and_names_of_the_tables() -> None:
    assert rules() <= {f"{r.code.id} {r.code.name}" for r in KNOWN.rules}
