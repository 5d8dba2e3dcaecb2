"""Assumed figures, and figures at the values that sources claim."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trnspec
from tests.support.engine import refusal
from trnspec.errors import UnknownNameError, UsageError
from trnspec.evaluation.measures import measure
from trnspec.evaluation.runner import as_mapping, claims

CATALOG = trnspec.load()
TRAINING = {"model": "llama-3.1-8b", "seq": 8192, "global_batch": 64, "tp": 8, "zero": 1, "must_fit": False}


def test_assume_is_the_same_as_another_catalog() -> None:
    changed = CATALOG.replace("trn2.48xlarge", {"network.bandwidth": "6,400 Gbps"})
    plain = trnspec.evaluate("training", changed, on="trn2.48xlarge*4", **TRAINING)
    assume = {"trn2.48xlarge.network.bandwidth": "6,400 Gbps"}
    found = trnspec.evaluate("training", CATALOG, on="trn2.48xlarge*4", assume=assume, **TRAINING)
    first, *others = found.assumptions

    assert plain.answers == found.answers
    assert plain.assumptions == tuple(others)
    assert ("trn2.48xlarge.network.bandwidth", "6,400 Gbps") == (first.name, first.value)
    assert "instead of 3,200 Gbps" in first.why
    assert "trn2.48xlarge.network.bandwidth=6,400 Gbps" == found.inputs["assume"]


def test_assume_a_figure_that_the_catalog_does_not_have() -> None:
    system = {"on": "trn3-gen1-server", **TRAINING}
    refused = refusal(trnspec.evaluate, "training", CATALOG, **system)
    found = trnspec.evaluate("training", CATALOG, assume={"trn3-gen1-server.fabric.bandwidth.both": "2 TB/s"}, **system)

    assert "unknown-figure" == refused.reason
    assert "trn3-gen1-server.fabric.bandwidth.both" == found.assumptions[0].name
    assert ("trn3-gen1-server", "fabric.bandwidth.both", "2 TB/s") in {(f.of, f.at, f.says) for f in found.figures_used}


def test_an_assumption_that_is_not_used_is_marked() -> None:
    found = trnspec.evaluate(
        "training", CATALOG, on="trn2.48xlarge", assume={"trainium1.memory.bandwidth": "1 TB/s"}, **TRAINING
    )

    assert found.assumptions[0].why.endswith("; not used")


@pytest.mark.parametrize(
    ("assume", "error"),
    [
        ({"trn2.48xlarge.network.bandwith": "6,400 Gbps"}, UnknownNameError),
        ({"trn2.48xlarge.network.bandwidth": "6,400 GB"}, UsageError),
        ({"trn2.48xlarge.network.bandwidth": "6400"}, UsageError),
        ({"trainium2.other.efa_share": "200 GB"}, UsageError),
        ({"trn2.48xlarge.network.bandwidth": "0 Gbps"}, UsageError),
        ({"trn2.48xlarge.network.bandwidth": 6400}, UsageError),
        ({"trn2.48xlarge.chips.count": "8 chips"}, UsageError),
        ({"trn2.48xlarge.network.bandwidth": "1 Gbps", "trn2-16.48xlarge.network.bandwidth": "2 Gbps"}, UsageError),
        ("trn2.48xlarge.network.bandwidth=6,400 Gbps", UsageError),
    ],
)
def test_invalid_assumptions(assume, error) -> None:
    with pytest.raises(error):
        trnspec.evaluate("training", CATALOG, on="trn2.48xlarge", assume=assume, **TRAINING)


@pytest.mark.parametrize("text", ["a.b", "=3 TB/s", "a.b=", ""])
def test_not_an_assumption(text) -> None:
    with pytest.raises(UsageError):
        as_mapping([text])


@given(st.lists(st.text(max_size=20), max_size=3))
def test_any_text_is_a_mapping_or_an_error(texts) -> None:
    try:
        found = as_mapping(texts)
    except UsageError:
        return

    assert len(texts) == len(found)


def test_claims_of_the_server_link() -> None:
    """Four links of 64 GB/s in one direction, or 256 GB/s in both: a factor of two."""
    known = claims(CATALOG.graph, "trn3-gen2-server spec.fabric.bandwidth")

    assert {("fabric.links_per_chip", "4"), ("fabric.bandwidth.both", "256 GB/s")} == {
        (c.path.at, c.value) for c in known
    }


def test_claims_with_one_value_count_once() -> None:
    """2.9 TB/sec and 2.9 TByte/s are one value; a rejected claim is none, nor is one about another figure."""
    gap = CATALOG.replace("trainium2", {"memory.bandwidth": None}).graph
    values = [(c.value, c.why.rpartition(" ")[2]) for c in claims(gap, "trainium2 spec.memory.bandwidth")]

    assert [("3 TB/s", "agrees"), ("2.9 TB/sec", "agrees"), ("2.864 TB/s", "unresolved")] == values
    assert () == claims(gap, "trainium2 spec.memory.stacks")
    assert () == claims(gap, "trainium2 spec.peak.dense.mxfp8")


def test_use_claims() -> None:
    """The answers of both claims are within the interval, and the claims are listed; the first answer is the larger."""
    system = {"on": "trn3-gen2-server", **TRAINING}
    refused = refusal(trnspec.evaluate, "training", CATALOG, **system)
    each = [
        trnspec.evaluate("training", CATALOG, assume={f"trn3-gen2-server.{path}": value}, **system)
        for path, value in (("fabric.bandwidth.both", "256 GB/s"), ("fabric.links_per_chip", "4"))
    ]
    found = trnspec.evaluate("training", CATALOG, use_claims=True, **system)
    slow, fast = (e.number("step_time") for e in each)
    answer = found.answer("step_time")

    assert "use_claims=True" in refused.hint
    assert fast < slow == answer.value
    assert min(e.answer("step_time").low for e in each) == answer.low
    assert f"{measure(fast, 's')} to {measure(slow, 's')} over the claims about trn3-gen2-server.fabric" in answer.note
    assert ["trn3-gen2-server.fabric.links_per_chip", "trn3-gen2-server.fabric.bandwidth.both"] == [
        a.name for a in found.assumptions[:2]
    ]
    assert [True, False] == [a.why.endswith("; in the interval") for a in found.assumptions[:2]]
    assert found.inputs["use_claims"] is True


@pytest.mark.parametrize("use_claims", [False, True])
@pytest.mark.parametrize(
    ("on", "hint"),
    [
        ("trn3-gen1-server", "no source has a value; assume trn3-gen1-server.fabric.bandwidth.per_direction=VALUE"),
        # Its fabric has no link either, so that one figure is not enough.
        ("trn3.48xlarge", ""),
    ],
)
def test_a_figure_that_no_source_claims(on, hint, use_claims) -> None:
    refused = refusal(trnspec.evaluate, "training", CATALOG, on=on, use_claims=use_claims, **TRAINING)

    assert "unknown-figure" == refused.reason
    assert (hint or ("no source claims a value for it" if use_claims else "")) == refused.hint


def test_assume_a_count() -> None:
    found = trnspec.evaluate(
        "training", CATALOG, on="trn2.48xlarge", assume={"trn2.48xlarge.chips.count": "8"}, **TRAINING
    )

    assert 8 * 4 // 8 == found.inputs["dp"]


def test_as_mapping() -> None:
    assert {"a.b": "3 TB/s", "c.d": "16", "e.f": "3.5e2GB/s"} == as_mapping(["a.b=3 TB/s", "c.d = 16", "e.f=3.5e2GB/s"])


def test_claims_about_an_adopted_figure_are_not_used() -> None:
    assert () == claims(CATALOG.graph, "trn2.48xlarge spec.network.bandwidth")
    assert () == claims(CATALOG.graph, "tp")


def test_claims_without_a_missing_figure_change_nothing() -> None:
    plain = trnspec.evaluate("training", CATALOG, on="trn2.48xlarge", **TRAINING)
    found = trnspec.evaluate("training", CATALOG, on="trn2.48xlarge", use_claims=True, **TRAINING)

    assert plain.answers == found.answers
    assert plain.assumptions == found.assumptions[1:]
    assert ("use_claims", "not used") == (found.assumptions[0].name, found.assumptions[0].value)
    refused = refusal(trnspec.evaluate, "training", CATALOG, on="trn2.48xlarge", use_claims=True, ep=2, **TRAINING)
    assert ("experts-not-divisible", "") == (refused.reason, refused.hint)


def test_use_claims_is_true_or_false() -> None:
    with pytest.raises(UsageError):
        trnspec.evaluate("training", CATALOG, on="trn2.48xlarge", use_claims=1, **TRAINING)
