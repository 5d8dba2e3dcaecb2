"""The memory that a rank needs in training or inference, its breakdown, and what would make it fit."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import groupby
from typing import Any, Literal

import attrs
from attrs import evolve, frozen

from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError
from trnspec.evaluation.measures import printed
from trnspec.evaluation.questions import ServingPrecision, ServingWorkload, TrainingLayout, axis, like
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, Table
from trnspec.evaluators.fit import MAX_CHANGES, PARTS, Capacity, Demand, LayoutChange, nearest, neighbors
from trnspec.evaluators.software import resolve_training, training_assumptions
from trnspec.evaluators.training import expert_assumptions, layout_of
from trnspec.model.transformers.counting import dimensions, parameters
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.frameworks import SETTINGS, runtime
from trnspec.perf.lowering.lower import lower, model_named
from trnspec.perf.lowering.machine import LoweredSystem as Hardware
from trnspec.perf.roofline import element_bytes
from trnspec.perf.work.layout import OPTIMIZERS, Layout
from trnspec.perf.work.memory import RankMemory

_TRAINING = (
    *("zero", "sequence_parallel", "recompute", "microbatch", "microbatches", "schedule", "interleave", "uneven"),
    *("flash", "fused_loss", "dropout", "optimizer", "gathered_inputs", "bucket", "imbalance", "capacity_factor"),
)
"""The inputs that only training uses."""
_INFERENCE = ("batch", "context", "prefill", "kv_dtype")
"""The inputs that only inference uses."""


@frozen(kw_only=True, slots=False)
class MemoryQuestion(TrainingLayout):
    """The inputs of the evaluator; see :mod:`trnspec.evaluation.questions`."""

    mode: Literal["training", "inference"] = axis("Training or inference.", group="Workload", default="training")
    batch: int = like(ServingWorkload, "batch")
    context: int | None = axis(
        "Tokens per sequence in the KV cache, in inference.", "TOKENS", group="Workload", unset="seq", minimum=0
    )
    prefill: int | None = axis("Tokens of a prompt that a rank computes at once, in inference.", "TOKENS", group="Workload", unset="seq", minimum=1)  # fmt: skip
    kv_dtype: str | None = like(ServingPrecision, "kv_dtype")
    microbatches: int | None = axis(
        "Microbatches per step and replica.", "MICROBATCHES", group="Schedule", unset="pp", minimum=1
    )
    dropout: bool = axis("Keep dropout masks, one byte per element.", group="Schedule", default=False)

    def demand(self, system: Hardware) -> Demand:
        """The layout on a system with its workload, defaults resolved."""
        layout = layout_of(self, int(system.ranks), global_batch=1)
        microbatches, size = self.microbatches or self.pp, element_bytes(self.dtype, "dtype")
        software = runtime(
            system.capacity,
            framework=self.framework, reserve=self.reserve, gathered_inputs=self.gathered_inputs, bucket=self.bucket,
        )  # fmt: skip
        return Demand(
            mode=self.mode,
            layout=evolve(layout, global_batch=microbatches * layout.microbatch * layout.dp),
            element_bytes=size,
            kv_bytes=element_bytes(self.kv_dtype or self.dtype, "kv_dtype"),
            batch=self.batch,
            context=self.seq if self.context is None else self.context,
            prefill=self.prefill or self.seq,
            # Activations have 16 bit also where matrices are multiplied in less.
            runtime=evolve(software, dropout=float(self.dropout), activation_bytes=max(size, 2.0)),
        )


def run(catalog: Catalog, question: MemoryQuestion) -> Evaluation:
    """Estimate the memory of a rank with its breakdown, whether it fits, and what would make it fit.

    Raises:
        RefusalError: The layout is invalid, or a figure is not published.

    Examples:
        Training Llama 3.1 8B on one Trn2 server:

            trnspec eval memory --model llama-3.1-8b --on trn2.48xlarge --seq 8192 --tp 4 --zero 1

        Weights and KV cache of 32 sequences per replica:

            trnspec eval memory --model llama-3.1-70b --on trn2.48xlarge --seq 8192
            --mode inference --tp 16 --batch 32

        The settings of a framework, for several tensor-parallel degrees:

            trnspec eval memory --model llama-3.1-8b --on trn2.48xlarge --seq 8192 --tp 4,8
            --framework nxd
    """
    q = resolve_training(question)
    node = model_named(catalog.graph, q.model)
    d = dimensions(node.spec)
    system = lower(catalog.graph, q.on, lnc=q.lnc, chips=q.chips)
    if system.capacity <= 0.0:
        place = f"{system.chip} spec.memory.capacity"
        raise RefusalError("unknown-figure", f"{system.chip} has no published memory capacity", place=place)
    ranks = int(system.ranks)
    demand = q.demand(system)
    demand.check(d, ranks)
    if q.mode == "inference" and q.offload in ("optimizer", "activations"):
        hint = "offload weights, or none"
        raise RefusalError("nothing-to-offload", f"inference keeps no {q.offload}", place="offload", hint=hint)
    capacity = Capacity(ranks, system.capacity, _host(system, demand))
    stage, memory, host = demand.worst(d)
    total = float(memory.total)
    fits = total <= capacity.device and host <= capacity.host
    tables: tuple[Table, ...] = (_stages(d, demand),)
    changes: tuple[LayoutChange, ...] = ()
    if not fits:
        changes = nearest(d, demand, capacity)
        tables += (
            _changes("Single changes", neighbors(d, demand, capacity), capacity),
            _changes("Changes that fit", changes, capacity),
        )
    return Evaluation(
        evaluator="memory",
        title=f"{q.mode} of {node.name} on {system.name}: {ranks:,} ranks of {capacity.device / 2**30:,.4g} GiB",
        inputs=_inputs(q, demand, node.name),
        answers=_answers(system, capacity, total, host, fits=fits),
        parts=tuple(Part("total", name, float(getattr(memory, name)), note) for name, note in PARTS.items()),
        bottleneck=_bottleneck(memory, stage, total, capacity, host, _advice(d, demand, capacity, changes)),
        assumptions=(*_assumptions(d, demand, system, question), *_resolved(d, demand, question)),
        figures_used=system.figures_used_for("capacity", "memory"),
        tables=tables,
    )


def _inputs(question: MemoryQuestion, demand: Demand, model: str) -> dict[str, Any]:
    """The inputs of the mode, resolved."""
    layout = demand.layout
    unused = _TRAINING if demand.mode == "inference" else _INFERENCE
    resolved = {
        **question.values(),
        **question.common(Layout),
        "model": model,
        "dp": layout.dp,
        "schedule": layout.schedule,
        "sequence_parallel": layout.sequence_parallel,
        "expert_tp": layout.expert_split,
        "microbatches": layout.microbatches,
        "context": demand.context,
        "prefill": demand.prefill,
        "kv_dtype": question.kv_dtype or question.dtype,
    }
    return {name: value for name, value in resolved.items() if name not in unused}


def _host(system: Hardware, demand: Demand) -> float:
    """The host memory per rank; 0.0 if it is not published and not needed."""
    if system.host_memory <= 0.0 and demand.layout.offload != "none":
        raise RefusalError(
            "unknown-figure",
            f"the host memory of {system.name} is not published",
            place=f"{system.name} spec.host.memory",
            hint="offload none, or a system of servers",
        )
    return system.host_memory * system.servers / system.ranks


def _answers(system: Hardware, capacity: Capacity, total: float, host: float, *, fits: bool) -> tuple[Answer, ...]:
    assert system.ends is not None
    slow, fast = (end.capacity for end in system.ends)
    close = "; within the rounding of the capacity" if (total <= slow) != (total <= fast) else ""
    free = Answer("free", capacity.device - total, "B", slow - total, fast - total)
    if total > capacity.device:
        free = evolve(free, note=f"missing {printed(free).value.removeprefix('-')}")
    answers = (
        Answer("total", total, "B", note="of the rank that needs most, reserve included"),
        Answer("capacity", capacity.device, "B", slow, fast, "device memory per rank"),
        Answer("fits", fits, note=f"reserve included{close}"),
        free,
    )
    if not host:
        return answers
    return (
        *answers,
        Answer("host", host, "B", note="host memory used, per rank"),
        Answer("host_capacity", capacity.host, "B", note="host memory per rank"),
    )


def _bottleneck(memory: RankMemory, stage: int, total: float, capacity: Capacity, host: float, advice: str) -> str:
    largest = max(PARTS, key=lambda name: float(getattr(memory, name)))
    share = float(getattr(memory, largest)) / total if total else 0.0
    text = f"{largest}: {share:.0%} of the memory of stage {stage}"
    if total <= capacity.device and host <= capacity.host:
        return text
    if total <= capacity.device:
        return f"does not fit in host memory; {advice}"
    return f"does not fit; {text}; {advice}"


def _advice(d: Dimensions, demand: Demand, capacity: Capacity, changes: tuple[LayoutChange, ...]) -> str:
    if changes:
        return f"smallest change that fits: {', '.join(changes[0].changes)}"
    sizes = demand.layout.precision
    if demand.mode == "training":
        size, what = (
            float(sizes.weight_bytes + sizes.grad_bytes + sizes.state_bytes),
            "weights, gradients and optimizer",
        )
    else:
        size, what = demand.element_bytes, "weights"
    least = math.ceil(parameters(d) * size / capacity.device)
    text = f"no change of up to {MAX_CHANGES} inputs fits on {capacity.ranks:,} ranks"
    return text if least <= capacity.ranks else f"{text}: {what} alone need {least:,} ranks"


def _stages(d: Dimensions, demand: Demand) -> Table:
    """The memory of each stage; consecutive stages with equal memory are one row."""

    def needed(stage: int) -> tuple[float, ...]:
        memory, host = demand.stage(d, stage)
        return float(memory.total), *(float(getattr(memory, name)) for name in PARTS), host

    groups = [(values, list(equal)) for values, equal in groupby(range(demand.layout.pp), key=needed)]
    rows: list[tuple[str | float, ...]] = [
        (str(s[0]) if len(s) == 1 else f"{s[0]}-{s[-1]}", *values) for values, s in groups
    ]
    columns = ("stage", "total", *PARTS, "host")
    return Table("Memory per rank by pipeline stage", columns, tuple(rows), ("", *("B",) * (len(columns) - 1)))


def _changes(title: str, changes: tuple[LayoutChange, ...], capacity: Capacity) -> Table:
    rows = tuple((", ".join(c.changes), c.total, capacity.device - c.total, c.fits) for c in changes)
    return Table(title, ("change", "total", "free", "fits"), rows, ("", "B", "B", ""))


def _assumptions(d: Dimensions, demand: Demand, system: Hardware, question: MemoryQuestion) -> tuple[Assumption, ...]:
    sizes = OPTIMIZERS[demand.layout.optimizer]
    size = f"{sizes.weight_bytes:g} + {sizes.grad_bytes:g} + {sizes.state_bytes:g} B"
    described = {"optimizer": (size, f"weight, gradient and state per parameter: {sizes.note}")}
    used = [n for n in SETTINGS if n != "overlap"] if demand.mode == "training" else ["reserve"]
    common: tuple[Assumption, ...] = (
        Assumption("parameters", f"{parameters(d):,.0f}", "counted from the dimensions"),
        *training_assumptions(question, used, described),
    )
    if system.ranks_per_chip > 1:
        shared = f"{system.ranks_per_chip:g} ranks share the memory of a chip evenly"
        common += (Assumption("rank", f"{system.lnc:g} physical cores", shared),)
    if demand.mode == "inference":
        return (*common, Assumption("activations", "estimate", "twice the residual stream and the widest inner tensor"))
    return (*common, *(expert_assumptions(demand.layout) if d.experts else ()))


def _resolved(d: Dimensions, demand: Demand, question: MemoryQuestion) -> Iterator[Assumption]:
    """Inputs that were replaced, that the mode does not use, or that exceed what the model was trained for."""
    if (demand.layout.seq if demand.mode == "training" else max(demand.context, demand.prefill)) > d.context:
        yield Assumption("context", f"{d.context:,.0f} tokens", "the model was trained for fewer tokens than the input")
    if demand.mode == "training" and demand.layout.schedule != question.schedule:
        chunks = f"{question.schedule} with {demand.layout.interleave} chunks per stage"
        yield Assumption("schedule", demand.layout.schedule, chunks)
    other, unused = ("inference", _INFERENCE) if demand.mode == "training" else ("training", _TRAINING)
    given = question.given()
    named = [f"{n} {str(given[n]).lower() if isinstance(given[n], bool) else given[n]}" for n in unused if n in given]
    if named:
        yield Assumption("not_used", ", ".join(named), f"used by {other} only")


assert tuple(PARTS) == tuple(f.name for f in attrs.fields(RankMemory))  # the breakdown is complete
