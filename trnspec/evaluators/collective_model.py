"""The collective of a training step or of a pass of serving by both models: as the step counts it, and as a library was measured.

A step counts a collective as a line, latency plus size over rate, whose parameters are those of the calibration of the step;
a calibration of collectives has the protocols of a library (:mod:`trnspec.perf.collectives.library`).
"""

from __future__ import annotations

from collections.abc import Iterator

from trnspec.evaluation.result import Assumption
from trnspec.graph.graph import Graph
from trnspec.perf.calibration.fit_range import collective_inputs
from trnspec.perf.collectives.library import timed
from trnspec.perf.lowering.calibrated import calibrated
from trnspec.perf.lowering.machine import IDEAL, GroupCost, LoweredSystem, Machine, collective_time, group, machine
from trnspec.perf.serving.forward_pass import Serving


def counted(numbers: Machine, of: GroupCost, passes: float, size: float, serving: Serving | None = None) -> float:
    """The time of a collective as a training step, or a pass of serving, counts it [s]; ``passes`` is 2 for an all-reduce."""
    if serving is None:
        return float(collective_time(numbers, of, size, passes))
    per_byte = of.allreduce_s_per_byte if passes > 1.0 else of.allgather_s_per_byte
    return float(serving.call + passes * of.latency + per_byte * size / serving.link)


def tensor_all_reduce(  # noqa: PLR0917  # a collective
    graph: Graph,
    system: LoweredSystem,
    numbers: Machine,
    ranks: int,
    size: float,
    serving: Serving | None = None,
    framework: str = "",
) -> Iterator[Assumption]:
    """The all-reduce of a layer's result between tensor-parallel ranks, of a step or pass with a calibration.

    Args:
        graph: The catalog.
        system: The system.
        numbers: The numbers of a rank.
        ranks: Tensor-parallel ranks.
        size: The buffer [B].
        serving: Achieved efficiency of serving; ``None`` in a training step.
        framework: The framework, whose kernels may run it; empty for any.
    """
    known = calibrated(graph, system.chip, "collectives", "auto", framework) if ranks > 1 else None
    if known is None or known.library is None:
        return
    ideal = machine(system, IDEAL, next(iter(system.rates)))
    if every := timed(known.library, ideal, "all-reduce", float(ranks), 1.0, size):
        kind = known.at(collective_inputs(system, size, float(ranks)), collective="all-reduce").evidence.kind
        time = counted(numbers, group(numbers, float(ranks), 1.0), 2.0, size, serving)
        why = f"{size / 2**20:.3g} MiB among {ranks} ranks, as the calibration has it"
        measured = f"{1e6 * every[0].time:.3g} us by {known.name} ({kind})"
        yield Assumption("tensor_all_reduce", f"{1e6 * time:.3g} us", f"{why}; {measured}")
