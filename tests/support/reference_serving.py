"""The time of prefill, of a decode step and of a request once more, in plain Python, as the documentation states them.

Loops over layers, links, passes and tokens; no arrays, and none of the engine's formulas.
"""

from __future__ import annotations

import math
from typing import Any

from attrs import frozen
from reference_engine import Links, layer_kinds, met


@frozen(kw_only=True)
class Request:
    """A deployment and a workload, as a user states them; buckets and tile as lists and numbers."""

    tp: int = 1
    pp: int = 1
    dp: int = 1
    ep: int = 1
    batch: int = 1
    prompt: int = 1024
    output: int = 128
    chunks: int = 1
    prompts: int = 1
    rounds: int = 1
    cached: int = 0
    single_core: bool = False
    attention: str = "calibration"
    all_experts_from: int = 0
    contexts: tuple[int, ...] = ()
    batches: tuple[int, ...] = ()
    tile: int = 0
    weight_bytes: float = 2.0
    cache_bytes: float = 2.0
    drafted: int = 0
    dispatch: str = "per-node"
    dispatch_dtype: str = "bf16"
    node_limit: int = 0
    expert_overlap: bool = False


def next_bucket(size: float, buckets: tuple[int, ...]) -> float:
    """The smallest bucket that holds a size, or the size itself."""
    return min((b for b in buckets if b >= size), default=size)


def keys_in(context: float, *, window: float) -> float:
    """Keys of a layer at a context."""
    return min(window, context) if window else context


def mean_over_layers(d: Any, of_window: Any) -> float:
    """The mean over the layers with attention of a number that depends on the window of a layer."""
    windows = [window for _, window in layer_kinds(d) if window is not None]
    return sum(map(of_window, windows)) / len(windows)


def attended(d: Any) -> float:
    """The share of the layers with attention."""
    return sum(window is not None for _, window in layer_kinds(d)) / d.layers


def shares(d: Any, x: Request, tokens: float) -> tuple[float, float, float]:
    """Of an average layer: elements multiplied by a token, elements read by a rank, and whether it has experts.

    The first with the columns that tiles and repeated heads add, over all ranks.
    """

    def whole_tiles(width: float) -> float:
        per_rank = width / x.tp
        return (math.ceil(per_rank / x.tile) * x.tile if x.tile else per_rank) * x.tp

    served = math.ceil(tokens) * x.ep
    every = 0 < x.all_experts_from <= served
    heads = math.ceil(d.heads / x.tp)
    kv_heads = math.ceil(d.kv_heads / x.tp)
    repeated = d.hidden * (heads * x.tp - d.heads) * (d.qk_size + d.v_size)
    repeated += d.hidden * d.kv_elements * (kv_heads * x.tp / d.kv_heads - 1)
    in_tiles = 0.0
    for size in (d.qk_size, d.v_size):
        columns = heads * size
        in_tiles += d.hidden * x.tp * ((math.ceil(columns / x.tile) * x.tile if x.tile else columns) - columns)
    multiplied = read = with_experts = 0.0
    for expert, window in layer_kinds(d):
        multiplied += d.attention_weights + (window is not None) * (repeated + in_tiles)
        read += (d.attention_weights + (window is not None) * repeated) / x.tp
        if not expert:
            multiplied += d.mlp_weights * (whole_tiles(d.width) / d.width if d.width else 1)
            read += d.mlp_weights / x.tp
            continue
        used = d.experts if every else d.active
        multiplied += used * d.expert_weights * whole_tiles(d.expert_width) / d.expert_width + d.router_weights
        multiplied += d.shared_weights * (whole_tiles(d.shared_width) / d.shared_width if d.shared_width else 1)
        read += (d.shared_weights + d.router_weights) / x.tp
        with_experts += 1
        # Tokens of all ep replicas choose among the experts; counted over the layers with experts, on average.
    routed = sum(d.experts * d.expert_weights for expert, _ in layer_kinds(d) if expert)
    if routed:
        chosen = sum(d.active * d.expert_weights for expert, _ in layer_kinds(d) if expert) / routed
        missed = loaded = 1.0
        for _ in range(served):
            missed *= 1 - min(chosen, 1.0)
        if not every:
            loaded = min(1.0, served * chosen) if x.all_experts_from else 1 - missed
        read += routed / x.tp / x.ep * loaded
    return multiplied / d.layers, read / d.layers, with_experts / d.layers


