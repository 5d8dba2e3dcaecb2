"""The time and the memory of a training step once more, in plain Python, as the documentation of the formulas tells them.

Loops over layers, levels, stages and chunks; no arrays, and none of the engine's formulas.
"""

from __future__ import annotations

import math
from typing import Any

FACTOR = {"1f1b": 1, "interleaved": 1, "zb1p": 1 / 3, "zb2p": 0, "zbv": 0, "v-half": 1 / 2, "v-min": 2 / 3}
HELD = {"1f1b": 1, "interleaved": 1, "zb1p": 1, "zb2p": 2, "zbv": 1, "v-half": 1 / 2, "v-min": 1 / 3}
FOLDED = {"zbv", "v-half", "v-min"}
BYTES = {
    "adam": (2, 2, 12), "adam-fp32-grads": (2, 4, 12), "adam-fp32": (4, 4, 8), "adam-bf16": (2, 2, 4),
    "adam-8bit": (2, 2, 6), "sgd-momentum": (2, 2, 8),
}  # fmt: skip
SLOTS = ("chip", "server", "ultraserver", "network")


class Links:
    """The levels of links, each with the ranks of a unit, the time of a byte and the time of a step."""

    def __init__(self, levels: Any, efficiency: Any) -> None:
        self.levels = []
        for level in levels:
            last = level.name == "network"
            hop = level.latency or (efficiency.network_hop if last else efficiency.hop)
            self.levels.append((level.ranks, 1 / (level.rate * getattr(efficiency, level.name)), hop))

    def within(self, n: float, stride: float) -> list[float]:
        """How many of a group's ranks lie in one unit of each level."""
        return [min(n, max(1, ranks / stride)) for ranks, _, _ in self.levels]

    def gather(self, n: float, stride: float) -> tuple[float, float]:
        """Latency, and time of a byte, of an all-gather by rings, level after level."""
        before, steps, byte = 1.0, 0.0, 0.0
        for here, (_, each, hop) in zip(self.within(n, stride), self.levels, strict=True):
            steps += (here / before - 1) * hop
            byte += (1 / before - 1 / here) * each
            before = here
        return steps, byte

    def exchange(self, n: float, stride: float, k: float, dispatch: str) -> tuple[float, float]:
        """Latency, and time of a byte, of an all-to-all in which every token goes to k experts.

        One copy for each expert: what leaves a unit goes over the next level, and the levels take turns.  One copy for each
        unit that is met: over each level to all units met but the one where it is, and the levels work at the same time.
        """
        before, turns, slowest, far = 1.0, 0.0, 0.0, 0.0
        for here, (_, each, hop) in zip(self.within(n, stride), self.levels, strict=True):
            if here > before + 1e-9:
                units, far = n / before, hop
                turns += k * (here - before) / n * each
                slowest = max(slowest, met(units, k) * (1 - before / here) * each)
            before = here
        return far, turns if dispatch == "per-copy" else slowest

    def outermost(self, span: float) -> tuple[float, float]:
        """Latency, and time of a byte, of the first level a unit of which holds so many ranks."""
        for ranks, each, hop in self.levels:
            if span <= ranks:
                return hop, each
        return self.levels[-1][2], self.levels[-1][1]


def met(units: float, k: float) -> float:
    """Units in which some of k experts are, each of which is in any unit with the same chance."""
    return units * (1 - (1 - 1 / units) ** k)


def tokens_met(seq: float, window: float, causal: bool) -> float:
    """Tokens that a query meets on average: all or half of the sequence, or of the window when that is shorter."""
    reach = min(window, seq) if window else seq
    return reach * (1 - reach / (2 * seq)) if causal else reach


def layer_kinds(d: Any) -> list[tuple[bool, bool]]:
    """For each layer whether it has experts, which the last ones have, and whether it looks back over a window."""
    return [(i >= d.layers - d.expert_layers, i < d.windowed_layers) for i in range(int(d.layers))]


