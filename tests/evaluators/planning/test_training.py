"""Plans of a training run: the parts of each agree, and the best is the best."""

import math
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trnspec
from tests.support.engine import everything
from tests.support.evaluations import BuiltinConformance, keywords
from tests.support.tables import tables
from trnspec.catalog.catalog import Catalog
from trnspec.errors import UsageError
from trnspec.evaluation.result import Evaluation
from trnspec.evaluators.planning.batches import default_batches, given_batches, optimal_batch
from trnspec.evaluators.planning.training import considered
from trnspec.evaluators.planning.training import run as plan_
from trnspec.perf.goodput import PRODUCTION, STATED, ProductionFactor

plan = keywords(plan_)
CAT = trnspec.load()

SMALL: dict[str, Any] = {
    "model": "llama-3.2-1b", "tokens": "100B", "microbatch": (1, 2), "schedule": ("1f1b",), "recompute": ("none",), "seq": 4096,
}  # fmt: skip


def rows(found: Evaluation) -> list[dict[str, Any]]:
    return found.tables[0].records()


@pytest.mark.parametrize("given", [None, 1.0, 2.5])
def test_the_step_is_that_of_the_suggested_evaluation(given) -> None:
    found = plan(CAT, **SMALL, on=("trn1.32xlarge*2",), production_factor=given)
    (suggested,) = found.suggestions
    again = trnspec.evaluate(suggested.evaluator, CAT, **suggested.inputs)
    factor = PRODUCTION if given is None else ProductionFactor(given)
    (step,), (benchmark,) = ([a for a in one.answers if a.name == "step_time"] for one in (found, again))
    ends = factor.applied((benchmark.value, benchmark.low, benchmark.high))

    assert (step.value, step.low, step.high) == pytest.approx(ends, rel=1e-12)
    assert found["mfu"] * factor.value == pytest.approx(again["mfu"])


def test_given_degrees_have_no_factor_of_the_choice() -> None:
    """The fastest of several layouts has one, and so have degrees among which the plan chooses."""
    found = plan(CAT, **SMALL, on=("trn1.32xlarge*2",))
    degrees = {name: (found.suggestions[0].inputs.get(name, 1),) for name in ("tp", "pp")}
    given, one, several = (
        plan(CAT, **SMALL, **inputs, on=("trn1.32xlarge*2",))
        for inputs in (degrees, {"tp": degrees["tp"]}, {"tp": (*degrees["tp"], 2 * degrees["tp"][0])})
    )

    assert found["step_time"] == pytest.approx(PRODUCTION.value / STATED.value * given["step_time"])
    assert one["step_time"] == pytest.approx(given["step_time"])
    assert several["step_time"] == pytest.approx(found["step_time"])


@pytest.mark.parametrize(
    ("model", "on", "combined"),
    [
        ("llama-3.2-1b", "p5.48xlarge", True),
        ("gpt2-large", "p5.48xlarge", False),
        ("llama-3.2-1b", "trn1.32xlarge", False),
    ],
)
def test_given_degrees_like_those_of_runs_are_combined_with_an_mfu(model, on, combined) -> None:
    """A geometric mean of the factor and of the MFU of published runs: of dense models from 1 billion parameters."""
    gpus = Catalog(everything())
    run = {"model": model, "tokens": "100B", "seq": 1024, "global_batch": 256, "on": (f"{on}*2",), "tp": (2,)}
    found, benchmark = plan(gpus, **run), plan(gpus, **run, production_factor=1.0)
    parts = (STATED.value, benchmark["mfu"] / STATED.mfu)
    mean = parts[0] ** STATED.weight * parts[1] ** (1.0 - STATED.weight)

    assert found["step_time"] / benchmark["step_time"] == pytest.approx(mean if combined else STATED.value)
    (why,) = [a.why for a in found.assumptions if a.name == "production_factor"]
    assert ("geometric mean with an MFU" in why) == combined


def test_a_wide_interval_is_a_bound() -> None:
    """Of a large model on many chips, far from measured runs: the plan without losses, and why."""
    asked = SMALL | {"model": "llama-3.1-405b", "tokens": "15T", "on": ("trn2.48xlarge*2048",)}
    found, ideal = plan(CAT, **asked), plan(CAT, **asked, calibration="none")
    counted = rows(plan(CAT, **asked | {"on": ("trn2.48xlarge",)}, deadline="200d", top=50))

    assert found.evidence.kind == "ideal"
    assert float(found.evidence.reason.split()[8].rstrip(";")) > 8
    assert rows(found) == rows(ideal)
    assert found.suggestions == ideal.suggestions
    assert found.answer("mfu").high == found["mfu"]
    assert [row["chips"] for row in counted if row["kind"] == "ideal"] == [max(row["chips"] for row in counted)]