def streamed(d: Any, tp: int) -> float:
    """Elements that the matrices of all layers read and write for a token: their inputs and results."""
    elements = d.recurrent_width / tp - 2 * d.hidden * d.absent_results
    for has_experts, window in layer_kinds(d):
        heads = d.heads * d.qk_size + d.kv_elements + d.heads * d.v_size
        elements += 2 * d.hidden + (window is not None) * heads / tp
        # A network has a column of each of its matrices for each of its width: two results and an input, or one of each.
        if not has_experts and d.mlp_weights:
            elements += 2 * d.hidden + d.matrices * d.width / tp
        if has_experts:
            elements += d.active * (2 * (d.expert_hidden or d.hidden) + d.matrices * d.expert_width / tp)
            elements += (2 * d.hidden + d.matrices * d.shared_width / tp) if d.shared_width else 0.0
    return elements


def forward(d: Any, system: Any, s: Any, x: Request, load: dict[str, float]) -> dict[str, float]:
    """The parts of one pass, in which halves of the tokens may overlap."""
    whole = exposed(d, system, s, x, load)
    # Graphs that compute all experts are compiled for the whole batch.
    if not (x.expert_overlap and whole["expert"]) or x.all_experts_from or load["tokens"] <= 1:
        return whole
    layers, halves = (
        exposed(d, system, s, x, {name: part * n for name, n in load.items()} | {"logits": 0}) for part in (1, 0.5)
    )
    of_layers = ("matrices", "attention", "tensor", "launch")
    rest = 2 * sum(halves[name] for name in of_layers)
    left = max(0.0, 2 * halves["expert"] - rest)
    if rest + left >= sum(layers[name] for name in of_layers) + layers["expert"]:
        return whole
    parts = whole | {name: whole[name] + 2 * halves[name] - layers[name] for name in of_layers} | {"expert": left}
    return parts | {"total": sum(time for name, time in parts.items() if name != "total")}


