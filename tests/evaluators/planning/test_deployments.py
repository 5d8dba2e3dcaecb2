"""The deployments of a plan: which are evaluated, why others are not, and their times against the evaluator of one."""

import math
from statistics import NormalDist
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

import trnspec
from tests.support.engine import everything
from tests.support.evaluations import keywords
from trnspec.catalog.catalog import Catalog
from trnspec.evaluators.inference import run as inference_
from trnspec.evaluators.planning import serving_page
from trnspec.evaluators.planning.deployments import Deployed, Reason, TimeErrors, deployed
from trnspec.evaluators.planning.distribution import Distribution
from trnspec.evaluators.planning.fleets import Fleet, FleetPlan, RequestLimits, offers
from trnspec.evaluators.planning.requests import equal_lengths
from trnspec.evaluators.planning.serving import FleetProblem, PlanServingQuestion, rank
from trnspec.evaluators.planning.sizes import _with_systems, chips_interval, sized
from trnspec.evidence import Evidence
from trnspec.perf.serving.load import Replica

inference = keywords(inference_)
CAT = trnspec.load()
LENGTHS = equal_lengths(2048, 256, 20.0)


def question(**more: Any) -> PlanServingQuestion:
    values: dict[str, Any] = {
        "model": "llama-3.1-8b",
        "on": ("trn2.48xlarge",),
        "ttft": "1s",
        "tpot": "40ms",
        "rate": 20.0,
    }
    return PlanServingQuestion(**{**values, "calibration": "none", **more})


def deployments(on: str = "trn2.48xlarge", part: Any = "all", **more: Any) -> tuple[list[Deployed], list[Reason]]:
    reasons: list[Reason] = []
    return list(deployed(CAT, question(**more), on, LENGTHS, reasons, part=part)), reasons


def degrees(found: list[Deployed]) -> list[tuple[int, int, int]]:
    return [(q.tp, q.pp, q.ep) for q in (one.setup.question for one in found)]


def test_degrees_by_default() -> None:
    found, reasons = deployments()

    assert degrees(found) == [(1, 1, 1), (2, 1, 1), (4, 1, 1), (8, 1, 1), (16, 1, 1), (32, 1, 1)]
    assert [one.per_system for one in found] == [64, 32, 16, 8, 4, 2]
    assert [one.ranks for one in found] == [1, 2, 4, 8, 16, 32]
    assert [name for name, _ in reasons] == ["tp 64"]
    wide = deployed(CAT, question(tp=(4, 8, 32), pp=(1, 2)), "trn2.48xlarge", LENGTHS, [], wide=True)
    assert degrees([*wide]) == [(32, 2, 1)]


def test_every_combination_of_dtypes_degrees_and_chunks() -> None:
    found, _ = deployments(
        tp=(4, 8), pp=(1, 2), dtype=("bf16",), weight_dtype=("bf16", "fp8"), kv_dtype=("fp8", "bf16"), chunk=(512, 1024)
    )
    asked = [one.setup.question for one in found]

    assert [(q.weight_dtype, q.kv_dtype, q.chunk, q.pp, q.tp) for q in asked] == [
        (w, k, c, p, t)
        for w in ("bf16", "fp8")
        for k in ("fp8", "bf16")
        for c in (512, 1024)
        for p in (1, 2)
        for t in (4, 8)
    ]
    assert {(q.prompt, q.output, q.on, q.prefill_on) for q in asked} == {(2048, 256, "trn2.48xlarge", None)}


def test_the_parts_of_separate_pools() -> None:
    """Prefill has neither a draft nor chunks, and runs one prompt at a time; decoding sends nothing back."""
    more = {"tp": (8,), "draft": "llama-3.2-1b", "chunk": (512,)}
    (before,), (after,) = (deployments(part=part, **more)[0] for part in ("prefill", "decode"))
    one, other = before.setup.question, after.setup.question

    assert ((one.draft, one.chunk, one.prefill_on), before.replica.most) == ((None, None, None), 1)
    assert (other.draft, other.chunk, other.prefill_on) == ("llama-3.2-1b", None, "trn2.48xlarge")
    assert (after.replica.prompt, after.replica.first) == (0.0, 0.0)
    assert before.replica.prompt > 0.0
    elsewhere = deployments(part="decode", tp=(8,), prefill_on="trn1.32xlarge")[0][0].setup.question
    assert elsewhere.prefill_on == "trn1.32xlarge"