@pytest.mark.parametrize(
    ("objective", "column"), [("cost", "expected_cost"), ("time", "expected_time"), ("chips", "chips")]
)
def test_plans_are_ranked_by_the_expected_objective(objective, column) -> None:
    found = plan(CAT, **SMALL, on=("trn1.32xlarge", "trn2.3xlarge"), count=(1, 2, 4), objective=objective, top=20)
    order = [row[column] for row in rows(found)]

    assert len(order) == 6
    assert len({row["kind"] for row in rows(found)}) > 1
    assert order == sorted(order)
    assert objective != "cost" or found["expected_cost"] == order[0]


def test_counts_between_two_others() -> None:
    assert [*considered(0, 64)] == [*range(1, 17), 18, 20, 22, 24, 26, 28, 30, 32, 36, 40, 44, 48, 52, 56, 60]
    assert [*considered(6144, 8192)] == [6656, 7168, 7680]
    assert [*considered(3, 4)] == []


def test_a_system_of_more_chips_than_are_evaluated_has_the_count_1(monkeypatch) -> None:
    monkeypatch.setattr("trnspec.evaluators.planning.training.MOST_CHIPS", 4)

    assert [row["chips"] for row in rows(plan(CAT, **SMALL, on=("trn1.32xlarge",)))] == [16]


def test_counts_without_a_layout_are_left_out() -> None:
    """A replica of 128 ranks needs four servers of 32."""
    asked = SMALL | {"model": "llama-3.1-70b", "tokens": "1B", "tp": (32,), "pp": (4,), "objective": "chips"}

    assert rows(plan(CAT, **asked, on=("trn1.32xlarge",)))[0]["chips"] == 4 * 16


@pytest.mark.parametrize("goal", ["deadline", "budget"])
@pytest.mark.parametrize("objective", ["cost", "time", "chips"])
def test_a_looser_goal_never_worsens_the_objective(goal, objective) -> None:
    column = {"cost": "expected_cost", "time": "expected_time", "chips": "chips"}[objective]
    limits = {"deadline": ("36h", "2d", "9d", "300d"), "budget": ("12k", "14k", "20k", "1M")}[goal]
    question = {**SMALL, "microbatch": (2,), "zero": (1,), "on": ("trn1.32xlarge",), "objective": objective}
    best = [rows(plan(CAT, **question, **{goal: limit}))[0] for limit in limits]
    met = [row[column] for row in best if row["meets_goals"]]

    assert len(met) >= 3
    assert met == sorted(met, reverse=True)
    assert (met[0] > met[-1]) >= ((objective, goal) == ("chips", "deadline"))


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(
    st.floats(1.1, 4.0),
    st.sampled_from(["deadline", "budget", "count", "confidence", "on", "tokens"]),
    st.floats(2.0, 40.0),
    st.floats(9e3, 4e4),
    st.sets(st.sampled_from([1, 2, 3, 4, 6, 8, 12]), min_size=1, max_size=3),
    st.sampled_from(["cost", "time", "chips"]),
)
def test_a_looser_limit_never_worsens_the_objective(factor, name, deadline, budget, counts, objective) -> None:
    """A later deadline, a larger budget, more counts or systems, less confidence, fewer tokens; together with other limits."""
    strict = {"deadline": deadline, "budget": budget, "count": sorted(counts), "confidence": 0.8}
    strict |= {"on": ("trn1.32xlarge",), "tokens": 100.0}
    choices = {"count": sorted({*counts, 5, 16}), "on": ("trn1.32xlarge", "trn2.48xlarge")}
    by = {"deadline": factor, "budget": factor}.get(name, 1.0 / factor)
    loose = strict | {name: choices[name] if name in choices else strict[name] * by}
    before, after = (
        rows(
            plan(
                CAT, **SMALL | {"microbatch": (2,), "zero": (1,), "objective": objective} | one
                | {"deadline": f"{one['deadline']}d", "budget": f"{one['budget']:.2f}", "tokens": f"{one['tokens']:.3f}B"}
            )
        )[0]
        for one in (strict, loose)
    )  # fmt: skip
    column = {"cost": "expected_cost", "time": "expected_time", "chips": "chips"}[objective]

    assert not before["meets_goals"] or (after["meets_goals"] and after[column] <= before[column] * (1.0 + 1e-9))


