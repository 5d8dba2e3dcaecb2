"""The formats that can be imported, and the columns of the rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from attrs import frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.loading.benchmark_logs import collectives, serving, training
from trnspec.loading.benchmark_logs.log import Cells, Log  # read at run time
from trnspec.loading.measured import csv_text

WARMUP = 5
"""Steps at the beginning of a training log that are not used by default."""


@frozen
class LogFormat:
    """A format.

    Attributes:
        summary: What the file is.
        cells: Cells of all rows.
        rows: The function from a log to rows, without empty cells or with them.
        steps: Of a training log, the function from it to the values of its steps.
        column: The column of these values.
        expected: The lines that have them.
    """

    summary: str
    cells: Cells
    rows: Callable[[Log], list[Cells]] | None = None
    steps: Callable[[Log], training.Steps] | None = None
    column: str = ""
    expected: str = ""


_NCCL = {"kind": "collective", "framework": "nccl", "source": "nccl-tests"}
_NCCOM = {"kind": "collective", "framework": "nccom", "launch": "nccom-test", "source": "nccom-test"}
_VLLM = {"kind": "infer", "source": "vllm bench serve"}
_MEGATRON = {"kind": "train", "framework": "megatron", "source": "Megatron-LM log"}
_TITAN = {"kind": "train", "framework": "torchtitan", "source": "torchtitan log"}
_NXD = {"kind": "train", "framework": "nxd", "source": "NxD Training log"}
FORMATS = {
    "nccl-tests": LogFormat("output of all_reduce_perf and others", _NCCL, collectives.nccl_tests),
    "nccom-test": LogFormat("output of nccom-test", _NCCOM, collectives.nccom_test),
    "vllm-bench": LogFormat("JSON of vllm bench serve --save-result", _VLLM, serving.vllm_bench),
    "genai-perf": LogFormat(
        "profile_export_genai_perf.json", {"kind": "infer", "source": "GenAI-Perf"}, serving.genai_perf
    ),
    "aiperf": LogFormat("profile_export_aiperf.json", {"kind": "infer", "source": "AIPerf"}, serving.aiperf),
    "megatron": LogFormat(
        "training log of Megatron-LM", _MEGATRON, steps=training.megatron, column="step_time_s",
        expected="'iteration N/ M | ... elapsed time per iteration (ms): ...'",
    ),
    "torchtitan": LogFormat(
        "training log of torchtitan", _TITAN, steps=training.torchtitan, column="tokens_per_s_per_chip",
        expected="'step: N ... memory: ... GiB ... tps: ...'",
    ),
    "nxd": LogFormat(
        "training log of NxD Training", _NXD, steps=training.nxd, column="step_time_s",
        expected="two states of a progress bar 'N/M [mm:ss<...] reduced_train_loss=...'",
    ),
}  # fmt: skip
"""The formats by name."""

_ALL = ("kind", "id", "model", "layers", "hidden", "ffn", "heads", "kv_heads", "vocab")
_END = ("framework", "framework_version", "release", "era", "source", "note", "date", "licence")
COLUMNS = {
    "train": (
        *(*_ALL, "params_b", "seq", "experts_topk", "hardware", "n_chips", "tp", "pp", "vp", "dp", "cp", "ep", "zero"),
        *("microbatch", "global_batch", "recompute", "sequence_parallel", "overlap", "flash", "precision", "software"),
        *("step_time_s", "tokens_per_s_per_chip", "tflops_per_chip", "mem_gib", *_END),
    ),
    "infer": (
        *(*_ALL, "hardware", "n_chips", "tp", "pp", "dp", "ep", "lnc", "precision", "kv_precision", "isl", "osl"),
        *("batch_conc", "batch_compiled", "ttft_ms", "tpot_ms", "out_tok_s", "mode", "schedule", "speculative"),
        *("software", "measured", *_END),
    ),
    "collective": (
        *("kind", "id", "hardware", "n_chips", "ranks", "lnc", "collective", "size_bytes", "dtype", "time_us"),
        *("algbw_GBps", "busbw_GBps", "kernel", "launch", *_END),
    ),
}
"""The columns by kind of row, as measurement tables name them."""

NEEDED = {
    "train": ("model", "hardware", "n_chips", "seq", "global_batch", "precision"),
    "infer": ("model", "hardware", "n_chips", "precision", "isl", "osl", "batch_conc", "framework"),
    "collective": ("hardware", "ranks", "collective"),
}
"""Columns without which rows are skipped; of serving on GPUs, tp and dp state the number of chips as well."""


def imported(name: str, log: Log, stem: str, given: Mapping[str, str], warmup: int) -> list[Cells]:
    """The rows of a file.

    Args:
        name: The format, a key of :data:`FORMATS`.
        log: The file.
        stem: The beginning of the names of rows.
        given: Cells that all rows get, whatever the file states.
        warmup: Steps at the beginning of a training log that are not used.

    Raises:
        UsageError: The file is not of this format, or a column is unknown.
    """
    form = FORMATS[name]
    if form.steps is not None:
        rows = [training.row(log, *form.steps(log), form.column, form.expected, warmup)]
    else:
        assert form.rows is not None
        rows = form.rows(log)
    rows = [{column: text for column, text in {**row, **form.cells}.items() if text} for row in rows]
    known = COLUMNS[form.cells["kind"]]
    for column in given:
        if column not in known or column == "kind":
            hint = did_you_mean(column, known)
            raise UsageError(
                f"--set: there is no column {column!r} of {form.cells['kind']} rows" + (f"; {hint}" if hint else "")
            )
    names: dict[str, int] = {}
    for row in rows:
        own = "-".join(part for part in (stem, row.get("id", "")) if part)
        names[own] = names.get(own, 0) + 1
        row["id"] = own if names[own] == 1 else f"{own}-{names[own]}"
        row.update(given)
    return rows


def unstated(rows: Sequence[Cells]) -> list[str]:
    """The columns of :data:`NEEDED` that some row lacks."""
    return [column for column in NEEDED[rows[0]["kind"]] if not all(row.get(column) for row in rows)]


def table(rows: Sequence[Cells]) -> str:
    """The rows as CSV, with the columns that some row has and those that are needed."""
    kind = rows[0]["kind"]
    columns = [c for c in COLUMNS[kind] if c in NEEDED[kind] or any(c in row for row in rows)]
    return csv_text(columns, rows)
