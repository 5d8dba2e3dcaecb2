"""trnspec.graph.currency: the newest source of every value."""

from __future__ import annotations

import attrs
import pytest

from trnspec.api import graph as load
from trnspec.errors import UsageError
from trnspec.graph.currency import ages, currencies, limit, months_between
from trnspec.model.document import Claim
from trnspec.model.ref import Ref

GRAPH = load()


@pytest.mark.parametrize(
    ("as_of", "reference", "months"),
    [
        ("2024-12-03", "2026-11-22", 23),
        ("2024-12", "2026.12", 24),
        ("2026-11-30", "2026-11", 0),
        # A year alone counts as its December, and nothing is younger than 0.
        ("2025", "2026-11", 11),
        ("2026", "2026-11", 0),
    ],
)
def test_months(as_of, reference, months) -> None:
    assert months_between(as_of, reference) == months


@pytest.mark.parametrize(("text", "months"), [("12mo", 12), ("1 month", 1), ("2y", 24), ("0mo", 0)])
def test_limits(text, months) -> None:
    assert limit(text) == months


@pytest.mark.parametrize("text", ["", "12", "-1mo", "12m", "1.5y", "soon", "99999mo"])
def test_refuses_invalid_limit(text) -> None:
    with pytest.raises(UsageError, match="is not an age"):
        limit(text)


def of(graph, name, at):
    return next(age for age in ages(graph, "2026-11", [name]) if age.at == at)


def claimed(**changes):
    """Trainium2 with one claim for its capacity alone."""
    node = GRAPH.named("trainium2")
    claim = Claim(at="spec.memory.capacity", says="96 GiB", source=Ref("ec2-api-moto-5.2.5"))
    graph = GRAPH.replace("trainium2", attrs.evolve(node.spec))
    return type(graph)({**graph.nodes, node.name: attrs.evolve(node, claims=(attrs.evolve(claim, **changes),))})


def test_a_newer_claim_that_agrees_is_the_source() -> None:
    age = of(claimed(), "trainium2", "memory.capacity")

    assert (age.source, age.as_of, age.months, age.sources) == ("ec2-api-moto-5.2.5", "2026-10-27", 1, 2)


@pytest.mark.parametrize("verdict", ["rejected", "superseded", "other-scope", "unresolved"])
def test_a_claim_that_does_not_agree_supports_nothing(verdict) -> None:
    age = of(claimed(says="512 GiB", verdict=verdict, reason="wrong"), "trainium2", "memory.capacity")

    assert (age.source, age.sources) == ("neuron-trainium2-2026-08", 1)


def test_an_older_claim_does_not_make_a_value_older() -> None:
    age = of(claimed(source=Ref("neuron-trn2-2024-12")), "trainium2", "memory.capacity")

    assert (age.source, age.sources) == ("neuron-trainium2-2026-08", 2)


def test_ages_of_figures_counts_and_words() -> None:
    """Counts and words too; derived values and documents that do not change have none."""
    known = {(age.name, age.at) for age in ages(GRAPH, "2026-11")}

    assert {("trainium2", "dies"), ("trainium2", "memory.technology"), ("trainium1", "launched")} <= known
    assert ("trainium2", "tensor_peak.dense.bf16") not in known
    assert not {name for name, _ in known} & {n.name for n in GRAPH if n.kind in ("Model", "Source", "Measurements")}


def test_documents() -> None:
    known = {c.name: c for c in currencies(GRAPH, "2026.12")}
    chip, server = known["trainium3"], known["trn3e.24xlarge"]

    assert (chip.kind, chip.as_of, chip.months) == ("Chip", "2026-10-19", 2)
    assert sum(count for _, count in chip.years) == len(list(ages(GRAPH, "2026-12", ["trainium3"])))
    assert "power" in chip.unknown
    assert "memory.bandwidth" not in chip.unknown
    assert {"host", "network", "fabric"} <= set(server.unknown)
    assert not [path for path in server.unknown if path.startswith("host.")]


def test_unknown_attributes_of_a_stated_part() -> None:
    """The other direction of a link, which its siblings state."""
    unknown = {c.name: c.unknown for c in currencies(GRAPH, "2026-11")}

    assert [path for path in unknown["efa"] if path.startswith("bandwidth")] == ["bandwidth.both"]
    assert [path for path in unknown["neuronlink-v2"] if path.startswith("bandwidth")] == ["bandwidth.per_direction"]
