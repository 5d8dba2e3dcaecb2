"""A run and its goals: what follows from time, price and power, and which limits a plan meets."""

import math
from fractions import Fraction
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnspec.evaluation.result import Assumption
from trnspec.evaluators.planning.distribution import NORMAL_90
from trnspec.evaluators.planning.run import DAY, Goals, RunPlan
from trnspec.evaluators.planning.training import rank
from trnspec.evaluators.prices import ChipPower, HourlyPrice, Rent
from trnspec.evidence import IDEAL, KINDS, Evidence
from trnspec.perf.goodput import ProductionFactor, goodput
from trnspec.perf.work.layout import Layout
from trnspec.quantities.quantity import Interval

TIMES = st.floats(1.0, 1e8)
WIDER = st.floats(1.001, 10.0)


def plan(step: tuple[float, float, float | None], **changes: Any) -> RunPlan:
    """A run of 10 steps on 4 servers of 16 chips at 3 USD/h."""
    hourly = Fraction(3)
    price = HourlyPrice(hourly, Interval(hourly, hourly), (), Assumption("price", "given"))
    values: dict[str, Any] = {
        "systems": "any*4", "chip": "any", "chips": 64.0, "layout": Layout(seq=1, global_batch=1), "step": step,
        "production": ProductionFactor(1.0), "run": goodput(10.0 * step[0], mtbf=1e30, checkpoint=0.0, restart=0.0), "steps": 10, "mfu": 1.0,
        "evidence": IDEAL if step[2] is None else Evidence(kind="estimate", reason=""), "rent": Rent(4, price),
        "spares": 0.0, "power": None,
    }  # fmt: skip
    values |= changes
    return RunPlan(**{"ends": (values["run"].total, values["run"].total)} | values)


def goals(**limits: Any) -> Goals:
    return Goals(**{"deadline": None, "budget": None, "confidence": 0.5} | limits,
                 tokens=1.0, mtbf=(1.0, 1.0, 1.0), restart=(1.0, 1.0, 1.0), checkpoint_rate=None)  # fmt: skip


@given(TIMES, WIDER, WIDER, st.floats(0.0, 1.0))
def test_cost_and_energy_are_proportional_to_time(value, slower, faster, spares) -> None:
    power = ChipPower(64 * 500.0, cast("Any", None))
    one = plan((value, value / faster, value * slower), spares=spares, power=power)
    times = [10.0 * t for t in (value, value / faster, value * slower)]

    assert one.time == pytest.approx(tuple(times))
    assert [*one.cost] == pytest.approx([t / 3600.0 * 12.0 * (1.0 + spares) for t in times])
    assert one.chip_hours[0] == pytest.approx(times[0] / 3600.0 * 64.0)
    assert [*one.energy] == pytest.approx([t * 32000.0 for t in times])
    measures = {n: one.measure(n) for n in ("cost", "time", "chips", "energy")}
    assert measures == {"cost": one.cost[0], "time": one.time[0], "chips": 64.0, "energy": one.energy[0]}
    assert one.costs == (one.time[0], one.cost[0], one.energy[0], None)


def test_errors_of_the_step_and_of_interruptions_are_independent() -> None:
    run, few, many = (goodput(1000.0, mtbf=mtbf, checkpoint=1.0, restart=5.0) for mtbf in (100.0, 200.0, 50.0))
    alone = plan((100.0, 100.0, 100.0), run=run, ends=(few.total, many.total))
    both = plan((100.0, 50.0, 200.0), run=run, ends=(few.total, many.total))

    assert alone.time == pytest.approx((run.total, few.total, many.total))
    assert math.log(both.time[2] / run.total) == pytest.approx(
        math.hypot(math.log(2.0), math.log(many.total / run.total))
    )
    assert math.log(run.total / both.time[1]) == pytest.approx(
        math.hypot(math.log(2.0), math.log(run.total / few.total))
    )