@pytest.mark.parametrize(
    ("on", "model", "measured"),
    [("trn2.48xlarge", "llama-3.1-8b", False), ("p5.48xlarge", "llama-3.1-8b", False), ("p5.48xlarge", "qwen3-30b-a3b", True)],
)  # fmt: skip
def test_separate_pools_without_rows_have_the_errors_of_other_software(on, model, measured) -> None:
    """Of both pools; the fit of GPUs has such rows of models with experts."""
    q = question(model=model, calibration="auto", tp=(4,), ep=(1,))
    for part in ("all", "prefill", "decode"):
        (one,) = deployed(Catalog(everything()), q, on, LENGTHS, [], part=part)
        known, named = one.known, [o.input for o in one.known.evidence.outside]
        assert ("pools" in named) is (part != "all" and not measured)
        if "pools" in named:
            middle = math.sqrt(math.prod(known.interval.transfer))
            assert known.evidence.kind == "extrapolated"
            assert known.low <= known.interval.transfer[0] < known.interval.transfer[1] <= known.high
            assert one.spread.steps.median == pytest.approx(middle)


@pytest.mark.parametrize(
    ("more", "reasons"),
    [
        (
            {"model": "llama-3.1-405b", "tp": (4, 8)},
            [("tp 4 bf16", "does not fit in memory"), ("tp 8 bf16", "does not fit in memory")],
        ),
        ({"model": "llama-3.1-405b", "tp": (2,), "pp": (2,)}, [("tp 2 pp 2 bf16", "does not fit in memory")]),
    ],
)
def test_reasons(more, reasons) -> None:
    assert deployments(**more)[1] == reasons
    assert deployments(part="prefill", **more) == ([], reasons)


def test_expert_parallel_degrees() -> None:
    found, _ = deployments(model="qwen3-30b-a3b", tp=(4,))
    given_, _ = deployments(model="qwen3-30b-a3b", tp=(4,), ep=(2,))

    assert degrees(found) == [(4, 1, 1), (4, 1, 4), (4, 1, 16)]
    assert [(one.per_system, one.setup.question.dp) for one in found] == [(16, 1), (16, 4), (16, 16)]
    assert degrees(given_) == [(4, 1, 2)]


@pytest.mark.parametrize("batch", [1, 3, 8, 16, 64])
def test_times_are_those_of_the_evaluator(batch) -> None:
    (one,), _ = deployments(tp=(8,), running=64)
    asked = {
        "model": "llama-3.1-8b", "on": "trn2.48xlarge", "tp": 8, "dp": 1, "prompt": 2048, "output": 256,
        "calibration": "none",
    }  # fmt: skip
    apart = inference(CAT, **asked, batch=batch, prefill_on="trn2.48xlarge")

    assert one.replica.most == 64
    assert one.replica.steps[batch - 1] == pytest.approx(apart.number("time_per_output_token"), rel=1e-12)
    first = inference(CAT, **asked, batch=1).number("time_to_first_token")
    assert one.replica.prompt + one.replica.first == pytest.approx(first, rel=1e-12)
    assert one.replica.output == 256.0


def test_requests_that_run_at_the_same_time() -> None:
    most = {running: deployments(tp=(8,), running=running)[0][0].replica.most for running in (None, 7, 1)}
    (narrow,), _ = deployments(model="llama-3.1-70b", tp=(8,))

    assert most == {None: 256, 7: 7, 1: 1}
    assert 1 <= narrow.replica.most < 256


def test_pipeline_stages_take_turns_with_prompts() -> None:
    (one,), _ = deployments(tp=(8,), pp=(2,))
    alone = inference(CAT, model="llama-3.1-8b", on="trn2.48xlarge", tp=8, pp=2, dp=1, prompt=2048, output=256, batch=1,
                      calibration="none")  # fmt: skip

    assert 2.0 * one.replica.prompt == pytest.approx(alone.number("time_to_first_token"), rel=1e-9)
    assert one.replica.first == pytest.approx(one.replica.prompt, rel=1e-9)


