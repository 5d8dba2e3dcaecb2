"""The memory that a rank needs in training or inference, what of it there is, and what would make it fit."""

from __future__ import annotations

import inspect
import math
from typing import TYPE_CHECKING, Literal

import attrs

from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, RefusalError, Table
from trnspec.evaluators.memory_demand import PARTS, Demand
from trnspec.evaluators.memory_fit import DEEPEST, Room, Way, nearest, neighbours
from trnspec.model.transformers.counting import dimensions, parameters
from trnspec.perf.lowering.lower import lower
from trnspec.perf.roofline import ELEMENT_BYTES
from trnspec.perf.work.layout import Layout, Recompute, splits_sequence
from trnspec.perf.work.memory import OPTIMIZERS, Memory

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trnspec.catalog.catalog import Catalog
    from trnspec.model.transformers.dimensions import Dimensions
    from trnspec.perf.lowering.system import System


def run(  # noqa: PLR0913  # each is an axis of the question
    catalog: Catalog,
    *,
    model: str,
    on: str,
    mode: Literal["training", "inference"] = "training",
    seq: int,
    tp: int = 1,
    pp: int = 1,
    dp: int | None = None,
    cp: int = 1,
    ep: int = 1,
    zero: Literal[0, 1, 2, 3] = 0,
    sequence_parallel: bool | None = None,
    recompute: Recompute = "none",
    microbatch: int = 1,
    microbatches: int | None = None,
    schedule: Literal["1f1b", "interleaved", "zb1p", "zb2p", "zbv", "v-half", "v-min"] = "1f1b",
    interleave: int = 1,
    flash: bool = True,
    fused_loss: bool = True,
    dropout: bool = False,
    dtype: str = "bf16",
    optimizer: Literal["adam", "adam-fp32-grads", "adam-fp32", "adam-bf16", "adam-8bit", "sgd-momentum"] = "adam",
    batch: int = 1,
    context: int | None = None,
    prefill: int | None = None,
    kv_dtype: str | None = None,
    offload: Literal["none", "optimizer", "activations", "weights"] = "none",
    lnc: int | None = None,
) -> Evaluation:
    """The memory of a rank with its parts, whether it fits, each stage, and what would make it fit.

    Args:
        catalog: The catalog.
        model: The name of a model: llama-3.1-8b.
        on: Servers, UltraServers or a chip, and how many: trn2.48xlarge*4.
        mode: Training or inference.
        seq: Tokens of a sequence.
        tp: Tensor parallelism: ranks that share each matrix.
        pp: Stages of the pipeline.
        dp: Replicas of the data; all that the other degrees leave when not given.
        cp: Context parallelism: ranks that share each sequence.
        ep: Expert parallelism: ranks, among those of dp and cp, that share the experts.
        zero: Stage of ZeRO; 3 is also what FSDP does.
        sequence_parallel: Split norms and residuals over the tensor-parallel ranks; where there are any and the
            sequence divides when not given.
        recompute: What is computed again in the backward pass: attention's scores (selective), all but the results of every
            second matrix multiplication and of attention (operators, as PyTorch does), or all of each layer (full).
        microbatch: Sequences that go through the pipeline together.
        microbatches: Microbatches of a step and pipeline; as many as there are stages when not given.
        schedule: The pipeline's schedule.
        interleave: Chunks of layers that a stage holds; more than one is the interleaved schedule.
        flash: Never write attention's scores to memory.
        fused_loss: Keep 4 bytes of each logit for the loss; else the 14 in 16 bits that PyTorch's operators need.
        dropout: Keep masks of dropout, one byte an element.
        dtype: The data type of activations, in inference also of weights.
        optimizer: The optimizer, with the precision of weights, gradients and states.
        batch: Sequences of inference, over all replicas.
        context: Tokens of a sequence in the cache, in inference; seq when not given.
        prefill: Tokens of a prompt that a rank computes at once, in inference; seq when not given.
        kv_dtype: The data type of the cache; dtype when not given.
        offload: What is kept on the host but for two layers.
        lnc: Physical cores of a logical core, which is a rank; 2 from Trainium2 on.

    Raises:
        RefusalError: The layout cannot be, or a figure is not published.
    """
    node = catalog.models[model].node
    d = dimensions(node.spec)
    system = lower(catalog.graph, on, lnc=lnc)
    if system.capacity <= 0.0:
        place = f"{system.chip} spec.memory.capacity"
        raise RefusalError("unknown-figure", f"{system.chip} has no published memory capacity", place=place)
    ranks = int(system.ranks)
    layout = Layout(
        tp=tp, pp=pp, cp=cp, ep=ep, dp=_dp(ranks, tp, pp, cp) if dp is None else dp, seq=seq, global_batch=1,
        microbatch=microbatch, interleave=interleave, zero=zero, recompute=recompute, flash=flash,
        fused_loss=fused_loss,
        schedule="interleaved" if interleave > 1 and schedule == "1f1b" else schedule, optimizer=optimizer,
        sequence_parallel=splits_sequence(seq, tp, cp, wanted=sequence_parallel), offload=offload,
    )  # fmt: skip
    demand = Demand(
        mode=mode, layout=layout, microbatches=max(1, pp) if microbatches is None else microbatches, dropout=dropout,
        element_bytes=_bytes(dtype, "dtype"), kv_bytes=_bytes(kv_dtype or dtype, "kv_dtype"), batch=batch,
        context=seq if context is None else context, prefill=seq if prefill is None else prefill,
    )  # fmt: skip
    demand.check(d, ranks)
    _check_offload(demand)
    room = Room(ranks, system.capacity, _host(system, demand))
    stage, needed, host = demand.worst(d)
    total = float(needed.total)
    fits = total <= room.device and host <= room.host
    tables: tuple[Table, ...] = (_stages(d, demand),)
    found: tuple[Way, ...] = ()
    if not fits:
        found = nearest(d, demand, room)
        tables += (_ways("one setting changed", neighbours(d, demand, room), room), _ways("what fits", found, room))
    others: dict[str, dict[str, object]] = {
        "inference": {
            "zero": zero, "sequence_parallel": sequence_parallel, "recompute": recompute, "microbatch": microbatch,
            "microbatches": microbatches, "schedule": schedule, "interleave": interleave, "flash": flash,
            "fused_loss": fused_loss, "dropout": dropout, "optimizer": optimizer,
        },
        "training": {"batch": batch, "context": context, "prefill": prefill, "kv_dtype": kv_dtype},
    }  # fmt: skip
    question = {
        "model": node.name, "on": system.name, "mode": mode, "seq": seq, "tp": tp, "pp": pp, "dp": layout.dp, "cp": cp,
        "ep": ep, "dtype": dtype, "offload": offload, **_asked(demand, kv_dtype or dtype),
    }  # fmt: skip
    return Evaluation(
        evaluator="memory",
        title=f"{mode} of {node.name} on {system.name}: {ranks:,} ranks of {room.device / 2**30:,.4g} GiB",
        inputs=question,
        answers=_answers(system, room, total, host, fits=fits),
        parts=tuple(Part("total", name, float(getattr(needed, name)), note) for name, note in PARTS.items()),
        bottleneck=_binds(needed, stage, total, room, host, _advice(d, demand, room, found)),
        assumptions=(*_assumptions(d, demand, system), *_taken(d, demand, schedule, others[mode])),
        figures_used=system.figures_used_for("capacity", "memory"),
        tables=tables,
        edition=catalog.edition or "",
    )


