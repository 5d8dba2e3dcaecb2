"""Published measurements of collectives and of matrix multiplications, and fits of few numbers to them.

Times are read from ``time_us`` and never from a bandwidth: some tools print GiB/s and call it GB/s.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import field, frozen

from trnspec.errors import TrnspecError, UsageError
from trnspec.perf.calibration.fit_inference import WEIGHT
from trnspec.perf.calibration.fit_training import COVERAGE, OUTLYING
from trnspec.perf.calibration.measured_training import Skipped, cell, dtype_of, number, whole
from trnspec.perf.collectives.timing import group, timings
from trnspec.perf.lowering.lower import lower
from trnspec.perf.roofline import ELEMENT_BYTES, least_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.measured_training import Record
    from trnspec.perf.collectives.closed_forms import Kind

SERVERS = (
    (r"not stated", (), ""),
    (r"p4de\.24xlarge", ("p4de.24xlarge",), ""),
    (r"p4d\.24xlarge", ("p4d.24xlarge",), ""),
    (r"p5\.48xlarge", ("p5.48xlarge",), ""),
    (r"p6-b200", ("p6-b200.48xlarge",), ""),
    (r"8x ?h200", ("dgx-h200", "p5en.48xlarge"), "eight H200 with NVSwitch"),
    (r"8x ?a100", ("dgx-a100-80gb",), "eight A100 of 80 GB with NVSwitch"),
    (r"trn[123][a-z]*\.[0-9]*xlarge", (), ""),
)
"""What people call servers, the documents that it means, and what is taken for granted; no document: the words are one."""

KINDS: dict[str, Kind] = {
    "all_reduce": "all-reduce",
    "reduce_scatter": "reduce-scatter",
    "all_gather": "all-gather",
    "all_to_all": "all-to-all",
    "broadcast": "broadcast",
}
"""Collectives by what tools call them."""

CHIPS = (
    (r"a100.*40", "a100-40gb", ""),
    (r"a100", "a100-80gb", "an A100 of 80 GB"),
    (r"gh200", "gh200", ""),
    (r"gb200", "gb200", ""),
    (r"b200", "b200", ""),
    (r"h200", "h200", ""),
    (r"h100 sxm", "h100-sxm", ""),
    (r"mi355x", "mi355x", ""),
    (r"mi300x", "mi300x", ""),
    (r"mi210", "mi210", ""),
)
"""What people call chips, the document that it means, and what is taken for granted."""

NUMBERS: dict[str, tuple[float, ...]] = {"collective": (4e-5, 1.25), "matmul": (5e-6, 1.25, 0.5)}
"""Where fits begin, and what they stay near where rows do not tell: a call in s, one over a share, passes."""


@frozen(kw_only=True)
class Row:
    """One measurement that is a sum of few times.

    Attributes:
        id: What the row is called.
        group: What it is fitted together with.
        measured: The measured time, in s.
        ideal: The time computed from published figures alone, in s.
        fixed: What of it no fit changes, in s: published latency.
        terms: What a fit multiplies by its numbers: 1 for each call; the time of the links, or of the multiplication;
            of a multiplication also the time of memory.
        assumptions: What the row leaves open, and what was taken for it.
    """

    id: str
    group: str
    measured: float
    ideal: float
    fixed: float
    terms: tuple[float, ...] = field(repr=False)
    assumptions: tuple[str, ...] = ()


@frozen
class FittedRows:
    """What a fit to the rows of one group found.

    Attributes:
        numbers: Time of a call in s; one over the share of the rate that is reached; of a multiplication passes over
            operands and result. The share of links is above 1 where switches reduce, or where phases overlap.
        calibrated: Computed times in s, one a row.
        held_out: The same, each with a fit to the other rows.
    """

    numbers: tuple[float, ...]
    calibrated: Any
    held_out: Any

    def interval(self, measured: Any) -> tuple[float, float]:
        """Measured over computed at both ends of the interval, of rows left out."""
        ratio = measured / self.held_out
        ends = np.quantile(ratio, [(1.0 - COVERAGE) / 2.0, 1.0 - (1.0 - COVERAGE) / 2.0])
        return float(ends[0]), float(ends[1])


def collective_rows(graph: Graph, rows: list[Record]) -> Iterator[Row | Skipped]:
    """Every row of a collective: its time is a call, and what the links take at a share of their rate."""
    return _each(graph, rows, "collective", _collective)


def matmul_rows(graph: Graph, rows: list[Record]) -> Iterator[Row | Skipped]:
    """Every row of a matrix multiplication: a call, FLOP at a share of the rate, and passes over the operands."""
    return _each(graph, rows, "matmul", _matmul)


def _each(
    graph: Graph, rows: list[Record], kind: str, read: Callable[[Graph, Record, str], Row]
) -> Iterator[Row | Skipped]:
    for line, row in enumerate(rows, 2):
        if row.get("kind") == kind:
            name = row.get("id") or f"line {line}"
            try:
                yield read(graph, row, name)
            except TrnspecError as error:
                yield Skipped(name, str(error.args[0]))


def _collective(graph: Graph, row: Record, name: str) -> Row:
    kind = KINDS.get(cell(row, "collective"))
    if kind is None:
        raise UsageError(f"{row['collective']!r} is no collective that is known here")
    told: list[str] = []
    words = cell(row, "hardware")
    on = _server(graph, words, told)
    ranks = whole(row, "n_chips", needed=True)
    system = lower(graph, on)
    size, measured = float(whole(row, "size_bytes", needed=True)), number(row, "time_us") * 1e-6
    if not measured:
        raise UsageError("the row states no time_us")
    best = timings(system, group(system, ranks, 1), kind, size)[0]
    links = sum(seconds for _, seconds in best.transfers)
    note = row.get("note") or ""
    # Where switches add up what passes through them, more is reached than links alone allow.
    switched = "NVLS off" not in note and "NVLS" in f"{note} {words}"
    if switched:
        told.append("switches reduce; the ideal is that of links alone")
    return Row(
        id=name,
        group=f"{kind} {words}{' NVLS' if switched else ''}",
        measured=measured,
        ideal=best.time,
        fixed=best.latency,
        terms=(1.0, links),
        assumptions=tuple(told),
    )


def _server(graph: Graph, words: str, told: list[str]) -> str:
    """The system that some words mean: ``2x p5.48xlarge`` is ``p5.48xlarge*2``.

    Raises:
        UsageError: They mean none that is known, or the catalog has no document of it.
    """
    low = words.lower()
    for pattern, servers, taken in SERVERS:
        match = re.search(pattern, low)
        if match is None:
            continue
        if "not stated" in low:
            raise UsageError("the row does not state the type of the instance")
        names = servers or (match.group(0),)
        known = [n for n in names if n in graph]
        if not known:
            raise UsageError(f"the catalog has no document named {' or '.join(names)}, which {words!r} needs")
        if taken:
            told.append(f"hardware: {taken}")
        count = re.match(r"([1-9][0-9]*)x (?=\S)", low)
        return f"{known[0]}*{count[1]}" if count else known[0]
    raise UsageError(f"{words!r} does not state the type of the instance")


def _matmul(graph: Graph, row: Record, name: str) -> Row:
    shape = re.search(r"([1-9][0-9]*)x([1-9][0-9]*)x([1-9][0-9]*)", cell(row, "model"))
    if shape is None:
        raise UsageError(f"{row['model']!r} states no shape, such as 4096x4096x4096")
    m, n, k = (float(shape[i]) for i in (1, 2, 3))
    told: list[str] = []
    chip = _chip(graph, cell(row, "hardware"), told)
    system = lower(graph, chip)
    dtype = dtype_of(cell(row, "precision"), system)
    # The rates are those of the chip, of which a rank may be a part.
    peak = system.rate(dtype) * system.ranks_per_chip
    bandwidth = system.bandwidth * system.ranks_per_chip
    if not bandwidth:
        raise UsageError(f"{chip} has no published bandwidth of device memory")
    element = ELEMENT_BYTES.get(dtype)
    if element is None:
        raise UsageError(f"the size of an element of {dtype} is not known here")
    # Products of narrow operands are kept in 16 bit.
    traffic = (m * k + k * n) * element + m * n * max(element, 2.0)
    flops = 2.0 * m * n * k
    measured, rate = number(row, "time_us") * 1e-6, number(row, "tflops_per_chip")
    if not measured and rate:
        measured = flops / (rate * 1e12)
        told.append("time: from the rate")
    if not measured:
        raise UsageError("the row states neither a time nor a rate")
    return Row(
        id=name,
        group=f"{chip} {dtype}",
        measured=measured,
        ideal=float(least_time(flops, traffic, peak, bandwidth)),
        fixed=0.0,
        terms=(1.0, flops / peak, traffic / bandwidth),
        assumptions=tuple(told),
    )


def _chip(graph: Graph, words: str, told: list[str]) -> str:
    for pattern, name, taken in CHIPS:
        if re.search(pattern, words.lower()):
            if name not in graph:
                raise UsageError(f"the catalog has no document named {name}, which {words!r} needs")
            if taken:
                told.append(f"hardware: {taken}")
            return name
    if words.strip() in graph:
        return words.strip()
    if words.strip() in graph:
        return words.strip()
    raise UsageError(f"{words!r} is no chip that is known here")


def fit_rows(rows: Sequence[Row], what: str) -> FittedRows | None:
    """Fits the few numbers of a group of rows, and each row with the others; none where rows are too few to tell.

    A row is the sum of its terms times the numbers, all above 0, and of what is fixed. The errors are those of the
    logarithm, and beyond a tenth they count less and less.

    Args:
        rows: Rows of one group.
        what: ``collective`` or ``matmul``.

    Raises:
        UsageError: scipy is not installed.
    """
    typical = np.array(NUMBERS[what])
    # Two rows more than numbers: one is left out, and one is to contradict.
    if len(rows) < len(typical) + 2:
        return None
    terms = np.array([r.terms for r in rows])
    fixed = np.array([r.fixed for r in rows])
    measured = np.array([r.measured for r in rows])
    numbers = _numbers(terms, fixed, measured, typical)
    held = np.empty(len(rows))
    for i in range(len(rows)):
        rest = np.arange(len(rows)) != i
        held[i] = fixed[i] + terms[i] @ _numbers(terms[rest], fixed[rest], measured[rest], typical)
    return FittedRows(tuple(float(n) for n in numbers), fixed + terms @ numbers, held)


def _numbers(terms: Any, fixed: Any, measured: Any, typical: Any) -> Any:
    try:
        from scipy.optimize import least_squares
    except ImportError as error:
        raise UsageError("fitting needs scipy; install trnspec with the extra calibrate") from error
    begin = np.log(typical)

    def errors(at: Any) -> Any:
        return np.concatenate([np.log((fixed + terms @ np.exp(at)) / measured), WEIGHT * (at - begin)])

    return np.exp(least_squares(errors, begin, loss="soft_l1", f_scale=OUTLYING).x)
