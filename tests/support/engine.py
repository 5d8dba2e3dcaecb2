"""Catalogs, models and systems of the tests of the engine."""

import functools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attrs import evolve, frozen

from tests.support.programs import ROOT
from trnspec.api import graph, load
from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError
from trnspec.graph.graph import Graph
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.frameworks import ALLOCATED, Runtime
from trnspec.perf.lowering.calibrated import Calibrated
from trnspec.perf.lowering.machine import IDEAL, Efficiency, Level, LoweredSystem, machine
from trnspec.perf.ops import Number
from trnspec.perf.serving.load import Replica
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.transformer import AttentionConvention, Transformer, all_scores, head_flops, transformer
from trnspec.perf.work.validity import check
from trnspec.topology.shapes import Torus

# The shipped catalog with those of the living plugins, for the tests of the performance engine.

FOLDERS = tuple(f"{ROOT}/plugins/trnspec-{name}/src/trnspec_{name}/catalog" for name in ("nvidia", "inferentia"))


@functools.cache
def everything() -> Graph:
    """Every chip, server and calibration that is known, whether or not the plugins are installed."""
    return graph(FOLDERS)


@functools.cache
def shipped() -> Catalog:
    """The catalog that trnspec ships."""
    return load()


def refusal(call: Callable[..., object], *args: Any, **given: Any) -> RefusalError:
    """The error of a call that is refused."""
    with pytest.raises(RefusalError) as refused:
        call(*args, **given)
    return refused.value


def reason_and_place(call: Callable[..., object], *args: Any, **given: Any) -> tuple[str, str]:
    error = refusal(call, *args, **given)
    return error.reason, error.place


# Transformers as dimensions, for tests; made here by hand, so that a figure does not depend on the catalog.


def parameters(model: Transformer) -> Number:
    """All parameters of a model: layers, embedding, and the output matrix unless it is tied."""
    layers = model.layers * (model.whole + model.routed + model.small)
    return layers + model.embedding + model.output * (1.0 - model.tied) + model.outer


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


# FLOP of a forward pass in one sum, the oracle for the sum over operations.


@frozen(kw_only=True)
class Parts:
    """FLOP by operation of a transformer, of one layer or of all; the head has all matrices outside the layers."""

    projections: Number = 0.0
    scores: Number = 0.0
    mlp: Number = 0.0
    experts: Number = 0.0
    shared: Number = 0.0
    router: Number = 0.0
    head: Number = 0.0

    @property
    def matrices(self) -> Number:
        """All but scores and head: the layer's weight matrices."""
        return self.projections + self.mlp + self.experts + self.shared + self.router

    @property
    def total(self) -> Number:
        """The sum of all operations."""
        return self.matrices + self.scores + self.head


def layer_flops(d: Dimensions, tokens: Number, context: Number, expert: Number = 0.0) -> Parts:
    """FLOP of the operations of one layer, forward, with 1.0 for an MoE layer; a token attends to ``context`` keys on average."""
    dense = 1.0 - expert
    return Parts(
        projections=2.0 * tokens * d.attention_weights,
        scores=tokens * 2.0 * d.heads * (d.qk_size + d.v_size) * context,
        mlp=2.0 * tokens * d.mlp_weights * dense,
        experts=2.0 * tokens * d.active * d.expert_weights * expert,
        shared=2.0 * tokens * d.shared_weights * expert,
        router=2.0 * tokens * d.router_weights * expert,
    )


def forward_flops(
    d: Dimensions, tokens: Number, seq: Number, convention: AttentionConvention, logits: Number | None = None
) -> Parts:
    """FLOP of a forward pass of the tokens of all sequences: all layers and the output of those with logits, by default all."""
    dense = d.layers - d.expert_layers
    return Parts(
        projections=2.0 * tokens * d.layers * d.attention_weights,
        scores=tokens * all_scores(d, seq, convention),
        mlp=2.0 * tokens * dense * d.mlp_weights,
        experts=2.0 * tokens * d.expert_layers * d.active * d.expert_weights,
        shared=2.0 * tokens * d.expert_layers * d.shared_weights,
        router=2.0 * tokens * d.expert_layers * d.router_weights,
        head=head_flops(d, tokens if logits is None else logits),
    )


