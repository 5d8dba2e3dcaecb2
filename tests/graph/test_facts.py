"""trnspec.graph.facts: everything a document says, and everything that is said of it."""

from collections.abc import Iterator
from typing import Any

import attrs
import pytest

from trnspec.api import graph
from trnspec.graph.facts import Fact, facts, group, in_groups, words
from trnspec.model.reflection import FigureShape, leaves, spread
from trnspec.model.rounded import RoundedCount

GRAPH = graph()
NODES = sorted(GRAPH, key=lambda n: n.name)


def of(name: str) -> dict[str, Fact]:
    return {f.at: f for f in facts(GRAPH, GRAPH.named(name))}


@pytest.mark.parametrize("node", NODES, ids=lambda n: n.name)
def test_every_figure_and_every_claim_is_a_fact(node) -> None:
    """Each figure once; each claim at each of its paths."""
    found = facts(GRAPH, node)
    figures = [p for p, shape, _ in leaves(node.spec) if isinstance(shape, FigureShape)]
    claims = sorted((".".join(map(str, p[1:])), str(c.says)) for c in node.claims for p in spread(c.at))

    assert [".".join(map(str, p)) for p in figures] == [f.at for f in found if f.figure is not None]
    assert claims == sorted((f.at, r.says) for f in found for r in f.conflicting)
    assert len(found) == len({f.at for f in found})


@pytest.mark.parametrize("node", [n for n in NODES if n.kind != "Source"], ids=lambda n: n.name)
def test_every_adopted_fact_has_a_source_and_a_date(node) -> None:
    """All but notes, which are the catalog's own, and what a source says of itself."""
    found = [f for f in facts(GRAPH, node) if f.verdict == "adopted" and f.at.rpartition(".")[2] != "note"]

    assert [f.at for f in found if not (f.source and f.as_of)] == []


def as_written(value: Any, at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Everything in a file by its dotted path; a value alone is a mapping with nothing else."""
    yield at, value if isinstance(value, dict) else {"value": value}
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, below in entries:
        yield from as_written(below, f"{at}.{step}" if at else str(step))


def date(source: str) -> str:
    return str(GRAPH.named(source).document.data["spec"]["as_of"]) if source else ""


NAMES = ("of", "at", "label", "source", "as_of", "where", "verdict", "reason", "note")


def test_origin_as_written() -> None:
    """Source, date, place, formula and remark of every adopted value are those of the file, of the fabric or the availability, or of the document."""
    for node in NODES:
        written = dict(as_written(node.document.data["spec"]))
        found = [f for f in facts(GRAPH, node) if f.value is not None and not f.at.startswith(("ratios.", "features."))]
        expected = []
        for fact in found:
            # A default is not written, and is that of the document.
            here = written.get(fact.at, {})
            around: dict[str, str] = {}
            if not ({"source", "derived"} & here.keys() or fact.at.rpartition(".")[2] == "note"):
                section = node.document.data["spec"].get(fact.at.partition(".")[0])
                section = section["blocks"] if fact.at.startswith("availability.blocks.") else section
                around = {"source": node.document.data["metadata"].get("source", "")}
                if fact.at.startswith(("fabric.", "availability.")) and "source" in section:
                    around = section
            source = here.get("source", around.get("source", ""))
            verdict = "derived" if "derived" in here else "adopted"
            rest = (here.get("where", around.get("where", "")), verdict, here.get("derived", ""), here.get("note", ""))
            expected.append((node.name, fact.at, fact.at, source, date(source), *rest))

        assert expected == [tuple(getattr(f, name) for name in NAMES) for f in found]


def test_features_and_ratios_as_written() -> None:
    """One fact each: of a feature under its name, of a printed ratio with its terms and its verdict."""
    expected, found = [], []
    for node in NODES:
        for w in node.document.data["spec"].get("features", ()):
            at = f"features.{w['name']}"
            origin = (w["source"], date(w["source"]), w.get("where", ""))
            expected.append((w["says"], node.name, at, at, *origin, "adopted", "", ""))
        for i, w in enumerate(node.document.data["spec"].get("ratios", ())):
            label = f"{w['of'].removeprefix('spec.')} over {w['over']}"
            origin = (w["source"], date(w["source"]), w.get("where", ""))
            # Of an announced chip there is no figure that a ratio agrees with.
            agrees = "adopted" if node.name == "trainium4" else "agrees"
            verdict = (w.get("verdict", agrees), w.get("reason", ""))
            expected.append((w["says"], node.name, f"ratios.{i}.says", label, *origin, *verdict, ""))
        here = [f for f in facts(GRAPH, node) if f.at.startswith(("ratios.", "features.")) and f.value is not None]
        found += [(f.text, *(getattr(f, name) for name in NAMES)) for f in here]

    assert {"adopted", "agrees"} < {f[-3] for f in found}
    assert sorted(expected) == sorted(found)


def test_conflicting_values_as_written() -> None:
    """In the order of the file, with the defaults of what is not written; what a document leaves open comes last."""
    for node in NODES:
        expected: dict[str, list[tuple[str, ...]]] = {}
        for w in node.document.data.get("claims", ()):
            value = (str(w["says"]), w["source"], date(w["source"]), w.get("where", ""))
            for path in spread(w["at"]):
                claims = expected.setdefault(".".join(map(str, path[1:])), [])
                claims.append((*value, w.get("verdict", "agrees"), w.get("reason", "")))
        found = facts(GRAPH, node)

        assert expected == {f.at: [attrs.astuple(c) for c in f.conflicting] for f in found if f.conflicting}
        assert sorted(f.value is None for f in found) == [f.value is None for f in found]


def test_interval_of_a_rounded_count() -> None:
    """A count that is printed rounded has one, as a figure has; an exact one has none."""
    known = [f for node in NODES for f in facts(GRAPH, node) if isinstance(f.value, RoundedCount)]

    assert known
    assert {f.interval_text for f in known} == {f.value.interval_text for f in known}
    assert all(f.interval_text.startswith("[") for f in known)
    assert [of("trainium2")[at].interval_text for at in ("peak.dense.bf16", "dies")] == ["[666.5, 667.5)", ""]


def test_groups() -> None:
    """What belongs to none comes first; a group is together where it first appeared."""
    assert in_groups(["b.x", "a", "c.d.x", "b.y", "a", "c.e"]) == ["a", "b.x", "b.y", "c.d.x", "c.e"]
    assert (group("a"), group("a.b.c")) == ("", "a.b")


@pytest.mark.parametrize(("value", "text"), [(True, "yes"), (12345, "12,345"), ((4, 4), "4 x 4"), ("x", "x")])
def test_text_values(value, text) -> None:
    assert words(value) == text


def test_a_list_is_one_fact() -> None:
    assert of("trn2-ultraserver")["fabric.topology.dimensions"].text == "4 x 4 x 4"
    assert ("HBM", "HBM, DDR") == (words(("HBM",)), words(("HBM", "DDR")))
