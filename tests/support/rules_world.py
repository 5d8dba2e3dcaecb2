"""The shipped catalog with one thing changed: what the tests of the rules work on."""

from __future__ import annotations

import functools
from typing import Any

import attrs

from trnspec.api import graph as load
from trnspec.api import registry
from trnspec.checks.reconcile.hypotheses import Case, explain_case
from trnspec.checks.reconcile.sites import Site, Term
from trnspec.checks.runner import run
from trnspec.diagnostics import Diagnostic
from trnspec.graph.graph import Graph
from trnspec.loading.pipeline import link, load_document
from trnspec.model.document import Claim, Node
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import dotted
from trnspec.plugins.api import Rule
from trnspec.quantities.quantity import Interval, parse
from trnspec.testing import split
from trnspec.yaml import Path, read_text

KNOWN = registry()
SOURCE = "neuron-trn1-2023-02"


@functools.cache
def shipped() -> Graph:
    """The shipped catalog."""
    return load()


@functools.cache
def bare() -> Graph:
    """The shipped catalog without any claims."""
    return unclaimed(shipped())


def rule(code: str) -> Rule:
    """The rule of that code."""
    return next(r for r in KNOWN.rules if r.code.id == code)


def path(text: str) -> Path:
    """``spec.memory.capacity`` as a path."""
    return tuple(int(step) if step.isdigit() else step for step in text.split("."))


def put(graph: Graph, name: str, at: str, value: Any) -> Graph:
    """The graph with another value below ``spec``: a text becomes a figure, anything else stays what it is."""
    return graph.replace(name, _put(graph.named(name).spec, path(at), value))


def _put(spec: Any, steps: Path, value: Any) -> Any:
    step, *rest = steps
    old = getattr(spec, str(step))
    if rest:
        return attrs.evolve(spec, **{str(step): _put(old, tuple(rest), value)})
    return attrs.evolve(spec, **{str(step): Figure(value=parse(value)) if isinstance(value, str) else value})


def claim(graph: Graph, name: str, at: str, says: int | str, **more: Any) -> Graph:
    """The graph with one more claim, the last of its document."""
    node = graph.named(name)
    source = Ref(more.pop("source", SOURCE))
    claims = (*node.claims, Claim(at=at, says=says, source=source, **more))
    return Graph({**graph.nodes, node.name: attrs.evolve(node, claims=claims)})


def unclaimed(graph: Graph, *names: str) -> Graph:
    """The graph without the claims of some documents, or of all."""
    chosen = names or tuple(graph.nodes)
    return Graph({**graph.nodes, **{n: attrs.evolve(graph.named(n), claims=()) for n in chosen}})


def beside(*texts: str) -> Graph:
    """Documents beside those of the shipped catalog; each text may hold several, as an example does."""
    files = [file for text in texts for file in split(text, KNOWN)]
    readings = [load_document(read_text(text, name), KNOWN) for name, text in files]
    graph = link([r for r in readings if r.node is not None])[0]
    return Graph({**shipped().nodes, **graph.nodes})


def findings(code: str, graph: Graph) -> list[Diagnostic]:
    """What one rule finds."""
    return run([rule(code)], graph)


def found(code: str, graph: Graph) -> set[tuple[str, str]]:
    """Where one rule finds something: document and path."""
    names = {node.document.file: node.name for node in graph}
    return {(names.get(d.where.file, d.where.file), dotted(d.where.path)) for d in findings(code, graph)}


def sites(graph: Graph, name: str, *paths: str) -> tuple[Site, ...]:
    """Sites of one document, by paths below ``spec``."""
    node: Node[Any] = graph.named(name)
    return tuple(Site(node, ("spec", *path(p))) for p in paths)


def term(graph: Graph, part: tuple[str, str], *counts: tuple[str, str], factor: int = 1) -> Term:
    """A term of a sum: the part and the counts as (document, path)."""
    return Term(tuple(sites(graph, *c)[0] for c in counts), sites(graph, *part)[0], factor)


def interval(low: str, high: str | None = None) -> Interval:
    """The interval of one printed figure, or from the value of one to that of another."""
    return parse(low).interval if high is None else Interval(parse(low).value, parse(high).value)


def causes(text: str, *wanted: Interval | str, at: tuple[str, str] | Site | None = None, **more: Any) -> dict[str, str]:
    """What is reported about a figure that should have agreed with others: sentences by explanation."""
    graph = more.pop("graph", Graph({}))
    site = at if isinstance(at, Site) else sites(bare(), *(at or ("trainium1", "memory.stacks.capacity")))[0]
    expected = tuple(w if isinstance(w, Interval) else parse(w).interval for w in wanted)
    case = Case(site, parse(text), expected, tuple(more.pop("terms", ())), tuple(more.pop("shares", ())), graph)
    assert not more
    return {e.id: e.sentence for e in explain_case(case)}


BANDWIDTH = ("trn2.48xlarge", "fabric.bandwidth.both")
PEAK = ("trainium1", "peak.dense.bf16")
FP32 = ("trainium1", "peak.dense.fp32")
SERVER_PEAK = ("trn1.32xlarge", "stated.peak.dense.bf16")
ULTRA_PEAK = ("trn2-ultraserver", "stated.peak.dense.bf16")
ULTRA_EFA = ("trn2-ultraserver", "stated.network.bandwidth")


def of_server(graph: Graph | None = None, part: str = "peak.dense.bf16", server: str = "trn1.32xlarge") -> Term:
    graph = graph or bare()
    chip = graph.named(server).spec.chips.chip.name
    return term(graph, (chip, part), (server, "chips.count"))


def of_ultraserver(graph: Graph | None = None, part: str = "peak.dense.bf16") -> Term:
    counts = (("trn2-ultraserver", "servers.count"), ("trn2u.48xlarge", "chips.count"))
    return term(graph or bare(), ("trainium2", part), *counts)


def efa() -> Term:
    return term(bare(), ("trn2u.48xlarge", "network.bandwidth"), ("trn2-ultraserver", "servers.count"))
