"""trnspec.checks.reconcile.lookalikes: the figure of another row, type, date or generation."""

import attrs
import pytest

from tests.support.rules import PEAK, SERVER_PEAK, bare, causes, claim, of_server, put, sites
from trnspec.checks.reconcile.hypotheses import Mismatch, explain, explain_case
from trnspec.checks.reconcile.lookalikes import MOST_SHARED, _grouped
from trnspec.checks.reconcile.sites import PartsTerm, Relation, Site
from trnspec.checks.reconcile.suspects import suspects
from trnspec.graph.graph import Graph
from trnspec.quantities.quantity import parse


def _case(graph: Graph, at: tuple[str, str], printed: str, *wanted: str, **more: tuple[PartsTerm, ...]) -> Mismatch:
    expected = tuple(parse(w).interval for w in wanted)
    return Mismatch(sites(graph, *at)[0], parse(printed), expected, more.get("terms", ()), (), graph)


def test_sources_that_print_the_same_are_reported_together():
    graph = bare()
    for source in ("neuron-trn1-2023-02", "neuron-trn1-2022-10", "neuron-trainium-2023-04"):
        graph = claim(graph, "trainium1", "spec.peak.dense.bf16", "210 TFLOPS", source=source, verdict="superseded")
    explanations = causes("210 TFLOPS", "190 TFLOPS", at=sites(graph, *PEAK)[0], graph=graph)

    expected = "this is the value of neuron-trn1-2023-02 and 2 others for peak.dense.bf16 (superseded): 210 TFLOPS"
    assert expected == explanations["older-claim"]


def test_a_claim_does_not_explain_itself():
    """The only source of a figure is no explanation of it."""
    graph = claim(bare(), "trainium1", "spec.peak.dense.bf16", "210 TFLOPS")
    index = len(graph.named("trainium1").claims) - 1
    own = Site(graph.named("trainium1"), sites(graph, *PEAK)[0].path, index)
    relation = Relation(own, (PartsTerm((), sites(graph, *PEAK)[0]),), "another source")
    (suspect,) = suspects([relation])

    assert own.key == suspect.site.key
    assert explain(suspect, graph) == []


def test_the_total_of_an_older_claim():
    """16 x 210 TFLOPS is printed where the chip has 190 by now."""
    graph = claim(bare(), "trainium1", "spec.peak.dense.bf16", "210 TFLOPS", verdict="superseded", reason="Lowered.")
    part = of_server(graph)
    explanations = causes("3,360 TFLOPS", part.interval, at=sites(graph, *SERVER_PEAK)[0], terms=[part], graph=graph)

    assert "older-claim" in explanations
    assert explanations["older-claim"].endswith(": 16 x 210 TFLOPS")


def test_widely_shared_value_is_not_an_explanation():
    trainium1 = bare().named("trainium1")
    for copies, reported in ((MOST_SHARED - 1, True), (MOST_SHARED, False)):
        names = [f"copy-{i}" for i in range(copies)]
        more = {n: attrs.evolve(trainium1, metadata=attrs.evolve(trainium1.metadata, name=n)) for n in names}
        graph = Graph({**bare().nodes, **more})
        explanations = causes("190 TFLOPS", "667 TFLOPS", at=("trainium2", "peak.dense.bf16"), graph=graph)

        assert ("neighbour" in explanations) == reported


@pytest.mark.parametrize(
    ("number", "words"),
    [(1, ["row-0"]), (2, ["row-0 and 1 other"]), (3, ["row-0 and 2 others"]), (10, ["row-0 and 9 others"]), (11, [])],
)
def test_equal_figures_are_named_together(number, words):
    """By the first of them; a value that more than ten rows have explains nothing."""
    figures = [(f"row-{n}", parse("2,000 MB" if n else "2 GB")) for n in range(number)]
    found = list(_grouped("swapped-row", [*figures, ("odd", parse("3 GB"))]))

    assert [(f.id, f.words, f.quantity.text) for f in found] == [
        *(("swapped-row", f"this is the figure of {text}", "2 GB") for text in words),
        ("swapped-row", "this is the figure of odd", "3 GB"),
    ]


@pytest.mark.parametrize(
    ("printed", "expected", "first"), [("264 GB/s", "164 GB/s", "neighbour"), ("26 GB/s", "16 GB/s", "one-digit")]
)
def test_figure_of_another_family_with_three_digits_comes_before_a_wrong_digit(printed, expected, first):
    graph = put(bare(), "efa-v3", "bandwidth.per_direction", printed)
    found = [e.id for e in explain_case(_case(graph, ("neuronlink-v3", "bandwidth.per_direction"), printed, expected))]

    assert found[0] == first
    assert {"neighbour", "one-digit"} <= set(found)