def test_errors_of_times() -> None:
    """Of a calibration: its intervals are 80 % of the errors. A bound has none."""
    (bound,), _ = deployments(tp=(8,))
    (one,), _ = deployments(tp=(8,), calibration="auto")
    known, spread = one.known, one.spread
    ends = known.ttft_interval or (known.low, known.high)

    assert bound.spread is None
    assert spread is not None
    z = NormalDist().inv_cdf(0.9)
    for quantile, (prompts, steps) in ((-z, (ends[0], known.low)), (z, (ends[1], known.high))):
        assert spread.factors(quantile) == pytest.approx((prompts, steps))


# Fleets of replicas with any times.

TIME = st.floats(1e-4, 1.0)


def fleet_plan(fleet: Fleet, rate: float, spread: TimeErrors | None = None, **more: Any) -> FleetPlan | None:
    state = fleet.at(rate)
    values: dict[str, Any] = {"pools": (("any", 2),), "chips": 8.0, "decode": None, "before": None, "rents": (),
                              "evidence": None}  # fmt: skip
    return None if state is None else FleetPlan(**values | more, fleet=fleet, state=state, spread=spread)


@given(TIME, TIME, st.floats(0.05, 0.75), st.floats(0.5, 20.0), st.floats(0.5, 20.0))
def test_limits(prompt, step, load, ttft, tpot) -> None:
    fleet = Fleet(replica=Replica.of([prompt], {1: step, 4: 2.0 * step}, first=0.0, output=20.0), replicas=3)
    plan = fleet_plan(fleet, load * fleet.saturation)
    limits = RequestLimits(ttft=ttft * prompt, tpot=tpot * step, percentile=90.0)

    assert plan is not None
    times = plan.state.ttft(90.0) / limits.ttft, plan.state.tpot(90.0) / limits.tpot
    assert limits.excess(plan.state) == max(times)
    assert limits.met(plan.state) is (max(times) <= 1.0)
    assert limits.met(None) is False
    exact = RequestLimits(ttft=plan.state.ttft(90.0), tpot=plan.state.tpot(90.0), percentile=90.0)
    assert exact.met(plan.state)
    assert not evolve(exact, ttft=math.nextafter(exact.ttft, 0.0)).met(plan.state)
    assert not evolve(exact, tpot=math.nextafter(exact.tpot, 0.0)).met(plan.state)
    assert plan.risk(limits) == max(times)
    assert plan.probability(limits, LENGTHS) is None


@given(st.floats(-1.5, 1.5), st.floats(0.05, 0.4))
def test_the_probability_is_that_of_the_largest_quantile_that_meets_the_limits(quantile, deviation) -> None:
    fleet = Fleet(replica=Replica.of([0.01], {1: 0.01}, first=0.0, output=10.0), replicas=1000)
    spread = TimeErrors(Distribution(1.0, deviation, deviation), Distribution(1.0, deviation, deviation))
    plan = fleet_plan(fleet, 1.0, spread)

    assert plan is not None
    lengths = equal_lengths(100, 10, 1.0)
    times = plan.percentiles(90.0, lengths, quantile)
    assert times is not None
    limits = RequestLimits(ttft=10.0, tpot=times[1], percentile=90.0)
    assert plan.probability(limits, lengths) == pytest.approx(NormalDist().cdf(quantile), abs=0.02)
    worse = plan.slower(1.0)
    assert worse is not None
    assert plan.risk(limits) == limits.excess(worse)


def test_a_fleet_that_is_saturated_with_longer_times() -> None:
    fleet = Fleet(replica=Replica.of([0.01], {1: 0.01}, first=0.0, output=10.0), replicas=1)
    plan = fleet_plan(
        fleet, 0.9 * fleet.saturation, TimeErrors(Distribution(1.0, 0.5, 0.5), Distribution(1.0, 0.5, 0.5))
    )

    assert plan is not None
    assert plan.slower(1.0) is None
    assert plan.risk(RequestLimits(ttft=1e9, tpot=1e9, percentile=50.0)) == math.inf


