"""Fits of the shipped tables, and calibrations that stay as they are."""

import functools
import random

from attrs import asdict, evolve

from tests.support.engine import GPT_3, LLAMA_3_8B, LLAMA_3_70B, SYSTEMS, everything, gpt, llama
from tests.support.rules import KNOWN, document, source
from trnspec.api import load
from trnspec.catalog.catalog import Catalog
from trnspec.graph.graph import Graph
from trnspec.loading.pipeline import link, load_document
from trnspec.perf.calibration.fits.training import batch
from trnspec.perf.calibration.measured.training import TrainingCase
from trnspec.perf.lowering.machine import Efficiency
from trnspec.perf.work.layout import Layout
from trnspec.yaml import read_text

# Training steps with times that are known, because they were computed: what a fit must find again.

LONG = 8192.0
"""Tokens of the longest sequence; whoever trained with it had as many positions."""

MODELS = {
    "gpt-1b": evolve(gpt(24, 2048, 16), context=LONG), "gpt-22b": evolve(gpt(48, 6144, 64), context=LONG),
    "gpt-175b": evolve(GPT_3, context=LONG), "llama-8b": LLAMA_3_8B,
    "llama-70b": LLAMA_3_70B, "llama-7b": llama(32, 4096, 32, 32, 11008, 32000),
}  # fmt: skip

TRUE = Efficiency(
    matmul=0.72, attention=0.45, matmul_passes=1.0, hidden_passes=6.0, head_passes=25.0, optimizer_passes=1.5,
    forward=3e-4, backward=1e-4, server=0.6, network=0.55, call=4e-5, hop=4e-6, network_hop=3e-5, send=2e-5,
    overlap=0.5, exposed=0.15, tensor_overlap=0.3, step=2e-3, causal=1.0,
)  # fmt: skip
"""What is achieved; none of it is where a fit begins."""

WRITTEN = evolve(TRUE, causal=0.0, score_passes=5.0)
"""The same, where attention writes its scores, and computes all of them."""


def cases(
    count: int, efficiency: Efficiency, *, noise: float = 0.0, seed: int = 7, flash: bool = True
) -> list[TrainingCase]:
    """Some steps at random, the same every time, with times that are off by a normal error of their logarithm."""
    draw = random.Random(seed)
    made = []
    for i in range(count):
        # Of ranks that are alone on their chip, and of two on each.
        which = draw.choice([0, 3])
        system = evolve(SYSTEMS[which], name=f"system-{which}")
        name = draw.choice(sorted(MODELS))
        tp, pp = draw.choice([1, 2, 4, 8]), draw.choice([1, 1, 2, 4])
        dp = int(system.ranks) // (tp * pp)
        layout = Layout(
            tp=tp, pp=pp, dp=dp, zero=draw.choice([0, 1, 3]), seq=draw.choice([1024, 2048, 8192]),
            global_batch=dp * draw.choice([4, 8, 16]), recompute=draw.choice(["none", "selective", "full"]),
            sequence_parallel=tp > 1, overlap=draw.random() < 0.5, uneven=True, flash=flash,
        )  # fmt: skip
        about = {"id": f"{i}", "model": name, "dims": MODELS[name], "system": system, "layout": layout}
        made.append(TrainingCase(**about, dtype="bf16", seconds=1.0, memory=0.0))
    times = batch(made).times(asdict(efficiency))["step"]
    factors = [2.718281828459045 ** draw.gauss(0.0, noise) for _ in made]
    return [evolve(c, seconds=float(t) * f) for c, t, f in zip(made, times, factors, strict=True)]


# Chips, systems and models of a published edition, with calibrations that no fit changes: for stored scores.

TRAINING = """\
spec:
  chip: {chip}
  of: training
  software: {software}
  framework: {framework}
  era: "2025"
  fitted: 2026-01-01
  data: training_trn1.csv
  fitted_on:
    chips: [{chip}]
    dtypes: [bf16, fp8]
    parameters: {{low: 300000000, high: 80000000000}}
    seq: {{low: 2048, high: 8192}}
    tokens_per_rank: {{low: 1024, high: 65536}}
    tp: {{low: 1, high: 8}}
    pp: {{low: 1, high: 8}}
    cp: {{low: 1, high: 1}}
    ep: {{low: 1, high: 8}}
    ranks: {{low: 8, high: 256}}
    global_batch: {{low: 16, high: 1048576}}
  achieved: {{matmul: 0.71x, matmul_fp8: 0.58x, attention: 0.43x, matmul_passes: 1.7x, hidden_passes: 7.3x, head_passes: 19x,
    optimizer_passes: 1.1x, forward: 310 us, backward: 170 us, server: 0.63x, ultraserver: 0.57x, network: 0.52x, call: 29 us,
    hop: 3.3 us, network_hop: 21 us, send: 11 us, overlap: 0.47x, exposed: 0.13x, tensor_overlap: 0.37x, pipeline_overlap: 0.61x,
    exchange: 0.59x, dispatch: 90 us, expert_overlap: 0.23x, step: 1.3 ms, causal: {causal}x}}
  spread: {{rows: 40, mean: 0.11x, median: 0.08x, worst: 0.5x, coverage: 0.8x, low: 0.83x, high: 1.31x, extrapolation: 0.12x,
    transfer: {{rows: 1000, groups: 14, low: 0.7x, high: 1.6x}}}}
  groups:
    - {{phase: step, scale: cluster, models: experts, rows: 11, clusters: 5, mean: 0.12x, median: 0.07x, low: 0.77x, high: 1.39x}}
    - {{phase: step, scale: server, rows: 29, clusters: 9, mean: 0.1x, median: 0.09x, low: 0.86x, high: 1.22x}}
  rows: 12493a6f 13dde2c1 36892930 7564c270"""

