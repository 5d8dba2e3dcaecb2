"""What a rank needs, in training and in inference, and what the host then holds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

from attrs import evolve, frozen

from trnspec.errors import UsageError
from trnspec.evaluation.result import RefusalError
from trnspec.perf.work.activations import layer_activations
from trnspec.perf.work.layout import Layout, check, check_context
from trnspec.perf.work.memory import Memory, inference_memory, training_memory

if TYPE_CHECKING:
    from trnspec.model.transformers.dimensions import Dimensions
    from trnspec.perf.work.activations import Storing

PARTS = {
    "weights": "weights that the rank holds",
    "gradients": "gradients",
    "optimizer": "master copies and moments",
    "activations": "activations of the layers",
    "embeddings_and_logits": "activations of embedding, final norm and output; logits",
    "recomputed": "one layer while it is computed again",
    "cache": "keys and values",
    "buffers": "messages between stages, weights gathered",
}
"""What a rank needs memory for."""


@frozen(kw_only=True)
class Demand:
    """A question about memory: the layout, and what training or inference asks of it.

    Attributes:
        mode: Training or inference.
        layout: How it is laid out.
        microbatches: Microbatches of a step and pipeline.
        dropout: Whether masks of dropout are kept.
        element_bytes: Bytes of an activation, in inference also of a weight.
        kv_bytes: Bytes of an element of the cache.
        batch: Sequences of inference, over all of dp.
        context: Tokens of a sequence in the cache.
        prefill: Tokens of a prompt that a rank computes at once.
    """

    mode: Literal["training", "inference"]
    layout: Layout
    microbatches: int
    dropout: bool = False
    element_bytes: float = 2.0
    kv_bytes: float = 2.0
    batch: int = 1
    context: int = 0
    prefill: int = 1

    @property
    def split(self) -> Layout:
        """The layout with the batch that its microbatches make."""
        return evolve(self.layout, global_batch=self.microbatches * self.layout.microbatch * self.layout.dp)

    def check(self, d: Dimensions, ranks: int | None) -> None:
        """Whether the question makes sense, for a model and so many ranks.

        Raises:
            UsageError: A number is not positive.
            RefusalError: The layout cannot be.
        """
        for name in ("microbatches", "batch", "context", "prefill"):
            if getattr(self, name) < (0 if name == "context" else 1):
                raise UsageError(f"{name}: a positive number is expected, not {getattr(self, name)}")
        try:
            check(self.split, d, ranks)
        except RefusalError as refusal:
            # The batch is not an input here; the microbatches that make it are.
            refusal.place = "microbatches" if refusal.place == "global_batch" else refusal.place
            raise
        if self.mode == "inference":
            check_context(self.context, d, "context")
            check_context(self.prefill, d, "prefill")

    @property
    def tokens(self) -> int:
        """The most tokens of a sequence."""
        return self.layout.seq if self.mode == "training" else max(self.context, self.prefill)

    def stage(self, d: Dimensions, stage: int) -> tuple[Memory, float]:
        """The bytes on a rank of a stage, and those that it keeps on the host."""
        split = self.layout.split()
        if self.mode == "inference":
            needed = inference_memory(
                d, split, context=float(self.context), batch=float(self.batch), step_tokens=self._step_tokens,
                weight_bytes=self.element_bytes, kv_bytes=self.kv_bytes, activation_bytes=self.element_bytes,
                stage=float(stage),
            )  # fmt: skip
        else:
            needed = training_memory(
                d, split, self._storing, self.layout.bytes, seq=float(self.layout.seq),
                microbatch=float(self.layout.microbatch), microbatches=float(self.microbatches),
                zero=float(self.layout.zero), stage=float(stage),
            )  # fmt: skip
        return self._offloaded(d, needed)

    def worst(self, d: Dimensions) -> tuple[int, Memory, float]:
        """The stage that needs the most, what it needs, and what it keeps on the host."""
        each = [(stage, *self.stage(d, stage)) for stage in range(self.layout.pp)]
        return max(each, key=lambda found: (float(found[1].total), -found[0]))

    @property
    def _step_tokens(self) -> float:
        """Tokens that a rank computes at once: a part of a prompt, or one of each sequence."""
        return max(float(self.prefill), math.ceil(self.batch / self.layout.dp)) / self.layout.cp

    @property
    def _storing(self) -> Storing:
        return evolve(self.layout.storing(), dropout=float(self.dropout), element_bytes=self.element_bytes)

    def _offloaded(self, d: Dimensions, needed: Memory) -> tuple[Memory, float]:
        """What stays on the device: of weights and activations two layers, the one in work and the next."""
        what = self.layout.offload
        if what == "none":
            return needed, 0.0
        whole = float(getattr(needed, what))
        layers = d.layers / self.layout.pp
        if what == "weights":
            stays = min(whole, 2.0 * whole / layers)
        elif what == "activations" and self.mode == "training":
            kinds = [k for k, n in ((0.0, d.layers - d.expert_layers), (1.0, d.expert_layers)) if n]
            ask = (d, self.layout.split(), self._storing, float(self.layout.seq), float(self.layout.microbatch))
            stays = min(whole, 2.0 * max(float(layer_activations(*ask, kind)) for kind in kinds))
        else:
            stays = 0.0
        return evolve(needed, **{what: stays}), whole - stays