# Models, systems, efficiencies and layouts for the tests of the training engine, at random but the same every time.

MODELS = {
    "gpt": gpt(24, 2048, 16, context=16384.0),
    # As many positions as GPT-3 has learned.
    "gpt-3": gpt(96, 12288, 96, context=2048.0),
    "llama-8b": LLAMA_3_8B,
    "llama-70b": LLAMA_3_70B,
    "mha": llama(32, 4096, 32, 32, 11008, 32000),
    "mixtral": MIXTRAL,
    "windows": llama(32, 4096, 32, 8, 14336, 32000, window=4096.0, windowed_layers=32.0),
    "every-second": evolve(experts(llama(24, 2880, 64, 8, 2880, 201088), 32, 4), window=128.0, windowed_layers=12.0),
    "latent": evolve(
        experts(llama(60, 7168, 128, 128, 2048, 129280), 256, 8), kv_heads=1.0, kv_elements=576.0, expert_layers=57.0,
        mlp_weights=3.0 * 7168 * 18432, width=18432.0, shared_weights=3.0 * 7168 * 2048, shared_width=2048.0,
    ),
    # Its layers are two short of a multiple of most stages.
    "predicting": evolve(
        experts(llama(30, 2048, 16, 4, 1408, 64000), 64, 6), expert_layers=28.0, mlp_weights=3.0 * 2048 * 8192, width=8192.0,
        mtp_layers=1.0, mtp_weights=2.0 * 2048 * 2048, mtp_small=3.0 * 2048,
    ),
    # Three of four layers have a recurrence, as in Qwen3-Next.
    "recurrent": evolve(
        experts(llama(48, 2048, 16, 2, 512, 151936), 512, 10), unattended_layers=36.0, recurrence=36.0 * 4 * 32 * 128 * 128,
        state=36.0 * 32 * 128 * 128, recurrent_width=36.0 * 12288,
    ),
    # Layers of a single operation, as in Nemotron-H: 6 of attention, 23 of a recurrence, 23 of experts.
    "single-operation": evolve(
        experts(llama(52, 2688, 32, 2, 1856, 131072), 128, 6), expert_hidden=1024.0, unattended_layers=46.0, expert_layers=23.0, mlp_weights=0.0,
        width=0.0, absent_results=23.0, matrices=2.0, recurrence=23.0 * 3.5 * 64 * 64 * 128, state=23.0 * 64 * 64 * 128,
        recurrent_width=23.0 * 14400,
    ),
    # Attention to the keys that an indexer chooses, as in DeepSeek-V3.2; the first layers attend to all.
    "sparse": evolve(
        llama(24, 4096, 32, 8, 14336, 32000), sparse_layers=20.0, sparse_keys=512.0, index_layers=10.0, index_width=2048.0,
        index_size=128.0,
    ),
    # Windowed layers with heads of their own, values smaller than keys, and values that are keys: MiMo-V2-Flash, Gemma 4.
    "local": evolve(
        experts(llama(24, 4096, 64, 4, 2048, 152576), 256, 8), qk_size=192.0, v_size=128.0, kv_elements=4.0 * 320,
        kv_projected=4.0 * 192, window=128.0, windowed_layers=20.0, local_heads=96.0, local_kv_heads=8.0, local_qk_size=160.0,
        local_kv_elements=8.0 * 288, attention_weights=4096.0 * 96 * 320, expert_layers=23.0, mlp_weights=3.0 * 4096 * 16384,
        width=16384.0,
    ),
    # Keys of several tokens: some chosen by an indexer, the others all met; a window in all of these layers (DeepSeek-V4).
    "pooled": evolve(
        llama(24, 4096, 64, 1, 2048, 129280), qk_size=512.0, v_size=512.0, kv_elements=512.0, window=128.0,
        windowed_layers=2.0, sparse_layers=11.0, sparse_keys=128.0, sparse_stride=4.0, pooled_layers=10.0,
        pooled_stride=128.0, beside_layers=21.0, index_layers=11.0, index_width=8192.0, index_size=128.0,
    ),
    "encoder": evolve(gpt(24, 1024, 16, 30522.0, 4096.0), causal=0.0),
}  # fmt: skip


