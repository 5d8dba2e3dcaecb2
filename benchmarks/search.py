"""Throughput of searches: configurations per second of every combination of some values, of which the best are kept.

    python benchmarks/search.py [--largest N] [--processes N] [NAME ...]

One core.  Each measurement runs in processes of its own, in processor time, beside the ceiling of numpy measured in the same
process: the time of one multiply-add of float64 arrays in cache.  A process calls once, which is the first column, and then
repeatedly: median and best.  ``peak`` is the peak memory of the process.  Last, llm-analysis on the configurations that it
supports, and a search on two cores with ``--largest 1e9``.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import engine
import numpy as np

import trnspec
from trnspec.evaluators.deployment_grid import grids
from trnspec.evaluators.deployment_grid import sweep as deployments
from trnspec.perf.sweep.batch import Top, estimators, sweep
from trnspec.perf.sweep.grid import grid

if TYPE_CHECKING:
    from collections.abc import Callable

MODEL, SYSTEM = "llama-3.1-70b", "trn1.32xlarge*32"
LAYOUTS: dict[str, Any] = {
    "tp": [1, 2, 4, 8, 16, 32], "pp": [1, 2, 4, 8], "cp": [1, 2, 4], "microbatch": [1, 2, 4], "zero": [0, 1, 2, 3],
    "recompute": ["none", "full"], "sequence_parallel": [False, True], "overlap": [False, True],
    "schedule": ["1f1b", ("interleaved", 2), ("interleaved", 4), "zb1p", "zb2p"], "seq": 4096,
}  # fmt: skip
"""What a search evaluates; sequence lengths and batches are added until there are as many as asked for."""


def axes(size: int) -> dict[str, Any]:
    """The values of a grid of about ``size`` combinations: a count of batches up to 512, then lengths of sequences."""
    others = size // grid(**LAYOUTS, global_batch=64).size
    batches = max(1, min(512, others))
    lengths = max(1, others // batches)
    return LAYOUTS | {
        "global_batch": [128 * (i + 1) for i in range(batches)],
        "seq": [1024 * (i + 1) for i in range(lengths)],
    }


def training(size: int, *, memory: bool) -> tuple[int, Callable[[], Any]]:
    """The ten fastest layouts of a grid."""
    prepared = estimators(trnspec.load().graph, (MODEL,), (SYSTEM,))
    asked = axes(size)
    return grid(**asked).size, lambda: sweep(prepared, keep=Top(10), memory=memory, **asked)


def evaluator(catalog: Any = None) -> tuple[int, Callable[[], Any]]:
    """``trnspec eval search`` from Python: Llama 3.1 405B on 64 Trn2 UltraServers."""
    catalog = trnspec.load()
    asked = {"model": "llama-3.1-405b", "on": "trn2-ultraserver*64", "seq": 8192, "global_batch": 2048}

    def call() -> Any:
        return trnspec.evaluate("search", catalog, **asked)

    return int(call().answer("evaluated").value), call


DEPLOYMENTS: dict[str, Any] = {
    "tp": [1, 2, 4, 8, 16, 32], "pp": [1, 2, 4], "chunk": [None, 512, 2048], "weight_dtype": ["bf16", "fp8"],
    "kv_dtype": ["bf16", "fp8"],
}  # fmt: skip
"""What a search for inference evaluates; batches, and lengths of outputs and prompts are added as above."""


def serving(size: int, model: str, **more: Any) -> tuple[int, Callable[[], Any]]:
    """The ten deployments of a grid with the most tokens per second and chip that fit in memory."""
    others = size // math.prod(map(len, (DEPLOYMENTS | more).values()))
    batches = max(1, min(256, others))
    outputs = max(1, min(8, others // batches))
    prompts = max(1, others // (batches * outputs))
    asked = DEPLOYMENTS | more | {
        "batch": list(range(1, batches + 1)),
        "output": [128 * (i + 1) for i in range(outputs)],
        "prompt": [64 * (i + 1) for i in range(prompts)],
    }  # fmt: skip
    prepared = grids(trnspec.load(), model=model, on="trn2.48xlarge", **asked)
    return prepared[0].size, lambda: deployments(prepared, keep=Top(10))


def inference(catalog: Any = None) -> tuple[int, Callable[[], Any]]:
    """``trnspec search`` for inference from Python: gpt-oss-120b on a Trn2 server."""
    catalog = trnspec.load()
    asked = {"model": "gpt-oss-120b", "on": "trn2.48xlarge", "prompt": 4096, "output": 512, "where": "tpot < 30 ms",
             "chunk": (512, 1024, 2048, 4096), "kv_dtype": ("bf16", "fp8"), "top": 3}  # fmt: skip

    def call() -> Any:
        return trnspec.evaluate("search", catalog, **asked)

    return int(call().answer("evaluated").value), call


def measurements(largest: int) -> dict[str, Callable[[], tuple[int, Callable[[], Any]]]]:
    """All measurements by name."""
    sizes = [size for size in (10**5, 10**6, 10**7, 10**8, 10**9) if size <= largest]
    return {
        **{f"training, without memory, {size:.0e}": partial(training, size, memory=False) for size in sizes},
        **{f"training, with memory, {size:.0e}": partial(training, size, memory=True) for size in sizes},
        "eval search, 405B on 64 Trn2 UltraServers": evaluator,
        **{f"serving, 70B, {size:.0e}": partial(serving, size, MODEL) for size in sizes},
        **{f"serving, experts, {size:.0e}": partial(serving, size, "gpt-oss-120b", ep=[1, 2, 4]) for size in sizes},
        "eval search, gpt-oss-120b for inference": inference,
    }


def multiply_add() -> float:
    """Time of one multiply-add of arrays in cache, two operations of numpy, per element [ns]."""
    a, b, c = (np.full(8192, 1.5) for _ in range(3))

    def call() -> None:
        for _ in range(100):
            np.multiply(a, b, out=c)
            np.add(c, a, out=c)

    return 1e9 * min(engine.processor_time(call) for _ in range(9)) / 819200


def measure(name: str, largest: int) -> None:
    """Print the times of one measurement as JSON; runs in a process of its own."""
    count, call = measurements(largest)[name]()
    first = engine.processor_time(call)
    # What takes long is not repeated.
    others = [engine.processor_time(call) for _ in range(5 if first < _LONG else 1)]
    status = Path("/proc/self/status").read_text(encoding="ascii")
    highest = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))
    each = [1e9 * t / count for t in (first, *others)]
    print(json.dumps({"count": count, "first": each[0], "others": each[1:], "MiB": int(highest) / 1024,
                      "multiply_add": multiply_add()}))  # fmt: skip


_LONG = 5.0
"""Seconds of a call that is repeated once only."""


def report(name: str, largest: int, processes: int) -> None:
    """Measure in several processes, and print one line of the table."""
    command = [sys.executable, __file__, "--largest", str(largest), "--measure", name]
    results = [
        json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(processes)
    ]
    first = statistics.median(r["first"] for r in results)
    others = [t for r in results for t in r["others"]]
    median, best = statistics.median(others), min(others)
    peak, ceiling = max(r["MiB"] for r in results), statistics.median(r["multiply_add"] for r in results)
    print(
        f"{name:44} {results[0]['count']:13,} {first:8.1f} {median:8.1f} {best:8.1f} ns {1e3 / median:7.1f} M/s "
        f"{peak:6.0f} MiB   {ceiling:.2f} ns",
        flush=True,
    )


def half(part: int, size: int) -> None:
    """Keep the ten fastest of one half of a grid, as a part of a search on two cores."""
    prepared = estimators(trnspec.load().graph, (MODEL,), (SYSTEM,))
    asked = axes(size)
    middle, end = grid(**asked).size // 2, grid(**asked).size
    numbers = ((0, middle), (middle, end))[part]
    print(sweep(prepared, keep=Top(10), memory=False, numbers=numbers, **asked).evaluated)


def two_cores(size: int) -> None:
    """The time of a search in two processes, from start to end."""
    began = time.perf_counter()
    command = [sys.executable, __file__, "--largest", str(size), "--half"]
    running = [subprocess.Popen([*command, str(part)], stdout=subprocess.PIPE, text=True) for part in (0, 1)]
    evaluated = sum(int(process.communicate()[0]) for process in running)
    print(f"two processes, without memory: {evaluated:,} in {time.perf_counter() - began:.1f} s, start included")


def main() -> None:
    """Run all measurements and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="measure only what has this in its name")
    parser.add_argument("--largest", type=float, default=1e7, help="configurations of the largest grid (default: 1e7)")
    parser.add_argument("--processes", type=int, default=3, help="processes per measurement (default: 3)")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    parser.add_argument("--half", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    largest = int(options.largest)
    if options.measure:
        measure(options.measure, largest)
        return
    if options.half is not None:
        half(options.half, largest)
        return
    print("one core, processor time per configuration; numpy: one multiply-add")
    print(f"{'':44} {'combinations':>13} {'first':>8} {'median':>8} {'best':>8} {'median':>13} {'peak':>11}   numpy")
    for name in measurements(largest):
        if not options.names or any(part in name for part in options.names):
            report(name, largest, options.processes)
    if not options.names or "two processes" in options.names:
        two_cores(largest)
    if not options.names or "llm-analysis" in options.names:
        engine.compare(100_000)


if __name__ == "__main__":
    main()