def _dp(ranks: int, tp: int, pp: int, cp: int) -> int:
    """What the other degrees leave; the check tells if that is not all."""
    return max(1, ranks // max(1, tp * pp * cp))


def _bytes(dtype: str, place: str) -> float:
    if dtype not in ELEMENT_BYTES:
        known = f"known: {', '.join(ELEMENT_BYTES)}"
        raise RefusalError(
            "unknown-figure", f"how many bytes an element of {dtype} has is not known", place=place, hint=known
        )
    return ELEMENT_BYTES[dtype]


def _check_offload(demand: Demand) -> None:
    if demand.mode == "inference" and demand.layout.offload in ("optimizer", "activations"):
        raise RefusalError(
            "nothing-to-offload",
            f"inference keeps no {demand.layout.offload}",
            place="offload",
            hint="weights can be kept on the host, or none",
        )


def _host(system: System, demand: Demand) -> float:
    """The share of a rank in the memory of its host; 0.0 where it is not published and not needed."""
    if system.host_memory <= 0.0 and demand.layout.offload != "none":
        raise RefusalError(
            "unknown-figure",
            f"how much memory the host of {system.name} has is not published",
            place=f"{system.name} spec.host.memory",
            hint="leave offload out, or name a server",
        )
    return system.host_memory * system.servers / system.ranks


def _answers(system: System, room: Room, total: float, host: float, *, fits: bool) -> tuple[Answer, ...]:
    assert system.ends is not None
    slow, fast = (end.capacity for end in system.ends)
    close = "; the digits of the capacity leave it open" if (total <= slow) != (total <= fast) else ""
    answers = (
        Answer("total", total, "B", note="the rank that needs the most"),
        Answer("capacity", room.device, "B", slow, fast, "device memory of one rank"),
        Answer("fits", fits, note=f"nothing is kept back for the runtime{close}"),
        Answer("free", room.device - total, "B", slow - total, fast - total, "negative: so much is missing"),
    )
    if not host:
        return answers
    return (
        *answers,
        Answer("host", host, "B", note="kept on the host, for one rank"),
        Answer("host_capacity", room.host, "B", note="the share of one rank in the memory of its host"),
    )


def _binds(  # one sentence of all of it
    needed: Memory, stage: int, total: float, room: Room, host: float, advice: str
) -> str:
    largest = max(PARTS, key=lambda name: float(getattr(needed, name)))
    share = float(getattr(needed, largest)) / total if total else 0.0
    told = f"{largest}: {share:.0%} of what stage {stage} needs"
    if total <= room.device and host <= room.host:
        return told
    if total <= room.device:
        return f"the host has too little memory; {advice}"
    return f"{told}; {advice}"


def _advice(d: Dimensions, demand: Demand, room: Room, found: tuple[Way, ...]) -> str:
    if found:
        return f"the smallest change that fits: {', '.join(found[0].changes)}"
    sizes = demand.layout.bytes
    each = sizes.weight_bytes + sizes.grad_bytes + sizes.state_bytes
    each, what = (
        (each, "the parameters with gradients and optimizer")
        if demand.mode == "training"
        else (demand.element_bytes, "the weights")
    )
    least = math.ceil(parameters(d) * each / room.device)
    nothing = f"no change of up to {DEEPEST} settings makes it fit on {room.ranks:,} ranks"
    if least <= room.ranks:
        return nothing
    return f"{nothing}: {what} alone fill the memory of {least:,} ranks"


def _stages(d: Dimensions, demand: Demand) -> Table:
    """What a rank of each stage needs; stages that need the same to the byte as the one before are one row."""
    rows: list[tuple[str, ...] | tuple[str | float, ...]] = []
    ends: list[tuple[int, int, tuple[float, ...]]] = []
    for stage in range(demand.layout.pp):
        memory, host = demand.stage(d, stage)
        values = (float(memory.total), *(float(getattr(memory, name)) for name in PARTS), host)
        if ends and ends[-1][2] == values:
            ends[-1] = (ends[-1][0], stage, values)
        else:
            ends.append((stage, stage, values))
    rows = [(str(a) if a == b else f"{a}-{b}", *values) for a, b, values in ends]
    columns = ("stage", "total", *PARTS, "host")
    return Table("memory of a rank by stage", columns, tuple(rows), ("", *("B",) * (len(columns) - 1)))


def _ways(title: str, ways: tuple[Way, ...], room: Room) -> Table:
    rows = tuple((", ".join(w.changes), w.total, room.device - w.total, w.fits) for w in ways)
    return Table(title, ("change", "total", "free", "fits"), rows, ("", "B", "B", ""))


def _asked(demand: Demand, kv_dtype: str) -> dict[str, str | int | bool]:
    """What counts in this mode only."""
    layout = demand.layout
    if demand.mode == "inference":
        return {"batch": demand.batch, "context": demand.context, "prefill": demand.prefill, "kv_dtype": kv_dtype}
    names = (
        *("zero", "sequence_parallel", "recompute", "microbatch", "schedule", "interleave", "flash", "fused_loss"),
        "optimizer",
    )
    asked = {name: getattr(layout, name) for name in names}
    return {**asked, "microbatches": demand.microbatches, "dropout": demand.dropout}


def _assumptions(d: Dimensions, demand: Demand, system: System) -> tuple[Assumption, ...]:
    sizes = OPTIMIZERS[demand.layout.optimizer]
    common: tuple[Assumption, ...] = (
        Assumption("parameters", f"{parameters(d):,.0f}", "counted from the dimensions of the model"),
        Assumption("reserved", "0 B", "what the runtime keeps for itself is not published"),
        Assumption("fragmentation", "none", "every byte of a rank can be used"),
    )
    if system.ranks_per_chip > 1:
        told = f"{system.ranks_per_chip:g} ranks share the memory of a chip evenly"
        common += (Assumption("rank", f"{system.lnc:g} physical cores", told),)
    if demand.mode == "inference":
        return (*common, Assumption("activations", "estimate", "twice the residual stream and the widest inner tensor"))
    size = f"{sizes.weight_bytes:g} + {sizes.grad_bytes:g} + {sizes.state_bytes:g} B"
    return (
        *common,
        Assumption("optimizer", size, f"weight, gradient and state of a parameter: {sizes.note}"),
        Assumption("experts", "balanced", "every expert is sent as many tokens"),
    )


_DEFAULTS = {name: each.default for name, each in inspect.signature(run).parameters.items()}


def _taken(d: Dimensions, demand: Demand, schedule: str, unused: Mapping[str, object]) -> Iterator[Assumption]:
    """What of the question was taken for something else, is of no use in its mode, or is more than a model was made for."""
    if demand.tokens > d.context:
        yield Assumption("context", f"{d.context:,.0f} tokens", "made for fewer than are asked for")
    if demand.mode == "training" and demand.layout.schedule != schedule:
        told = f"{schedule} with {demand.layout.interleave} chunks of a stage"
        yield Assumption("schedule", demand.layout.schedule, told)
    named = [f"{n} {str(v).lower() if isinstance(v, bool) else v}" for n, v in unused.items() if v != _DEFAULTS[n]]
    if named:
        other = "inference" if demand.mode == "training" else "training"
        yield Assumption("not_used", ", ".join(named), f"counts in {other} only")


assert tuple(PARTS) == tuple(f.name for f in attrs.fields(Memory))  # the parts of an answer are all there are