def exposed(d: Any, system: Any, s: Any, x: Request, load: dict[str, float]) -> dict[str, float]:
    """The parts of one pass, one after the other.

    ``load`` has tokens, scores and spilled bytes of all heads, logits, and elements of keys and values, of keys of indexers
    and of states that are read.
    """
    links = Links(system.levels, _NO_LOSS)
    rate = system.rates["bf16"]
    tokens = load["tokens"]

    def roof(compute: float, memory: float) -> float:
        return max(compute, memory) + s.additive * min(compute, memory)

    multiplied, read, with_experts = shares(d, x, tokens)
    matrices = roof(
        2 * tokens * multiplied / x.tp / (rate * s.matmul), read * x.weight_bytes / (system.bandwidth * s.weights)
    )
    matrices += tokens * streamed(d, x.tp) / d.layers * 2.0 * s.matmul_passes / system.bandwidth
    mine = math.ceil(d.heads / x.tp) / d.heads
    cached = (load["cached"] + load["indexed"]) * math.ceil(d.kv_heads / x.tp) / d.kv_heads * x.cache_bytes
    cached += load["states"] * 4 / x.tp
    alone = s.single_core if x.single_core else 1.0
    attention = roof(2 * load["scores"] * mine / (rate * s.attention), cached / (system.bandwidth * s.cache * alone))
    attention += load["spilled"] * mine / system.bandwidth

    message = tokens * d.hidden * 2.0
    steps, byte = links.gather(x.tp, 1)
    summed = links.all_reduced(x.tp, 1)
    # Attention, a dense network or else shared experts, and routed ones; with all experts on a rank these have one sum.
    tensor = 0.0
    for has_experts, _ in layer_kinds(d):
        sizes = [1.0]
        if has_experts:
            per_copy = x.dispatch == "per-copy"
            sizes += [d.active if per_copy else met(x.ep * links.among(x.ep, x.tp, x.node_limit), d.active)]
            sizes += [1.0] if d.shared_width and (x.ep > 1 or per_copy) else []
        else:
            sizes += [1.0] if d.mlp_weights else []
        tensor += sum(s.call + 2 * steps + summed * message * size / s.link for size in sizes) if x.tp > 1 else 0.0
    if x.tp > 1:
        tensor -= d.absent_results * (s.call + 2 * steps + summed * message / s.link)
    head = 0.0
    if load["logits"]:
        logits = load["logits"] * d.vocabulary
        head = roof(
            2 * logits / x.tp * d.hidden / (rate * s.matmul),
            d.head / x.tp * x.weight_bytes / (system.bandwidth * s.weights),
        )
        head += load["logits"] * s.sample
        tensor += s.call + steps + byte * logits * 4 / s.link if x.tp > 1 else 0.0
    expert = 0.0
    if x.ep > 1 and with_experts:
        hop, byte = links.exchange(x.ep, x.tp, d.active, x.dispatch, x.node_limit)
        message_inner = message * (d.expert_hidden or d.hidden) / d.hidden
        # A byte and a scale of 4 for 128 elements to the experts, 2 bytes back.
        message_inner *= (1 + 4 / 128 + 2) / 4 if x.dispatch_dtype == "fp8" else 1
        expert = d.layers * 2 * (s.call + hop + with_experts * byte * message_inner / x.tp / s.link)
    pipeline = 0.0
    if x.pp > 1:
        hop, byte = links.next_stage(x.pp, x.tp * x.dp)
        pipeline = (x.pp - 1) * (s.call + hop + message / x.tp * byte / s.link)
    parts = {
        "matrices": d.layers * matrices, "attention": d.layers * attention, "head": head, "tensor": tensor,
        "expert": expert, "pipeline": pipeline, "launch": d.layers * s.launch, "fixed": s.step,
    }  # fmt: skip
    return parts | {"total": sum(parts.values())}


class _NoLoss:
    chip = server = ultraserver = network = 1.0
    hop = network_hop = 0.0


_NO_LOSS = _NoLoss()


def added(first: dict[str, float], second: dict[str, float]) -> dict[str, float]:
    """Two loads in one pass."""
    return {name: first[name] + second[name] for name in first}


def beside(d: Any, keys: float) -> float:
    """Multiplications of a token in an average layer by indexers, over all keys, and by recurrences."""
    return (d.index_layers * d.index_width * keys + d.recurrence) / d.layers


def prompt_load(d: Any, s: Any, x: Request) -> dict[str, float]:
    """The mean load of the passes of prefill."""
    computed = x.prompt - x.cached
    chunk = computed / x.chunks
    causal = {"flash": 1.0, "materialized": 0.0, "calibration": s.causal}[x.attention]
    passes = {"flash": 0.0, "materialized": max(4 * 2.0, 4 * s.score_passes), "calibration": 4 * s.score_passes}[
        x.attention
    ]
    width = next_bucket(math.ceil(chunk), x.contexts) if x.contexts else chunk
    longest = next_bucket(x.prompt, x.contexts)

    def keys(window: float) -> float:
        reach = min(window, x.prompt) if window else x.prompt
        if x.contexts:
            whole = longest if x.chunks > 1 or x.cached else width * (1 - causal / 2)
            return min(whole, reach + width) if window else whole
        plain = 0.0
        for i in range(x.chunks):
            plain += (x.cached + i * chunk + chunk / 2 + chunk / 2 * (1 - causal)) / x.chunks
        if not window:
            return plain
        seen = sum(min(window, token + 0.5) for token in range(x.cached, x.prompt)) / computed
        return min(plain, seen + chunk / 2 * (1 - causal))

    def read(window: float) -> float:
        plain = sum(x.cached + (i + 1) * chunk for i in range(x.chunks)) / x.chunks
        if x.contexts:
            plain = longest if x.chunks > 1 or x.cached else width
        reach = min(window, x.prompt) if window else x.prompt
        return min(plain, reach + width) if window else plain

    tokens = x.prompts * width
    met = mean_over_layers(d, keys)
    return {
        "tokens": tokens,
        # Keys and values are expanded: each head has its own.
        "scores": tokens * (attended(d) * met * d.heads * (d.qk_size + d.v_size) + beside(d, keys(0.0))),
        "spilled": tokens * attended(d) * met * d.heads * passes,
        "cached": x.prompts * attended(d) * mean_over_layers(d, read) * d.kv_elements,
        "indexed": x.prompts * read(0.0) * d.index_layers * d.index_size / d.layers,
        "states": 2 * x.prompts * d.state / d.layers,
        "logits": x.prompts / x.chunks,
    }


