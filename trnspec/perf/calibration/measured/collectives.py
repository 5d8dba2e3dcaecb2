"""Published measurements of collectives and matrix multiplications, and fits of a few numbers to them.

Times are read from ``time_us`` and never from a bandwidth: some tools print GiB/s under the name GB/s.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.perf.calibration.fit_range import collective_inputs
from trnspec.perf.calibration.measured.case import Case, Part, Skipped, cases
from trnspec.perf.calibration.measured.tables import Record, cell, document_name, integer, number
from trnspec.perf.collectives.bounds import bound
from trnspec.perf.collectives.closed_forms import Kind
from trnspec.perf.collectives.groups import Group, Rates
from trnspec.perf.collectives.library import Launch, Protocol
from trnspec.perf.collectives.timing import Plan, fastest, group, plans, time_plan
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import Machine, machine
from trnspec.perf.lowering.system import IDEAL, System

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trnspec.graph.graph import Graph

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
"""Number of servers at the start of a description; ``8x H100 SXM`` are the chips of one."""

KINDS: dict[str, Kind] = {
    "all_reduce": "all-reduce",
    "reduce_scatter": "reduce-scatter",
    "all_gather": "all-gather",
    "all_to_all": "all-to-all",
    "broadcast": "broadcast",
}
"""Collectives by the names that tools print."""

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
    system: System = field(repr=False)
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

    def can_use(self, protocol: Protocol) -> bool:
        """Whether the library can use a protocol for this row."""
        if protocol.algorithm == "in-network":
            reduces = any(level.reduces for level in self.machine.levels)
            return bool(self.switched and reduces and self.kind in protocol.kinds)
        return self.kind in protocol.kinds


def collective_cases(graph: Graph, rows: Sequence[Record]) -> Iterator[CollectiveCase | Skipped]:
    """Every row of a collective."""
    return cases(rows, "collective", partial(_collective, graph, {}))


@frozen
class _Among:
    """A collective among the ranks of a system, for any size."""

    system: System
    machine: Machine
    of: Group
    plans: tuple[Plan, ...]


def _among(graph: Graph, on: str, lnc: int | None, ranks: int, kind: Kind) -> _Among:
    system = lower(graph, on, lnc=lnc)
    of = group(system, ranks, 1)
    return _Among(system, machine(system, IDEAL, next(iter(system.rates))), of, plans(system, of, kind))


def _collective(graph: Graph, known: dict[tuple[object, ...], _Among], row: Record, name: str) -> CollectiveCase:
    collective = cell(row, "collective")
    kind = KINDS.get(collective)
    if kind is None:
        reason = UNSUPPORTED.get(collective, f"{collective!r} is not a known collective")
        raise UsageError(reason)
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
    switched = not ("NVLS off" in note or "Ring" in note)
    # Where the row excludes it, the switches do not reduce.
    used = [plan for plan in among.plans if switched or "in-network" not in plan.name]
    return CollectiveCase(
        id=name,
        framework=_library(row, among.system, assumptions),
        kind=kind,
        system=among.system,
        machine=among.machine,
        ranks=float(ranks),
        size=size,
        launch=_launch(row, assumptions),
        switched=switched,
        seconds=measured,
        ideal=fastest([time_plan(plan, Rates(among.system), size) for plan in used]).time,
        bound=bound(among.system, among.of, kind, size).time,
        assumptions=tuple(assumptions),
    )


def _library(row: Record, system: System, assumptions: list[str]) -> str:
    stated = (row.get("framework") or "").lower()
    for pattern, name in LIBRARIES:
        if re.search(pattern, stated):
            return name
    if stated:
        raise UsageError(f"{row['framework']!r} is not a known collective library")
    # NCCL runs on GPUs, Neuron's collectives on AWS's chips, whose ranks are cores.
    name = "nccom" if system.lnc else "nccl"
    assumptions.append(f"library: {name}, by the chip")
    return name


def _launch(row: Record, assumptions: list[str]) -> Launch:
    texts = [row.get(column) or "" for column in ("launch", "note", "source")]
    for text in texts:
        for pattern, launch in LAUNCHES:
            if re.search(pattern, text.lower()):
                return launch
    assumptions.append("launch: by the device, as nccl-tests and nccom-test do")
    return "graph"


def _server(graph: Graph, text: str, assumptions: list[str]) -> str:
    """The system that a description names: ``2x p5.48xlarge`` is ``p5.48xlarge*2``, and the name of a document itself.

    Raises:
        UsageError: The description names no known server, or the catalog has no document of it.
    """
    lower_text = text.lower()
    if "not stated" in lower_text:
        raise UsageError("the row does not state the instance type")
    name = document_name(graph, SERVERS, text, assumptions) or (text if text in graph else None)
    if name is None:
        raise UsageError(f"{text!r} does not state the instance type")
    count = _COUNT.match(lower_text)
    return f"{name}*{count[1]}" if count else name
