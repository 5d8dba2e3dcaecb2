"""Throughput of the performance engine: training steps per second.

    python benchmarks/engine.py [ROWS]

One process, one core.  Batches of up to ROWS rows (10 million by default) of unrelated configurations: models, systems and all
columns of a layout drawn at random; a sweep of as many; single calls.  Rates are of processor time, since the machine may be
shared; wall clock is printed too.  The time of a numpy multiplication in cache is measured after each line and shows how busy
the machine is.  Finally llm-analysis 0.2.2 from PyPI on the same configurations, in a process of its own; it is installed into
a cache folder the first time.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve

import trnspec
from trnspec.perf.sweep.batch import RECOMPUTES, SCHEDULES, Top, estimators, rows, sweep
from trnspec.perf.sweep.columns import WORDS
from trnspec.perf.sweep.grid import grid
from trnspec.perf.training.step import step
from trnspec.perf.work.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Callable

MODELS = (
    *("gpt-3-175b", "gpt-22b", "gpt-145.6b", "gpt-7.5b", "gpt-39.1b", "gpt2-xl", "mpt-30b", "mpt-70b", "llama-2-7b"),
    *("llama-2-13b", "llama-2-70b", "llama-3-8b", "llama-3.1-70b", "llama-3.1-405b", "llama-3.2-3b", "mistral-7b"),
    *("qwen2.5-72b", "qwen3-8b", "qwen3-32b", "qwen3-30b-a3b", "mixtral-8x7b", "mixtral-8x22b", "gpt-oss-120b"),
    "deepseek-v3",
)
SYSTEMS = ("trn1.32xlarge*32", "trn1.32xlarge*64", "trn2.48xlarge*16", "trn2u.48xlarge*8")
VERSION = "0.2.2"
CACHE = (
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trnspec-benchmarks" / f"llm-analysis-{VERSION}"
)

SWEPT: dict[str, Any] = {
    "tp": [1, 2, 4, 8, 16, 32], "pp": [1, 2, 4, 8], "cp": [1, 2, 4], "seq": [2048, 4096, 8192],
    "global_batch": [64, 128, 256, 512, 1024, 2048, 4096], "microbatch": [1, 2, 4],
    "schedule": ["1f1b", ("interleaved", 2), ("interleaved", 4), "zb1p", "zb2p", "zbv", "v-half"],
    "zero": [0, 1, 2, 3], "recompute": ["none", "selective", "full"], "sequence_parallel": [False, True],
    "overlap": [False, True],
}  # fmt: skip


def mixed(prepared: tuple[Any, ...], size: int) -> dict[str, Any]:
    """A batch of random configurations; dp follows from the ranks and the other degrees."""
    draw = np.random.default_rng(1)
    which = draw.integers(0, len(prepared), size)
    tp, pp, cp = draw.choice([1, 2, 4, 8, 16, 32], size), draw.choice([1, 2, 4, 8], size), draw.choice([1, 2, 4], size)
    ranks = np.array([int(e.system.ranks) for e in prepared])[which]
    routed = np.array([e.dims.experts > 0 for e in prepared])[which]
    # One stage has no schedule, and learned positions limit the sequence length.
    schedule = np.where(pp > 1, draw.integers(0, len(SCHEDULES), size), SCHEDULES.index("1f1b"))
    longest = np.array([e.dims.context if e.dims.positions else np.inf for e in prepared])[which]
    seq = np.minimum(draw.choice([2048, 4096, 8192, 16384], size), longest).astype(int)
    return {
        "which": which,
        "tp": tp,
        "pp": pp,
        "cp": cp,
        "dp": np.maximum(1, ranks // (tp * pp * cp)),
        "ep": np.where(routed, draw.choice([1, 2, 4, 8], size), 1),
        "seq": seq,
        "global_batch": draw.choice([512, 1024, 2048, 4096], size),
        "microbatch": draw.choice([1, 2, 4], size),
        "schedule": schedule,
        "interleave": np.where(schedule == SCHEDULES.index("interleaved"), draw.choice([2, 4], size), 1),
        "zero": draw.integers(0, 4, size),
        "recompute": draw.integers(0, len(RECOMPUTES), size),
        "sequence_parallel": draw.integers(0, 2, size),
        "overlap": draw.integers(0, 2, size),
        "optimizer": draw.integers(0, 6, size),
    }


def measured(call: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Medians of processor time and of wall clock [s]."""
    cpu, wall = [], []
    for _ in range(repeats):
        began, clock = time.process_time(), time.perf_counter()
        call()
        cpu.append(time.process_time() - began)
        wall.append(time.perf_counter() - clock)
    return statistics.median(cpu), statistics.median(wall)