def test_cost_and_energy_of_tokens() -> None:
    fleet = Fleet(replica=Replica.of([0.01], {1: 0.01}, first=0.0, output=10.0), replicas=10)
    priced = [type("Priced", (), {"hourly": value, "watts": 100.0 * value})() for value in (3.0, 4.5)]
    plan = fleet_plan(fleet, 2.0, rents=priced, powers=priced, pools=(("a", 3), ("b*2", 4)))
    plain = fleet_plan(fleet, 2.0)

    assert plan is not None
    assert plain is not None
    assert plan.systems == "a*3 + b*8"
    assert (plan.hourly, plan.watts) == (7.5, 750.0)
    assert plan.million_tokens(50) == pytest.approx(7.5 / 3600.0 / (2.0 * 50) * 1e6)
    assert plan.million_tokens_energy(50) == pytest.approx(750.0 / (2.0 * 50) * 1e6)
    tpot = plan.state.tpot(90.0)
    assert plan.costs(90.0, 50) == (tpot, plan.million_tokens(50), plan.million_tokens_energy(50), None)
    assert plain.costs(90.0, 50) == (tpot, None, None, 8.0)
    assert (plain.hourly, plain.watts, plain.million_tokens(50), plain.million_tokens_energy(50)) == (None,) * 4


def test_the_order_of_plans() -> None:
    """By the objective; without a price or a power after others, and bounds last."""
    fleet = Fleet(replica=Replica.of([0.01], {1: 0.01}, first=0.0, output=10.0), replicas=10)
    limits = RequestLimits(ttft=1.0, tpot=1.0, percentile=90.0)
    plans = {}
    for name, chips, hourly, watts in (
        ("a", 8.0, 2.0, 3.0),
        ("b", 8.0, 3.0, 2.0),
        ("c", 4.0, None, None),
        ("d", 2.0, 1.0, 1.0),
    ):
        known = [type("Priced", (), {"hourly": hourly, "watts": watts})()] if hourly else ()
        evidence = Evidence(kind="ideal" if name == "d" else "estimate", reason="")
        plans[name] = fleet_plan(fleet, 2.0, chips=chips, rents=known, powers=known, evidence=evidence)
    ordered = {
        objective: "".join(sorted(plans, key=lambda name: rank(plans[name], objective, limits, LENGTHS)))
        for objective in ("cost", "chips", "energy")
    }

    assert ordered == {"cost": "abcd", "chips": "cabd", "energy": "bacd"}


# Fleets that are sized by the simulation.

OFFERED = {"rate": 200.0, "tp": (8,)}


def test_pools_on_the_same_systems_use_all_ranks() -> None:
    q = question(**OFFERED, pools=("disaggregated",))
    limits = RequestLimits(ttft=1.0, tpot=0.04, percentile=95.0)
    problem = FleetProblem(CAT, q, limits, equal_lengths(2048, 256, 200.0))
    plan = offers(problem, "trn2.48xlarge").plans[0]
    plans = _with_systems(problem, plan, plan.pools[0][1] + 1)

    assert len({one.fleet.prefills for one in plans}) == len(plans) == 5
    for one in plans:
        assert one.before is not None
        free = one.chips * 4 - one.fleet.prefills * one.before.ranks - one.fleet.replicas * one.decode.ranks
        assert 0 <= free < one.decode.ranks


@pytest.mark.parametrize("pools", ["aggregated", "disaggregated"])
def test_a_fleet_is_the_smallest_that_meets_the_limits(pools) -> None:
    q = question(tp=(8,), pools=(pools,))
    limits, lengths = RequestLimits(ttft=1.0, tpot=0.04, percentile=95.0), equal_lengths(2048, 256, 1000.0)
    problem = FleetProblem(CAT, q, limits, lengths)
    plan = offers(problem, "trn2.48xlarge").plans[0]
    found = sized(problem, plan)

    assert found is not None
    systems = found.pools[0][1]
    assert systems < plan.pools[0][1]
    times = found.percentiles(95.0, lengths)
    assert times is not None
    assert (times[0] <= 1.0, times[1] <= 0.04) == (True, True)
    fewer = [one.percentiles(95.0, lengths, 0.0) for one in _with_systems(problem, plan, systems - 1)]
    assert all(each is None or each[0] > 1.0 or each[1] > 0.04 for each in fewer)


