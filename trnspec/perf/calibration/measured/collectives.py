"""Published measurements of collectives and matrix multiplications, and fits of a few numbers to them.

Times are read from ``time_us`` and never from a bandwidth: some tools print GiB/s under the name GB/s.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.graph.graph import Graph, cached_by_graph
from trnspec.perf.calibration.fit_range import collective_inputs
from trnspec.perf.calibration.measured.case import Case, Part, Skipped, cases
from trnspec.perf.calibration.measured.cells import KINDS, Record, RowCells, document_name, first, is_system
from trnspec.perf.collectives.algorithms import CollectivePlan, plans
from trnspec.perf.collectives.bounds import bound
from trnspec.perf.collectives.groups import Group, LinkRates, group
from trnspec.perf.collectives.library import Launch, LibraryProtocol
from trnspec.perf.collectives.schedules import Kind
from trnspec.perf.collectives.timing import fastest, time_plan
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import IDEAL, LoweredSystem, Machine, machine

_COUNT = re.compile(r"([1-9][0-9]*)x (?=\S)(?![abh][12]00 )")
"""Number of servers at the start of a description; ``8x H100 SXM`` are the chips of one."""

UNSUPPORTED = {
    "all_gatherv": "all_gatherv: the parts differ in size, and the row does not state them",
    "reduce_scatterv": "reduce_scatterv: the parts differ in size, and the row does not state them",
    "permute": "permute: the pairs of ranks that send are not stated",
    "sendrecv": "sendrecv: every rank sends to its neighbour at once, which is not a collective of this model",
    "reduce": "reduce: a reduction to one rank is not a collective of this model",
    "scatter": "scatter: not a collective of this model",
    "gather": "gather: not a collective of this model",
}
"""Collectives whose rows are skipped, with the reason."""

LIBRARIES = (
    (r"vllm", "vllm"),
    (r"sglang", "sglang"),
    (r"trt-?llm|tensorrt", "trtllm"),
    (r"nccl", "nccl"),
    (r"nccom|neuron", "nccom"),
)
"""Libraries by the words of the column ``framework``: a pattern, and the name as ``--framework`` has it."""

LAUNCHES: tuple[tuple[str, Launch], ...] = (
    (r"graph|nccl-tests|nccom-test", "graph"),
    (r"eager", "eager"),
    # Its script waits for each call, between two events.
    (r"ml-engineering", "synchronous"),
)
"""Launch mode of a row, by the words of its launch, note and source."""


@frozen(kw_only=True)
class CollectiveCase(Case):
    """One measured collective.

    Attributes:
        kind: The collective.
        system: The system.
        machine: A rank of it, at published rates.
        ranks: Number of ranks.
        size: The buffer [B].
        launch: How it was launched.
        switched: Whether switches may reduce; a row can exclude it.
        seconds: Measured time [s].
        ideal: Time of the fastest algorithm from published figures only [s].
        bound: Lower bound for all algorithms [s].
    """

    PARTS: ClassVar[Mapping[Part, str]] = {"collective": "seconds"}

    kind: Kind
    system: LoweredSystem = field(repr=False)
    machine: Machine = field(repr=False)
    ranks: float
    size: float
    launch: Launch
    switched: bool
    seconds: float
    ideal: float
    bound: float

    @property
    def chip(self) -> str:
        """The chip."""
        return self.system.chip

    @property
    def inputs(self) -> dict[str, float]:
        """The inputs of a collective."""
        return collective_inputs(self.system, self.size, self.ranks)

    def can_use(self, protocol: LibraryProtocol) -> bool:
        """Whether the library can use a protocol for this row."""
        if protocol.algorithm == "in-network":
            reduces = any(level.reduces for level in self.machine.levels)
            return bool(self.switched and reduces and self.kind in protocol.kinds)
        return self.kind in protocol.kinds


def collective_cases(graph: Graph, rows: Sequence[Record]) -> Iterator[CollectiveCase | Skipped]:
    """Every row of a collective."""
    return cases(graph, rows, "collective", _collective)


@frozen
class _Among:
    """A collective among the ranks of a system, for any size."""

    system: LoweredSystem
    machine: Machine
    of: Group
    plans: tuple[CollectivePlan, ...]


@cached_by_graph
def _among(graph: Graph, on: str, lnc: int | None, ranks: int, kind: Kind) -> _Among:
    system = lower(graph, on, lnc=lnc)
    of = group(system, ranks, 1)
    return _Among(system, machine(system, IDEAL, next(iter(system.rates))), of, plans(system, of, kind))


def _collective(row: RowCells) -> CollectiveCase:
    collective = row.cell("collective")
    kind = KINDS.get(collective)
    if kind is None:
        reason = UNSUPPORTED.get(collective, f"{collective!r} is not a known collective")
        raise UsageError(reason)
    text = row.cell("hardware")
    on = _server(row, text)
    ranks = row.integer("ranks") or row.integer("n_chips", needed=True)
    lnc = row.integer("lnc") or None
    # Algorithms depend on no size, and a table has many sizes.
    among = _among(row.graph, on, lnc, ranks, kind)
    size, measured = float(row.integer("size_bytes", needed=True)), row.number("time_us") * 1e-6
    if not measured:
        raise UsageError("the row states no time_us")
    note = f"{row.get('note')} {text}"
    switched = not ("NVLS off" in note or "Ring" in note)
    # Where the row excludes it, the switches do not reduce.
    used = [plan for plan in among.plans if switched or "in-network" not in plan.name]
    return CollectiveCase(
        framework=_library(row, among.system),
        kind=kind,
        system=among.system,
        machine=among.machine,
        ranks=float(ranks),
        size=size,
        launch=_launch(row),
        switched=switched,
        seconds=measured,
        ideal=fastest([time_plan(plan, LinkRates(among.system), size) for plan in used]).time,
        bound=bound(among.system, among.of, kind, size).time,
    )


def _library(row: RowCells, system: LoweredSystem) -> str:
    if stated := row.get("framework"):
        if (named := first(LIBRARIES, stated)) is None:
            raise UsageError(f"{stated!r} is not a known collective library")
        return named
    # NCCL runs on GPUs, Neuron's collectives on AWS's chips, whose ranks are cores.
    return "nccom" if system.lnc else "nccl"


def _launch(row: RowCells) -> Launch:
    each = (first(LAUNCHES, row.get(column)) for column in ("launch", "note", "source"))
    # nccl-tests and nccom-test launch from the device.
    return next((one for one in each if one), "graph")


def _server(row: RowCells, text: str) -> str:
    """The system that a description names: ``2x p5.48xlarge`` is ``p5.48xlarge*2``, and the name of a document itself.

    Raises:
        UsageError: The description names no known server, or the catalog has no document of it.
    """
    lower_text = text.lower()
    if "not stated" in lower_text:
        raise UsageError("the row does not state the instance type")
    name = document_name(row.graph, text) or (text if is_system(row.graph, text) else None)
    if name is None:
        raise UsageError(f"{text!r} does not state the instance type")
    count = _COUNT.match(lower_text)
    return f"{name}*{count[1]}" if count else name