def multiplication() -> float:
    """Time of one numpy multiplication in cache [ns]: a quarter of a nanosecond on an idle machine."""
    a, b, c = (np.full(8192, 1.5) for _ in range(3))
    return 1e9 * measured(lambda: [np.multiply(a, b, out=c) for _ in range(100)], 15)[0] / 819200


def report(what: str, count: int, cpu: float, wall: float) -> None:
    """Print one line of the table."""
    each = 1e9 * cpu / count
    print(f"{what:52} {each:9,.0f} ns {count / cpu:14,.0f}/s {count / wall:14,.0f}/s   {multiplication():.2f} ns")


def layouts(prepared: tuple[Any, ...], columns: dict[str, Any], count: int) -> list[tuple[Any, Layout]]:
    """The first feasible configurations of a batch, as single calls take them."""
    batch = rows(prepared, **{n: c[: 200 * count] for n, c in columns.items()})
    single = []
    for i in np.flatnonzero(batch.code == 0)[:count]:
        row = {name: int(column[i]) for name, column in columns.items() if name not in {"which", "optimizer"}}
        names = {"schedule": SCHEDULES[row["schedule"]], "recompute": RECOMPUTES[row["recompute"]]}
        flags = {name: bool(row[name]) for name in ("sequence_parallel", "overlap")}
        single.append((prepared[int(columns["which"][i])], Layout(**row | names | flags)))
    return single


def _position(name: str, value: Any) -> int:
    """A value as columns store it: names by their position."""
    return WORDS[name].index(value) if name in WORDS else int(value)