def token_load(d: Any, s: Any, x: Request, met: float) -> dict[str, float]:
    """The load of a decode step at ``met`` keys in an average layer."""
    sequences = math.ceil(next_bucket(x.batch, x.batches) / x.pp)
    if not x.contexts:
        allocated = mean_over_layers(d, lambda window: keys_in(x.prompt + x.output, window=window))
        met = met + s.padding * (allocated - met)
    tokens = sequences * (x.drafted + 1)
    # The up-projections are absorbed: a head multiplies the compressed vector and the positional key.
    size = (d.kv_elements + d.rank) if d.rank else d.qk_size + d.v_size
    whole = x.prompt + x.output / 2
    if x.contexts:
        whole = sum(next_bucket(token + 1, x.contexts) for token in range(x.prompt, x.prompt + x.output)) / x.output
    return {
        "tokens": tokens,
        "scores": tokens * (attended(d) * met * d.heads * size + beside(d, whole)),
        "spilled": tokens * attended(d) * met * d.heads * 4 * s.score_passes,
        "cached": sequences * attended(d) * (met + x.drafted + 1) * d.kv_elements,
        "indexed": sequences * whole * d.index_layers * d.index_size / d.layers,
        "states": 2 * sequences * d.state / d.layers,
        "logits": tokens,
    }


def mean_met(d: Any, x: Request) -> float:
    """Keys in an average layer, averaged over the output, token after token."""

    def of(window: float) -> float:
        total = 0.0
        for token in range(x.prompt, x.prompt + x.output):
            total += keys_in(next_bucket(token + 1, x.contexts) if x.contexts else token + 0.5, window=window)
        return total / x.output

    return mean_over_layers(d, of)


def prefill(d: Any, system: Any, s: Any, x: Request) -> dict[str, float]:
    """The parts of prefill, up to the first token."""
    one = forward(d, system, s, x, prompt_load(d, s, x))
    parts = {name: x.chunks * x.rounds * time for name, time in one.items() if name != "total"}
    parts["fixed"] += s.request * x.rounds
    return parts | {"total": sum(parts.values())}


def decode(d: Any, system: Any, s: Any, x: Request) -> dict[str, float]:
    """The parts of a decode step, averaged over the output."""
    return forward(d, system, s, x, token_load(d, s, x, mean_met(d, x)))


def interference(d: Any, system: Any, s: Any, x: Request) -> float:
    """Time that prefill of the other requests of a continuous batch adds per token."""
    if x.output == 1:
        return 0.0
    each = prefill(d, system, s, x)["total"]
    if x.chunks > 1:
        token = token_load(d, s, x, mean_met(d, x))
        mixed = forward(d, system, s, x, added(prompt_load(d, s, x), token))
        each = x.chunks * max(mixed["total"] - forward(d, system, s, x, token)["total"], 0.0) + s.request
    return (x.batch - 1) * each / x.pp / (x.output - 1)
