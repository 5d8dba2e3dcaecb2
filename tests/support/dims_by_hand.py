"""Transformers as dimensions, for tests; made here by hand, so that a figure does not depend on the catalog."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from trnspec.model.transformers.dimensions import Dimensions


def gpt(layers: float, hidden: float, heads: float, vocabulary: float = 51200.0, context: float = 2048.0) -> Dimensions:
    """GPT-2's form: biases, learned positions, a tied output; ``12 L h^2 + 13 L h + (V + s) h + 2 h`` parameters."""
    h = float(hidden)
    return Dimensions(
        layers=float(layers), hidden=h, vocabulary=float(vocabulary), context=float(context), heads=float(heads),
        kv_heads=float(heads), qk_size=h / heads, v_size=h / heads, kv_elements=2.0 * h,
        attention_weights=4.0 * h * h, attention_small=8.0 * h, matrices=2.0, width=4.0 * h, mlp_weights=8.0 * h * h,
        mlp_small=5.0 * h, embedding=vocabulary * h, positions=context * h, head=vocabulary * h, tied=1.0,
        outer_small=2.0 * h,
    )  # fmt: skip


def bare(d: Dimensions, norm: float = 2.0) -> Dimensions:
    """The same with matrices and norms alone, as estimators count: neither biases nor learned positions."""
    return evolve(d, attention_small=2.0 * norm * d.hidden, mlp_small=0.0, positions=0.0, outer_small=norm * d.hidden)


def llama(  # a table of dimensions
    layers: float, hidden: float, heads: float, kv_heads: float, width: float, vocabulary: float, **more: Any
) -> Dimensions:
    """Llama's form: RMS norms, a gate, grouped queries, no biases, an output of its own."""
    h, d = float(hidden), hidden / heads
    return evolve(
        Dimensions(
            layers=float(layers), hidden=h, vocabulary=float(vocabulary), context=8192.0, heads=float(heads),
            kv_heads=float(kv_heads), qk_size=d, v_size=d, kv_elements=2.0 * kv_heads * d,
            attention_weights=2.0 * h * h + 2.0 * h * kv_heads * d, attention_small=2.0 * h, matrices=3.0,
            width=float(width), mlp_weights=3.0 * h * width, embedding=vocabulary * h, head=vocabulary * h,
            outer_small=h,
        ),
        **more,
    )  # fmt: skip


def experts(d: Dimensions, count: float, active: float, *, router: bool = True) -> Dimensions:
    """The same with experts in place of every feed-forward network."""
    return evolve(
        d, expert_layers=d.layers, experts=float(count), active=float(active), expert_width=d.width,
        expert_weights=d.mlp_weights, expert_small=d.mlp_small, mlp_weights=0.0, mlp_small=0.0, width=0.0,
        router_weights=d.hidden * count if router else 0.0,
    )  # fmt: skip


LLAMA_2_7B = llama(32, 4096, 32, 32, 11008, 32000)
LLAMA_2_13B = llama(40, 5120, 40, 40, 13824, 32000)
LLAMA_2_70B = llama(80, 8192, 64, 8, 28672, 32000)
LLAMA_3_8B = llama(32, 4096, 32, 8, 14336, 128256)
LLAMA_3_70B = llama(80, 8192, 64, 8, 28672, 128256)
MIXTRAL = experts(llama(32, 4096, 32, 8, 14336, 32000), 8, 2)
GPT_3 = gpt(96, 12288, 96)
GPT_22B, GPT_175B, GPT_530B, GPT_1T = (
    gpt(48, 6144, 64), GPT_3, gpt(105, 20480, 128), gpt(128, 25600, 160),
)  # fmt: skip

SC21 = (
    # layers, hidden, heads, batch, ranks, printed TFLOP/s of a GPU (Narayanan et al. 2021, table 1)
    (24, 2304, 24, 512, 32, 137), (30, 3072, 32, 512, 64, 138), (36, 4096, 32, 512, 128, 142),
    (40, 6144, 48, 1024, 256, 135), (48, 8192, 64, 1536, 512, 138), (60, 10240, 80, 1792, 1024, 140),
    (80, 12288, 96, 2304, 1536, 148), (96, 16384, 128, 2160, 1920, 155), (105, 20480, 128, 2520, 2520, 163),
    (128, 25600, 160, 3072, 3072, 163),
)  # fmt: skip
"""The ten models of Narayanan et al. 2021, table 1."""

LATENT = Dimensions(
    layers=27.0, expert_layers=26.0, hidden=2048.0, vocabulary=102400.0, context=32768.0, heads=16.0, kv_heads=1.0,
    qk_size=192.0, v_size=128.0, kv_elements=576.0,
    attention_weights=2048.0 * 16 * 192 + 2048.0 * 576 + 512.0 * 16 * 256 + 16.0 * 128 * 2048,
    attention_small=2.0 * 2048 + 512, matrices=3.0, width=10944.0, mlp_weights=3.0 * 2048 * 10944, experts=64.0,
    active=6.0, expert_width=1408.0, expert_weights=3.0 * 2048 * 1408, shared_weights=2.0 * 3 * 2048 * 1408,
    shared_width=2816.0, router_weights=2048.0 * 64, embedding=102400.0 * 2048, head=102400.0 * 2048, outer_small=2048.0,
)  # fmt: skip
"""Latent attention, shared experts and a dense layer first, as in DeepSeek-V2-Lite."""