def test_batches_are_multiples_of_as_many_replicas_as_there_may_be() -> None:
    default = ((10e12, 1024), (10e12, 96), (10e12, 2304), (10e12, 3072), (1e9, 3), (1e6, 64))
    given = ((1953, 512), (1538, 96), (1024, 512), (600, 512), (95, 64), (100, 55), (5754, 1920), (20, 12), (1, 64))

    assert [default_batches(optimal_batch(tokens, 8192), ranks) for tokens, ranks in default] == [
        (2048,), (2016,), (2304,), (2304, 1536), (9,), (1,),
    ]  # fmt: skip
    assert [given_batches(*one) for one in given] == [
        (1953, 2048), (1538, 1536), (1024,), (600, 576), (95, 96), (100,), (5754, 5760), (20, 21), (1,),
    ]  # fmt: skip


@pytest.mark.parametrize(("batch", "planned"), [(125, "128 sequences"), (128, None)])
def test_a_given_batch_is_rounded_where_that_is_faster(batch, planned) -> None:
    found, even = (plan(CAT, **SMALL, on=("trn1.32xlarge*2",), global_batch=n) for n in (batch, 128))

    assert found["layout"] == even["layout"]
    assert {a.name: a.value for a in found.assumptions}.get("global_batch") == planned


def test_counts_between_powers_of_two_are_not_slower_than_the_smaller_one() -> None:
    """With one sequence on each replica the batch is one that all replicas divide."""
    found = plan(CAT, **SMALL, on=("trn1.32xlarge",), count=(32, 48, 64), tp=(8,), objective="chips")
    times = [row["run_time"] for row in rows(found)]

    assert times == sorted(times, reverse=True)
    assert times[1] < 0.8 * times[0]


def test_measured_degrees_are_of_connected_chips() -> None:
    """A server of one chip has two cores: the measured tensor-parallel degrees, 8 and 32, would be on the network."""
    found = plan(CAT, **SMALL | {"model": "llama-3.1-8b", "recompute": ("full",)}, on=("trn1.2xlarge*8",))
    free = plan(
        CAT, **SMALL | {"model": "llama-3.1-8b", "recompute": ("full",)}, on=("trn1.2xlarge*8",), tp=(1, 2, 4, 8)
    )

    assert found["layout"] == free["layout"]
    assert found.suggestions[0].inputs["tp"] <= 4


@pytest.mark.parametrize(("tp", "unused"), [(1, False), (8, True)])
def test_overlap_without_effect_is_stated(tp, unused) -> None:
    found = plan(CAT, **SMALL, on=("trn1.32xlarge*2",), overlap=True, tp=(tp,))

    assert [a.value for a in found.assumptions if a.name == "overlap"] == ["no effect"] * unused


def test_a_chip_alone_has_a_plan_for_one() -> None:
    """How several are linked is not known."""
    assert [row["system"] for row in rows(plan(CAT, **SMALL, on=("trainium1",)))] == ["trainium1*1"]


@pytest.mark.parametrize("limits", [{"deadline": "1d"}, {"budget": "100"}, {"deadline": "1d", "budget": "100"}])
def test_limits_that_no_plan_meets(limits) -> None:
    question = {**SMALL, "on": ("trn1.32xlarge",), "count": (2, 4)}
    found = plan(CAT, **question, **limits)
    text = str(found["goals"])
    suggestion = found.suggestions[0]

    assert ("deadline" in text, "budget" in text) == ("deadline" in limits, "budget" in limits)
    assert {name: found[f"meets_{name}"] for name in limits} == dict.fromkeys(limits, False)
    assert [row["meets_goals"] for row in rows(found)] == [False, False]
    assert suggestion.evaluator == "plan-train"
    assert {name for name in limits if suggestion.inputs[name] != limits[name]} == set(limits)
    again = trnspec.evaluate("plan-train", CAT, **suggestion.inputs)
    assert "goals" not in again.names
    assert {name: again[f"meets_{name}"] for name in limits} == dict.fromkeys(limits, True)
    assert rows(again)[0]["meets_goals"] is True


def test_goodput_has_the_interval_of_failures_and_restarts() -> None:
    """Each of both that is given has none; the interval of the time of the run is wider with one."""
    question = {**SMALL, "on": ("trn1.32xlarge*4",)}
    usual, failures, restarts, given = (
        plan(CAT, **question, **more)
        for more in ({}, {"restart": "10min"}, {"mtbf": "50676h"}, {"restart": "10min", "mtbf": "50676h"})
    )
    ends = [
        next((a.low, a.value, a.high) for a in one.answers if a.name == "goodput")
        for one in (usual, failures, restarts, given)
    ]

    assert all(low < value < high for low, value, high in ends[:3])
    assert ends[3][0] == ends[3][1] == ends[3][2]
    assert ends[0][0] < min(ends[1][0], ends[2][0])
    assert rows(given)[0]["time_high"] < rows(usual)[0]["time_high"]