def system(levels: tuple[tuple[str, float, float, float], ...], ranks: float, name: str = "a-system") -> LoweredSystem:
    """A system of some levels: name, ranks of a unit, rate in B/s, latency in s."""
    made = tuple(
        Level(name=n, ranks=r, rate=rate, latency=latency, place=f"{n} rate") for n, r, rate, latency in levels
    )
    rates = {"bf16": 91.75e12, "fp8": 183.5e12}
    return LoweredSystem(
        name=name, chip="a-chip", chips=ranks / 2, servers=max(1.0, ranks / 32), ranks=float(ranks), ranks_per_chip=2.0,
        lnc=1.0, rates=rates, published=rates, capacity=17e9, bandwidth=4.4e11, levels=made,
    )  # fmt: skip


INF = float("inf")
SYSTEMS = (
    system((("chip", 2.0, 2e11, 0.0), ("server", 32.0, 6e10, 0.0), ("network", INF, 3e9, 1.5e-5)), 256),
    system((("chip", 2.0, 2e11, 0.0), ("server", 32.0, 6e10, 0.0), ("network", INF, 3e9, 0.0)), 64),
    system((("chip", 8.0, 3e11, 0.0), ("server", 64.0, 9e10, 0.0), ("ultraserver", 256.0, 3e10, 0.0),
            ("network", INF, 3e9, 2e-5)), 1024),
    system((("server", 16.0, 1e11, 2e-6), ("network", INF, 5e9, 2e-5)), 128),
    system((("server", 32.0, 1e11, 0.0),), 32),
    system((("server", 48.0, 1e11, 0.0), ("network", INF, 5e9, 2e-5)), 96),
)  # fmt: skip

# Switches of the last one add up what ranks send; two are tori, one of servers in a third dimension.
SHAPES = {
    (1, "server"): Torus((4, 4), (1.0,)),
    (2, "server"): Torus((2, 4), (2.0,)),
    (2, "ultraserver"): Torus((4, 2, 4), (1.0, 2.0, 2.0)),
}
SYSTEMS = tuple(
    evolve(s, levels=tuple(evolve(v, reduces=i == 5, shape=SHAPES.get((i, v.name))) for v in s.levels)) for i, s in enumerate(SYSTEMS)
)  # fmt: skip

FITTED = Efficiency(
    matmul=0.7, attention=0.31, matmul_passes=0.4, hidden_passes=11.0, score_passes=0.2, head_passes=3.0,
    optimizer_passes=0.6, memory=0.83, forward=2e-4, backward=5e-4, chip=0.8, server=0.6, ultraserver=0.55, network=0.7,
    call=2e-5, hop=3e-6, network_hop=2.2e-5, send=1e-5, overlap=0.7, exposed=0.1, tensor_overlap=0.4, step=3e-3, pipeline_overlap=0.65,
    exchange=0.45, dispatch=7e-5, expert_overlap=0.35,
    causal=0.0,
)  # fmt: skip
"""Every number differs from what it is when nothing is lost."""


SOFTWARE = Runtime(gathered_inputs=1.0, bucket=3e8, reserve=5e8)
"""Needs all that software can need of memory."""


def estimator(
    name: str, on: LoweredSystem, efficiency: Efficiency = IDEAL, dtype: str = "bf16", runtime: Runtime = ALLOCATED
) -> Estimator:
    """A model on a system."""
    made, d = machine(on, efficiency, dtype), MODELS[name]
    return Estimator(name, d, transformer(d), on, Calibrated("", efficiency), dtype, made, (made, made), runtime)


