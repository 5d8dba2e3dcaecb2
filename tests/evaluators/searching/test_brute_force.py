"""Searches of random small problems against every configuration by itself."""

import itertools
import random

import pytest
from attrs import evolve

import trnspec
from trnspec.errors import RefusalError
from trnspec.evaluators.fit import Demand
from trnspec.evaluators.layouts import divisors
from trnspec.evaluators.prices import rent
from trnspec.evaluators.searching.question import SearchQuestion
from trnspec.evaluators.searching.space import search_of
from trnspec.evaluators.training import host_rate
from trnspec.perf.frameworks import training_settings
from trnspec.perf.training.estimator import prepare
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.transformer import model_flops_per_token

CAT = trnspec.load()
TRAINING, SERVING = 55, 25
"""Problems of the slow tests; the quick ones are the first of them."""
QUICK = range(9)

TRAINING_WHERE = {
    "step_time < 30 s": lambda m: m["step_time"] < 30.0,
    "memory < 8 GiB or zero = 3": lambda m: m["memory"] < 8 * 2**30 or m["zero"] == 3,
    'memory.fits and not recompute = "full"': lambda m: m["recompute"] != "full",
    "tp > 1 and mfu >= 10 %": lambda m: m["tp"] > 1 and m["mfu"] >= 10.0,
    "known usd": lambda m: m["usd"] is not None,
    "usd < 2": lambda m: m["usd"] is not None and m["usd"] < 2.0,
    "not usd < 2": lambda m: m["usd"] is not None and not m["usd"] < 2.0,
    'schedule = "interleaved" or dp / pp >= 2': lambda m: m["schedule"] == "interleaved" or m["dp"] / m["pp"] >= 2,
}
SERVING_WHERE = {
    "tpot < 30 ms": lambda m: m["tpot"] < 0.03,
    "ttft < 0.2 s and memory.fits": lambda m: m["ttft"] < 0.2,
    "memory < 10 GiB or batch = 1": lambda m: m["memory"] < 10 * 2**30 or m["batch"] == 1,
    "unknown usd": lambda m: m["usd"] is None,
    "latency < 20 s or not tp < 4": lambda m: m["latency"] < 20.0 or m["tp"] >= 4,
}
SIGNS = {"tokens_per_s_per_chip": -1.0, "mfu": -1.0}


def outcome(question: dict, rank: int) -> tuple[list, list, int]:
    """The best values of the objective, the points of the front, and the number of feasible configurations."""
    try:
        search = search_of(CAT, SearchQuestion(**question))
    except RefusalError:
        return [], [], 0
    cut = search.size * rank // 7
    kept = search.kept(0, cut)
    kept.merge(search.kept(cut, search.size))
    goal = search.selection.goal.name
    points = [kept.front.columns[g.name].tolist() for g in search.selection.front]
    best = kept.best.columns[goal].tolist()
    return best, sorted(zip(*points, strict=True)) if points else [], kept.feasible


def test_degrees_by_default() -> None:
    """Up to 64 context-parallel ranks; experts are split as the rest of the model, or not."""
    asked = {"model": "mixtral-8x7b", "on": ("trn2.48xlarge*2",), "seq": 4096, "global_batch": 128}
    degrees = [{}, {"cp": tuple(1 << n for n in range(7))}, {"tp": (8,)}, {"tp": (8,), "expert_tp": 1}]
    every, listed, both, one = (search_of(CAT, SearchQuestion(**asked, **given)).size for given in degrees)

    assert (every, both) == (listed, 2 * one)


def expected(rows: list[dict], question: dict, where) -> tuple[list, list, int]:
    """The same from the measures of all feasible configurations; those of bounds are ranked last."""
    goals = [*dict.fromkeys((question["objective"], *(question["pareto"] or ())))]
    rows = [row for row in rows if where(row)]
    rows = [row for row in rows if all(row[goal] is not None for goal in goals)]
    sign = SIGNS.get(question["objective"], 1.0)
    best = sorted((row["bound"], sign * row[question["objective"]]) for row in rows)[: question["top"]]
    front = set()
    for bound in (0.0, 1.0) if question["pareto"] else ():
        points = {
            tuple(SIGNS.get(g, 1.0) * row[g] for g in question["pareto"]) for row in rows if row["bound"] == bound
        }
        front |= {
            p for p in points if not any(q != p and all(a <= b for a, b in zip(q, p, strict=True)) for q in points)
        }
    unsigned = [tuple(SIGNS.get(g, 1.0) * v for g, v in zip(question["pareto"] or (), p, strict=True)) for p in front]
    return [sign * value for _, value in best], sorted(unsigned), len(rows)


