"""Throughput of the performance engine: training steps per second.

    python benchmarks/engine.py [--rows ROWS] [--processes N] [--numpy] [NAME ...]

One core.  Each measurement runs in processes of its own (3 by default), so that none profits from what another has cached or
from the memory that it has freed.  A process calls once, which includes the tables of a batch, and then repeatedly.  The
table has the first call, the median and the fastest of the others, in processor time, since the machine may be shared.
The time of a numpy multiplication in cache, measured in the same process, shows how busy the machine is.  Last,
llm-analysis 0.2.2 from PyPI on the same configurations; it is installed into a cache folder the first time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from attrs import evolve, frozen

import trnspec
from trnspec.perf import llvm
from trnspec.perf.sweep.batch import RECOMPUTES, SCHEDULES, Top, estimators, rows, sweep
from trnspec.perf.sweep.columns import WORDS
from trnspec.perf.sweep.grid import grid
from trnspec.perf.training.step import step
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.transformer import transformer

MODELS = (
    *("gpt-3-175b", "gpt-22b", "gpt-145.6b", "gpt-7.5b", "gpt-39.1b", "gpt2-xl", "mpt-30b", "mpt-70b", "llama-2-7b"),
    *("llama-2-13b", "llama-2-70b", "llama-3-8b", "llama-3.1-70b", "llama-3.1-405b", "llama-3.2-3b", "mistral-7b"),
    *("qwen2.5-72b", "qwen3-8b", "qwen3-32b", "qwen3-30b-a3b", "mixtral-8x7b", "mixtral-8x22b", "gpt-oss-120b"),
    "deepseek-v3",
)
SYSTEMS = ("trn1.32xlarge*32", "trn1.32xlarge*64", "trn2.48xlarge*16", "trn2u.48xlarge*8")
VERSION = "0.2.2"
WITHOUT = "TRNSPEC_BENCHMARK_WITHOUT_MACHINE_CODE"
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


def processor_time(call: Callable[[], Any]) -> float:
    """Processor time of one call [s]."""
    began = time.process_time()
    call()
    return time.process_time() - began


def multiplication() -> float:
    """Time of one numpy multiplication in cache [ns]: a quarter of a nanosecond on an idle machine."""
    a, b, c = (np.full(8192, 1.5) for _ in range(3))
    times = [processor_time(lambda: [np.multiply(a, b, out=c) for _ in range(100)]) for _ in range(15)]
    return 1e9 * statistics.median(times) / 819200


@frozen
class Measurement:
    """What is called, and how many configurations a call evaluates.

    Attributes:
        count: Configurations of one call.
        call: The call.
        repeats: Calls after the first one.
        goal: Configurations per second that the project wants; 0 for no goal.
    """

    count: int
    call: Callable[[], Any]
    repeats: int = 5
    goal: float = 0.0


def mixed_rows(size: int) -> Measurement:
    """All models on all systems."""
    prepared = estimators(trnspec.load().graph, MODELS, SYSTEMS)
    columns = mixed(prepared, size)
    return Measurement(size, lambda: rows(prepared, **columns), 9 if size <= 1_000_000 else 3, 1e7 if size > 1e5 else 0)


def mixed_lengths(size: int) -> Measurement:
    """The same with 1,024 sequence lengths, which are too many for tables."""
    prepared = estimators(trnspec.load().graph, MODELS, SYSTEMS)
    columns = mixed(prepared, size) | {"seq": 128 * np.random.default_rng(2).integers(1, 1025, size)}
    return Measurement(size, lambda: rows(prepared, **columns))


def mixed_memory(size: int) -> Measurement:
    """The same with memory."""
    prepared = estimators(trnspec.load().graph, MODELS, SYSTEMS)
    columns = mixed(prepared, size)
    return Measurement(size, lambda: rows(prepared, **columns, memory=True), 3)


def distinct_models(models: int, size: int) -> Measurement:
    """Random rows over many models, none of which is another one's."""
    prepared = estimators(trnspec.load().graph, MODELS, SYSTEMS)
    draw = np.random.default_rng(3)
    several = []
    for i, which in enumerate(draw.integers(0, len(prepared), models).tolist()):
        e = prepared[which]
        width = e.dims.width + 64.0 * (i + 1)
        dims = evolve(e.dims, width=width, mlp_weights=e.dims.matrices * e.dims.hidden * width)
        several.append(evolve(e, dims=dims, model=transformer(dims)))
    distinct = tuple(several)
    columns = mixed(distinct, size)
    return Measurement(size, lambda: rows(distinct, **columns), 5, 8e6 if models >= 10_000 else 1e7)


def swept(*, memory: bool) -> Measurement:
    """Every combination of some values, of which the ten fastest are kept."""
    prepared = estimators(trnspec.load().graph, ("llama-3.1-70b",), SYSTEMS[:2])
    size = len(prepared) * grid(**SWEPT).size
    return Measurement(size, lambda: sweep(prepared, keep=Top(10), memory=memory, **SWEPT), 3)


def single_layouts() -> list[tuple[Any, Layout]]:
    """2,000 feasible configurations."""
    prepared = estimators(trnspec.load().graph, MODELS, SYSTEMS)
    return layouts(prepared, mixed(prepared, 400_000), 2000)


def single_calls() -> Measurement:
    """The public call, which checks the layout."""
    single = single_layouts()
    return Measurement(len(single), lambda: [e.step(x) for e, x in single], 9, 2e4)


def single_steps() -> Measurement:
    """The formulas alone."""
    plans = [(e.model, x.plan(), e.machine) for e, x in single_layouts()]
    return Measurement(len(plans), lambda: [step(*plan) for plan in plans], 9)


