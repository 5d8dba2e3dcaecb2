"""Serving of random models, computed by hand from the literature: both roofs, KV cache, speculation, transfers.

The systems are servers of eight H100, without losses. Nothing of the engine is used but its evaluators, and of the catalog
four rates.
"""

import json
import random
from pathlib import Path
from typing import NamedTuple

import pytest

import trnspec
from tests.support.evaluations import parts

COUNT = 25
SIZES = {"bf16": 2, "fp8": 1}
VOCABULARY = 32000


class Shape(NamedTuple):
    """A decoder; ``experts`` of which ``active`` are used in place of the network, or none."""

    layers: int
    heads: int
    kv_heads: int
    width: int
    experts: int = 1
    active: int = 1

    @property
    def hidden(self) -> int:
        """As wide as the heads, of 128 each."""
        return 128 * self.heads

    def written(self, folder: Path) -> str:
        """The path of its config.json: Llama with grouped queries, or Mixtral with experts in every layer."""
        config = {
            "model_type": "llama", "num_hidden_layers": self.layers, "hidden_size": self.hidden, "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads, "intermediate_size": self.width, "vocab_size": VOCABULARY,
            "max_position_embeddings": 131072, "tie_word_embeddings": False,
        }  # fmt: skip
        if self.experts > 1:
            config |= {"model_type": "mixtral", "num_local_experts": self.experts, "num_experts_per_tok": self.active}
        file = folder / f"{len(list(folder.iterdir()))}.json"
        file.write_text(json.dumps(config), encoding="utf-8")
        return str(file)


class Rates(NamedTuple):
    """Of an H100 in a p5.48xlarge: FLOP/s, and B/s of its memory, and of its links in one direction."""

    peak: float
    memory: float
    nvlink: float
    network: float


@pytest.fixture(scope="module")
def rates(catalog) -> Rates:
    chip, server = catalog["h100-sxm"], catalog["p5.48xlarge"]
    figures = (chip, "peak.dense.bf16"), (chip, "memory.bandwidth"), (server, "fabric.bandwidth.both")
    peak, memory, both, network = (float(of.figure(at).value) for of, at in (*figures, (server, "network.bandwidth")))
    return Rates(peak, memory, both / 2.0, network / 8.0)