def subset(draw: random.Random, values, most: int) -> tuple:
    return tuple(sorted(draw.sample(list(values), min(most, len(values))), key=list(values).index))


# Training.

EXPERTS = {
    "imbalance": [1.5], "capacity_factor": [1.25], "dispatch": ["per-node", "per-copy"], "dispatch_dtype": ["fp8"],
    "node_limit": [1], "expert_overlap": [True, False],
}  # fmt: skip
"""Values of the inputs about experts."""


def training_problem(draw: random.Random) -> dict:
    on = draw.choice(
        ["trn1.2xlarge", "trn1.2xlarge*3", "trn1.2xlarge*2,inf", "trn1.32xlarge", "trn2.3xlarge", "trn2.3xlarge*2"]
    )
    systems = ("trn1.2xlarge*2", "trn2.3xlarge") if "inf" in on else (on,)
    return {
        "model": draw.choice(["llama-3.2-1b", "llama-3.2-3b", "llama-3.1-8b", "mixtral-8x7b", "gpt-oss-20b"]),
        "on": systems,
        "calibration": draw.choice(["auto", "auto", "none"]),
        "seq": draw.choice([512, 1000, 2048]),
        "global_batch": draw.choice([4, 6, 8, 12, 16]),
        "microbatch": subset(draw, (1, 2, 3), draw.choice([1, 2])),
        "schedule": draw.choice(
            [
                ("1f1b",),
                ("1f1b", "interleaved"),
                ("zb1p",),
                ("1f1b", "zb2p"),
                ("zbv", "interleaved"),
                ("v-half", "v-min"),
            ]
        ),
        "zero": subset(draw, range(4), 2),
        "recompute": subset(draw, ("none", "selective", "operators", "full"), draw.choice([1, 2])),
        "overlap": draw.choice([None, (False, True), (True,)]),
        "tp": draw.choice([None, (1, 2), (2, 4)]),
        "pp": draw.choice([(1,), (1, 2), (2,), (1, 3)]),
        "cp": draw.choice([(1,), (1, 2)]),
        "ep": draw.choice([(1,), (1, 2), None]),
        "dp": draw.choice([None, None, (1, 2)]),
        "offload": draw.choice([("none",), ("none", "optimizer"), ("activations",), ("weights", "none")]),
        "host_link": "16 GB/s",
        "reserve": draw.choice([None, "1 GiB"]),
        "optimizer": draw.choice([None, None, "adam-fp32-grads", "adam-bf16"]),
        "flash": draw.choice([None, None, False]),
        "fused_loss": draw.choice([None, None, True]),
        "expert_tp": draw.choice([None, None, 1]),
        **{name: draw.choice([None, None, *values]) for name, values in EXPERTS.items()},
        "objective": draw.choice(["step_time", "tokens_per_s_per_chip", "usd"]),
        "pareto": draw.choice([None, None, ("step_time", "memory"), ("usd", "memory", "mfu"), ("step_time", "usd")]),
        "where": draw.choice([None, None, None, *TRAINING_WHERE]),
        "top": draw.choice([1, 5]),
    }


