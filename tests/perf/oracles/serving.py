"""The time of prefill, of a decode step and of a request once more, in plain Python, as the documentation states them.

Loops over layers, links, passes and tokens; no arrays, and none of the engine's formulas.
"""

import math
from functools import lru_cache
from itertools import pairwise
from typing import Any

from attrs import frozen

from tests.perf.oracles.engine import Links, layer_kinds, met


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


def keys_in(context: float, limit: float) -> float:
    """Tokens whose keys a layer has at a context."""
    return min(limit, context) if limit else context


def over_layers(d: Any, tokens: Any, of: Any) -> float:
    """The mean over all layers of what they do with each key of a token.

    ``tokens`` has the tokens whose keys are met, for a limit; ``of`` what a layer does with one key.
    """
    total = 0.0
    for layer in layer_kinds(d):
        for limit, several in layer.looks:
            total += tokens(limit) / several * of(layer)
    return total / d.layers


def mine(heads: float, tp: int) -> float:
    """The share of some heads that a rank has: whole ones."""
    return math.ceil(heads / tp) / heads


def scores_of(d: Any, x: Request, tokens: Any, *, absorbed: bool = False) -> float:
    """Elements that a token of a rank multiplies with keys and values."""

    def of(layer: Any) -> float:
        # The up-projections are absorbed: a head multiplies the compressed vector and the positional key.
        width = layer.heads * (d.kv_elements + d.rank) if absorbed and d.rank else layer.width
        return width * mine(layer.heads, x.tp)

    return over_layers(d, tokens, of)


def rows_of(d: Any, x: Request, tokens: Any) -> float:
    """Scores of a token of a rank."""
    return over_layers(d, tokens, lambda layer: layer.heads * mine(layer.heads, x.tp))


def read_of(d: Any, x: Request, tokens: Any) -> float:
    """Elements of keys and values that a rank reads for one sequence."""
    return over_layers(d, tokens, lambda layer: layer.kv_elements * mine(layer.kv_heads, x.tp))


def shares(d: Any, x: Request, tokens: float) -> tuple[float, float, float]:
    """Of an average layer: elements multiplied by a token, elements read by a rank, and whether it has experts.

    The first with the columns that tiles and repeated heads add, over all ranks.
    """

    def whole_tiles(width: float) -> float:
        per_rank = width / x.tp
        return (math.ceil(per_rank / x.tile) * x.tile if x.tile else per_rank) * x.tp

    served = math.ceil(tokens) * x.ep
    every = 0 < x.all_experts_from <= served
    multiplied = read = with_experts = 0.0
    for layer in layer_kinds(d):
        expert, repeated, in_tiles = layer.experts, 0.0, 0.0
        if layer.attended:
            heads, kv_heads = math.ceil(layer.heads / x.tp), math.ceil(layer.kv_heads / x.tp)
            repeated = d.hidden * (heads * x.tp - layer.heads) * (layer.qk_size + layer.v_size)
            repeated += d.hidden * layer.projected * (kv_heads * x.tp / layer.kv_heads - 1)
            for size in (layer.qk_size, layer.v_size):
                columns = heads * size
                in_tiles += d.hidden * x.tp * ((math.ceil(columns / x.tile) * x.tile if x.tile else columns) - columns)
        multiplied += d.attention_weights + repeated + in_tiles
        read += (d.attention_weights + repeated) / x.tp
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
    routed = sum(d.experts * d.expert_weights for layer in layer_kinds(d) if layer.experts)
    if routed:
        chosen = sum(d.active * d.expert_weights for layer in layer_kinds(d) if layer.experts) / routed
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
    for layer in layer_kinds(d):
        has_experts = layer.experts
        elements += 2 * d.hidden + layer.attended * (layer.width + layer.projected) / tp
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
    left = max(0.0, 2 * (halves["expert"] + shared_bytes(d, system, s, x, 0.5 * load["tokens"])) - rest)
    if rest + left >= sum(layers[name] for name in of_layers) + layers["expert"]:
        return whole
    parts = whole | {name: whole[name] + 2 * halves[name] - layers[name] for name in of_layers} | {"expert": left}
    return parts | {"total": sum(time for name, time in parts.items() if name != "total")}


def shared_bytes(d: Any, system: Any, s: Any, x: Request, tokens: float) -> float:
    """Time in which tensor-parallel all-reduces of all layers send bytes over the links that the all-to-all uses."""
    links = Links(system.levels, _NO_LOSS)
    outermost = [i for i, (n, before) in enumerate(pairwise([1.0, *links.within(x.ep, x.tp)])) if before > n][-1]
    within = [1.0, *links.within(x.tp, 1)]
    if within[outermost + 1] == within[outermost]:
        return 0.0
    copied = d.active if x.dispatch == "per-copy" else met(x.ep * links.among(x.ep, x.tp, x.node_limit), d.active)
    sums = -d.absent_results
    for layer in layer_kinds(d):
        sums += 1 + ((copied + bool(d.shared_width)) if layer.experts else bool(d.mlp_weights))
    return sums * links.all_reduced(x.tp, 1) * tokens * d.hidden * 2.0 / s.link