def step(d: Any, system: Any, e: Any, dtype: str, x: Any) -> dict[str, float]:
    """The parts of a training step and their total; ``x`` has the attributes of a layout."""
    links = Links(system.levels, e)
    weight, gradient, state = BYTES[x.optimizer]
    wide_type = dtype if dtype in {"fp64", "fp32", "tf32", "bf16", "fp16"} else "bf16"
    rate, score_rate = system.rates[dtype] * e.matmul, system.rates[wide_type] * e.attention
    memory = system.bandwidth * e.memory
    full, selective, operators = (x.recompute == word for word in ("full", "selective", "operators"))
    tokens = x.microbatch * x.seq / x.cp
    causal = bool(d.causal) and bool(e.causal)
    m = x.global_batch // (x.microbatch * x.dp)

    # One layer, on average, forward.
    split_expert = x.tp if x.expert_tp is None else x.expert_tp
    busiest = x.capacity_factor or x.imbalance
    matmul = scores = routed_elements = kept_elements = 0.0
    summed = with_experts = 0.0
    for expert, windowed in layer_kinds(d):
        own = d.attention_weights + (d.shared_weights + d.router_weights if expert else d.mlp_weights)
        elements = own + (busiest * d.active * d.expert_weights if expert else 0)
        # Each rank holds whole heads of keys and values, repeated where they are fewer than the ranks.
        elements += d.hidden * d.kv_elements * (math.ceil(d.kv_heads / x.tp) * x.tp / d.kv_heads - 1)
        routed = d.experts * d.expert_weights if expert else 0
        small = d.attention_small + (
            d.experts * d.expert_small + d.shared_small + d.router_small if expert else d.mlp_small
        )
        width = (busiest * d.active * d.expert_width + d.shared_width) if expert else d.width
        dense, shared = bool(d.mlp_weights), bool(d.shared_width)
        # Whoever splits an expert reads whole copies, and nobody else does.
        copies = busiest * d.active * split_expert / x.tp + shared if expert else dense
        split = d.heads * (d.qk_size + d.v_size) + d.kv_elements + d.matrices * width
        operands = tokens * (2 + 2 * copies) * d.hidden + tokens * split / x.tp + own / x.tp
        operands += routed / x.ep / split_expert
        matmul += 2 * elements * tokens / x.tp / rate + operands * 2 * e.matmul_passes / memory
        streams = tokens / x.tp if x.sequence_parallel else tokens
        matmul += streams * d.hidden * 2 * e.hidden_passes / memory
        context = tokens_met(x.seq, d.window if windowed else 0, causal)
        scores += 2 * context * d.heads * (d.qk_size + d.v_size) * tokens / x.tp / score_rate
        scores += tokens * x.seq * d.heads / x.tp * 2 * e.score_passes / memory
        routed_elements += routed
        kept_elements += own + small
        with_experts += expert / d.layers
        # On one rank with all experts their sum is taken with that of the shared ones.
        together = x.ep == 1 and x.dispatch == "per-node"
        summed += (1 + ((shared and not together) if expert else dense)) / d.layers
    matmul, scores = matmul / d.layers, scores / d.layers
    forward, backward = max(matmul + scores, e.forward), max(2 * (matmul + scores), e.backward)
    again = forward if full else forward / 2 if operators else scores if selective else 0.0

    # Its collectives.
    message = tokens * d.hidden * 2
    rounds = 6 if full else 5 if operators else 4
    copies = d.active if x.dispatch == "per-copy" else met(x.ep, d.active)
    reduced = 0.0
    for ranks, how_often, size in (
        (x.tp, summed, message),
        (split_expert, with_experts, message * busiest * copies * split_expert / x.tp),
    ):
        steps, byte = links.gather(ranks, 1)
        reduced += rounds / 2 * how_often * ((e.call if ranks > 1 else 0) + 2 * (steps + byte * size))
    if x.overlap:
        reduced = max(0.0, reduced - e.tensor_overlap * (forward + backward + again))
    steps, byte = links.gather(x.cp, x.tp)
    cache = x.cp * tokens * d.kv_elements * 2 / min(x.tp, d.kv_heads)
    passed = 0.0
    for part in (1, 1, 1, 1 if full or selective else 0.5 if operators else 0):
        passed += part * ((e.call if x.cp > 1 else 0) + steps + byte * cache)
    exchanged = 0.0
    if x.ep > 1:
        steps, byte = links.exchange(x.ep, split_expert, d.active, x.dispatch)
        exchanged = rounds * with_experts * (e.call + steps + byte * message * busiest / x.tp)
    if x.expert_overlap:
        exchanged = max(0.0, exchanged - (forward + backward + again + reduced + passed))
    each = forward + backward + again + reduced + passed + exchanged

    # The pipeline.
    layers = d.layers / x.pp
    sent = 0.0
    if x.pp > 1:
        hop, byte = links.outermost(x.tp * x.cp * x.dp * x.pp)
        passes = x.interleave if x.interleave > 1 else 2 if x.schedule in FOLDED else 1
        sent = e.send + hop + byte * message / x.tp
        if not x.sequence_parallel and x.tp > 1:
            steps, byte = links.gather(x.tp, 1)
            sent += e.call / 2 + steps + byte * message
        sent = 2 * passes * sent
    bubble = FACTOR[x.schedule] / x.interleave * (x.pp - 1) * (layers * each + sent)
    head = tokens / x.tp * d.vocabulary * (6 * d.hidden / rate + 4 * e.head_passes / memory)

    # Gradients, sharded weights, the optimizer.
    ends = d.outer_small + d.outer_weights
    ends += d.head if x.pp > 1 else d.embedding + d.positions + (0 if d.tied else d.head)
    copies = x.dp * x.cp
    dense = (kept_elements / x.pp + ends) / x.tp
    routed = routed_elements / x.pp / split_expert / x.ep
    steps, byte = links.gather(copies, x.tp)
    same_experts = copies * x.tp / x.ep / split_expert
    part = links.gather(same_experts, split_expert * x.ep)[1] if routed else 0.0
    if x.zero == 3:
        sizes, calls = [weight, weight, gradient] * m, 3 * m * layers
    else:
        sizes, calls = [gradient, weight if x.zero else gradient], 2
    time = sum(size * (byte * dense + part * routed) for size in sizes)
    time += calls * ((e.call / 2 if copies > 1 else 0) + steps)
    behind = layers * each * (m if x.zero == 3 else 0.5)
    data = max(time * e.exposed, time - e.overlap * behind)
    mine = dense / copies + routed / same_experts if x.zero else dense + routed
    update = mine * state * (1 + e.optimizer_passes) / memory

    found = {
        "compute": m * layers * (forward + backward), "recompute": m * layers * again, "head": m * head,
        "tensor": m * layers * reduced, "context": m * layers * passed, "expert": m * layers * exchanged,
        "pipeline": m * sent, "bubble": bubble, "data": data, "optimizer": update, "fixed": e.step,
    }  # fmt: skip
    return found | {"total": sum(found.values())}