def test_without_price_power_or_upper_end() -> None:
    bound = plan((100.0, 90.0, None))
    unpriced = plan((100.0, 90.0, 110.0), rent=None)

    assert bound.cost[1:] == (pytest.approx(900.0 / 3600.0 * 12.0), None)
    assert (bound.time[2], bound.distribution, bound.probability(1e9), bound.likely(0.9)) == (None, None, None, 1000.0)
    assert (unpriced.cost, unpriced.energy) == ((None,) * 3, (None,) * 3)
    assert unpriced.costs == (1000.0, None, None, unpriced.chip_hours[0])


@pytest.mark.parametrize(
    ("step", "deadline", "confidence", "met"),
    [
        # An estimate of 1,000 s, 500 s to 2,000 s: the probability decides.
        ((100.0, 50.0, 200.0), 999.0, 0.5, False),
        ((100.0, 50.0, 200.0), 1001.0, 0.5, True),
        ((100.0, 50.0, 200.0), 1999.0, 0.9, False),
        ((100.0, 50.0, 200.0), 2001.0, 0.9, True),
        # The value is the median, wherever the interval has its middle.
        ((100.0, 99.0, 400.0), 1001.0, 0.5, True),
        ((100.0, 99.0, 400.0), 3999.0, 0.9, False),
        # A bound: its value decides.
        ((100.0, 50.0, None), 1000.0, 0.9, True),
        ((100.0, 50.0, None), 999.0, 0.5, False),
        ((100.0, 50.0, 200.0), None, 0.5, True),
    ],
)
def test_a_deadline(step, deadline, confidence, met) -> None:
    limits, one = goals(deadline=deadline, confidence=confidence), plan(step)

    assert (limits.in_time(one), limits.met(one)) == (met, met)
    assert (limits.excess(one) > (False, 1.0), bool(limits.missed(one)), bool(limits.needed(one))) == (not met,) * 3


@given(TIMES, WIDER, WIDER, st.floats(0.1, 0.9), st.none() | st.floats(10.0, 1e9), st.none() | st.floats(0.1, 1e7))
def test_limits_that_are_needed_are_met_and_hardly_looser(value, slower, faster, confidence, deadline, budget) -> None:
    limits = goals(deadline=deadline, budget=budget, confidence=confidence)
    one = plan((value, value / faster, value * slower))
    needed = limits.needed(one)
    found: dict[str, float] = {}
    if "deadline" in needed:
        found["deadline"] = float(needed["deadline"].removesuffix("d")) * DAY
        assert 1.0 - 1e-9 <= found["deadline"] / one.likely(confidence) <= 1.0101
    if "budget" in needed:
        number = needed["budget"]
        found["budget"] = float(number.removesuffix("M")) * (1e6 if number.endswith("M") else 1.0)
        assert one.cost[0] is not None
        likely = one.cost[0] / one.time[0] * one.likely(confidence)
        assert number.endswith("M") == (likely >= 1e6)
        assert 1.0 - 1e-9 <= found["budget"] / likely <= 1.0101

    assert bool(needed) == (not limits.met(one)) == bool(limits.missed(one))
    assert len(limits.missed(one)) == len(needed)
    factors = [
        1.0,
        *([one.likely(confidence) / deadline] if deadline else []),
        *([one.cost[0] / one.time[0] * one.likely(confidence) / budget] if budget else []),
    ]
    assert limits.excess(one) == (False, pytest.approx(max(factors)))
    relaxed = goals(**{"deadline": deadline, "budget": budget, "confidence": confidence} | {
        name: limit * (1.0 + 1e-9) for name, limit in found.items()
    })  # fmt: skip
    assert relaxed.met(one)


