"""Rules on several claims and documents: each is reported, in any order."""

import functools
from typing import Any

import attrs
import pytest

from tests.support.rules import KNOWN, SOURCE, beside, findings, rule, shipped
from trnspec.graph.graph import Graph
from trnspec.model.document import Claim, Node
from trnspec.model.ref import Ref
from trnspec.testing.helpers import examples

# What rules over claims leave out: agreeing, undecided and decided ones, on figures, counts and words.
OTHERS = (
    Claim(at="spec.note", says="yes", source=Ref(SOURCE)),
    Claim(at="spec.memory.capacity", says="1 GiB", source=Ref(SOURCE), verdict="rejected", reason="Of another."),
    Claim(at="spec.memory.bandwidth", says="1 TB/s", source=Ref(SOURCE), verdict="other-scope", scope="one stack", reason="-"),
    Claim(at="spec.power", says="1 W", source=Ref(SOURCE), verdict="superseded", reason="Older."),
)  # fmt: skip


@functools.cache
def example(code: str) -> tuple[Graph, Node[Any]] | None:
    """The first document of the example of a rule that has claims with findings, among those of the shipped catalog."""
    text = next((text for heading, text in examples(rule(code).code) if heading == "Example"), "")
    if "claims:" not in text or "file:" in text:
        return None
    graph = beside(text)
    nodes = [n for n in graph if n.claims and n.document.file not in {o.document.file for o in shipped()}]
    return next(((graph, n) for n in nodes if indices(code, graph, n)), None)


def indices(code: str, graph: Graph, node: Node[Any]) -> list[int]:
    """The claims of a document that a rule reports."""
    paths = [d.where.path for d in findings(code, graph) if d.where.file == node.document.file]
    return sorted({int(path[1]) for path in paths if path[:1] == ("claims",) and len(path) > 1})


def reported(code: str, graph: Graph, node: Node[Any], claims: tuple[Claim, ...]) -> list[int]:
    changed = attrs.evolve(node, claims=claims)
    return indices(code, Graph({**graph.nodes, node.name: changed}), changed)


# TRN313 reads the text of documents.
OVER_CLAIMS = [
    r.code.id
    for r in KNOWN.rules
    if r.code.id.startswith(("TRN3", "TRN4", "TRN5")) and r.code.id != "TRN313" and example(r.code.id) is not None
]


def test_there_are_rules_over_claims() -> None:
    assert {"TRN302", "TRN303", "TRN309", "TRN312", "TRN314", "TRN503"} <= set(OVER_CLAIMS)


@pytest.mark.parametrize("code", OVER_CLAIMS)
def test_every_claim_is_checked(code: str) -> None:
    """Before, between and after others, the same claims are reported as alone."""
    found = example(code)
    assert found is not None
    graph, node = found
    alone, others = reported(code, graph, node, node.claims), reported(code, graph, node, OTHERS)
    number, more = len(node.claims), len(OTHERS)

    assert reported(code, graph, node, (*OTHERS, *node.claims)) == [*others, *(more + n for n in alone)]
    assert reported(code, graph, node, (*node.claims, *OTHERS)) == [*alone, *(number + n for n in others)]


# These read the first path of a claim only.
FIRST_PATH = ("TRN314", "TRN315", "TRN611")


@pytest.mark.parametrize("code", [code for code in OVER_CLAIMS if code not in FIRST_PATH])
def test_every_path_of_a_claim_is_checked(code: str) -> None:
    """A claim on several paths, of which the first and the last have no figure, is reported as one on a single path."""
    found = example(code)
    assert found is not None
    graph, node = found
    parts = [claim.at.rpartition(".") for claim in node.claims]
    several = tuple(
        attrs.evolve(claim, at=claim.at if "{" in last else f"{above}.{{nothing,{last},more}}")
        for claim, (above, _, last) in zip(node.claims, parts, strict=True)
    )

    assert reported(code, graph, node, several) == reported(code, graph, node, node.claims)
