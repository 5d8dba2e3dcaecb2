"""Plans compared: classes of evidence, the Pareto front, and which of many are listed."""

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from trnspec.errors import RefusalError
from trnspec.evaluators.planning import comparison
from trnspec.evidence import IDEAL, KINDS, Evidence, Outside


@frozen(eq=False)
class Some:
    """A plan: its systems, its costs and its kind of evidence."""

    systems: str
    costs: tuple[float | None, ...] = ()
    kind: str = "estimate"
    dtype: bool = False

    @property
    def evidence(self) -> Evidence:
        outside = (Outside(input="dtype", value="fp8", low="bf16"),) if self.dtype else ()
        return IDEAL if self.kind == "ideal" else Evidence(kind=self.kind, reason="", outside=outside)


COST = st.none() | st.integers(0, 3).map(float)
PLANS = st.lists(
    st.builds(Some, st.sampled_from("abc"), st.tuples(COST, COST), st.sampled_from(KINDS[:4]), st.booleans()),
    max_size=7,
)


@pytest.mark.parametrize(
    ("chance", "shown"),
    [(None, None), (0.0, 1), (0.004, 1), (0.016, 2), (0.5, 50), (0.984, 98), (0.995, 99), (1.0, 99)],
)
def test_percent(chance: float | None, shown: int | None) -> None:
    assert comparison.percent(chance) == shown


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((1.0, 2.0), (1.0, 3.0), True),
        ((1.0, 3.0), (1.0, 3.0), False),
        ((0.0, 4.0), (1.0, 3.0), False),
        ((1.0, None), (2.0, None), True),
        # Costs that only one of them has.
        ((1.0, None), (2.0, 3.0), False),
        ((1.0, 3.0), (2.0, None), False),
        ((None, None), (None, None), False),
    ],
)
def test_dominates(one: tuple[float | None, ...], other: tuple[float | None, ...], expected: bool) -> None:
    assert comparison.dominates(one, other) is expected


@given(PLANS)
def test_pareto_front_is_the_undominated_set(plans: list[Some]) -> None:
    for plan in plans:
        alike = [o for o in plans if (o.kind == "ideal") == (plan.kind == "ideal")]
        better = [o for o in alike if comparison.dominates(o.costs, plan.costs)]
        assert comparison.pareto(plan, plans, lambda one: one.costs) is (not better)


@given(PLANS)
def test_the_first_of_each_kind(plans: list[Some]) -> None:
    expected = [next(p for p in plans if p.kind == kind) for kind in KINDS if any(p.kind == kind for p in plans)]

    assert comparison.best_of_kinds(plans) == expected


@given(PLANS, st.sampled_from(KINDS[:3]))
def test_plans_of_some_evidence(plans: list[Some], weakest: str) -> None:
    kinds = KINDS[: KINDS.index(weakest) + 1]
    expected = [plan for plan in plans if plan.kind in kinds]
    assert comparison.evident(plans, None) == plans
    if plans and not expected:
        with pytest.raises(RefusalError, match=f"evidence {weakest}"):
            comparison.evident(plans, weakest)
    else:
        assert comparison.evident(plans, weakest) == expected


@given(PLANS)
def test_the_best_supported_plan(plans: list[Some]) -> None:
    """Of the strongest kind; of one kind a plan of the measured dtype, where the kind does not state that software differs."""
    orders = {
        (kind, dtype): (KINDS.index(kind), dtype or kind == "transferred") for kind in KINDS for dtype in (False, True)
    }
    orders["ideal", True] = orders["ideal", False]
    for best in plans:
        found = [str(answer.value) for answer in comparison.best_supported(plans, best, lambda _: "text")]
        first = min(plans, key=lambda plan: orders[plan.kind, plan.dtype])
        why = first.kind if first.kind != best.kind else "nearer to measured rows"
        is_weaker = orders[best.kind, best.dtype] > orders[first.kind, first.dtype]
        assert found == ([f"{first.systems}: text ({why})"] if is_weaker else [])


@given(PLANS, st.integers(0, 8))
def test_listed_plans(plans: list[Some], most: int) -> None:
    shown = comparison.listed(plans, most)
    places = [plans.index(plan) for plan in shown]
    systems = list(dict.fromkeys(plan.systems for plan in plans))

    assert len(shown) == min(most, len(plans))
    assert places == sorted(places)
    assert {plan.systems for plan in shown} == set(systems[:most])
    rest = [p for p in plans if p is not next(o for o in plans if o.systems == p.systems)]
    expected = rest[: max(0, most - len(systems))]
    assert [p for p in shown if p in rest] == expected
