"""The memory that a rank needs in training and inference, and the nearest layouts that fit."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import combinations, product
from typing import Any, Literal

from attrs import evolve, frozen

from trnspec.errors import RefusalError, TrnspecError
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.frameworks import Runtime
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.memory import RankMemory, inference_memory, on_device, training_memory
from trnspec.perf.work.validity import check, check_context

PARTS = {
    "weights": "weights of the rank",
    "gradients": "gradients",
    "optimizer": "master weights and moments",
    "activations": "activations of the layers",
    "embeddings_and_logits": "activations of embedding, final norm and output; logits",
    "recomputed": "activations of one layer during recompute",
    "transient": "gradients before they are accumulated",
    "cache": "KV cache",
    "buffers": "messages between stages, gathered weights, buckets of gradients",
    "reserve": "runtime, communication, fragmentation",
}
"""The parts of the memory of a rank."""

MAX_CHANGES = 3
"""The most inputs that are changed together."""

MAX_LAYOUTS = 12
"""The most layouts that :func:`nearest` returns."""

_TRAINING = ("tp", "pp", "cp", "ep", "zero", "recompute", "sequence_parallel", "fused_loss", "microbatch", "offload")
_INFERENCE = ("tp", "pp", "ep", "batch", "prefill")
_RECOMPUTE = ("none", "selective", "operators", "full")


@frozen(kw_only=True)
class Demand:
    """A layout with the workload of training or inference, which decide the memory of a rank.

    Attributes:
        mode: Training or inference.
        layout: The layout.
        element_bytes: Bytes of an element of the compute dtype: in inference of a weight, from 16 bit on of an activation.
        kv_bytes: Bytes of an element of the KV cache.
        batch: Sequences of inference per replica.
        context: Tokens per sequence in the KV cache.
        prefill: Tokens of a prompt that a rank computes at once.
        runtime: What software needs besides, the reserve included, with dropout masks and the bytes of an activation.
    """

    mode: Literal["training", "inference"]
    layout: Layout
    element_bytes: float = 2.0
    kv_bytes: float = 2.0
    batch: int = 1
    context: int = 0
    prefill: int = 1
    runtime: Runtime

    def check(self, d: Dimensions, ranks: int | None) -> None:
        """Checks the layout for a model and a number of ranks.

        Raises:
            RefusalError: The layout is invalid.
        """
        try:
            check(self.layout, d, ranks)
        except RefusalError as refusal:
            # The global batch is not an input here; microbatches are.
            refusal.place = "microbatches" if refusal.place == "global_batch" else refusal.place
            raise
        if self.mode == "inference":
            check_context(self.context, d, "context")
            check_context(self.prefill, d, "prefill")

    def stage(self, d: Dimensions, stage: int) -> tuple[RankMemory, float]:
        """The bytes on a rank of a stage, and those that it keeps on the host."""
        if self.mode == "inference":
            memory = inference_memory(
                d, self.layout, context=float(self.context), batch=float(self.batch * self.layout.dp),
                # A part of a prompt, or one token of each sequence.
                step_tokens=max(self.prefill, self.batch) / float(self.layout.cp), weight_bytes=self.element_bytes,
                kv_bytes=self.kv_bytes, activation_bytes=self.runtime.activation_bytes, stage=float(stage), reserve=self.runtime.reserve,
            )  # fmt: skip
        else:
            memory = training_memory(d, self.layout, stage=float(stage), runtime=self.runtime)
        return on_device(d, self.layout, memory, self.runtime, training=self.mode == "training")

    def worst(self, d: Dimensions) -> tuple[int, RankMemory, float]:
        """The stage that needs most, its memory, and what it keeps on the host."""
        stages = [(stage, *self.stage(d, stage)) for stage in range(self.layout.pp)]
        return max(stages, key=lambda row: (float(row[1].total), -row[0]))


@frozen
class Capacity:
    """The memory of a system.

    Attributes:
        ranks: Ranks of the system.
        device: Device memory per rank, in B.
        host: Host memory per rank, in B; 0.0 if unknown.
    """

    ranks: int
    device: float
    host: float


@frozen
class LayoutChange:
    """A changed layout.

    Attributes:
        changes: The changed inputs: ``zero 0 -> 1``.
        total: The memory of the rank that needs most, in B.
        fits: Whether it fits on the device and on the host.
        steps: The number of steps of all changes: from tp 4 to 16 are two.
    """

    changes: tuple[str, ...]
    total: float
    fits: bool
    steps: int


def neighbors(d: Dimensions, demand: Demand, capacity: Capacity) -> tuple[LayoutChange, ...]:
    """Each input alone, changed by one step, in the order of the inputs."""
    firsts = (options[:1] for options in _options(demand).values())
    return tuple(c for options in firsts for option in options if (c := _changed(d, demand, capacity, (option,), 1)))


def nearest(d: Dimensions, demand: Demand, capacity: Capacity) -> tuple[LayoutChange, ...]:
    """The layouts that fit with the fewest changed inputs, nearest first.

    An input counts once however far it is changed; of the layouts that change the same inputs only the nearest is
    returned. Of two equally near, the one that leaves less memory free comes first.
    """
    options = _options(demand)
    for count in range(1, MAX_CHANGES + 1):
        fitting: dict[tuple[str, ...], LayoutChange] = {}
        for names in combinations(options, count):
            for chosen in sorted(product(*(enumerate(options[n], 1) for n in names)), key=_steps):
                change = _changed(d, demand, capacity, tuple(option for _, option in chosen), _steps(chosen))
                if change is not None and change.fits:
                    fitting[names] = change
                    break
        if fitting:
            return tuple(sorted(fitting.values(), key=lambda c: (c.steps, -c.total))[:MAX_LAYOUTS])
    return ()


def _steps(chosen: tuple[tuple[int, Option], ...]) -> int:
    return sum(steps for steps, _ in chosen)


Option = tuple[str, Any, Any]
"""An input, its value, and another value."""


def _options(demand: Demand) -> Mapping[str, list[Option]]:
    """For each input the values that need less memory than its own, nearest first.

    If many tensor-parallel ranks split the sequence, ``operators`` may need more than ``selective``; a layout that
    needs too much is not returned as one that fits.
    """
    layout = demand.layout
    own = {"batch": demand.batch, "prefill": demand.prefill}
    now: dict[str, Any] = {name: own.get(name, getattr(layout, name, None)) for name in (*_TRAINING, *_INFERENCE)}
    # With flash attention there are no stored scores that selective recompute could save.
    recompute = [
        v for v in _RECOMPUTE[_RECOMPUTE.index(layout.recompute) + 1 :] if v != "selective" or not layout.flash
    ]
    values: dict[str, list[Any]] = {
        **{name: [now[name] * 2**i for i in range(1, 7)] for name in ("tp", "pp", "cp", "ep")},
        # Halves, while they are even.
        **{
            n: [now[n] >> i for i in range(1, (now[n] & -now[n]).bit_length())]
            for n in ("microbatch", "batch", "prefill")
        },
        **{name: [] if now[name] else [True] for name in ("sequence_parallel", "fused_loss")},
        "zero": list(range(layout.zero + 1, 4)),
        "recompute": recompute,
        "offload": ["optimizer"] if layout.offload == "none" else [],
    }
    names = _TRAINING if demand.mode == "training" else _INFERENCE
    return {name: [(name, now[name], value) for value in values[name]] for name in names if values[name]}


def _changed(
    d: Dimensions, demand: Demand, capacity: Capacity, options: tuple[Option, ...], steps: int
) -> LayoutChange | None:
    """A changed layout; ``None`` if it is invalid. The data-parallel degree takes the remaining ranks."""
    values = {name: value for name, _, value in options}
    if values.get("sequence_parallel") and values.get("tp", demand.layout.tp) == 1:
        return None
    own = {n: v for n, v in values.items() if n in ("batch", "prefill")}
    layout = evolve(demand.layout, **{n: v for n, v in values.items() if n not in own})
    others = layout.tp * layout.pp * layout.cp
    if capacity.ranks % others:
        return None
    # The tokens per step stay: fewer replicas or smaller microbatches mean more microbatches.
    layout = evolve(layout, dp=capacity.ranks // others)
    if demand.mode == "inference":
        layout = evolve(layout, global_batch=demand.layout.microbatches * layout.microbatch * layout.dp)
        # So do the sequences over all replicas.
        own = {"batch": math.ceil(demand.batch * demand.layout.dp / layout.dp)} | own
    changed = evolve(demand, layout=layout, **own)
    try:
        changed.check(d, capacity.ranks)
    except TrnspecError:
        return None
    _, memory, host = changed.worst(d)
    texts = tuple(f"{n} {_text(a)} -> {_text(b)}" for n, a, b in options)
    fits = float(memory.total) <= capacity.device and host <= capacity.host
    return LayoutChange(texts, float(memory.total), fits, steps)


def _text(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