def measurements(limit: int) -> dict[str, Callable[[], Measurement]]:
    """All measurements by name."""
    million = min(limit, 1_000_000)
    sizes = [size for size in (10_000, 100_000, 1_000_000, 10_000_000) if size <= limit]
    return {
        **{f"rows, mixed, {size:,}": partial(mixed_rows, size) for size in sizes},
        f"rows, mixed, {million:,}, 1,024 sequence lengths": partial(mixed_lengths, million),
        **{
            f"rows, {million:,}, {models:,} distinct models": partial(distinct_models, models, million)
            for models in (1_000, 10_000, 100_000)
        },
        f"rows, mixed, {min(limit, 100_000):,}, with memory": partial(mixed_memory, min(limit, 100_000)),
        "sweep, the ten fastest, without memory": partial(swept, memory=False),
        "sweep, the ten fastest, with memory": partial(swept, memory=True),
        "Estimator.step, one call each": single_calls,
        "step, one call each": single_steps,
    }


def measure(name: str, limit: int) -> None:
    """Print the times of one measurement as JSON; runs in a process of its own."""
    measurement = measurements(limit)[name]()
    times = [processor_time(measurement.call) for _ in range(1 + measurement.repeats)]
    each = [1e9 * t / measurement.count for t in times]
    print(json.dumps({
        "count": measurement.count, "goal": measurement.goal, "first": each[0], "others": each[1:],
        "multiplication": multiplication(),
    }))  # fmt: skip


def report(name: str, limit: int, processes: int) -> None:
    """Measure in several processes, and print one line of the table."""
    command = [sys.executable, __file__, "--rows", str(limit), "--measure", name]
    results = [
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(processes)
    ]
    others = [t for result in results for t in result["others"]]
    first, median, best = statistics.median(r["first"] for r in results), statistics.median(others), min(others)
    goal = results[0]["goal"]
    verdict = f"{'met' if 1e9 / median >= goal else 'missed'}: {goal:,.0f}/s" if goal else ""
    busy = statistics.median(r["multiplication"] for r in results)
    print(
        f"{name:50} {first:9,.0f} ns {median:9,.0f} ns {best:9,.0f} ns {1e9 / median:14,.0f}/s   {busy:.2f} ns  {verdict}",
        flush=True,
    )


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


def compare(limit: int) -> None:
    """Print the throughput of llm-analysis, and of the engine on the same configurations."""
    cat = trnspec.load()
    prepared = estimators(cat.graph, MODELS, SYSTEMS)
    columns = mixed(prepared, limit)
    dense = [
        (e, x)
        for e, x in layouts(prepared, columns, 2000)
        if not e.dims.experts and x.cp == 1 and x.schedule == "1f1b" and x.recompute != "operators"
    ]
    try:
        supported, other = run_llm_analysis(cat, dense)
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"llm-analysis {VERSION} could not be run: {error} {getattr(error, 'stderr', '')}")
        return
    dense = [dense[i] for i in supported]
    at = {id(e): i for i, e in enumerate(prepared)}
    same = {n: np.tile([_position(n, getattr(x, n)) for _, x in dense], 25_000) for n in columns if n != "which"}
    which = np.tile([at[id(e)] for e, _ in dense], 25_000)
    n = len(dense)
    print(f"\n{n} configurations, dense models with 1F1B, also asked of llm-analysis {VERSION}")
    print(f"{'llm-analysis, training()':52} {n / other:14,.0f}/s   ratio 1")
    calls: tuple[tuple[str, Callable[[], Any], int], ...] = (
        ("Estimator.step and memory, one call each", lambda: [(e.step(x), e.memory(x)) for e, x in dense], 1),
        (
            "rows with memory, each configuration 25,000 times",
            lambda: rows(prepared, which, **same, memory=True),
            25_000,
        ),
        ("rows, each configuration 25,000 times", lambda: rows(prepared, which, **same), 25_000),
    )
    for what, call, times in calls:
        seconds = statistics.median(processor_time(call) for _ in range(3))
        print(f"{what:52} {n * times / seconds:14,.0f}/s   ratio {other * times / seconds:,.0f}")


def main() -> None:
    """Run all measurements and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="measure only what has this in its name")
    parser.add_argument("--rows", type=int, default=10_000_000, help="rows of the largest batch (default: 10,000,000)")
    parser.add_argument("--processes", type=int, default=3, help="processes per measurement (default: 3)")
    parser.add_argument("--numpy", action="store_true", help="without machine code, as if llvmlite were not installed")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.numpy:
        # Passed on to the processes that measure.
        os.environ[WITHOUT] = "1"
    if WITHOUT in os.environ:
        llvm.available = lambda: False
    if options.measure:
        measure(options.measure, options.rows)
        return
    how = "rows in machine code" if llvm.available() else "numpy"
    print(f"{len(MODELS)} models on {len(SYSTEMS)} systems; one core, processor time; {how}")
    print(f"{'':50} {'first':>12} {'median':>12} {'best':>12} {'median':>16}   numpy's *  goal")
    for name in measurements(options.rows):
        if not options.names or any(part in name for part in options.names):
            report(name, options.rows, options.processes)
    if options.names:
        return
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import engine; engine.peak({options.rows})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    used = json.loads(done.stdout)
    print(f"a sweep of {used['evaluated']:,}, ten kept: peak memory of the process {used['MiB']:.0f} MiB")
    compare(min(options.rows, 1_000_000))


if __name__ == "__main__":
    main()
