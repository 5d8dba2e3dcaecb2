"""Published measurements of collectives and matrix multiplications, and fits of a few numbers to them.

Times are read from ``time_us`` and never from a bandwidth: some tools print GiB/s under the name GB/s.
"""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.perf.calibration.fit_inference import WEIGHT
from trnspec.perf.calibration.fit_training import COVERAGE
from trnspec.perf.calibration.measurements import Skipped, cases, cell, document_name, dtype_of, integer, number
from trnspec.perf.calibration.solver import minimize
from trnspec.perf.collectives.bounds import bound
from trnspec.perf.collectives.groups import Group
from trnspec.perf.collectives.link_rates import Rates
from trnspec.perf.collectives.timing import Plan, fastest, group, plans, time_plan
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.system import System
from trnspec.perf.roofline import ELEMENT_BYTES, least_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.measurements import Record
    from trnspec.perf.collectives.closed_forms import Kind

SERVERS = (
    (r"p4de\.24xlarge", ("p4de.24xlarge",), ""),
    (r"p4d\.24xlarge", ("p4d.24xlarge",), ""),
    (r"p5\.48xlarge", ("p5.48xlarge",), ""),
    (r"p6-b200", ("p6-b200.48xlarge",), ""),
    (r"8x b200 sxm", ("hgx-b200", "p6-b200.48xlarge"), ""),
    (r"8x h100 sxm", ("hgx-h100", "p5.48xlarge"), ""),
    (r"gb200 nvl72", ("gb200-nvl72",), ""),
    (r"8x ?h200", ("dgx-h200", "p5en.48xlarge"), "eight H200 with NVSwitch"),
    (r"8x ?a100", ("dgx-a100-80gb",), "eight A100 of 80 GB with NVSwitch"),
    (r"trn[123][a-z]*\.[0-9]*xlarge", (), ""),
)
"""Servers as tables name them: a pattern, the documents it names (the matched text if none), and what is assumed."""

_COUNT = re.compile(r"([1-9][0-9]*)x (?=\S)(?![abh][12]00 )")
"""How many servers a description begins with; ``8x H100 SXM`` are the chips of one."""

KINDS: dict[str, Kind] = {
    "all_reduce": "all-reduce",
    "reduce_scatter": "reduce-scatter",
    "all_gather": "all-gather",
    "all_to_all": "all-to-all",
    "broadcast": "broadcast",
}
"""Collectives by the names that tools print."""

CHIPS = (
    (r"a100.*40", ("a100-40gb",), ""),
    (r"a100", ("a100-80gb",), "an A100 of 80 GB"),
    (r"gh200", ("gh200",), ""),
    (r"gb200", ("gb200",), ""),
    (r"b200", ("b200",), ""),
    (r"h200", ("h200",), ""),
    (r"h100 sxm", ("h100-sxm",), ""),
    (r"mi355x", ("mi355x",), ""),
    (r"mi300x", ("mi300x",), ""),
    (r"mi210", ("mi210",), ""),
)
"""Chips as tables name them: a pattern, the document it names, and what is assumed."""

NUMBERS: dict[str, tuple[float, ...]] = {"collective": (4e-5, 1.25), "matmul": (5e-6, 1.25, 0.5)}
"""Initial and typical values of the numbers of a fit: time of a call [s], inverse of the share of the rate, passes."""


@frozen(kw_only=True)
class Row:
    """One measurement that is modelled as a sum of a few times.

    Attributes:
        id: Name of the row.
        group: Rows of a group are fitted together.
        measured: Measured time [s].
        ideal: Time computed from published figures only [s].
        bound: Lower bound for all algorithms [s]; 0 for a multiplication.
        fixed: The part of it that no fit changes: published latency [s].
        terms: Coefficients of the fitted numbers: 1 for the call; time of the links, or of the multiplication; for a
            multiplication also time of device memory [s].
        assumptions: What the row does not state, and what is assumed.
    """

    id: str
    group: str
    measured: float
    ideal: float
    fixed: float
    terms: tuple[float, ...] = field(repr=False)
    assumptions: tuple[str, ...] = ()
    bound: float = 0.0


@frozen
class FittedRows:
    """The fit to the rows of one group.

    Attributes:
        numbers: Time of a call [s]; inverse of the achieved share of the rate; for a multiplication passes over operands
            and result.
        calibrated: Computed times [s], one per row.
        held_out: The same, each from a fit to the other rows.
    """

    numbers: tuple[float, ...]
    calibrated: Any
    held_out: Any

    def interval(self, measured: Any) -> tuple[float, float]:
        """Measured over held-out computed time at both ends of the interval."""
        ratio = measured / self.held_out
        ends = np.quantile(ratio, [(1.0 - COVERAGE) / 2.0, 1.0 - (1.0 - COVERAGE) / 2.0])
        return float(ends[0]), float(ends[1])


def collective_rows(graph: Graph, rows: Sequence[Record]) -> Iterator[Row | Skipped]:
    """Every row of a collective: a call, and transfers at a share of the link rates."""
    return cases(rows, "collective", partial(_collective, graph, {}))


def matmul_rows(graph: Graph, rows: Sequence[Record]) -> Iterator[Row | Skipped]:
    """Every row of a matrix multiplication: a call, FLOP at a share of the peak rate, and passes over the operands."""
    return cases(rows, "matmul", partial(_matmul, graph))


@frozen
class _Among:
    """A collective among the ranks of a system, for any size."""

    system: System
    of: Group
    plans: tuple[Plan, ...]


def _among(graph: Graph, on: str, lnc: int | None, ranks: int, kind: Kind) -> _Among:
    system = lower(graph, on, lnc=lnc)
    of = group(system, ranks, 1)
    return _Among(system, of, plans(system, of, kind))