def peak(size: int) -> None:
    """Sweep ``size`` configurations, keep ten, and print the peak memory in MiB; runs in a process of its own."""
    prepared = estimators(trnspec.load().graph, MODELS[:12], (SYSTEMS[0],))
    prepared = prepared[: -(-size // grid(**SWEPT).size)]
    evaluated = sweep(prepared, keep=Top(10), **SWEPT).evaluated
    # ru_maxrss would include the peak of the parent process on Linux.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    highest = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    print(json.dumps({"evaluated": evaluated, "MiB": int(highest) / 1024}))


LLM_ANALYSIS = """\
import json, logging, sys, time
from llm_analysis.analysis import ActivationRecomputation, DSZeRO, LLMAnalysis
from llm_analysis.config import GPUConfig, ModelConfig, ParallelismConfig

logging.disable(logging.CRITICAL)
asked = json.load(sys.stdin)
def one(x):
    LLMAnalysis(ModelConfig(**x["model"]), GPUConfig(**x["gpu"]), parallelism_config=ParallelismConfig(**x["parallel"]),
                flops_efficiency=0.5, hbm_memory_efficiency=0.9).training(
        batch_size_per_gpu=x["microbatch"], gradient_accumulation_steps=x["microbatches"], seq_len=x["seq"],
        activation_recomputation=ActivationRecomputation(x["recompute"]), ds_zero=DSZeRO(x["zero"]))
able = []
for i, x in enumerate(asked):
    try:
        one(x)
    except AssertionError:
        continue
    able.append(i)
times = []
for _ in range(5):
    began = time.process_time()
    for i in able:
        one(asked[i])
    times.append(time.process_time() - began)
print(json.dumps([able, sorted(times)[2]]))
"""


def run_llm_analysis(cat: Any, single: list[tuple[Any, Layout]]) -> tuple[list[int], float]:
    """The configurations that llm-analysis supports (it stops at those that do not fit), and their processor time [s]."""
    if not (CACHE / "llm_analysis").is_dir():
        packages = [f"llm-analysis=={VERSION}", "fire", "termcolor"]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", CACHE, *packages]
        subprocess.run(pip, check=True, capture_output=True)
    configurations = []
    for estimator, layout in single:
        d, server = estimator.dims, estimator.system.name.partition("*")[0]
        model = {
            "name": estimator.name, "num_layers": int(d.layers), "n_head": int(d.heads), "hidden_dim": int(d.hidden),
            "vocab_size": int(d.vocabulary), "num_key_value_heads": int(d.kv_heads), "ffn_embed_dim": int(d.width),
            "expansion_ratio": d.width / d.hidden, "max_seq_len": layout.seq,
        }  # fmt: skip
        configurations.append({
            "model": model, "gpu": json.loads(cat[server].export("llm-analysis").text),
            "parallel": {"tp_size": layout.tp, "pp_size": layout.pp, "dp_size": layout.dp}, "microbatch": layout.microbatch,
            "microbatches": layout.microbatches, "seq": layout.seq, "zero": layout.zero,
            "recompute": {"none": 0, "selective": 1, "full": 2}[layout.recompute],
        })  # fmt: skip
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | {"PYTHONPATH": str(CACHE)}
    done = subprocess.run(
        [sys.executable, "-c", LLM_ANALYSIS],
        input=json.dumps(configurations),
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    supported, seconds = json.loads(done.stdout.splitlines()[-1])
    return supported, seconds


def unusual(prepared: tuple[Any, ...], columns: dict[str, Any]) -> None:
    """Batches that reuse fewer tables: the first with some estimators, and one with many distinct values."""
    size = min(len(columns["which"]), 10_000)
    batch = {name: column[:size] for name, column in columns.items()}
    # Tables are cached by identity of the estimators.
    copies = iter([[evolve(e) for e in prepared] for _ in range(9)])
    report(f"rows, mixed, {size:,}, the first with them", size, *measured(lambda: rows(next(copies), **batch), 9))
    size = min(len(columns["which"]), 1_000_000)
    batch = {name: column[:size] for name, column in columns.items()}
    lengths = 128 * np.random.default_rng(2).integers(1, 1025, size)
    report(
        f"rows, mixed, {size:,}, 1,024 sequence lengths",
        size,
        *measured(lambda: rows(prepared, **batch | {"seq": lengths}), 5),
    )


def main() -> None:
    """Run all measurements and print the results."""
    limit = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    cat = trnspec.load()
    prepared = estimators(cat.graph, MODELS, SYSTEMS)
    kinds = len({e.machine for e in prepared})
    print(f"{len(MODELS)} models on {len(SYSTEMS)} systems, {kinds} of them distinct; one core")
    print(f"{'':52} {'each':>12} {'processor time':>16} {'wall clock':>16}   numpy's *")

    columns = mixed(prepared, limit)
    for size in (s for s in (10_000, 100_000, 1_000_000, 10_000_000) if s <= limit):
        some = {name: column[:size] for name, column in columns.items()}
        repeats = 9 if size <= 1_000_000 else 3
        report(f"rows, mixed, {size:,}", size, *measured(lambda some=some: rows(prepared, **some), repeats))
    unusual(prepared, columns)
    sample = rows(prepared, **{n: c[:1_000_000] for n, c in columns.items()})
    feasible = float((sample.code == 0).mean())
    size = min(limit, 100_000)
    some = {name: column[:size] for name, column in columns.items()}
    report(f"rows, mixed, {size:,}, with memory", size, *measured(lambda: rows(prepared, **some, memory=True), 3))

    swept = estimators(cat.graph, ("llama-3.1-70b",), SYSTEMS[:2])
    count = 2 * grid(**SWEPT).size
    report(
        f"sweep, {count:,}, the ten fastest",
        count,
        *measured(lambda: sweep(swept, keep=Top(10), memory=False, **SWEPT), 3),
    )
    report(f"sweep, {count:,}, that fit into memory", count, *measured(lambda: sweep(swept, keep=Top(10), **SWEPT), 3))

    single = layouts(prepared, columns, 2000)
    report("Estimator.step, one call each", len(single), *measured(lambda: [e.step(x) for e, x in single], 5))
    plans = [(e.model, x.plan(), e.machine) for e, x in single]
    report("step, one call each", len(plans), *measured(lambda: [step(*plan) for plan in plans], 5))
    print(f"{feasible:.0%} of the mixed rows are feasible")

    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import engine; engine.peak({limit})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    used = json.loads(done.stdout)
    print(f"a sweep of {used['evaluated']:,}, ten kept: peak memory of the process {used['MiB']:.0f} MiB")

    dense = [
        (e, x)
        for e, x in single
        if not e.dims.experts and x.cp == 1 and x.schedule == "1f1b" and x.recompute != "operators"
    ]
    try:
        supported, other = run_llm_analysis(cat, dense)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"llm-analysis {VERSION} could not be run: {error} {getattr(error, 'stderr', '')}")
        return
    dense = [dense[i] for i in supported]
    ours, _ = measured(lambda: [(e.step(x), e.memory(x)) for e, x in dense], 5)
    at = {id(e): i for i, e in enumerate(prepared)}
    same = {n: np.tile([_position(n, getattr(x, n)) for _, x in dense], 25_000) for n in columns if n != "which"}
    which = np.tile([at[id(e)] for e, _ in dense], 25_000)
    batch, _ = measured(lambda: rows(prepared, which, **same, memory=True), 3)
    alone, _ = measured(lambda: rows(prepared, which, **same), 3)
    n = len(dense)
    print(f"\n{n} configurations, dense models with 1F1B, also asked of llm-analysis {VERSION}")
    print(f"{'llm-analysis, training()':52} {n / other:14,.0f}/s   ratio 1")
    for what, seconds, times in (
        ("Estimator.step and memory, one call each", ours, 1),
        ("rows with memory, each configuration 25,000 times", batch, 25_000),
        ("rows, each configuration 25,000 times", alone, 25_000),
    ):
        print(f"{what:52} {n * times / seconds:14,.0f}/s   ratio {other * times / seconds:,.0f}")


if __name__ == "__main__":
    main()
