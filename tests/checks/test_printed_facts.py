"""Facts that the five documents print are in the catalog; of other sources the share is reported."""

from __future__ import annotations

from collections import Counter

import pytest
from attrs import evolve

from tests.support.printed_facts import FIVE, PATHS, documents, facts, noted, place
from trnspec.api import graph as load

FACTS = facts()


@pytest.fixture(scope="module")
def graph():
    return load()


def test_rows_are_read() -> None:
    """Rows of each of the five documents, by the names that the catalog gives them."""
    five = Counter(f.source for f in FACTS if f.of_the_five)

    assert set(five) == set(FIVE)
    assert five.total() == 108


def _placed(fact, graph) -> bool:
    return place(fact, graph) not in (None, "elsewhere")


def test_every_fact_of_the_five_documents(graph) -> None:
    """As printed, from that source and that line, at the attribute it belongs to: adopted or as a claim."""
    missing = [f"{f}: {place(f, graph) or 'nowhere'}" for f in FACTS if f.of_the_five and not _placed(f, graph)]

    assert not missing, "\n".join(["not in the catalog:", *missing])


@pytest.mark.parametrize(
    "change",
    [
        {"value": "191"},
        {"unit": "GFLOPS"},
        {"qualifier": "FP16/BF16/FP32 dense"},
        {"source": "neuron-trn1-2023-02"},
        {"line": 19},
        {"subject": "trainium2"},
        {"attribute": "device_memory_capacity"},
    ],
    ids=str,
)
def test_absent_value_is_not_found(graph, change) -> None:
    """A row that is altered in one column is nowhere, so that no row is found by accident."""
    fact = next(f for f in FACTS if f.attribute == "peak_compute" and f.value == "190")

    assert _placed(fact, graph)
    assert not _placed(evolve(fact, **change), graph)


def test_coverage_of_all_other_rows(graph, tell) -> None:
    """Reports how many of the other facts the catalog has; the attributes it knows best must be nearly complete."""
    others = [f for f in FACTS if not f.of_the_five]
    about = [f for f in others if documents(f, graph) and f.source]
    found = {f.row: place(f, graph) for f in about}
    have, total, reported, missing = Counter[str](), Counter[str](), [], []
    for fact in about:
        total[fact.attribute] += 1
        if found[fact.row] is not None:
            have[fact.attribute] += 1
        elif noted(fact, graph):
            reported.append(fact)
        else:
            missing.append(f"  missing: {fact}")
    exact = sum(p not in (None, "elsewhere") for p in found.values())
    lines = [
        f"{len(others)} rows from other sources, of which {len(about)} are about Trainium and have a known source",
        f"{have.total()} of these ({have.total() / len(about):.0%}) are in the catalog, from that source",
        f"{exact} of them at the path that belongs to the attribute, the others elsewhere in the right document",
        f"{len(reported)} more are stated in a note",
        "complete: " + ", ".join(f"{a} {n}" for a, n in sorted(total.items()) if have[a] == n),
        "not complete: " + ", ".join(f"{a} {have[a]} of {n}" for a, n in sorted(total.items()) if have[a] < n),
    ]
    tell("facts of other sources in the catalog", [*lines, *missing])
    known = [f for f in about if f.attribute in PATHS]

    assert have.total() >= 0.85 * len(about)
    assert sum(found[f.row] is not None for f in known) >= 0.95 * len(known)
