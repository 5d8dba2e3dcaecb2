"""What it costs in time to keep states, activations or weights on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.errors import QuantityError, UsageError
from trnspec.evaluation.result import RefusalError
from trnspec.perf.work.stages import in_flight
from trnspec.quantities.quantity import Qualifier, parse
from trnspec.quantities.units import Dimension

if TYPE_CHECKING:
    from trnspec.perf.training.estimator import Estimator
    from trnspec.perf.training.step import Step
    from trnspec.perf.work.layout import Layout
    from trnspec.perf.work.memory import Memory


def host_rate(text: str | None) -> float:
    """The rate of a rank's link to the host in B/s, one direction.

    Raises:
        RefusalError: ``unknown-figure``: none is given, and the catalog has none; ``not-positive``: it is 0, at which
            nothing arrives; ``not-exact``: it is an approximation or a bound, with which the time would be one too.
        UsageError: The text is not a rate.
    """
    if text is None:
        raise RefusalError(
            "unknown-figure",
            "no rate between a rank and its host is published in the catalog",
            place="host_link",
            hint='give it: --host-link "16 GB/s"',
        )
    try:
        found = parse(text, Dimension.BANDWIDTH)
    except QuantityError as error:
        raise UsageError(f"host_link: {error}") from error
    if found.qualifier is not Qualifier.EXACT:
        kind = "about" if found.qualifier is Qualifier.ABOUT else "a bound of"
        raise RefusalError(
            "not-exact",
            f"{text} is only {kind} the rate between a rank and its host, and the time needs a number",
            place="host_link",
            hint='the rate to compute with: --host-link "16 GB/s"',
        )
    if not found.value:
        raise RefusalError("not-positive", f"host_link is {text}, and nothing would arrive", place="host_link")
    return float(found.value)


def offload_time(estimator: Estimator, layout: Layout, memory: Memory, found: Step, rate: float) -> float:
    """The time that moving to and from the host adds to a step, in s: what does not hide behind computation.

    The optimizer's states stay on the host, where weights are updated: gradients go there and weights come back once a
    step (Ren et al. 2021, ZeRO-Offload, section 4).  The rate of the host's memory is not in the catalog; the update is
    taken to be as long as on the device, where it is a part of ``found``: a host is rarely faster.  Activations go out and come in for every microbatch.  Weights come in forward and backward
    for every microbatch, and gradients go out.

    Args:
        estimator: The model and the system.
        layout: The layout, with what is offloaded.
        memory: The bytes of a rank without offloading.
        found: The step without offloading.
        rate: The rate of a rank's link to the host, in B/s.
    """
    sizes, passes = layout.bytes, float(layout.microbatches)
    if layout.offload == "optimizer":
        parameters = float(memory.optimizer) / float(sizes.state_bytes)
        moved = parameters * float(sizes.grad_bytes + sizes.weight_bytes)
    elif layout.offload == "activations":
        held = float(in_flight(layout.split(), passes))
        moved = 2.0 * float(memory.activations) / held * passes
    else:
        moved = passes * (2.0 * float(memory.weights) + float(memory.gradients))
    hidden = estimator.machine.overlap * (found.compute + found.recompute)
    return max(0.0, moved / rate - float(hidden))