@pytest.mark.parametrize(("changed", "message"), tables(__file__)["misuse"])
def test_misuse(changed, message) -> None:
    with pytest.raises(UsageError, match=message):
        plan(CAT, **{**SMALL, "on": ("trn1.32xlarge*2",), **changed})


def test_a_layout_that_was_not_measured_is_stated_next_to_the_best_plan() -> None:
    """Layouts have degrees that models like this one were measured with; with given degrees those are meant."""
    asked = {**SMALL, "model": "llama-3.1-8b", "on": ("trn1.32xlarge*8",)}
    measured = plan(CAT, **asked)
    free = plan(CAT, **asked, tp=(1, 2, 4), cp=(1, 2, 4), pp=(1, 2))

    assert re.match(r"tp (8|32) ", measured["layout"])
    assert measured["unmeasured_layout"].partition(":")[0] == free["layout"]
    assert free["mfu"] > 1.1 * measured["mfu"]
    assert "unmeasured_layout" not in free.names


class TestConformance(BuiltinConformance):
    """It keeps what every evaluator keeps."""

    name = "plan-train"
    dimensionless = ("chip_hours", "steps", "failures")
    good = ({**SMALL, "on": ("trn1.32xlarge*4",)}, {**SMALL, "on": ("trn1.2xlarge",), "count": (2,), "deadline": "90d"})
    bad = (
        ({**SMALL, "on": ("trn1.32xlarge*4",), "tokens": "x"}, "misuse"),
        ({**SMALL, "model": "llama-3.1-405b", "on": ("trn1.2xlarge*2",)}, "no-plan"),
    )


def test_energy_has_the_power_of_the_chips_with_its_source(powered) -> None:
    asked = {"model": "llama-3-8b", "tokens": "1B", "on": ("trn2.48xlarge*2",)}
    result = plan(powered, **asked)

    assert result.answer("energy").value == pytest.approx(32 * 450 * result.number("run_time"))
    assert "450 W tdp (2026-01)" in result.answer("energy").note
    assert ("trainium2-tdp", "sheet") in {(f.of, f.source) for f in result.figures_used}
    assert "energy" not in {a.name for a in plan(CAT, **asked).answers}


def test_spares_replace_servers_that_are_repaired() -> None:
    question = {**SMALL, "on": ("trn1.32xlarge*4",), "mtbf": "1000h"}
    none, given, needed = (plan(CAT, **question, **more) for more in ({}, {"spares": 0.25}, {"repair": "2d"}))
    # 64 chips of 1,000 h fail every 15.6 h: 3.1 servers are away for 2 days each, at most 6 with 95 %.
    ratios = [found.number("run_cost") / none.number("run_cost") for found in (given, needed)]

    assert ratios == pytest.approx([1.25, 1 + 6 / 4])
    assert needed.number("run_time") == none.number("run_time")


def test_a_given_price_and_no_price() -> None:
    given = plan(CAT, **SMALL, on=("trn1.32xlarge*4",), price="10 USD/h")
    unknown = plan(CAT, **SMALL | {"model": "llama-3.1-8b"}, on=("trn3-gen2-ultraserver",))

    assert given["run_cost"] == pytest.approx(given["run_time"] / 3600 * 40)
    assert "run_cost" not in unknown.names
    assert rows(unknown)[0]["run_cost"] is None
    assert {a.name: a.value for a in unknown.assumptions}["cost"] == "unknown"
    assert re.search(r": ~[\d.]+ h ", unknown["unmeasured_layout"])  # its time


@pytest.mark.parametrize(("servers", "rate"), [(2, 20e9), (64, 100e9)])
def test_checkpoints_are_written_at_the_rate_of_block_storage_up_to_that_of_large_runs(servers, rate) -> None:
    found = plan(CAT, **SMALL, on=(f"trn1.32xlarge*{servers}",))
    given = plan(CAT, **SMALL, on=(f"trn1.32xlarge*{servers}",), checkpoint_rate=f"{rate / 1e9:g} GB/s")

    assert found["checkpoint_time"] == pytest.approx(given["checkpoint_time"])


