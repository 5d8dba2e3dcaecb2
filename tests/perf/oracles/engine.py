"""The time and the memory of a training step once more, in plain Python, as the documentation of the formulas has them.

Loops over layers, levels, stages and chunks; no arrays, and none of the engine's formulas.
"""

import math
from itertools import pairwise
from typing import Any

from tests.perf.oracles.pipelines import FOLDED, ZERO_BUBBLE, chunks, executed, idle, in_flight, stages, uneven, windows

BYTES = {
    "adam": (2, 2, 12), "adam-fp32-grads": (2, 4, 12), "adam-fp32": (4, 4, 8), "adam-fsdp": (4, 4, 8), "adam-bf16": (2, 2, 4),
    "adam-8bit": (2, 2, 6), "sgd-momentum": (2, 2, 8),
}  # fmt: skip
GATHERED = {"adam-fsdp": 2}
WITHOUT_MASTER = {"adam-fp32", "adam-fsdp", "adam-bf16"}


class Links:
    """The levels of links: the ranks of a unit, the time of a byte, of a message, and of each further step of a ring."""

    def __init__(self, levels: Any, efficiency: Any) -> None:
        self.levels, self.grids = [], []
        self.adds = [bool(getattr(level, "reduces", False)) and level.name != "chip" for level in levels]
        chip = unit = next((level.ranks for level in levels if level.name == "chip"), 1.0)
        for level in levels:
            wired = level.name in {"server", "ultraserver"}
            self.grids.append(dimensions(level, unit, unit / chip) if wired else [])
            unit = level.ranks
            last = level.name == "network"
            step = efficiency.network_hop if last else efficiency.hop
            byte = 1 / (level.rate * getattr(efficiency, level.name))
            self.levels.append((level.ranks, byte, level.latency or step, step))

    def within(self, n: float, stride: float) -> list[float]:
        """How many of a group's ranks lie in one unit of each level."""
        return [min(n, max(1, ranks / stride)) for ranks, *_ in self.levels]

    def used(self, n: float, stride: float) -> set[int]:
        """The levels between whose units a group is spread."""
        within = [1.0, *self.within(n, stride)]
        return {i for i, (before, here) in enumerate(pairwise(within)) if here > before}

    def rows(self, grid: list[tuple[float, ...]], n: float, stride: float) -> list[tuple[float, float]]:
        """For each dimension in which a group has several chips: how many in a row, and its share of a chip's rate."""
        found = []
        for inside, size, ring, line in grid:
            begin, end = (min(size, max(1.0, ranks / inside)) for ranks in (stride, n * stride))
            if end > begin:
                found.append((end / begin, (ring if 2 * end > size else line) / begin))
        return found

    def gather(self, n: float, stride: float) -> tuple[float, float]:
        """Latency, and time of a byte, of an all-gather level after level: pieces overlap, so the slowest level counts."""
        before, steps, byte = 1.0, 0.0, 0.0
        for here, (_, each, hop, step), grid in zip(self.within(n, stride), self.levels, self.grids, strict=True):
            others = here / before - 1
            steps += min(others, 1) * hop + max(others - 1, 0) * step
            share = sum(share for _, share in self.rows(grid, n, stride)) or 1
            byte = max(byte, (1 / before - 1 / here) * each / share)
            before = here
        return steps, byte

    def all_reduced(self, n: float, stride: float) -> float:
        """Time of a byte of an all-reduce in one: switches that add up need a part once, and give its sum to all."""
        before, slowest = 1.0, 0.0
        for here, (_, each, *_), grid, adds in zip(
            self.within(n, stride), self.levels, self.grids, self.adds, strict=True
        ):
            share = sum(share for _, share in self.rows(grid, n, stride)) or 1
            ring = 2 * (1 / before - 1 / here)
            slowest = max(slowest, (min(ring, 1 / before + 1 / here) if adds else ring) * each / share)
            before = here
        return slowest

    def among(self, n: float, stride: float, nodes: int) -> float:
        """Share of the ranks that the experts of a token are on, where they are on some of the nodes only."""
        node = self.within(n, stride)[-2 if self.levels[-1][0] == math.inf else -1]
        return min(1.0, nodes * node / n) or 1.0

    def exchange(self, n: float, stride: float, k: float, dispatch: str, nodes: int = 0) -> tuple[float, float]:
        """Latency, and time of a byte, of an all-to-all in which every token goes to k experts.

        One copy for each expert: what leaves a unit goes over the next level, and the levels take turns.  One copy for each
        unit that is met: over each level to all units met but the one where it is.  The levels work at the same time.
        """
        before, direct, slowest, far = 1.0, 0.0, 0.0, 0.0
        within = self.within(n, stride)
        # Of a torus through several servers all dimensions carry what goes to any of them.
        torus = max([here for here, grid in zip(within, self.grids, strict=True) if grid], default=1.0)
        for here, (_, each, hop, _), grid in zip(within, self.levels, self.grids, strict=True):
            if here > before + 1e-9:
                units, far = n / before, hop
                rows = self.rows(grid, n, stride)
                near = sum(share for _, share in rows) or 1
                direct = max(direct, k * (here - before) / n * each / near)
                # Routing to some nodes is routing among their units alone.
                slowest = max(slowest, met(units * self.among(n, stride, nodes), k) * (1 - before / here) * each / near)
                # Half of what one half of a row sends crosses its middle.
                for row, share in rows:
                    direct = max(direct, k * torus / n * (row // 2) * (row - row // 2) / row / share * each)
            before = here
        return far, direct if dispatch == "per-copy" else slowest

    def next_stage(self, stages: float, stride: float) -> tuple[float, float]:
        """Latency, and time of a byte, to the next stage over the first level a unit of which holds all of them."""
        for (ranks, each, hop, _), grid in zip(self.levels, self.grids, strict=True):
            if stages * stride <= ranks or ranks == self.levels[-1][0]:
                # In a grid over the links in the direction of the next stage, together with the chips between.
                shares = [line * inside / stride for inside, size, _, line in grid if inside <= stride < inside * size]
                return hop, each / (shares[0] if shares else 1)
        raise AssertionError


def dimensions(level: Any, units: float, chips: float) -> list[tuple[float, ...]]:
    """Of a torus or mesh from the innermost dimension on: ranks inside one step, chips, and the share of links along it.

    The dimensions inside units of ``chips`` chips belong to another level.
    """
    axes = [a for a in reversed(getattr(level.shape, "axes", ())) if a.links]
    while axes and chips > 1:
        chips /= axes.pop(0).size
    degree = sum((2 if a.size > 2 else a.links) * (a.rate or 1) for a in axes)
    found = []
    for a in axes:
        pair, rate = a.size == 2, (a.rate or 1) / degree
        found.append((units, a.size, (a.links if pair else 1 + a.wrap) * rate, (a.links if pair else 1) * rate))
        units *= a.size
    return found


def met(units: float, k: float) -> float:
    """Units in which some of k experts are, each of which is in any unit with the same chance."""
    return units * (1 - (1 - 1 / units) ** k)


def tokens_met(seq: float, window: float, causal: bool) -> float:
    """Tokens that a query meets on average: all or half of the sequence, or of the window when that is shorter."""
    reach = min(window, seq) if window else seq
    return reach * (1 - reach / (2 * seq)) if causal else reach


class Layer:
    """One layer: whether it has experts, which the last ones have, its heads, and how far its queries look back.

    ``looks`` has for each of its kinds of keys how many tokens back they are, 0 for all, and how many tokens share one;
    a layer without attention has none.
    """

    def __init__(self, d: Any, i: int) -> None:
        self.experts = i >= d.layers - d.expert_layers
        windowed, sparse, pooled = d.windowed_layers, d.sparse_layers, d.pooled_layers
        self.windowed = i < windowed
        several = max(d.sparse_stride, 1)
        if self.windowed:
            self.looks = [(d.window, 1)]
        elif i < windowed + sparse:
            self.looks = [(d.sparse_keys * several, several)]
        elif i < windowed + sparse + pooled:
            self.looks = [(0, d.pooled_stride)]
        else:
            self.looks = [(0, 1)] if i < d.layers - d.unattended_layers else []
        if windowed <= i < windowed + d.beside_layers:
            self.looks.append((d.window, 1))
        own = {
            name: getattr(d, name) for name in ("heads", "kv_heads", "qk_size", "v_size", "kv_elements", "kv_projected")
        }
        if self.windowed:
            own |= {"kv_projected": 0} if d.local_kv_elements else {}
            own |= {name: getattr(d, f"local_{name}") for name in own if getattr(d, f"local_{name}")}
        self.heads, self.kv_heads, self.kv_elements = own["heads"], own["kv_heads"], own["kv_elements"]
        self.qk_size, self.v_size = own["qk_size"], own["v_size"]
        self.projected = own["kv_projected"] or self.kv_elements

    @property
    def attended(self) -> bool:
        """Whether it has attention."""
        return bool(self.looks)

    @property
    def width(self) -> float:
        """Elements of queries and outputs of all heads."""
        return self.heads * (self.qk_size + self.v_size)


def layer_kinds(d: Any) -> list[Layer]:
    """The layers of a model: windowed ones first, then those with an indexer, those with pooled keys, and the others."""
    return [Layer(d, i) for i in range(int(d.layers))]


def latent(d: Any) -> bool:
    """Whether the keys and values of all heads are made from one vector, which is neither of them."""
    return d.kv_elements not in (d.kv_heads * (d.qk_size + d.v_size), d.kv_heads * d.qk_size)


def averaged(d: Any, of: Any) -> float:
    """The mean over all layers of a number of those with attention."""
    return sum(of(layer) for layer in layer_kinds(d) if layer.attended) / d.layers


def step(d: Any, system: Any, e: Any, dtype: str, x: Any) -> dict[str, float]:  # noqa: C901  # the whole step, part by part
    """The parts of a training step and their total; ``x`` has the attributes of a layout."""
    links = Links(system.levels, e)
    weight, gradient, state = BYTES[x.optimizer]
    wide_type = dtype if dtype in {"fp64", "fp32", "tf32", "bf16", "fp16"} else "bf16"
    # A share of their own where a calibration has one: of 4 bit, else of 8 bit, else of 16 bit.
    own = {"4": (e.matmul_fp4, e.matmul_fp8), "8": (e.matmul_fp8,)}.get(dtype[-1], ())
    share = next((each for each in own if each is not None), e.matmul)
    rate, score_rate = system.rates[dtype] * share, system.rates[wide_type] * e.attention
    head_rate = system.rates[wide_type] * e.matmul
    memory = system.bandwidth * e.memory
    full, selective, operators = (x.recompute == word for word in ("full", "selective", "operators"))
    tokens = x.microbatch * x.seq / x.cp
    causal = bool(d.causal) and (x.flash or bool(e.causal))
    m = x.global_batch // (x.microbatch * x.dp)

    # One layer, on average, forward.
    split_expert = x.tp if x.expert_tp is None else x.expert_tp
    busiest = x.capacity_factor or x.imbalance
    matmul = scores = routed_elements = kept_elements = read = 0.0
    summed = with_experts = 0.0
    for layer in layer_kinds(d):
        expert, attended = layer.experts, layer.attended
        own = d.attention_weights + (d.shared_weights + d.router_weights if expert else d.mlp_weights)
        elements = own + (busiest * d.active * d.expert_weights if expert else 0)
        # Each rank holds whole heads of keys and values, repeated where they are fewer than the ranks.
        elements += (
            attended * d.hidden * layer.projected * (math.ceil(layer.kv_heads / x.tp) * x.tp / layer.kv_heads - 1)
        )
        here = own / x.tp + (d.active * d.expert_weights / x.ep / split_expert if expert else 0)
        read += here * GATHERED.get(x.optimizer, weight) / memory / d.layers
        routed = d.experts * d.expert_weights if expert else 0
        small = d.attention_small + (
            d.experts * d.expert_small + d.shared_small + d.router_small if expert else d.mlp_small
        )
        width = (busiest * d.active * d.expert_width + d.shared_width) if expert else d.width
        dense, shared = bool(d.mlp_weights), bool(d.shared_width)
        # Only ranks that split an expert read whole copies.
        inner = (d.expert_hidden or d.hidden) / d.hidden
        copies = inner * busiest * d.active * split_expert / x.tp + shared if expert else dense
        split = attended * (layer.width + layer.projected) + d.matrices * width
        split += d.recurrent_width / d.layers
        # Layers of a single operation lack one of their results.
        results = 1 + copies - d.absent_results / d.layers
        operands = tokens * 2 * results * d.hidden + tokens * split / x.tp + own / x.tp
        operands += routed / x.ep / split_expert
        matmul += 2 * elements * tokens / x.tp / rate + operands * 2 * e.matmul_passes / memory
        streams = tokens / x.tp if x.sequence_parallel else tokens
        matmul += streams * d.hidden * 2 * e.hidden_passes / memory
        pairs = sum(tokens_met(x.seq, limit, causal) / several for limit, several in layer.looks) * layer.width
        # Indexers score all keys; both they and the recurrences take the rate of attention.
        scored = tokens_met(x.seq, 0, causal) / max(d.sparse_stride, 1)
        pairs += scored * d.index_layers / d.layers * d.index_width + d.recurrence / d.layers
        scores += 2 * pairs * tokens / x.tp / score_rate
        rows = sum(layer.heads / several for _, several in layer.looks)
        scores += 0 if x.flash else tokens * x.seq * rows / x.tp * 2 * e.score_passes / memory
        routed_elements += routed
        kept_elements += own + small
        with_experts += expert / d.layers
        # On one rank with all experts their sum is taken with that of the shared ones.
        together = x.ep == 1 and x.dispatch == "per-node"
        summed += (1 + ((shared and not together) if expert else dense)) / d.layers - d.absent_results / d.layers**2
    matmul, scores = matmul / d.layers, scores / d.layers
    # Backward: one multiplication for the gradients of each operand; flash attention also computes its scores again.
    forward = max(matmul + scores, e.forward, read)
    products = 2 * matmul + scores * (5 / 2 if x.flash else 2)
    backward = max(products, e.backward, read)
    weight_pass = matmul + (backward - products) / 2
    again = forward if full else forward / 2 if operators else scores if selective else 0.0

    # Its collectives.
    message = tokens * d.hidden * 2
    rounds = 6 if full else 5 if operators else 4
    steps, byte = links.gather(x.tp, 1)
    # With sequence parallelism it is a reduce-scatter and an all-gather.
    together = 2 * byte if x.sequence_parallel else links.all_reduced(x.tp, 1)
    all_reduce = (e.call if x.tp > 1 else 0) + 2 * steps + together * message
    copies = (
        d.active if x.dispatch == "per-copy" else met(x.ep * links.among(x.ep, split_expert, x.node_limit), d.active)
    )
    reduced_forward, moved = summed * all_reduce, summed * together * message
    if with_experts:
        steps, byte = links.gather(split_expert, 1)
        received = message * busiest * copies * split_expert / x.tp
        moved += with_experts * 2 * byte * received
        reduced_forward += with_experts * ((e.call if split_expert > 1 else 0) + 2 * (steps + byte * received))
    reduced_backward = (rounds / 2 - 1) * reduced_forward
    in_parts = x.schedule in {*ZERO_BUBBLE, *FOLDED}
    if x.overlap:
        reduced_forward = max(0.0, reduced_forward - e.tensor_overlap * forward)
        beside = again + (backward - weight_pass if in_parts else backward)
        reduced_backward = max(0.0, reduced_backward - e.tensor_overlap * beside)
    reduced = reduced_forward + reduced_backward
    steps, byte = links.gather(x.cp, x.tp)
    here = [layer.kv_elements / min(x.tp, layer.kv_heads) for layer in layer_kinds(d) if layer.attended]
    cache = x.cp * tokens * 2 * sum(here) / d.layers
    ring = (e.call if x.cp > 1 else 0) + steps + byte * cache
    passed_backward = (2 + (1 if full or selective else 0.5 if operators else 0)) * ring
    passed = ring + passed_backward
    exchanged = 0.0
    if x.ep > 1 and with_experts:
        steps, byte = links.exchange(x.ep, split_expert, d.active, x.dispatch, x.node_limit)
        # To the experts in 8 bit with a scale for 128, and back in 16.
        carried = message * inner * ((1 + 4 / 128 + 2) / 4 if x.dispatch_dtype == "fp8" else 1)
        exchanged = rounds * with_experts * (e.call + e.dispatch + steps + byte * carried * busiest / x.tp / e.exchange)
    if x.expert_overlap:
        # Weights that wait for later are not among the rest of the layer.
        later = weight_pass if in_parts else 0
        # Nor is what tensor parallelism sends over the farthest links of the exchange.
        farthest = max(links.used(x.ep, split_expert), default=None)
        later += rounds / 2 * moved if farthest in links.used(x.tp, 1) else 0
        beside = max(0.0, forward + backward - later + again + reduced + passed)
        exchanged = max(0.0, exchanged - e.expert_overlap * beside)
    # Two of the exchanges are forward; where both passes are executed together, all that is exposed may be in either.
    together = e.expert_overlap if x.expert_overlap else 0
    exchanged_forward = (together + (1 - together) * 2 / rounds) * exchanged

    # The pipeline.
    each_stage = stages(x, int(d.layers), d.mtp_layers)
    layers = max(each_stage)
    with_output = each_stage[0 if x.schedule in FOLDED else -1]
    sent = 0.0
    if x.pp > 1:
        hop, byte = links.next_stage(x.pp, x.tp * x.cp * x.dp)
        passes = x.interleave if x.interleave > 1 else 2 if x.schedule in FOLDED else 1
        sent = e.send + hop + byte * message / x.tp
        if not x.sequence_parallel and x.tp > 1:
            steps, byte = links.gather(x.tp, 1)
            sent += e.call / 2 + steps + byte * message
        sent = 2 * passes * sent * (1 - e.pipeline_overlap if x.interleave > 1 else 1)
    per_layer = (
        forward + reduced_forward + ring + exchanged_forward,
        backward - weight_pass + again + reduced_backward + passed_backward + exchanged - exchanged_forward,
        weight_pass,
    )
    # Embedding and output exchange their ends of the stream on the stage with the output; so does multi-token prediction.
    at_ends = (2 if x.pp == 1 or x.schedule in FOLDED else 1) * all_reduce * (1 + d.mtp_layers)
    head = tokens / x.tp * d.vocabulary * (6 * d.hidden / head_rate + 4 * e.head_passes / memory) * (1 + d.mtp_layers)
    head += tokens / x.tp * d.mtp_layers * 6 * d.mtp_weights / rate
    # By this much the stage with the output takes longer than the one with the most layers.  What it does besides its own
    # layers is otherwise part of the way through all stages.
    layer = sum(per_layer)
    ahead = (with_output + d.mtp_layers - layers) * layer + head + at_ends
    longer = max(0, ahead)

    def waiting(moved: float) -> float:
        """Idle time of the slowest stage, where some of the exposed exchange of each layer is in the backward pass."""
        one = per_layer[0] - moved, per_layer[1] + moved, per_layer[2]
        if not uneven(x, int(d.layers), d.mtp_layers) and x.schedule not in FOLDED:
            return idle(x, m, *(layers * time + sent / 2 * (i < 2) for i, time in enumerate(one)))
        passed_by = executed(
            x, m, int(d.layers), d.mtp_layers, one, sent, (head / 3 + at_ends / 2, head * 2 / 3 + at_ends / 2)
        )
        return max(0, passed_by - m * (layers * layer + sent + longer))

    bubble = waiting(0.0)
    if x.expert_overlap and exchanged and x.pp > 1 and (x.schedule in FOLDED or uneven(x, int(d.layers), d.mtp_layers)):
        # What is exposed of the overlapped exchanges is in that pass in which it costs less.
        bubble = lowest(waiting, together * exchanged)
    head, at_ends = longer - min(at_ends, longer), min(at_ends, longer)

    # Gradients, sharded weights, the optimizer.
    ends = d.outer_small + d.outer_weights
    ends += d.head if x.pp > 1 else d.embedding + d.positions + (0 if d.tied else d.head)
    copies = x.dp * x.cp
    ends += d.mtp_layers * d.mtp_weights
    kept, fewest, most = kept_elements / d.layers, d.layers // x.pp + d.mtp_layers, -(-d.layers // x.pp)
    # Of the stage with the most layers, and of the one with the output: elements that all ranks hold, and of experts.
    routed = routed_elements / d.layers / split_expert / x.ep
    held = [(most * kept / x.tp, most * routed), ((fewest * kept + ends) / x.tp, fewest * routed)]
    steps, byte = links.gather(copies, x.tp)
    same_experts = copies * x.tp / x.ep / split_expert
    part = links.gather(same_experts, split_expert * x.ep)[1] if routed else 0.0
    if not x.zero:
        # Half of an all-reduce, for each of the two exchanges that it is counted as.
        byte = links.all_reduced(copies, x.tp) / 2
        part = links.all_reduced(same_experts, split_expert * x.ep) / 2 if routed else 0.0

    # Each model chunk is exchanged alone, unless every microbatch has exchanges.
    share = e.exposed if x.zero >= 2 else e.exposed / x.interleave

    def exposed(sizes: list[float], calls: float, behind: float, times: int = 1) -> float:
        time = sum(sizes) * max(byte * dense + part * experts for dense, experts in held)
        time = times * (time + calls * ((e.call / 2 if copies > 1 else 0) + steps))
        return max(time * share, time - e.overlap * behind)

    late, early = (1.0, 1.0) if x.zero >= 2 else windows(x, m)
    gathered = GATHERED.get(x.optimizer, weight)

    def exchanged_by(count: float, waited: float) -> float:
        """What a stage with some layers, and some idle time, does not exchange while it computes."""
        on_forward, on_inputs, on_weights = (count * part for part in per_layer)
        either = count * together * exchanged
        on_backward = on_weights if in_parts else on_inputs + on_weights + either
        # Exchanges of the other microbatches also overlap with the bubble of a split backward pass.
        meanwhile = (m - 1) * (on_forward + on_inputs + on_weights) + (waited if in_parts else 0)
        if x.zero == 3:
            time = exposed([gathered, gradient], 2 * most, late * on_backward)
            time += exposed([gathered], most, early * on_forward)
            return time + exposed([gathered, gathered, gradient], 3 * most, meanwhile, m - 1)
        if x.zero:
            time = exposed([gradient], 1, late * on_backward) + exposed([gathered], 1, early * on_forward)
            return time + (exposed([gradient], 1, meanwhile, m - 1) if x.zero == 2 else 0)
        return exposed([gradient, gradient], 2, late * on_backward)

    # The step ends when both the longest stage and that with the output have computed and exchanged.
    shorter = m * max(0, -ahead)
    if in_parts:
        # A bubble may be between any passes, also that of a stage which is shorter.
        of_longest = exchanged_by(layers, bubble + m * longer)
        data = max(of_longest, exchanged_by(with_output + d.mtp_layers, bubble + shorter))
    else:
        of_output = exchanged_by(with_output + d.mtp_layers, bubble)
        data = max(exchanged_by(layers, bubble) - m * longer, of_output - shorter)
    mine = max(dense / copies + experts / same_experts if x.zero else dense + experts for dense, experts in held)
    # Gradients are read, states and weights read and written, but weights are not read where there is a master copy.
    moved = gradient + 2 * state + (2 if x.optimizer in WITHOUT_MASTER else 1) * weight
    update = mine * moved * (1 + e.optimizer_passes) / memory

    found = {
        "compute": m * layers * (forward + backward), "recompute": m * layers * again, "head": m * head,
        "tensor": m * (layers * reduced + at_ends), "context": m * layers * passed, "expert": m * layers * exchanged,
        "pipeline": m * sent, "bubble": bubble, "data": data, "optimizer": update, "fixed": e.step,
    }  # fmt: skip
    return found | {"total": sum(found.values())}


def lowest(of: Any, most: float) -> float:
    """The least value of a convex function from 0 to ``most``, by golden sections."""
    low, high, part = 0.0, most, (math.sqrt(5) - 1) / 2
    one, two = high - part * (high - low), low + part * (high - low)
    at_one, at_two = of(one), of(two)
    least = min(of(low), of(high), at_one, at_two)
    for _ in range(60):
        if at_one <= at_two:
            high, two, at_two = two, one, at_one
            one = high - part * (high - low)
            at_one = of(one)
        else:
            low, one, at_one = one, two, at_two
            two = low + part * (high - low)
            at_two = of(two)
        least = min(least, at_one, at_two)
    return least


def memory(d: Any, x: Any, runtime: Any) -> float:
    """Bytes on the rank that needs the most, of all stages, with the reserve of the software."""
    return max(memory_of(d, x, stage, runtime) for stage in range(x.pp)) + runtime.reserve


def operators(d: Any, x: Any, *, expert: bool) -> float:
    """Bytes of the tensors that a layer keeps with selective checkpointing of operators."""
    t, tokens = x.tp, x.seq // x.cp * x.microbatch
    split_expert, busiest = x.tp if x.expert_tp is None else x.expert_tp, x.capacity_factor or x.imbalance
    # Elements by whether all ranks of tensor parallelism hold them, or each a share.
    whole, shared = 0, d.recurrent_width / d.layers
    for layer in layer_kinds(d):
        if layer.attended:
            values = layer.width if latent(d) else math.ceil(layer.kv_heads / t) * t * layer.v_size
            shared += (layer.width + values) / d.layers
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


def memory_of(d: Any, x: Any, stage: int, runtime: Any) -> float:  # noqa: C901  # everything that a stage holds, one after the other
    """Bytes on a rank of a stage."""
    weight, gradient, state = BYTES[x.optimizer]
    t, tokens = x.tp, x.seq / x.cp * x.microbatch
    split_expert, busiest = x.tp if x.expert_tp is None else x.expert_tp, x.capacity_factor or x.imbalance
    along = t if x.sequence_parallel else 1
    held = in_flight(x, stage)
    first, last = stage == 0, stage == (0 if x.schedule in FOLDED else x.pp - 1)

    def split(small: float, ranks: float = t) -> float:
        return min(small, d.hidden) + (small - min(small, d.hidden)) / ranks

    def kept(expert: bool, recompute: str) -> float:
        rows = averaged(d, lambda layer: layer.heads)
        scores = 0 if x.flash or recompute != "none" else tokens * x.seq * rows * 2 / t
        if recompute == "full":
            return tokens * d.hidden * 2 / along
        if recompute == "operators":
            return operators(d, x, expert=expert)
        heads = tokens * 2 * averaged(d, lambda layer: layer.width) / t
        # The gathered inputs of attention and network instead of their parts.
        whole = 4 * tokens * d.hidden * (1 - 1 / along) if runtime.gathered_inputs else 0
        size = (
            whole
            + tokens * d.hidden * 8 / along
            + heads * (2 if latent(d) else 1)
            + tokens * 2 * averaged(d, lambda layer: layer.kv_elements * (-(-layer.kv_heads // t) / layer.kv_heads))
            + tokens * 2 * d.recurrent_width / d.layers / t
        )
        if not expert:
            return size + scores + 2 * d.matrices * d.width * tokens / t
        size += 2 * d.matrices * (busiest * d.expert_width * d.active + d.shared_width) * tokens / t
        if d.experts > 1:
            size += 4 * d.hidden * tokens * d.active * busiest * split_expert / t
        return size + scores + (4 * d.experts * tokens / along if d.router_weights else 0)

    dense = experts = activations = 0.0
    kinds_here = [
        expert
        for i, expert in enumerate(layer.experts for layer in layer_kinds(d))
        if any(i in c for c in chunks(x, stage, int(d.layers), d.mtp_layers))
    ]
    kinds_here += [bool(d.expert_layers)] * int(d.mtp_layers) if last else []
    for expert in kinds_here:
        part = 1
        keys = d.hidden * averaged(d, lambda layer: layer.projected)
        here = d.hidden * averaged(d, lambda layer: layer.projected * (-(-layer.kv_heads // t) / layer.kv_heads))
        dense += part * ((d.attention_weights - keys) / t + here + d.attention_small)
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
        dense += d.mtp_layers * (d.mtp_weights / t + d.mtp_small)
    copies = x.dp * x.cp
    same_experts = copies * t / x.ep / split_expert
    total = activations
    for size, spread in ((weight, x.zero >= 3), (gradient, x.zero >= 2), (state, x.zero >= 1)):
        total += size * (dense / copies + experts / same_experts if spread else dense + experts)
    if first:
        total += held * tokens * 8 / along
    if last:
        outputs = 4 * tokens * d.hidden / along + (4 if x.fused_loss else 14) * tokens * d.vocabulary / t
        total += outputs + d.mtp_layers * (outputs + 4 * tokens * d.hidden / along)
    # Gradients in 16 bit before they are accumulated: of the embedding or the output, and of the widest matrix of a layer.
    widths = [0.0]
    if not latent(d):
        widths += [layer.heads * layer.qk_size + layer.projected for layer in layer_kinds(d) if layer.attended]
    # The stage with embedding and output of a V-shaped schedule may have no layer; it is not distinguished.
    widths += [(d.matrices - 1) * d.width] if False in kinds_here or not d.expert_layers else []
    widths += [(d.matrices - 1) * max(d.expert_width * t / split_expert, d.shared_width)] if d.experts else []
    # The logits of a loss that is not fused are larger and come before.
    vocabulary = d.embedding if (x.fused_loss if last else first) else 0
    total += 2 * (vocabulary + d.hidden * max(widths)) / t
    if copies > 1 and runtime.bucket:
        gradients = (dense / copies + experts / same_experts if x.zero >= 2 else dense + experts) * gradient
        total += min(runtime.bucket, gradients)
    kinds = {layer.experts for layer in layer_kinds(d)}
    if x.recompute in {"full", "operators"}:
        total += max(kept(expert, "none") for expert in (False, True))
    elif x.recompute == "selective":
        total += 0 if x.flash else tokens * x.seq * averaged(d, lambda layer: layer.heads) * 2 / t
    if x.pp > 1:
        total += 2 * tokens * d.hidden * 2 / along
    if x.zero == 3 and copies * same_experts > 1:
        mlp = d.mlp_weights / t if False in kinds else 0
        inner = 0.0
        if True in kinds:
            inner = d.experts / x.ep * d.expert_weights / split_expert + d.shared_weights / t + d.router_weights
        total += 2 * GATHERED.get(x.optimizer, weight) * (d.attention_weights / t + max(mlp, inner))
    return total