def layouts_of(question: dict, estimator) -> list[Layout]:
    """Every layout that a question leaves, from the definition of its inputs."""
    ranks, dims = int(estimator.system.ranks), estimator.dims
    tps = question["tp"] or [t for t in divisors(ranks) if dims.heads % t == 0]
    eps = question["ep"] or divisors(max(1, int(dims.experts)))
    schedules = [(s, n) for s in question["schedule"] for n in ((2, 4, 8) if s == "interleaved" else (1,))]
    expert_tps = (None,) if not dims.experts else (question["expert_tp"],) if question["expert_tp"] else (None, 1)
    found = []
    for tp, pp, cp, ep, (schedule, chunks), zero, microbatch, recompute, split, overlap, expert_tp, offload in itertools.product(
        tps, question["pp"], question["cp"], eps, schedules, question["zero"], question["microbatch"],
        question["recompute"], (False, True), question["overlap"] or (False,), expert_tps, question["offload"],
    ):  # fmt: skip
        dp, rest = divmod(ranks, tp * pp * cp)
        if rest or (question["dp"] and dp not in question["dp"]) or (split and tp == 1):
            continue
        # One stage has no schedule, one rank no collectives to overlap or expert to split.
        if (pp == 1 and (schedule, chunks) != schedules[0]) or (tp == 1 and expert_tp != expert_tps[0]):
            continue
        if tp == 1 and overlap != (question["overlap"] or (False,))[0]:
            continue
        default = training_settings(None)
        given = {n: question[n] for n in ("optimizer", "flash", "fused_loss") if question[n] is not None}
        same = {n: getattr(default, n) for n in ("optimizer", "flash", "fused_loss")} | given
        found.append(
            Layout(
                tp=tp, pp=pp, dp=dp, cp=cp, ep=ep, seq=question["seq"], global_batch=question["global_batch"],
                microbatch=microbatch, schedule=schedule if pp > 1 else "1f1b", interleave=chunks if pp > 1 else 1, zero=zero, recompute=recompute,
                sequence_parallel=split, overlap=overlap, expert_tp=expert_tp, offload=offload, uneven=True, **same,
            )
        )  # fmt: skip
    return found


def training_rows(question: dict) -> list[dict]:
    rows = []

    for on in question["on"]:
        estimator = prepare(
            CAT.graph, question["model"], on, calibration=question["calibration"], reserve=question["reserve"]
        )
        price = rent(CAT, on)
        experts = {n: question[n] for n in EXPERTS if question[n] is not None}
        for layout in layouts_of(question, estimator):
            one = evolve(layout, **experts)
            try:
                step = estimator.step(one)
            except RefusalError:
                continue
            demand = Demand(mode="training", layout=one, runtime=estimator.runtime)
            memory = float(demand.worst(estimator.dims)[1].total)
            if memory > estimator.system.capacity:
                continue
            time = float(step.total)
            if one.offload != "none":
                worst, rate = estimator.memory(one), host_rate(question["host_link"])
                time += estimator.offload_time(one, worst, step.compute + step.recompute, rate)
            chips, tokens = estimator.system.chips, float(one.tokens)
            peak = estimator.system.ranks * estimator.system.published["bf16"]

            work = model_flops_per_token(estimator.dims, float(one.seq), "megatron") * tokens
            rows.append({
                "step_time": time, "memory": memory, "tokens_per_s_per_chip": tokens / time / chips,
                "mfu": 100.0 * work / (time * peak), "bound": float(not estimator.calibration.name),
                "usd": None if price is None else time * (price.hourly / 3600.0) / tokens * 1e6,
                **{n: getattr(one, n) for n in ("tp", "pp", "dp", "zero", "recompute", "schedule", "offload")},
                "same": one.dp * one.cp == 1 and one.expert_split == one.tp and one.zero != question["zero"][0],
            })  # fmt: skip
    return rows


def check_training(number: int) -> bool:
    draw = random.Random(f"training {number}")
    question = training_problem(draw)
    where = TRAINING_WHERE.get(question["where"], lambda _: True)
    rows = training_rows(question)
    best, front, feasible = outcome({k: v for k, v in question.items() if v is not None}, draw.randrange(8))
    wanted = expected([r for r in rows if not r["same"]], question, where)

    # Equal layouts are counted, and not listed.
    assert (*wanted[:2], expected(rows, question, where)[2]) == (best, front, feasible), question
    return bool(best)


def test_training() -> None:
    assert sum(check_training(number) for number in QUICK) > 0


@pytest.mark.slow
def test_training_of_all_problems() -> None:
    assert sum(check_training(number) for number in range(QUICK.stop, TRAINING)) > TRAINING // 10