INFERENCE = """\
spec:
  chip: {chip}
  of: inference
  software: {software}
  framework: {framework}
  era: "2025"
  models: {models}
  fitted: 2026-01-01
  data: inference_h100_reference.csv
  fitted_on:
    chips: [{chip}]
    dtypes: [bf16, fp8]
    parameters: {{low: 590000000, high: 80000000000}}
    seq: {{low: 80, high: 60000}}
    prompt: {{low: 16, high: 50000}}
    tp: {{low: 1, high: 32}}
    pp: {{low: 1, high: 1}}
    ep: {{low: 1, high: 1}}
    batch: {{low: 1, high: 64}}
    ranks: {{low: 1, high: 32}}
  achieved: {{matmul: 0.61x, attention: 0.37x, matmul_passes: 2.3x, call: 23 us, hop: 800 ns, network_hop: 17 us, step: 1.4 ms, causal: 1x,
    weights: 0.84x, cache: 0.51x, single_core: 0.55x, launch: 27 us, request: 21 ms, sample: 12 us, link: 0.47x, additive: 0.19x,
    queue: 0.13x, response: 24 ms, padding: 0.27x, matmul_fp8: 0.5x, server: 0.66x, network: 0.58x}}
  spread: {{rows: 60, mean: 0.17x, median: 0.12x, worst: 0.9x, coverage: 0.8x, low: 0.84x, high: 1.62x, extrapolation: 0.11x,
    transfer: {{rows: 105, groups: 4, low: 0.72x, high: 2.2x}}}}
  first: {{rows: 50, mean: 0.21x, median: 0.19x, worst: 0.98x, coverage: 0.8x, low: 0.57x, high: 1.43x, extrapolation: 0.05x,
    transfer: {{rows: 77, groups: 3, low: 0.49x, high: 2.5x}}}}
  groups:
    - {{phase: step, models: {models}, rows: 19, clusters: 8, mean: 0.16x, median: 0.1x, low: 0.8x, high: 1.4x}}
  rows: a88846fc 640bd4c8 10af68f8 46c3babd bc4f497a 57ac4e16 50ceb661 2a180e05 84eb9b62 d10bd40f"""

COLLECTIVES = """\
spec:
  chip: {chip}
  of: collectives
  software: {software}
  framework: {framework}
  era: "2025"
  fitted: 2026-01-01
  data: collectives_neuron.csv
  fitted_on:
    chips: [{chip}]
    ranks: {{low: 2, high: 64}}
    collectives: [all-gather, all-reduce, all-to-all]
    size: {{low: 512, high: 2147483648}}
    servers: {{low: 1, high: 2}}
  achieved: {{host: 31 us, wait: 26 us, copies: 1.7x}}
  protocols:
    - {{name: LL, algorithm: ring, kinds: [all-reduce, all-gather, reduce-scatter, broadcast], call: 5.1 us, hop: 790 ns, network_hop: 27 us, link: 0.29x, network: 0.02x}}
    - {{name: Simple, algorithm: ring, kinds: [all-reduce, all-gather, reduce-scatter, broadcast], call: 16.7 us, hop: 1.1 us, network_hop: 270 us, link: 0.8x, network: 0.7x, own: 0.53x}}
    - {{name: RDH, algorithm: recursive, kinds: [all-reduce, all-gather, reduce-scatter], call: 1.5 us, hop: 4.3 us, network_hop: 22 us, link: 0.35x, network: 0.41x}}
    - {{name: mesh, algorithm: direct, kinds: [all-reduce, all-gather, reduce-scatter], call: 15 us, hop: 2 us, network_hop: 20 us, link: 0.14x, network: 0.31x}}
    - {{name: NVLS, algorithm: in-network, kinds: [all-reduce], call: 66 us, hop: 4.1 us, network_hop: 180 us, link: 0.65x, network: 0.74x}}
    - {{name: P2P, algorithm: direct, kinds: [all-to-all, send], call: 13 us, hop: 420 ns, network_hop: 30 us, link: 0.6x, network: 0.61x}}
  spread: {{rows: 39, mean: 0.06x, median: 0.03x, worst: 0.29x, coverage: 0.8x, low: 0.88x, high: 1.13x, extrapolation: 0.15x,
    transfer: {{rows: 525, groups: 5, low: 0.69x, high: 1.49x}}}}
  groups:
    - {{phase: collective, scale: server, rows: 20, clusters: 20, mean: 0.13x, median: 0.05x, low: 0.74x, high: 1.15x, size: {{low: 512, high: 65536}}}}
    - {{phase: collective, scale: server, rows: 19, clusters: 19, mean: 0.06x, median: 0.04x, low: 0.87x, high: 1.12x, size: {{low: 8388608, high: 536870912}}}}
  rows: 0f3100a0 0f5dee1e 156485a9"""