def _collective(graph: Graph, known: dict[tuple[object, ...], _Among], row: Record, name: str) -> Row:
    kind = KINDS.get(cell(row, "collective"))
    if kind is None:
        raise UsageError(f"{row['collective']!r} is not a known collective")
    assumptions: list[str] = []
    text = cell(row, "hardware")
    on = _server(graph, text, assumptions)
    ranks = integer(row, "ranks") or integer(row, "n_chips", needed=True)
    lnc = integer(row, "lnc") or None
    key = (on, lnc, ranks, kind)
    if key not in known:
        # Algorithms depend on no size, and a table has many sizes.
        known[key] = _among(graph, on, lnc, ranks, kind)
    among = known[key]
    size, measured = float(integer(row, "size_bytes", needed=True)), number(row, "time_us") * 1e-6
    if not measured:
        raise UsageError("the row states no time_us")
    note = f"{row.get('note') or ''} {text}"
    off = "NVLS off" in note or "Ring" in note
    rates = Rates(among.system)
    # Where the row excludes it, the switches do not reduce.
    used = [plan for plan in among.plans if not (off and "in-network" in plan.name)]
    best = fastest([time_plan(plan, rates, size) for plan in used])
    switched = "NVLS" in note and not off
    kernel = row.get("kernel") or ""
    return Row(
        id=name,
        group=f"{kind} {text}{' NVLS' if switched else ''}{f', {kernel}' if kernel else ''}",
        measured=measured,
        ideal=best.time,
        bound=bound(among.system, among.of, kind, size).time,
        fixed=best.latency,
        terms=(1.0, best.transfer),
        assumptions=tuple(assumptions),
    )


def _server(graph: Graph, text: str, assumptions: list[str]) -> str:
    """The system that a description names: ``2x p5.48xlarge`` is ``p5.48xlarge*2``.

    Raises:
        UsageError: The description names no known server, or the catalog has no document of it.
    """
    lower_text = text.lower()
    if "not stated" in lower_text:
        raise UsageError("the row does not state the instance type")
    name = document_name(graph, SERVERS, text, assumptions)
    if name is None:
        raise UsageError(f"{text!r} does not state the instance type")
    count = _COUNT.match(lower_text)
    return f"{name}*{count[1]}" if count else name


def _matmul(graph: Graph, row: Record, name: str) -> Row:
    shape = re.search(r"([1-9][0-9]*)x([1-9][0-9]*)x([1-9][0-9]*)", cell(row, "model"))
    if shape is None:
        raise UsageError(f"{row['model']!r} is not a shape, such as 4096x4096x4096")
    m, n, k = (float(shape[i]) for i in (1, 2, 3))
    assumptions: list[str] = []
    chip = chip_of(graph, cell(row, "hardware"), assumptions)
    system = lower(graph, chip)
    dtype = dtype_of(cell(row, "precision"), system)
    # The figures are those of the chip; a rank may be a part of it.
    peak = system.rate(dtype) * system.ranks_per_chip
    bandwidth = system.bandwidth * system.ranks_per_chip
    if not bandwidth:
        raise UsageError(f"{chip} has no published memory bandwidth")
    element_bytes = ELEMENT_BYTES.get(dtype)
    if element_bytes is None:
        raise UsageError(f"unknown element size of {dtype}")
    # Results of narrower operands are stored in 16 bit.
    traffic = (m * k + k * n) * element_bytes + m * n * max(element_bytes, 2.0)
    flops = 2.0 * m * n * k
    measured, rate = number(row, "time_us") * 1e-6, number(row, "tflops_per_chip")
    if not measured and rate:
        measured = flops / (rate * 1e12)
        assumptions.append("time: computed from the rate")
    if not measured:
        raise UsageError("the row states neither a time nor a rate")
    return Row(
        id=name,
        group=f"{chip} {dtype}",
        measured=measured,
        ideal=float(least_time(flops, traffic, peak, bandwidth)),
        fixed=0.0,
        terms=(1.0, flops / peak, traffic / bandwidth),
        assumptions=tuple(assumptions),
    )


def chip_of(graph: Graph, text: str, assumptions: list[str]) -> str:
    name = document_name(graph, CHIPS, text, assumptions) or text.strip()
    if name not in graph:
        raise UsageError(f"unknown chip {text!r}")
    return name


def fit_rows(rows: Sequence[Row], what: str) -> FittedRows | None:
    """Fits the numbers of a group of rows, and those of each row from the others; ``None`` for too few rows.

    The time of a row is the sum of its terms times the numbers, all positive, plus its fixed time.  Residuals are errors of
    the logarithm, with less weight beyond a tenth.

    Args:
        rows: Rows of one group.
        what: ``collective`` or ``matmul``.

    Raises:
        UsageError: scipy is not installed.
    """
    typical = np.array(NUMBERS[what])
    # With one row held out, one more than there are numbers remains.
    if len(rows) < len(typical) + 2:
        return None
    terms = np.array([r.terms for r in rows])
    fixed = np.array([r.fixed for r in rows])
    measured = np.array([r.measured for r in rows])
    numbers = _numbers(terms, fixed, measured, typical)
    held_out = np.empty(len(rows))
    for i in range(len(rows)):
        others = np.arange(len(rows)) != i
        held_out[i] = fixed[i] + terms[i] @ _numbers(terms[others], fixed[others], measured[others], typical)
    return FittedRows(tuple(float(n) for n in numbers), fixed + terms @ numbers, held_out)


def _numbers(terms: Any, fixed: Any, measured: Any, typical: Any) -> Any:
    begin = np.log(typical)

    def residuals(at: Any) -> Any:
        return np.concatenate([np.log((fixed + terms @ np.exp(at)) / measured), WEIGHT * (at - begin)])

    return np.exp(minimize(residuals, begin).x)