ESTIMATORS = tuple(
    estimator(name, on, efficiency, dtype, runtime)
    for name in MODELS
    for on in SYSTEMS
    for efficiency, dtype, runtime in ((IDEAL, "bf16", ALLOCATED), (FITTED, "fp8", SOFTWARE))
)

CHOICES: dict[str, list[Any]] = {
    "tp": [1, 1, 2, 4, 8, 16, 3], "pp": [1, 1, 2, 4, 8, 3], "cp": [1, 1, 2, 4], "ep": [1, 1, 2, 4, 8],
    "seq": [1024, 2048, 4096, 8192, 16384], "global_batch": [32, 128, 192, 512, 1024], "microbatch": [1, 1, 2, 4],
    "schedule": ["1f1b", "interleaved", "interleaved", "gpipe", "zb1p", "zb2p", "zbv", "v-half", "v-min"], "zero": [0, 1, 2, 3],
    "recompute": ["none", "selective", "operators", "full"], "sequence_parallel": [False, True], "overlap": [False, True],
    "flash": [False, True], "fused_loss": [False, True],
    "optimizer": ["adam", "adam-fp32-grads", "adam-fp32", "adam-fsdp", "adam-bf16", "adam-8bit", "sgd-momentum"],
    "expert_tp": [None, None, 1, 2], "dispatch": ["per-node", "per-copy"], "expert_overlap": [False, True],
    "uneven": [False, False, True], "dispatch_dtype": ["bf16", "fp8"], "node_limit": [0, 0, 1, 2, 4], "imbalance": [1.0, 1.0, 1.2], "capacity_factor": [None, None, 1.25],
}  # fmt: skip


@frozen
class Sample:
    """A configuration, and why it cannot be; empty where it can."""

    which: int
    layout: Layout
    reason: str


def sample(draw: random.Random, *, strange: float = 0.0) -> Sample:
    """A configuration that often can be; with a chance one number is strange."""
    which = draw.randrange(len(ESTIMATORS))
    e = ESTIMATORS[which]
    chosen = {name: draw.choice(values) for name, values in CHOICES.items()}
    chosen["interleave"] = draw.choice([2, 4]) if chosen["schedule"] == "interleaved" else 1
    chosen["dp"] = max(1, int(e.system.ranks) // (chosen["tp"] * chosen["pp"] * chosen["cp"]))
    if not e.dims.experts:
        chosen["ep"] = 1
    if draw.random() < strange:
        name = draw.choice(
            ["tp", "pp", "dp", "cp", "ep", "expert_tp", "seq", "global_batch", "microbatch", "interleave"]
        )
        chosen[name] = draw.choice([-1, 0, 1, 2, 3, 5, 7, 48])
    layout = Layout(**chosen)
    try:
        check(layout, e.dims, int(e.system.ranks))
    except RefusalError as refused:
        return Sample(which, layout, refused.reason)
    return Sample(which, layout, "")


def possible(draw: random.Random) -> Sample:
    """A configuration that can be."""
    while (found := sample(draw)).reason:
        pass
    return found


# Layouts of which a test states only what matters to it.


def layout(*, microbatches: Any = 1, **fields: Any) -> Layout:
    """A layout of some microbatches per replica; sequences have one token if no length is stated."""
    stated = {"seq": 1, "microbatch": 1, "dp": 1} | fields
    return Layout(global_batch=microbatches * stated["microbatch"] * stated["dp"], **stated)


# Replicas of the queueing model with times that are linear in the number of requests.


def replica(
    prompt: float = 0.08,
    base: float = 0.01,
    each: float = 0.0005,
    most: int = 64,
    output: int = 200,
    shared: float = 0.0,
) -> Replica:
    steps = base + each * np.arange(1.0, most + 1.0)
    return Replica(prompt=prompt, prompt_squared=prompt**2, first=0.0, steps=steps, output=float(output), shared=shared)