def exposed(d: Any, system: Any, s: Any, x: Request, load: dict[str, float]) -> dict[str, float]:
    """The parts of one pass, one after the other.

    ``load`` has tokens, logits, and of a rank scores, spilled bytes, and elements of keys and values, of keys of indexers and
    of states that are read.
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
    cached = (load["cached"] + load["indexed"]) * x.cache_bytes
    cached += load["states"] * 4 / x.tp
    alone = s.single_core if x.single_core else 1.0
    attention = roof(2 * load["scores"] / (rate * s.attention), cached / (system.bandwidth * s.cache * alone))
    attention += load["spilled"] / system.bandwidth

    message = tokens * d.hidden * 2.0
    steps, byte = links.gather(x.tp, 1)
    summed = links.all_reduced(x.tp, 1)
    # Attention, a dense network or else shared experts, and routed ones; with all experts on a rank these have one sum.
    tensor = 0.0
    for layer in layer_kinds(d):
        has_experts = layer.experts
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


def beside(d: Any, x: Request, tokens: float) -> float:
    """Multiplications of a token in an average layer by indexers, over all keys, and by recurrences."""
    keys = tokens / max(d.sparse_stride, 1)
    return (d.index_layers * d.index_width * keys + d.recurrence) / d.layers * mine(d.heads, x.tp)


def indexed(d: Any, x: Request, tokens: float) -> float:
    """Elements of keys of indexers that a rank reads for one sequence."""
    return tokens / max(d.sparse_stride, 1) * d.index_layers * d.index_size / d.layers * mine(d.kv_heads, x.tp)


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

    @lru_cache
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
    return {
        "tokens": tokens,
        # Keys and values are expanded: each head has its own.
        "scores": tokens * (scores_of(d, x, keys) + beside(d, x, keys(0.0))),
        "spilled": tokens * rows_of(d, x, keys) * passes,
        "cached": x.prompts * read_of(d, x, read),
        "indexed": x.prompts * indexed(d, x, read(0.0)),
        "states": 2 * x.prompts * d.state / d.layers,
        "logits": x.prompts / x.chunks,
    }


def token_load(d: Any, s: Any, x: Request, met: Any) -> dict[str, float]:
    """The load of a decode step; ``met`` has the tokens whose keys are met, for a limit."""
    sequences = math.ceil(next_bucket(x.batch, x.batches) / x.pp)

    def seen(limit: float) -> float:
        if x.contexts:
            return met(limit)
        return met(limit) + s.padding * (keys_in(x.prompt + x.output, limit) - met(limit))

    tokens = sequences * (x.drafted + 1)
    whole = x.prompt + x.output / 2
    if x.contexts:
        whole = sum(next_bucket(token + 1, x.contexts) for token in range(x.prompt, x.prompt + x.output)) / x.output
    return {
        "tokens": tokens,
        "scores": tokens * (scores_of(d, x, seen, absorbed=True) + beside(d, x, whole)),
        "spilled": tokens * rows_of(d, x, seen) * 4 * s.score_passes,
        "cached": sequences * read_of(d, x, lambda limit: seen(limit) + x.drafted + 1),
        "indexed": sequences * indexed(d, x, whole),
        "states": 2 * sequences * d.state / d.layers,
        "logits": tokens,
    }


def mean_met(x: Request) -> Any:
    """Tokens whose keys are met, for a limit, averaged over the output, token after token."""

    @lru_cache
    def of(limit: float) -> float:
        total = 0.0
        for token in range(x.prompt, x.prompt + x.output):
            total += keys_in(next_bucket(token + 1, x.contexts) if x.contexts else token + 0.5, limit)
        return total / x.output

    return of


def prefill(d: Any, system: Any, s: Any, x: Request) -> dict[str, float]:
    """The parts of prefill, up to the first token."""
    one = forward(d, system, s, x, prompt_load(d, s, x))
    parts = {name: x.chunks * x.rounds * time for name, time in one.items() if name != "total"}
    parts["fixed"] += s.request * x.rounds
    return parts | {"total": sum(parts.values())}


def decode(d: Any, system: Any, s: Any, x: Request) -> dict[str, float]:
    """The parts of a decode step, averaged over the output."""
    return forward(d, system, s, x, token_load(d, s, x, mean_met(x)))


def interference(d: Any, system: Any, s: Any, x: Request) -> float:
    """Time that prefill of the other requests of a continuous batch adds per token."""
    if x.output == 1:
        return 0.0
    each = prefill(d, system, s, x)["total"]
    if x.chunks > 1:
        token = token_load(d, s, x, mean_met(x))
        mixed = forward(d, system, s, x, added(prompt_load(d, s, x), token))
        each = x.chunks * max(mixed["total"] - forward(d, system, s, x, token)["total"], 0.0) + s.request
    return (x.batch - 1) * each / x.pp / (x.output - 1)