def test_missed_limits_of_a_plan() -> None:
    estimate, bound, unpriced = (
        plan((86400.0, 43200.0, 172800.0)), plan((86400.0, 43200.0, None)), plan((86400.0, 1.0, 2e6), rent=None),
    )  # fmt: skip
    tight = goals(deadline=5.0 * DAY, budget=1000.0, confidence=0.9)

    assert tight.missed(estimate) == [
        "costs 5,760 USD, the budget is 1,000 USD", "takes 20 d with a probability of 90%, the deadline is 5 d",
    ]  # fmt: skip
    assert tight.missed(bound) == [
        "costs 2,880 USD, the budget is 1,000 USD", "takes 10 d, the deadline is 5 d",
    ]  # fmt: skip
    unchecked = "has no known price, so that the budget cannot be checked: give price"
    assert goals(budget=1.0).missed(unpriced) == [unchecked]
    assert goals(budget=1.0, deadline=5.0 * DAY).missed(unpriced)[0] == unchecked
    assert goals(budget=1.0).excess(unpriced) == (True, 1.0) > tight.excess(estimate)
    assert (goals(budget=1.0).met(unpriced), goals(budget=1.0).needed(unpriced)) == (False, {})
    assert goals(budget=1.0, deadline=5.0 * DAY).needed(unpriced) == {}
    rich = plan((86400.0 * 1000.0, 1.0, None))
    assert goals(budget=999999.0).missed(rich) == ["costs 2.88 M USD, the budget is 999,999 USD"]
    assert goals(budget=1e6).missed(rich) == ["costs 2.88 M USD, the budget is 1 M USD"]


@given(TIMES, WIDER, st.floats(0.1, 10.0))
def test_expected_values(value, width, budget) -> None:
    one = plan((value, value / width, value * width))
    mean = one.time[0] * math.exp(0.5 * (math.log(width) / NORMAL_90) ** 2)

    assert one.cost[0] is not None
    assert one.expected("time") == pytest.approx(mean)
    assert one.expected("cost") == pytest.approx(one.cost[0] * mean / one.time[0])
    assert one.expected("chips") == one.chips
    limits = goals(budget=budget * one.cost[0])
    assert limits.probability(one) == pytest.approx(one.probability(budget * one.time[0]))
    assert goals().probability(one) is None


# The best of plans with any times and prices, of one kind of evidence.

PLANS = st.lists(st.tuples(st.floats(1.0, 1e7), st.floats(0.01, 1e4)), min_size=1, max_size=8)


def made(step: float, hourly: float, kind: str = "estimate") -> RunPlan:
    """A plan of one server with a price, whose time is within a factor of 1.5."""
    price = HourlyPrice(
        Fraction(hourly), Interval(Fraction(hourly), Fraction(hourly)), (), Assumption("price", "given")
    )
    evidence = IDEAL if kind == "ideal" else Evidence(kind=kind, reason="")
    return plan((step, step / 1.5, 1.5 * step), rent=Rent(1, price), evidence=evidence)


def best(plans: list[RunPlan], objective: Any, deadline: float | None, budget: float | None) -> RunPlan | None:
    """The best plan that meets the goals."""
    limits = goals(deadline=deadline, budget=budget)
    first = min(plans, key=lambda plan: rank(plan, objective, limits))
    assert limits.met(first) == any(map(limits.met, plans))
    return first if limits.met(first) else None


@given(PLANS, st.floats(1.0, 1e7), st.floats(0.01, 1e6), st.booleans(), st.booleans(), st.floats(1.0, 1e3))
def test_a_looser_goal_never_worsens_the_best_plan(which, deadline, budget, both, later, factor) -> None:
    """A later deadline never costs more, and a larger budget never gives a slower plan, with another limit or without."""
    plans = [made(*one) for one in which]
    limits = (deadline, budget if both else None) if later else (deadline if both else None, budget)
    loose = (deadline * factor, limits[1]) if later else (limits[0], budget * factor)
    objective = "cost" if later else "time"
    before, after = (best(plans, objective, *one) for one in (limits, loose))

    assert before is None or (after is not None and after.measure(objective) <= before.measure(objective))


@given(
    st.lists(st.tuples(st.floats(1.0, 1e7), st.floats(0.01, 1e4), st.sampled_from(KINDS[:4])), min_size=1, max_size=6)
)
def test_the_best_plan_is_that_of_the_least_expected_cost(which) -> None:
    plans = [made(*one) for one in which]
    estimates = [plan for plan in plans if plan.evidence.kind != "ideal"] or plans
    found = best(plans, "cost", None, None)

    assert found is not None
    assert found.expected("cost") == min(plan.expected("cost") or 0.0 for plan in estimates)