KERNELS = """\
spec:
  chip: h100-sxm
  of: kernels
  software: vLLM
  framework: vllm
  era: "2025"
  fitted: 2026-01-01
  data: made.csv
  achieved: {causal: 1x}
  spread: {rows: 70, mean: 0.19x, median: 0.16x, worst: 0.7x, coverage: 0.8x, low: 0.79x, high: 1.59x, extrapolation: 0.15x,
    transfer: {rows: 963, groups: 5, low: 0.77x, high: 1.53x}}
  groups:
    - {phase: gemm, rows: 30, clusters: 29, mean: 0.1x, median: 0.07x, low: 0.84x, high: 1.2x}
    - {phase: moe, rows: 15, clusters: 7, mean: 0.32x, median: 0.28x, low: 0.73x, high: 1.99x}
  roofs:
    - {kernel: gemm, precision: bf16, rows: 19, compute: 0.85x, memory: 0.92x, fixed: 2.5 us, inner: 590 ns, token: 610 ns, quantize: 1.3 us, waves: 0.19x, split: 0.64x, sharpness: 3.7x, epilogue: 0.14x}
    - {kernel: gemm, precision: fp8, rows: 11, compute: 0.63x, memory: 0.86x, fixed: 3.8 us, inner: 720 ns, token: 6.2 us, quantize: 1.7 us, waves: 0.21x, split: 0.61x, sharpness: 2.6x, epilogue: 0.12x}
    - {kernel: attention_prefill, precision: bf16, rows: 13, compute: 0.59x, memory: 0.34x, fixed: 14 us, inner: 110 ns, token: 480 ns, quantize: 2 us, waves: 0.22x, split: 0.43x, sharpness: 1.1x}
    - {kernel: attention_decode, precision: bf16, rows: 12, compute: 0.6x, memory: 0.83x, fixed: 13 us, inner: 106 ns, token: 130 ns, quantize: 2.1 us, waves: 0.23x, split: 0.69x, sharpness: 1.2x}
    - {kernel: moe, precision: bf16, rows: 2, compute: 0.48x, memory: 0.72x, fixed: 32 us, inner: 120 ns, token: 108 ns, quantize: 2.2 us, waves: 0.24x, split: 0.71x, sharpness: 1.3x}
    - {kernel: moe, precision: fp8_block, rows: 5, compute: 0.34x, memory: 0.76x, fixed: 28 us, inner: 125 ns, token: 109 ns, quantize: 2.3 us, waves: 0.26x, split: 0.72x, sharpness: 1.35x}
  rows: 0017271e 00246cd5"""

CALIBRATIONS = {
    "made-neuron-training": TRAINING.format(chip="trainium1", software="Neuron", framework="nxd", causal=1),
    "made-megatron-training": TRAINING.format(chip="h100-sxm", software="Megatron", framework="megatron", causal=0),
    "made-neuron-inference": INFERENCE.format(chip="trainium2", software="NxDI", framework="nxd-inference", models="dense"),
    "made-vllm-inference": INFERENCE.format(chip="h100-sxm", software="vLLM", framework="vllm", models="experts"),
    "made-neuron-collectives": COLLECTIVES.format(chip="trainium2", software="Neuron", framework="nccom"),
    "made-kernels": KERNELS,
    "made-gpu-collectives": COLLECTIVES.format(chip="h100-sxm", software="NCCL", framework="nccl"),
}  # fmt: skip
"""Calibrations by name; each value differs from its default."""


@functools.cache
def fixed() -> Catalog:
    """The edition 2026.11.1, which does not change, and the catalogs of plugins, with the calibrations above in place of theirs."""
    texts = [
        source("made", "2026-01-01"),
        *(document("Calibration", n, s, "source: made") for n, s in CALIBRATIONS.items()),
    ]
    made, _ = link([load_document(read_text(text, f"file-{i}.yaml"), KNOWN) for i, text in enumerate(texts)])
    edition = {n: node for n, node in load(edition="2026.11.1").graph.nodes.items() if node.kind != "Measurements"}
    known = {n: node for n, node in {**everything().nodes, **edition}.items() if node.kind != "Calibration"}
    return Catalog(Graph({**known, **made.nodes}))