def serving_problem(draw: random.Random) -> dict:
    on = draw.choice(
        ["trn1.2xlarge", "trn1.32xlarge", "trn2.3xlarge", "trn2.48xlarge", ("trn1.32xlarge", "trn2.3xlarge")]
    )
    return {
        "mode": "inference",
        "model": draw.choice(["llama-3.2-1b", "llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "gpt-oss-20b"]),
        "on": (on,) if isinstance(on, str) else on,
        "calibration": draw.choice(["auto", "auto", "none"]),
        "framework": draw.choice([None, None, "nxd-inference"]),
        "prompt": draw.choice([128, 1000, 4096]),
        "output": draw.choice([2, 100, 512]),
        "tp": subset(draw, (1, 2, 4, 8, 32), 2),
        "pp": draw.choice([(1,), (1, 2), (2, 4)]),
        "ep": draw.choice([(1,), (1, 2)]),
        "batch": subset(draw, (1, 3, 16, 128), 2),
        "chunk": draw.choice([None, None, (256,), (64, 512)]),
        "kv_dtype": draw.choice([None, None, ("fp8",), ("bf16", "fp8")]),
        "weight_dtype": draw.choice([None, None, ("fp8",), ("bf16", "fp8")]),
        "prefix_hit": draw.choice([None, None, 0.5]),
        "batching": draw.choice([None, None, "static"]),
        "prefill_on": draw.choice([None, None, None, "trn2.48xlarge"]),
        **draw.choice([{}, {}, {"draft": "llama-3.2-1b", "acceptance": 0.7, "speculate": 3}]),
        "objective": draw.choice(["tokens_per_s_per_chip", "ttft", "tpot", "usd"]),
        "pareto": draw.choice([None, ("tpot", "tokens_per_s_per_chip"), ("ttft", "usd", "memory"), ("tpot", "memory")]),
        "where": draw.choice([None, *SERVING_WHERE]),
        "top": draw.choice([1, 4]),
    }


OF_DEPLOYMENT = ("tp", "pp", "ep", "batch", "chunk", "weight_dtype", "kv_dtype")
"""Inputs of which every combination is a deployment."""


def serving_rows(question: dict) -> list[dict]:
    """Every deployment by the evaluator of one."""
    names = ("model", "calibration", "framework", "prompt", "output", "prefix_hit", "batching", "prefill_on")
    same = {n: question[n] for n in (*names, "draft", "acceptance", "speculate") if question.get(n) is not None}
    rows = []
    for on in question["on"]:
        price = rent(CAT, on)
        for values in itertools.product(*(question[n] or (None,) for n in OF_DEPLOYMENT)):
            own = dict(zip(OF_DEPLOYMENT, values, strict=True))
            try:
                one = trnspec.evaluate(
                    "inference", CAT, on=on, **same, **{n: v for n, v in own.items() if v is not None}
                )
            except RefusalError:
                continue
            rows.append({
                "ttft": one["time_to_first_token"], "tpot": one["time_per_output_token"], "latency": one["latency"],
                "tokens_per_s_per_chip": one["throughput_per_chip"], "memory": one["memory"],
                "usd": None
                if price is None or question["prefill_on"]  # Two systems have no one price.
                else price.hourly / 3600.0 * (1e6 / one["throughput"]),
                "bound": float(one.evidence.kind == "ideal"), "tp": own["tp"], "batch": own["batch"],
            })  # fmt: skip
    return rows


def check_serving(number: int) -> bool:
    draw = random.Random(f"serving {number}")
    question = serving_problem(draw)
    where = SERVING_WHERE.get(question["where"], lambda _: True)
    wanted = expected(serving_rows(question), question, where)
    best, front, feasible = outcome({k: v for k, v in question.items() if v is not None}, draw.randrange(8))

    assert wanted == (best, front, feasible), question
    return bool(best)


def test_serving() -> None:
    assert sum(check_serving(number) for number in QUICK) > 0


@pytest.mark.slow
def test_serving_of_all_problems() -> None:
    assert sum(check_serving(number) for number in range(QUICK.stop, SERVING)) > SERVING // 20
