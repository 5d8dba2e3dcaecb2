"""Grids of deployments: each has the numbers of the evaluator of one, bit for bit, however the grid is cut."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.engine import everything, shipped
from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluators.deployment_grid import grids, sweep
from trnspec.evaluators.inference import run
from trnspec.perf.sweep import blocks as of_blocks
from trnspec.perf.sweep.blocks import blocks
from trnspec.perf.sweep.reductions import Best, Pareto, Top

ANSWERS = {
    "ttft": "time_to_first_token", "tpot": "time_per_output_token", "latency": "latency", "tokens_per_s": "throughput",
    "tokens_per_s_per_chip": "throughput_per_chip", "memory": "memory", "capacity": "capacity",
}  # fmt: skip
GRIDS = {
    "dense": {
        "model": "llama-3.1-8b", "on": "trn2.48xlarge", "prompt": [100, 1000], "output": [1, 2, 300], "tp": [1, 3, 8, 33],
        "pp": [1, 2, 3, 4], "ep": [1, 2], "dp": [None, 2], "batch": [1, 3, 700], "chunk": [None, 64, 512],
        "kv_dtype": [None, "fp8"],
    },
    "experts": {
        "model": "gpt-oss-20b", "on": "trn2.48xlarge", "prompt": [1000, 5000], "output": [64], "tp": [1, 4, 8], "pp": [1, 2],
        "ep": [1, 2, 3, 4], "batch": [1, 3, 64], "chunk": [None, 512], "weight_dtype": [None, "fp8"],
    },
    "experts in two pools": {
        "model": "gpt-oss-20b", "on": "trn2.48xlarge", "prefill_on": "trn2.48xlarge", "prompt": [1000], "tp": [4, 8], "ep": [1, 2, 4],
    },
    "learned positions": {"model": "gpt2", "on": "trn1.32xlarge", "prompt": [1000, 1023], "output": [1, 24, 25], "tp": [4]},
    "refused": {"model": "gpt2", "on": "trn2.3xlarge", "prefill_on": "trn1.2xlarge", "batching": "static", "tp": [1]},
    "servers on GPUs": {
        "model": "gpt-oss-120b", "on": "p5.48xlarge", "framework": "vllm", "dtype": "fp8", "tp": [1, 8], "pp": [1, 2], "ep": [1, 4],
        "batch": [1, 64, 2000], "output": [1, 300, 150_000], "weight_dtype": [None, "mxfp4"],
    },
}  # fmt: skip


EVERYTHING = Catalog(everything())


@functools.cache
def whole(name: str):
    """A grid with all reasons and measures."""
    (grid,) = grids(EVERYTHING, **GRIDS[name])
    found = list(blocks(grid, grid.columns, 0, grid.size, tuple(ANSWERS)))
    assert [start for start, *_ in found] == sorted(start for start, *_ in found)
    codes = np.concatenate([codes for _, codes, _ in found])
    return grid, [grid.reasons[c] for c in codes], {n: np.concatenate([c[n] for *_, c in found]) for n in ANSWERS}


@pytest.mark.parametrize("name", GRIDS)
@settings(max_examples=15)
@given(share=st.floats(0, 1, exclude_max=True))
def test_each_is_the_single_call(name, share) -> None:
    grid, reasons, values = whole(name)
    number = int(share * grid.size)
    try:
        one, reason = run(EVERYTHING, grid.question(number)), ""
    except RefusalError as refusal:
        one, reason = None, refusal.reason

    assert reason == reasons[number]
    if one is not None:
        assert {n: one[answer] for n, answer in ANSWERS.items()} == {n: c[number] for n, c in values.items()}


@pytest.mark.parametrize("region", [700, 1 << 17])
def test_reductions(region, monkeypatch) -> None:
    monkeypatch.setattr(of_blocks, "_CHUNK", region)
    names = ("dense", "experts")
    prepared = [whole(name)[0] for name in names]
    rows = [
        (cost, i, number, memory)
        for i, name in enumerate(names)
        for number, (reason, cost, memory) in enumerate(
            zip(whole(name)[1], whole(name)[2]["tpot"].tolist(), whole(name)[2]["memory"].tolist(), strict=True)
        )
        if not reason
    ]

    def found(keep):
        kept = sweep(prepared, keep=keep, goal="tpot").result
        return list(zip(kept.which.tolist(), kept.number.tolist(), strict=True))

    assert [(i, n) for _, i, n, _ in sorted(rows)[:7]] == found(Top(7))
    assert [(i, n) for j in (0, 1) for _, i, n, _ in sorted(r for r in rows if r[1] == j)[:3]] == found(Best(3))
    front, least = [], float("inf")
    for _, i, n, memory in sorted(rows, key=lambda r: (r[0], r[3], r[1], r[2])):
        if memory < least:
            least = memory
            front.append((i, n))
    assert front == found(Pareto())


@pytest.mark.parametrize("goal", [name for name in ANSWERS if name != "capacity"])
def test_the_best_by_each_goal(goal) -> None:
    grid, reasons, values = whole("experts")
    offered = [value for value, reason in zip(values[goal].tolist(), reasons, strict=True) if not reason]
    (record,) = sweep([grid], keep=Top(1), goal=goal).records()
    assert record[goal] == (max if goal.startswith("tokens") else min)(offered)


def test_misuse() -> None:
    with pytest.raises(UsageError, match="no input 'zero'"):
        grids(shipped(), model="llama-3.1-8b", on="trn2.48xlarge", zero=1)
    with pytest.raises(UsageError, match="tp has no values"):
        grids(shipped(), model="llama-3.1-8b", on="trn2.48xlarge", tp=[])
    (one,) = grids(shipped(), model="llama-3.1-8b", on="trn2.48xlarge")
    with pytest.raises(UsageError, match="'speed' is not a goal"):
        sweep([one], keep=Top(1), goal="speed")