def memory(d: Any, x: Any) -> float:
    """Bytes on the rank that needs the most, of all stages."""
    return max(memory_of(d, x, stage) for stage in range(x.pp))


def chunks(x: Any, stage: int, layers: float) -> list[tuple[float, float]]:
    """Where the chunks of a stage begin and end among the layers."""
    if x.schedule in FOLDED:
        half = layers / x.pp / 2
        return [(i * half, (i + 1) * half) for i in (stage, 2 * x.pp - 1 - stage)]
    size = layers / x.pp / x.interleave
    return [((j * x.pp + stage) * size, (j * x.pp + stage + 1) * size) for j in range(x.interleave)]


def in_flight(x: Any, stage: int) -> float:
    """Microbatches that a stage holds at the peak, in units of all its layers."""
    m = x.global_batch // (x.microbatch * x.dp)
    if x.interleave > 1:
        return min(m, ((x.interleave - 1) * x.pp + 2 * (x.pp - stage) - 1) / x.interleave)
    deep = x.pp if x.schedule in FOLDED else x.pp - stage
    return min(m, max(1, HELD[x.schedule] * deep))


def operators(d: Any, x: Any, *, expert: bool) -> float:
    """Bytes of the tensors that a layer keeps with selective checkpointing of operators."""
    t, tokens = x.tp, x.seq // x.cp * x.microbatch
    split_expert, busiest = x.tp if x.expert_tp is None else x.expert_tp, x.capacity_factor or x.imbalance
    # Elements by whether all ranks of tensor parallelism hold them, or each a share.
    whole, shared = 0, d.heads * d.qk_size + d.heads * d.v_size
    if d.kv_elements == d.kv_heads * (d.qk_size + d.v_size):
        shared += math.ceil(d.kv_heads / t) * t * d.v_size
    else:
        shared += d.heads * (d.qk_size + d.v_size)
    widths = [(d.width, 1, 1)]
    if expert:
        widths = [(d.expert_width, busiest, split_expert / t)] * int(d.active)
        widths += [(d.shared_width, 1, 1)] if d.shared_width else []
    for width, load, here in widths:
        shared += load * width
        whole += load * here * d.hidden if d.matrices == 3 else 0
    stream = d.hidden * (3 if t > 1 else 1)
    if x.sequence_parallel:
        shared += stream
    else:
        whole += d.hidden
    return 2 * tokens * (whole + shared / t)


