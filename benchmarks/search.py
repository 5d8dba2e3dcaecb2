"""Speed of the performance engine: searches, sweeps, batches and single calls, next to llm-analysis in the same run.

    python benchmarks/search.py [--largest N] [--processes N] [NAME ...]

One core, processor time.  Each measurement runs in processes of its own, so that none profits from what another has computed;
a process calls once, which is what a command does, and then again.  ``peak`` is the peak memory of a process.  llm-analysis
0.2.2 from PyPI is installed into a cache folder the first time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import trnspec
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluators.deployment_grid import grids
from trnspec.evaluators.deployment_grid import sweep as deployments
from trnspec.evaluators.searching.question import SearchQuestion
from trnspec.evaluators.searching.space import search_of
from trnspec.perf.sweep.batch import Top, estimators, rows, sweep
from trnspec.perf.sweep.grid import grid
from trnspec.perf.work.layout import Layout

VERSION = "0.2.2"
CACHE = (
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trnspec-benchmarks" / f"llm-analysis-{VERSION}"
)
MODEL, SYSTEM = "llama-3.1-70b", "trn1.32xlarge*32"
LAYOUTS: dict[str, Any] = {
    "tp": [1, 2, 4, 8, 16, 32], "pp": [1, 2, 4, 8], "cp": [1, 2, 4], "microbatch": [1, 2, 4], "zero": [0, 1, 2, 3],
    "recompute": ["none", "full"], "sequence_parallel": [False, True], "overlap": [False, True],
    "schedule": ["1f1b", ("interleaved", 2), ("interleaved", 4), "zb1p", "zb2p"],
}  # fmt: skip
SEARCHES: dict[str, dict[str, Any]] = {
    "search, 405B": {"model": "llama-3.1-405b", "on": ("trn2-ultraserver*64",), "seq": 8192, "global_batch": 2048},
    "search, 405B, all schedules": {
        "model": "llama-3.1-405b", "on": ("trn2-ultraserver*64",), "seq": 8192, "global_batch": 2048,
        "schedule": ("1f1b", "interleaved", "gpipe", "zb1p", "zb2p", "zbv", "v-half", "v-min"),
    },
    "search, 8B": {"model": "llama-3.1-8b", "on": ("trn2.48xlarge*4",), "seq": 8192, "global_batch": 1024},
    "search, DeepSeek-V3": {
        "model": "deepseek-v3", "on": ("trn3-gen2-ultraserver*7",), "seq": 4096, "global_batch": 2016,
    },
    "search, gpt-oss-120b, inference": {
        "model": "gpt-oss-120b", "on": ("trn2.48xlarge",), "prompt": 4096, "output": 512,
    },
}  # fmt: skip
Measured = tuple[int, Callable[[], Any]]


def shipped(name: str) -> Measured:
    """A search as the command runs it, without loading the catalog and without its page."""
    search = search_of(trnspec.load(), SearchQuestion(**SEARCHES[name]))
    return search.size, lambda: search.kept(0, search.size)


def swept(size: int, *, memory: bool) -> Measured:
    """The ten fastest layouts of a grid with many batches and sequence lengths."""
    others = max(1, size // grid(**LAYOUTS, seq=4096, global_batch=64).size)
    batches = min(512, others)
    axes = LAYOUTS | {
        "global_batch": [128 * (i + 1) for i in range(batches)],
        "seq": [1024 * (i + 1) for i in range(max(1, others // batches))],
    }
    prepared = estimators(trnspec.load().graph, (MODEL,), (SYSTEM,))
    return grid(**axes).size, lambda: sweep(prepared, keep=Top(10), memory=memory, **axes)


def serving(size: int) -> Measured:
    """The ten deployments of a grid with the most tokens per second and chip."""
    others = max(1, size // (6 * 3 * 3 * 2 * 2))
    batches = min(256, others)
    prepared = grids(
        trnspec.load(), model=MODEL, on="trn2.48xlarge", tp=[1, 2, 4, 8, 16, 32], pp=[1, 2, 4], chunk=[None, 512, 2048],
        weight_dtype=["bf16", "fp8"], kv_dtype=["bf16", "fp8"], batch=list(range(1, batches + 1)),
        prompt=[64 * (i + 1) for i in range(max(1, others // batches))],
    )  # fmt: skip
    return prepared[0].size, lambda: deployments(prepared, keep=Top(10))


def layouts(count: int) -> list[Layout]:
    """Random layouts of :data:`MODEL` on :data:`SYSTEM` that have a time and fit."""
    draw = random.Random(1)
    (estimator,) = estimators(trnspec.load().graph, (MODEL,), (SYSTEM,))
    ranks, found = int(estimator.system.ranks), list[Layout]()
    while len(found) < count:
        tp, pp = draw.choice((8, 16, 32)), draw.choice((1, 2, 4, 8))
        layout = Layout(
            tp=tp, pp=pp, dp=ranks // (tp * pp), seq=draw.choice((2048, 4096, 8192)), global_batch=1024,
            microbatch=draw.choice((1, 2)), zero=draw.choice((1, 2, 3)), recompute=draw.choice(("none", "selective", "full")),
        )  # fmt: skip
        try:
            estimator.step(layout)
        except (RefusalError, UsageError):
            continue
        if estimator.memory(layout).total <= estimator.system.capacity:
            found.append(layout)
    return found


def batch(size: int) -> Measured:
    """Unrelated layouts, one per row, with memory."""
    prepared = estimators(trnspec.load().graph, (MODEL,), (SYSTEM,))
    names = ("tp", "pp", "dp", "seq", "global_batch", "microbatch", "zero", "recompute")
    some = layouts(200)
    columns = {name: np.resize(np.array([getattr(x, name) for x in some]), size) for name in names}
    return size, lambda: rows(prepared, 0, memory=True, **columns)


def single_calls(size: int) -> Measured:
    """``Estimator.step`` and ``Estimator.memory``, one call each."""
    (estimator,) = estimators(trnspec.load().graph, (MODEL,), (SYSTEM,))
    some = layouts(size)
    return size, lambda: [(estimator.step(x), estimator.memory(x)) for x in some]


def measurements(largest: int) -> dict[str, Callable[[], Measured]]:
    """All measurements by name."""
    sizes = [size for size in (10**5, 10**6, 10**7, 10**8, 10**9) if size <= largest]
    return {
        **{name: partial(shipped, name) for name in SEARCHES},
        **{f"sweep without memory, {size:.0e}": partial(swept, size, memory=False) for size in sizes},
        **{f"sweep with memory, {size:.0e}": partial(swept, size, memory=True) for size in sizes},
        **{f"deployments, {size:.0e}": partial(serving, size) for size in sizes},
        "rows with memory, 1e+05": partial(batch, 10**5),
        "single calls": partial(single_calls, 500),
    }


def processor_time(call: Callable[[], Any]) -> float:
    """Processor time of one call [s]."""
    began = time.process_time()
    call()
    return time.process_time() - began


def measure(name: str, largest: int) -> None:
    """Print the times of one measurement as JSON; runs in a process of its own."""
    count, call = measurements(largest)[name]()
    first = processor_time(call)
    # What takes long is not repeated.
    others = [processor_time(call) for _ in range(3 if first < 5.0 else 1)]
    # ru_maxrss would include the peak of the parent process on Linux.
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak = int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) / 1024
    print(json.dumps({"count": count, "first": first, "others": others, "peak": peak}))


def report(name: str, largest: int, processes: int) -> None:
    """Measure in several processes, and print one line of the table."""
    command = [sys.executable, __file__, "--largest", str(largest), "--measure", name]
    results = [
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(processes)
    ]
    count, first = results[0]["count"], statistics.median(r["first"] for r in results)
    again = statistics.median(t for r in results for t in r["others"])
    peak = max(r["peak"] for r in results)
    print(
        f"{name:34} {count:13,} {first:9.3f} s {again:9.3f} s {count / again / 1e6:8.2f} M/s {peak:6.0f} MiB",
        flush=True,
    )


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


def compare() -> None:
    """Print the throughput of llm-analysis, and of the engine on the same configurations."""
    (estimator,) = estimators(trnspec.load().graph, (MODEL,), (SYSTEM,))
    some = [x for x in layouts(200) if x.recompute != "operators"]
    try:
        supported, other = run_llm_analysis(trnspec.load(), [(estimator, x) for x in some])
    except (subprocess.CalledProcessError, OSError) as error:
        print(f"llm-analysis {VERSION} could not be run: {error} {getattr(error, 'stderr', '')}")
        return
    some = [some[i] for i in supported]
    seconds = statistics.median(
        processor_time(lambda: [(estimator.step(x), estimator.memory(x)) for x in some]) for _ in range(3)
    )
    print(f"\n{len(some)} layouts that llm-analysis {VERSION} supports")
    print(f"llm-analysis {len(some) / other:10,.0f}/s")
    print(f"single calls {len(some) / seconds:10,.0f}/s   ratio {other / seconds:.1f}")


def main() -> None:
    """Run all measurements and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="measure only what has this in its name")
    parser.add_argument("--largest", type=float, default=1e7, help="configurations of the largest grid (default: 1e7)")
    parser.add_argument("--processes", type=int, default=3, help="processes per measurement (default: 3)")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    largest = int(options.largest)
    if options.measure:
        measure(options.measure, largest)
        return
    print(f"{'':34} {'configurations':>13} {'first call':>10} {'again':>10} {'':12} {'peak':>9}")
    for name in measurements(largest):
        if not options.names or any(part in name for part in options.names):
            report(name, largest, options.processes)
    if not options.names or "llm-analysis" in options.names:
        compare()


if __name__ == "__main__":
    main()
