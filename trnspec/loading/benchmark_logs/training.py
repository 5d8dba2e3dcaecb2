"""Logs of training: Megatron-LM, torchtitan and NxD Training, one row for each file.

The first steps compile, allocate and fill pipelines.  Steps ``first`` to ``first + warmup - 1`` of a log are warm-up;
the row has the median of the rest, and a note with the number of steps that were printed and used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import prod
from statistics import median

from trnspec.loading.benchmark_logs.log import Cells, Log, number, shown

_MEGATRON_STEP = re.compile(r"\biteration\s+(\d+)/\s*\d+ \|(.*)")
_MEGATRON_MEMORY = re.compile(r"memory \(MB\) \|.*?\bmax allocated: ([\d.]+)")
_MEGATRON_SETTING = re.compile(r"^\s*(\w+) \.{3,} ?(\S+)")
_MEGATRON_SIZES = re.compile(r"([a-z-]+) size: (\d+)")
_MEGATRON_COLUMNS = {
    "world": "n_chips",
    "tensor-model-parallel": "tp",
    "pipeline-model-parallel": "pp",
    "context-parallel": "cp",
    "world_size": "n_chips",
    "tensor_model_parallel_size": "tp",
    "pipeline_model_parallel_size": "pp",
    "virtual_pipeline_model_parallel_size": "vp",
    "context_parallel_size": "cp",
    "expert_model_parallel_size": "ep",
    "micro_batch_size": "microbatch",
    "global_batch_size": "global_batch",
    "seq_length": "seq",
    "recompute_granularity": "recompute",
}
"""Columns by the names of arguments, and of the line ``using world size``."""

_TITAN_STEP = re.compile(r"\bstep:\s*(\d+)\s.*?memory:\s*([\d.]+)GiB.*?\btps:\s*([\d,]+)")
_TITAN_BATCH = re.compile(r"local batch size (\d+), global batch size (\d+),.*?sequence length (\d+)")
_TITAN_MESH = re.compile(r"Building \d+-D device mesh with \[([^\]]*)\], \[([^\]]*)\]")
_TITAN_PARALLELISM = re.compile(r"Building device mesh with parallelism: (.*)")
_TITAN_MODEL = re.compile(r"Building (\S+ \S+) with ")
_DEGREES = ("tp", "pp", "cp")

_BAR = re.compile(r"\| (\d+)/\d+ \[((?:\d+:)?\d+:\d\d)<")
_CONSUMED = re.compile(r"global_step=([\d.e+]+), consumed_samples=([\d.e+]+)")


Steps = tuple[dict[int, float], Cells]
"""The value of each printed step, and the other cells of the row."""


def megatron(log: Log) -> Steps:
    """Seconds of the steps of a log of Megatron-LM; the layout where it prints its arguments."""
    times: dict[int, float] = {}
    cells: Cells = {}
    memory = 0.0
    batches: set[str] = set()
    for line, text in log.lines():
        if found := _MEGATRON_STEP.search(text):
            values = dict(part.split(": ", 1) for part in found[2].split("|") if ": " in part)
            stated = {name.strip(): value.strip() for name, value in values.items()}
            elapsed = stated.get("elapsed time per iteration (ms)", "")
            times[int(found[1])] = number(log, line, "elapsed time per iteration (ms)", elapsed) / 1e3
            if "global batch size" in stated:
                batches.add(stated["global batch size"])
        elif found := _MEGATRON_MEMORY.search(text):
            memory = max(memory, number(log, line, "max allocated", found[1]))
        elif "using world size:" in text:
            cells |= _settings(_MEGATRON_SIZES.findall(text))
        elif found := _MEGATRON_SETTING.search(text):
            cells |= _settings([found.groups()])
    if batches:
        # In a ramp of the batch size the steps of the row differ.
        cells["global_batch"] = batches.pop() if len(batches) == 1 else ""
    return times, cells | {"mem_gib": shown(memory / 1024.0) if memory else ""}


def _settings(pairs: Sequence[tuple[str, ...]]) -> Cells:
    """The cells that arguments of Megatron-LM state."""
    cells: Cells = {}
    for name, value in pairs:
        if name in _MEGATRON_COLUMNS:
            # Of recompute_granularity, None is a statement.
            unstated = "none" if name == "recompute_granularity" else ""
            cells[_MEGATRON_COLUMNS[name]] = unstated if value == "None" else value
        elif name in ("bf16", "fp16") and value == "True":
            cells.setdefault("precision", name)
        elif name == "fp8" and value != "None":
            cells["precision"] = "fp8"
        elif name == "sequence_parallel":
            cells[name] = "yes" if value == "True" else "no"
        elif name == "use_distributed_optimizer":
            cells["zero"] = "1" if value == "True" else "0"
    return cells


def torchtitan(log: Log) -> Steps:
    """Tokens per second and chip in the steps of a log of torchtitan, and the most memory of any rank."""
    rates: dict[int, list[float]] = {}
    cells: Cells = {}
    memory = 0.0
    for line, text in log.lines():
        if found := _TITAN_STEP.search(text):
            rates.setdefault(int(found[1]), []).append(number(log, line, "tps", found[3]))
            memory = max(memory, number(log, line, "memory", found[2]))
        elif found := _TITAN_BATCH.search(text):
            cells |= dict(zip(("microbatch", "global_batch", "seq"), found.groups(), strict=True))
        elif found := _TITAN_MESH.search(text):
            names = [name.strip(" '\"") for name in found[1].split(",")]
            cells |= _mesh(dict(zip(names, map(int, found[2].split(",")), strict=False)))
        elif found := _TITAN_PARALLELISM.search(text):
            # etp and ep reuse ranks of the others.
            degrees = dict(part.split("=") for part in found[1].replace(",", " ").split() if "=" in part)
            cells |= _mesh({name: int(n) for name, n in degrees.items() if name not in ("ep", "etp")})
        elif found := _TITAN_MODEL.search(text):
            cells["model"] = found[1]
        elif "Applied full activation checkpointing" in text:
            cells["recompute"] = "full"
    return {step: median(values) for step, values in rates.items()}, cells | {"mem_gib": shown(memory)}


def _mesh(degrees: Mapping[str, int]) -> Cells:
    return {"n_chips": str(prod(degrees.values())), **{n: str(degrees[n]) for n in _DEGREES if n in degrees}}


def nxd(log: Log) -> Steps:
    """Seconds of the steps of a log of NxD Training: between states of its progress bar, which has whole seconds."""
    seconds: dict[int, float] = {}
    batches: set[float] = set()
    for line, text in log.lines():
        if "reduced_train_loss=" not in text or not (found := _BAR.search(text)):
            continue
        parts = [int(part) for part in found[2].split(":")]
        seconds.setdefault(int(found[1]), float(sum(n * 60**i for i, n in enumerate(reversed(parts)))))
        if consumed := _CONSUMED.search(text):
            step, samples = (number(log, line, "consumed_samples", text) for text in consumed.groups())
            batches.add(samples / step if step else 0.0)
    steps = {
        later: (seconds[later] - seconds[earlier]) / (later - earlier) for earlier, later in pairwise(sorted(seconds))
    }
    batch = batches.pop() if len(batches) == 1 else 0.0
    note = "times of the progress bar, in whole seconds"
    return steps, {"global_batch": shown(batch) if batch and batch == int(batch) else "", "note": note}


def row(log: Log, steps: Mapping[int, float], cells: Cells, column: str, expected: str, warmup: int) -> Cells:
    """The row of a log: the median of the steps after the warm-up.

    Args:
        log: The log.
        steps: The value of each printed step.
        cells: The other cells; a note is continued.
        column: The column of the value.
        expected: The lines that have steps.
        warmup: Steps at the beginning that are not used.

    Raises:
        UsageError: There are no steps, or none after the warm-up.
    """
    used = _after(log, steps, warmup, expected)
    left = len(steps) - len(used)
    note = f"median of {len(used)} printed steps" + (f" after {left} of the warm-up" if left else "")
    notes = [note, cells["note"]] if "note" in cells else [note]
    return {**cells, column: shown(median(used)), "note": "; ".join(notes)}


def _after(log: Log, steps: Mapping[int, float], warmup: int, expected: str) -> list[float]:
    """The values of the steps after the warm-up."""
    if not steps:
        raise log.problem(1, f"there are no steps; expected lines {expected}")
    first = min(steps)
    used = [value for step, value in steps.items() if step >= first + warmup]
    if not used:
        raise log.problem(
            1,
            f"no step after the warm-up: steps {first} to {max(steps)} are printed, {warmup} are warm-up",
            "--warmup N takes fewer",
        )
    return used