def memory_of(d: Any, x: Any, stage: int) -> float:  # noqa: C901  # everything that a stage holds, one after the other
    """Bytes on a rank of a stage."""
    weight, gradient, state = BYTES[x.optimizer]
    t, tokens = x.tp, x.seq / x.cp * x.microbatch
    split_expert, busiest = x.tp if x.expert_tp is None else x.expert_tp, x.capacity_factor or x.imbalance
    along = t if x.sequence_parallel else 1
    heads_here = -(-d.kv_heads // t) / d.kv_heads
    held = in_flight(x, stage)
    first, last = stage == 0, stage == (0 if x.schedule in FOLDED else x.pp - 1)

    def split(small: float, ranks: float = t) -> float:
        return min(small, d.hidden) + (small - min(small, d.hidden)) / ranks

    def kept(expert: bool, recompute: str) -> float:
        scores = 0 if x.flash or recompute != "none" else tokens * x.seq * d.heads * 2 / t
        if recompute == "full":
            return tokens * d.hidden * 2 / along
        if recompute == "operators":
            return operators(d, x, expert=expert)
        heads = tokens * 2 * d.heads * (d.qk_size + d.v_size) / t
        latent = d.kv_elements != d.kv_heads * (d.qk_size + d.v_size)
        size = tokens * d.hidden * 8 / along + heads * (2 if latent else 1) + tokens * 2 * d.kv_elements * heads_here
        if not expert:
            return size + scores + 2 * d.matrices * d.width * tokens / t
        size += 2 * d.matrices * (busiest * d.expert_width * d.active + d.shared_width) * tokens / t
        if d.experts > 1:
            size += 4 * d.hidden * tokens * d.active * busiest * split_expert / t
        return size + scores + (4 * d.experts * tokens / along if d.router_weights else 0)

    dense = experts = activations = 0.0
    for i, (expert, _) in enumerate(layer_kinds(d)):
        # A layer may lie in two stages where layers are not dealt evenly.
        part = sum(max(0.0, min(end, i + 1) - max(begin, i)) for begin, end in chunks(x, stage, d.layers))
        keys = d.hidden * d.kv_elements
        dense += part * ((d.attention_weights - keys) / t + keys * heads_here + d.attention_small)
        if expert:
            dense += part * (d.shared_weights / t + split(d.shared_small) + d.router_weights + d.router_small)
            small = split(d.expert_small, split_expert)
            experts += part * d.experts / x.ep * (d.expert_weights / split_expert + small)
        else:
            dense += part * (d.mlp_weights / t + split(d.mlp_small))
        activations += part * held * kept(expert, x.recompute)
    if first:
        dense += d.embedding / t + d.positions
    if last:
        dense += (0 if d.tied and first else d.head / t) + d.outer_small + d.outer_weights / t
    copies = x.dp * x.cp
    same_experts = copies * t / x.ep / split_expert
    total = activations
    for size, spread in ((weight, x.zero >= 3), (gradient, x.zero >= 2), (state, x.zero >= 1)):
        total += size * (dense / copies + experts / same_experts if spread else dense + experts)
    if first:
        total += held * tokens * 8 / along
    if last:
        total += 4 * tokens * d.hidden / along + (4 if x.fused_loss else 14) * tokens * d.vocabulary / t
    kinds = {expert for expert, _ in layer_kinds(d)}
    if x.recompute in {"full", "operators"}:
        total += max(kept(expert, "none") for expert in (False, True))
    elif x.recompute == "selective":
        total += 0 if x.flash else tokens * x.seq * d.heads * 2 / t
    if x.pp > 1:
        total += 2 * tokens * d.hidden * 2 / along
    if x.zero == 3 and copies * same_experts > 1:
        mlp = d.mlp_weights / t if False in kinds else 0
        inner = 0.0
        if True in kinds:
            inner = d.experts / x.ep * d.expert_weights / split_expert + d.shared_weights / t + d.router_weights
        total += 2 * weight * (d.attention_weights / t + max(mlp, inner))
    return total
