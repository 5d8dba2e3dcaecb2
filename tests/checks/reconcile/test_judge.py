"""trnspec.checks.reconcile.judge: a stated value against the catalog."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rules import shipped
from tests.support.tables import tables
from trnspec.checks.reconcile.judge import judge
from trnspec.errors import QuantityError, UsageError


def judged(name: str, at: str, says: str):
    return judge(shipped(), shipped().named(name), at, says)


@pytest.mark.parametrize(("name", "at", "says", "outcome", "causes"), tables(__file__)["outcome"])
def test_outcome(name, at, says, outcome, causes):
    result = judged(name, at, says)

    assert (result.outcome, {cause.id for cause in result.causes}) == (outcome, {*causes})


def test_total_has_its_formula_and_the_facts_of_its_parts():
    result = judged("trn2.48xlarge", "memory.bandwidth", "46 TB/s")

    assert result.formula == "16 x 2.9 TB/sec of trainium2"
    assert [(fact.of, fact.at) for fact in result.facts] == [
        ("trn2.48xlarge", "stated.memory.bandwidth"),
        ("trainium2", "memory.bandwidth"),
    ]


@given(st.integers(1, 9_999))
def test_factor_is_that_of_the_values(tflops):
    result = judged("trainium2", "peak.dense.bf16", f"{tflops:,} TFLOPS")

    assert result.factor == pytest.approx(tflops / 667)
    assert (result.outcome == "agrees") == (tflops == 667)


@pytest.mark.parametrize(
    ("name", "at", "says", "error"),
    [
        ("trainium2", "memory.bandwith", "3 TB/s", UsageError),
        ("trainium3", "memory_pool", "16", UsageError),
        ("trainium2", "memory.technology", "HBM", UsageError),
        ("trn2.48xlarge", "chips.count", "sixteen", UsageError),
        ("trainium2", "memory.bandwidth", "3 TFLOPS", QuantityError),
        ("trainium2", "memory.bandwidth", "3", QuantityError),
    ],
)
def test_values_that_cannot_be_compared(name, at, says, error):
    with pytest.raises(error):
        judged(name, at, says)