def one_pass(
    shape: Shape, rates: Rates, tp: int, *, tokens: int, context: float, read: float, logits: int, sequences: int = 1,
    weight: int = 2, cache: int = 2,
) -> dict[str, float]:  # fmt: skip
    """A forward pass: each operation takes the longer of its FLOP and its bytes (Williams et al. 2009).

    Two FLOP for each weight and token (Narayanan et al. 2021, appendix); T tokens that choose k of E experts reach
    1 - (1 - k/E)^T of them; a rank holds whole KV heads; an all-reduce after attention and after the network (Shoeybi et al.
    2019), in which the switches of NVLink add up: 1 + 1/n of the buffer from each rank if that is less than 2 (n-1)/n.
    """
    own = 2 * shape.hidden**2 / tp + 2 * shape.hidden * 128 * -(-shape.kv_heads // tp)
    own += shape.hidden * shape.experts / tp if shape.experts > 1 else 0
    each = 3 * shape.hidden * shape.width / tp
    reached = shape.experts * (1 - (1 - shape.active / shape.experts) ** tokens)
    flops, moved = 2 * tokens * (own + shape.active * each), weight * (own + reached * each)
    scores = 2 * tokens * context * 2 * shape.hidden / tp
    cached = sequences * read * 2 * 128 * -(-shape.kv_heads // tp) * cache
    output = VOCABULARY * shape.hidden / tp
    sent = tokens * shape.hidden * 2 * min(1 + 1 / tp, 2 * (tp - 1) / tp) / rates.nvlink
    gathered = logits * VOCABULARY * 4 * (tp - 1) / tp / rates.nvlink
    return {
        "matrices": shape.layers * max(flops / rates.peak, moved / rates.memory),
        "attention": shape.layers * max(scores / rates.peak, cached / rates.memory),
        "head": max(2 * logits * output / rates.peak, weight * output / rates.memory),
        "tensor": shape.layers * 2 * sent + gathered,
    }


def agree(expected: dict[str, float], found: dict[str, float]) -> None:
    """Every part of the first is in the second; one that is not there is 0."""
    assert {name: pytest.approx(value, rel=1e-9, abs=1e-15) for name, value in expected.items()} == {
        name: found.get(name, 0.0) for name in expected
    }


def test_prefill_and_decoding(catalog, rates, tmp_path) -> None:
    """A prompt of S tokens has S^2/2 pairs; the step of token j attends to S + j - 1 keys, on average S + O/2.

    The key of the step's own token is written and, with the others, read. Memory holds S + O tokens, 2 g d each and layer.
    """
    draw = random.Random(20261127)
    for _ in range(COUNT):
        heads, experts = draw.choice([16, 32]), draw.choice([1, 1, 8, 16])
        shape = Shape(
            draw.choice([1, 4, 16]), heads, draw.choice([1, 2, 4, 8, heads]), 3 * 128 * heads, experts, min(experts, 2)
        )
        tp, batch = draw.choice([1, 2, 4, 8]), draw.choice([1, 4, 32])
        prompt, output = draw.choice([1, 16, 1024, 8192]), draw.choice([1, 2, 128, 1024])
        weight, cache = draw.choice(list(SIZES)), draw.choice(list(SIZES))
        found = trnspec.evaluate(
            "inference", catalog, model=shape.written(tmp_path), on="p5.48xlarge", tp=tp, dp=1, batch=batch,
            prompt=prompt, output=output, weight_dtype=weight, kv_dtype=cache, calibration="none",
        )  # fmt: skip

        sizes = {"weight": SIZES[weight], "cache": SIZES[cache]}
        mean = prompt + output / 2
        step = one_pass(
            shape, rates, tp, tokens=batch, context=mean, read=mean + 1, logits=batch, sequences=batch, **sizes
        )
        first = one_pass(shape, rates, tp, tokens=prompt, context=prompt / 2, read=prompt, logits=1, **sizes)
        agree(step, parts(found, "time_per_output_token"))
        agree(first, parts(found, "time_to_first_token"))
        token = shape.layers * 2 * 128 * SIZES[cache]
        assert found["kv_per_token"] == token * shape.kv_heads
        agree({"cache": batch * (prompt + output) * token * -(-shape.kv_heads // tp)}, parts(found, "memory"))
        # The bound has no prefill interference; a batch of B requests may share the pass of its prompts.
        latency = sum(first.values()) + (output - 1) * sum(step.values())
        assert found["latency"] == pytest.approx(latency, rel=1e-9)
        if batch == 1:
            assert found["throughput"] == pytest.approx(output / latency, rel=1e-9)
            continue
        decoding = (output - 1) * sum(step.values())
        one_by_one = decoding + batch * sum(first.values())
        assert found["throughput"] >= batch * output / one_by_one * (1 - 1e-9)
        if output > 1:
            assert found["throughput"] <= batch * output / decoding * (1 + 1e-9)
            continue
        packed = one_pass(
            shape, rates, tp, tokens=batch * prompt, context=prompt / 2, read=prompt, logits=batch, sequences=batch, **sizes
        )  # fmt: skip
        assert found["throughput"] == pytest.approx(batch / sum(packed.values()), rel=1e-9)


@pytest.mark.parametrize("acceptance", [0.0, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("drafted", [1, 4])
@pytest.mark.parametrize("batch", [1, 8])
def test_speculation(catalog, rates, tmp_path, acceptance, drafted, batch) -> None:
    """Leviathan et al. 2023, equation 1: 1 + a + ... + a^k tokens for k steps of the draft and one pass over k + 1 tokens."""
    large, small, tp, prompt, output = Shape(16, 32, 8, 14336), Shape(4, 16, 8, 4096), 2, 1024, 128
    found = trnspec.evaluate(
        "inference", catalog, model=large.written(tmp_path), draft=small.written(tmp_path),
        acceptance=acceptance, speculate=drafted, on="p5.48xlarge", tp=tp, dp=1, batch=batch, prompt=prompt, output=output,
        calibration="none",
    )  # fmt: skip

    def took(shape: Shape, new: int) -> float:
        mean = prompt + output / 2
        return sum(
            one_pass(
                shape, rates, tp, tokens=batch * new, context=mean, read=mean + new, logits=batch * new, sequences=batch
            ).values()
        )

    tokens = sum(acceptance**i for i in range(drafted + 1))
    token = parts(found, "time_per_output_token")
    token.pop("prefill_interference", None)
    expected = (took(large, drafted + 1) + drafted * took(small, 1)) / tokens
    assert sum(token.values()) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("tp", "kv_heads"), [(1, 8), (4, 8), (8, 8), (8, 2)])
def test_kv_cache_of_a_prompt_is_sent_once(catalog, rates, tmp_path, tp, kv_heads) -> None:
    """Each KV head once, over the links of all ranks of the replica with fewer: here that which prefills or decodes."""
    shape, prompt = Shape(16, 32, kv_heads, 14336), 8192
    found = trnspec.evaluate(
        "inference", catalog, model=shape.written(tmp_path), on="p5.48xlarge", prefill_on="p5.48xlarge", tp=tp,
        prompt=prompt, output=100, calibration="none",
    )  # fmt: skip

    size = shape.layers * 2 * kv_heads * 128 * 2 * prompt
    # Prompts are computed by the eight ranks that the heads can be split over.
    assert found["transfer_time"] == pytest.approx(size / (min(tp, 8) * rates.network), rel=1e-9)