def test_systems_without_a_plan_are_named() -> None:
    mixed = plan(CAT, **{**SMALL, "model": "llama-3.1-8b"}, on=("trn1.32xlarge*2", "trn1.2xlarge*1"))

    assert [a.value for a in mixed.assumptions if a.name == "no_plan"] == ["trn1.2xlarge*1"]


@pytest.mark.parametrize(
    ("inputs", "text", "outside"),
    [
        ({"model": "llama-3.1-8b", "tokens": "15T", "on": ("p5.48xlarge*16",)}, "1.46 M chip hours, here 6", "model card|context"),
        ({"model": "deepseek-v3", "tokens": "14.8T", "on": ("p5.48xlarge*256",)}, "2.71 M chip hours, here ", "in fp8, the plan in bf16"),
        ({"model": "llama-3.1-70b", "tokens": "1T", "on": ("p5.48xlarge*16",)}, "466,000 chip hours, here ", ""),
    ],
)  # fmt: skip
def test_the_nearest_published_run_is_next_to_the_plan(inputs, text, outside) -> None:
    """Where its chip hours are outside the interval, the differences are stated on the short page."""
    found = plan(Catalog(everything()), **inputs)
    stated = [a for a in found.assumptions if a.name == "published_run"]
    hours = next(a for a in found.answers if a.name == "chip_hours")
    theirs = float(re.match(r"[\d.,]+( M)?", text)[0].replace(",", "").replace(" M", "e6"))  # type: ignore[index]  # matches

    assert str(found["published_run"]).startswith(text)
    assert bool(stated) is bool(outside)
    assert all(a.first and re.search(outside, a.why) for a in stated)
    assert (hours.low <= theirs <= hours.high) is not bool(outside)


@pytest.mark.parametrize(
    ("goals", "name"),
    [({}, ""), ({"deadline": "90d"}, "in_time"), ({"budget": "1M"}, "in_budget"), ({"deadline": "90d", "budget": "1M"}, "within_limits")],
)  # fmt: skip
def test_the_probability_is_named_after_the_goals(goals, name) -> None:
    found = plan(CAT, **SMALL, **goals, on=("trn1.32xlarge*4",))
    names = {"in_time", "in_budget", "within_limits"}

    assert names & {a.name for a in found.answers} == names & {*found.tables[0].columns} == ({name} if name else set())


@pytest.mark.parametrize(("servers", "tokens", "mtbf"), [(4, "100B", 50_000), (16, "2.5T", 20_000), (16, "2.5T", 200)])
def test_a_run(servers, tokens, mtbf) -> None:
    """Daly 2006, equations 20 and 37: the time of a run with checkpoints, failures and restarts, and its interval.

    A checkpoint has weights, master copy and two moments, 14 bytes per parameter (Rajbhandari et al. 2020, section 3.1).
    Spares are those that are away at the same time with a probability of 5 % at most, of a Poisson distribution.
    """
    found = trnspec.evaluate(
        "plan-train", Catalog(everything()), model="llama-3.1-8b", tokens=tokens, on=["p5.48xlarge"], count=[servers], seq=8192,
        global_batch=256, calibration="none", price="98.32 USD/h", mtbf=f"{mtbf}h", restart="10min", repair="24h",
        checkpoint_rate="20 GB/s",
    )  # fmt: skip

    chips, hour = 8 * servers, 3600.0
    count = {"100B": 100e9, "2.5T": 2.5e12}[tokens]
    steps = math.ceil(count / (256 * 8192))
    between = mtbf * hour / chips
    writing = 14 * 8_030_261_248 / 20e9
    root = math.sqrt(writing / (2 * between))
    interval = math.sqrt(2 * writing * between) * (1 + root / 3 + root**2 / 9) - writing
    work = steps * found["step_time"]
    total = between * math.exp(600 / between) * math.expm1((interval + writing) / between) * work / interval
    away, spares, share = chips * 24 / mtbf, 0, 0.0
    while (share := share + math.exp(-away) * away**spares / math.factorial(spares)) < 0.95:
        spares += 1
    expected = {
        "steps": steps,
        "checkpoint_time": writing,
        "checkpoint_interval": interval,
        "run_time": total,
        "goodput": 100 * work / total,
        "failures": total / between,
        "chip_hours": total / hour * chips,
        "run_cost": total / hour * 98.32 * (servers + spares),
        # The design power of an H100 SXM, NVIDIA 2023, data sheet.
        "energy": total * chips * 700.0,
    }
    assert {name: pytest.approx(value, rel=1e-9) for name, value in expected.items()} == {
        name: found[name] for name in expected
    }
