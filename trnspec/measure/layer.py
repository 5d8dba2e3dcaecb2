"""One layer of a decoder, forward and backward, with the largest memory that it takes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from trnspec.measure.device import Device, torch
from trnspec.measure.kernels import Cells, dtype, timed
from trnspec.measure.shapes import Layer, Shapes
from trnspec.measure.timing import Timing, measured

_MIB = 2.0**20


class _LayerWeights:
    """The matrices of a layer, and its forward computation: norms, attention and a gated feed-forward network."""

    def __init__(self, layer: Layer, device: Device, precision: str) -> None:
        module = torch()
        size = layer.hidden // layer.heads
        qkv = (layer.heads + 2 * layer.kv_heads) * size

        def matrix(rows: int, columns: int) -> Any:
            values = module.randn(rows, columns, device=device.kind) * columns**-0.5
            return values.to(dtype(precision)).requires_grad_()

        self.layer, self.size = layer, size
        self.qkv, self.out = matrix(qkv, layer.hidden), matrix(layer.hidden, layer.heads * size)
        self.up, self.down = matrix(2 * layer.width, layer.hidden), matrix(layer.hidden, layer.width)
        self.norms = [
            module.ones(layer.hidden, device=device.kind, dtype=dtype(precision)).requires_grad_() for _ in range(2)
        ]

    @property
    def all(self) -> list[Any]:
        return [self.qkv, self.out, self.up, self.down, *self.norms]

    def forward(self, x: Any) -> Any:
        functional, layer = torch().nn.functional, self.layer
        batch, seq, _ = x.shape
        h = functional.rms_norm(x, (layer.hidden,), self.norms[0])
        split = [layer.heads * self.size, layer.kv_heads * self.size, layer.kv_heads * self.size]
        q, k, v = (
            part.view(batch, seq, -1, self.size).transpose(1, 2)
            for part in functional.linear(h, self.qkv).split(split, dim=-1)
        )
        attended = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        x = x + functional.linear(attended.transpose(1, 2).reshape(x.shape), self.out)
        gate, up = functional.linear(functional.rms_norm(x, (layer.hidden,), self.norms[1]), self.up).chunk(2, dim=-1)
        return x + functional.linear(functional.silu(gate) * up, self.down)


def layers(device: Device, shapes: Shapes) -> Iterator[Cells]:
    """The forward computation, and the backward computation as the difference of both and the forward one.

    Rotary embeddings are left out, which no kernel of PyTorch has.
    """
    module = torch()
    precision = "bf16" if device.kind == "cuda" else "fp32"
    for layer in shapes.layers:
        weights = _LayerWeights(layer, device, precision)
        x = module.randn(layer.batch, layer.seq, layer.hidden, device=device.kind).to(dtype(precision)).requires_grad_()
        both = partial(_both, weights, x, module.ones_like(x))
        forward = measured(partial(weights.forward, x), device, shapes.effort)
        whole = measured(both, device, shapes.effort)
        backward = Timing(
            seconds=max(whole.seconds - forward.seconds, 0.0), low=max(whole.low - forward.high, 0.0),
            high=whole.high - forward.low, calls=whole.calls, batches=whole.batches,
        )  # fmt: skip
        peak = _peak(device, both)
        saved = _saved(weights, x)
        shape = f"{layer.batch}x{layer.seq}x{layer.hidden}-h{layer.heads}-{layer.kv_heads}-f{layer.width}"
        for name, time, passes in (("layer_forward", forward, 1.0), ("layer_backward", backward, 2.0)):
            if time.seconds > 0.0:
                rate = passes * flops(layer) / time.seconds
                yield {
                    "id": f"{name}-{precision}-{shape}", "op": name, "precision": precision, "shape": shape,
                    "tflops_per_chip": f"{rate / 1e12:.6g}",
                    "peak_mib": peak, "saved_mib": f"{saved / _MIB:.6g}",
                } | timed(time)  # fmt: skip


def _both(weights: _LayerWeights, x: Any, gradient: Any) -> object:
    """Forward and backward, with the gradients of input and weights."""
    return torch().autograd.grad(weights.forward(x), [x, *weights.all], gradient)


def flops(layer: Layer) -> float:
    """FLOP of the forward computation: products with weights, and of scores and values under a causal mask."""
    size = layer.hidden // layer.heads
    weights = layer.hidden * size * (2 * layer.heads + 2 * layer.kv_heads) + 3 * layer.hidden * layer.width
    tokens = layer.batch * layer.seq
    return 2.0 * tokens * weights + 2.0 * tokens * (layer.seq + 1) * layer.heads * size


def _peak(device: Device, call: Any) -> str:
    """The largest allocated memory during a call, weights included [MiB]; empty where the allocator does not count it."""
    if device.kind != "cuda":
        return ""
    module = torch()
    module.cuda.reset_peak_memory_stats()
    call()
    device.synchronize()
    return f"{module.cuda.max_memory_allocated() / _MIB:.6g}"


def _saved(weights: _LayerWeights, x: Any) -> float:
    """Bytes that the forward computation keeps for the backward one, without weights and input, each storage once."""
    known = {tensor.untyped_storage().data_ptr() for tensor in [x, *weights.all]}
    kept: dict[int, int] = {}

    def pack(tensor: Any) -> Any:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in known:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch().autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        result = weights.forward(x)
    del result
    return float(sum(kept.values()))