def test_the_chips_at_both_ends_of_the_times_are_the_fewest() -> None:
    """With short times a fleet may run up to saturation; with long ones it meets the limits in the simulation."""
    limits, lengths = RequestLimits(ttft=1.0, tpot=0.04, percentile=95.0), equal_lengths(2048, 256, 1000.0)
    problem = FleetProblem(CAT, question(tp=(8,), calibration="auto", pools=("aggregated",)), limits, lengths)
    (plan,) = offers(problem, "trn2.48xlarge").plans
    assert plan.spread is not None
    low, high = (int((end or 0.0) // 16) for end in chips_interval(problem, [plan]) or ())
    z = NormalDist().inv_cdf(0.9)
    quick = plan.fleet.slower(*plan.spread.factors(-z))
    met = [limits.met(evolve(quick, replicas=8 * systems).at(1000.0)) for systems in (low - 1, low)]
    slow = [_with_systems(problem, plan, systems)[0] for systems in (high - 1, high)]

    assert met == [False, True] == [one.meets(limits, lengths, plan.spread.factors(z)) for one in slow]


@pytest.mark.parametrize("which", [0, 1])
def test_the_ends_of_an_interval(which) -> None:
    """80 % of the errors; without the slow end where it is saturated, and without any of a bound."""
    fleet = Fleet(replica=Replica.of([0.01], {1: 0.01, 4: 0.02}, first=0.0, output=10.0), replicas=1)
    spread = TimeErrors(Distribution(1.0, 0.1, 0.1), Distribution(1.0, 0.1, 0.1))
    plans: list[Any] = [fleet_plan(fleet, share * fleet.saturation, each) for share, each in (
        (0.3, spread), (0.95, spread), (0.3, None),
    )]  # fmt: skip
    z = NormalDist().inv_cdf(0.9)
    lengths = equal_lengths(100, 10, 1.0)
    fast, middle, slow = (plans[0].percentiles(90.0, lengths, q)[which] for q in (-z, None, z))

    assert serving_page._interval(plans[0], which, 90.0, lengths) == (middle, fast, slow)
    assert fast < middle < slow
    assert plans[1].percentiles(90.0, lengths, z) is None
    assert serving_page._interval(plans[1], which, 90.0, lengths)[2] is None
    assert serving_page._interval(plans[2], which, 90.0, lengths) == (middle, middle, None)


@pytest.mark.parametrize("prefill_on", [None, "trn1.32xlarge"])
def test_a_larger_plan_has_its_pools_in_proportion(prefill_on) -> None:
    q = question(**OFFERED, pools=("disaggregated" if prefill_on else "aggregated",), prefill_on=prefill_on)
    limits = RequestLimits(ttft=1.0, tpot=0.04, percentile=95.0)
    problem = FleetProblem(CAT, q, limits, equal_lengths(2048, 256, 200.0))
    plan = offers(problem, "trn2.48xlarge").plans[0]
    count = plan.pools[0][1]
    for more in (count + 1, 2 * count + 1):
        (larger,) = _with_systems(problem, plan, more)
        assert larger.pools[0] == ("trn2.48xlarge", more)
        assert larger.pools[1:] == tuple((on, math.ceil(n * more / count)) for on, n in plan.pools[1:])
        assert larger.fleet.replicas == plan.fleet.replicas * more // count
        assert larger.fleet.prefills == plan.fleet.prefills * more // count
        assert larger.chips == 16 * sum(n for _, n in larger.pools)
    assert len(plan.pools) == (2 if prefill_on else 1)


def test_the_objective_without_a_price_is_the_chips() -> None:
    fleet = Fleet(replica=Replica.of([0.01], {1: 0.01}, first=0.0, output=10.0), replicas=10)
    plans: list[Any] = [
        fleet_plan(fleet, 2.0, chips=chips, pools=((kind, 1),), evidence=Evidence(kind=kind, reason=""))
        for kind, chips in (("estimate", 5.0), ("transferred", 4.0))
    ]

    for asked in (question(objective="chips"), question()):
        texts = [serving_page._objective_text(plan, asked, LENGTHS) for plan in plans]
        assert texts == ["5 chips", "4 chips"]
