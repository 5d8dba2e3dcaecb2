"""Local rules: run on the checked documents and their users only, with the same findings as on all documents."""

import random
import re
from pathlib import Path

import pytest

from trnspec.api import registry
from trnspec.checks import runner
from trnspec.graph.graph import Graph
from trnspec.loading.files import documents_in, shipped
from trnspec.loading.pipeline import LoadResult, link, load_document
from trnspec.yaml import read_text

KINDS = ("chips", "cores", "links", "servers", "ultraservers", "models", "prices", "sources", "measured")
CHANGED = 0.3
"""The share of the documents in which figures are changed."""


def _changed(text: str, random_: random.Random) -> str:
    """A document in which some numbers have another digit: nearly every rule has a finding somewhere."""
    lines = text.splitlines(keepends=True)
    for index, line in enumerate(lines):
        if "name:" not in line and random_.random() < 0.15:
            lines[index] = re.sub(r"(?<=[ {-])[1-9](?=[\d,.]* ?)", lambda _: str(random_.randint(1, 9)), line, count=1)
    return "".join(lines)


@pytest.fixture(scope="module")
def readings() -> list[LoadResult]:
    """The shipped catalog with many slips."""
    random_ = random.Random(7)
    files = [file for kind in KINDS for file in documents_in(shipped() / kind)]
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    known = registry()
    return [
        load_document(
            read_text(_changed(text, random_) if random_.random() < CHANGED else text, str(file)), known, target=False
        )
        for file, text in texts.items()
    ]


def test_local_findings_point_into_used_documents(readings) -> None:
    graph, _ = link(readings)
    files: dict[str, set[str]] = {}
    for node in graph:
        files.setdefault(node.document.file, set()).add(node.name)  # a list is several documents
    found = set()
    for rule in registry().rules:
        for node in graph if rule.local else ():
            for diagnostic in runner.run([rule], graph, only=node):
                named = [files[w.file] for w in (diagnostic.where, *diagnostic.see) if w.file in files]
                used = [any(node.name in graph.using({name}) for name in names) for names in named]
                assert all(used), (diagnostic, node.name)
                found.add(rule.code.id)
    assert len(found) >= 8


def test_rules_over_the_graph_are_local_if_they_use_its_scope() -> None:
    found = [rule.code.id for rule in registry().rules if rule.local and rule.over is None]
    assert ["TRN208", "TRN303", "TRN402", "TRN403", "TRN504", "TRN610"] == found


@pytest.mark.parametrize(
    "name",
    [
        "neuronlink-v3",
        pytest.param("trainium2", marks=pytest.mark.slow),
        pytest.param("llama-3.1-8b", marks=pytest.mark.slow),
    ],
)
def test_the_report_is_that_of_all_rules_on_all_documents(name, readings, monkeypatch) -> None:
    known = registry()
    file = next(f for f in documents_in(shipped()) if f.stem == name)
    target = load_document(
        read_text(_changed(Path(file).read_text(encoding="utf-8"), random.Random(3)), "changed.yaml"), known
    )
    given = [target, *readings]
    quick = runner.check(given, known)
    monkeypatch.setattr(Graph, "using", lambda graph, _: set(graph.nodes))
    full = runner.check(given, known)

    assert full.report.diagnostics
    assert full.report == quick.report
