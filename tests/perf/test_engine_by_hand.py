"""Training of random models, computed by hand from the literature: parts of a step, activations, model states.

The systems are servers of eight H100, without losses: a chip is a rank, a collective crosses NVLink, the network, or both.
Nothing of the engine is used but its evaluators, and of the catalog four rates.
"""

import random

import pytest

import trnspec
from tests.perf.conftest import llama, mixtral, written
from tests.support.engine import PER_SERVER
from tests.support.evaluations import parts

COUNT = 50


def agree(expected: dict[str, float], found: dict[str, float], relative: float = 1e-9) -> None:
    """Every part of the first is in the second; one that is not there is 0."""
    assert {name: pytest.approx(value, rel=relative, abs=1e-15) for name, value in expected.items()} == {
        name: found.get(name, 0.0) for name in expected
    }


def test_parts_of_a_dense_step(catalog, rates, tmp_path) -> None:
    """FLOP: Narayanan et al. 2021, appendix, with the causal half of the scores; flash attention: Dao 2023, section 3.1.

    Four all-reduces a layer, of which sequence parallelism makes pairs (Shoeybi et al. 2019, section 3; Korthikanti et al.
    2022, section 4.2.2); a ring of keys and values passed once forward, with gradients twice backward (Liu et al. 2023); the
    bubble (pp - 1)/(m v) (Narayanan et al. 2021, section 2.2).
    """
    draw = random.Random(20261123)
    seen = 0
    while seen < COUNT:
        servers = draw.choice([1, 2, 4, 8])
        ranks = PER_SERVER * servers
        tp, pp, cp = draw.choice([1, 2, 4, 8]), draw.choice([1, 1, 2, 4]), draw.choice([1, 1, 2, 4])
        if tp * pp * cp > ranks:
            continue
        seen += 1
        dp = ranks // (tp * pp * cp)
        heads, vocabulary = draw.choice([16, 32]), draw.choice([32000, 128256])
        hidden, kv_heads = heads * 128, draw.choice([8, 16, heads])
        width = draw.choice([2, 3]) * hidden + 512
        chunks = draw.choice([1, 1, 2]) if pp > 1 else 1
        layers = pp * chunks * draw.choice([1, 2, 4])
        seq, batch, m = draw.choice([4096, 8192]), draw.choice([1, 2]), pp * draw.choice([1, 2, 4])
        recompute = draw.choice(["none", "selective", "full"])
        schedule = "interleaved" if chunks > 1 else draw.choice(["1f1b", "gpipe"]) if pp > 1 else "1f1b"
        found = trnspec.evaluate(
            "training", catalog, model=written(tmp_path, llama(layers, hidden, heads, kv_heads, width, vocabulary)),
            on=f"p5.48xlarge*{servers}", seq=seq, global_batch=m * batch * dp, microbatch=batch, tp=tp, pp=pp, cp=cp,
            recompute=recompute, schedule=schedule, interleave=chunks, calibration="none", must_fit=False,
        )  # fmt: skip

        tokens = batch * seq / cp
        weights = 2 * hidden * hidden + 2 * hidden * kv_heads * 128 + 3 * hidden * width
        matrices = 2 * weights * tokens / tp / rates.peak
        scores = 2 * 2 * hidden * (seq / 2) * tokens / tp / rates.peak
        read = 2 * weights / tp / rates.memory
        forward, backward = max(matrices + scores, read), max(2 * matrices + 2.5 * scores, read)
        again = {"none": 0.0, "selective": scores, "full": forward}[recompute]
        reduce = 2 * tokens * hidden * 2 * rates.gather(tp, 1)
        ring = tokens * cp * 2 * kv_heads * 128 * 2 / min(tp, kv_heads) * rates.gather(cp, tp)
        tensor = {"none": 4, "selective": 4, "full": 6}[recompute] * reduce
        context = {"none": 3, "selective": 4, "full": 4}[recompute] * ring
        message = chunks * 2 * tokens * hidden * 2 / tp / (rates.network if servers > 1 else rates.nvlink)
        message = message if pp > 1 else 0.0
        stage = layers / pp * (forward + backward + again + tensor + context) + message
        expected = {
            "compute": m * layers / pp * (forward + backward),
            "recompute": m * layers / pp * again,
            "head": m * 6 * hidden * vocabulary * tokens / tp / rates.peak,
            # Further ones of the embedding's output and of the gradient of the output's input.
            "tensor": m * (layers / pp * tensor + (2 if pp == 1 else 1) * reduce),
            "context": m * layers / pp * context,
            "pipeline": m * message,
            "bubble": (pp - 1) * stage / chunks,
        }
        agree(expected, parts(found, "step_time"))
        flops = 6 * (layers * weights + vocabulary * hidden) + 6 * layers * hidden * seq
        share = flops * m * batch * dp * seq / (found["step_time"] * ranks * rates.peak)
        assert found["mfu"] == pytest.approx(100 * share, rel=1e-9)


@pytest.mark.parametrize("zero", [0, 1, 2, 3])
@pytest.mark.parametrize("m", [1, 2, 4])
def test_gradients_and_weights(catalog, rates, tmp_path, zero, m) -> None:
    """Volumes of Rajbhandari et al. 2020, section 7, with a reduce-scatter for each microbatch from ZeRO 2 on.

    Gradients of the last microbatch are exchanged during its backward pass, new weights during the next forward pass, all
    else during a whole microbatch.  Switches of NVLink add up: an all-reduce sends 1 + 1/8 of the buffer instead of 2 - 2/8.
    """
    layers, hidden, heads, width, vocabulary, seq, dp = 4, 2048, 16, 8192, 32000, 64, 16
    found = trnspec.evaluate(
        "training", catalog, model=written(tmp_path, llama(layers, hidden, heads, heads, width, vocabulary)),
        on="p5.48xlarge*2", seq=seq, global_batch=dp * m, zero=zero, calibration="none", must_fit=False,
    )  # fmt: skip

    weights = 4 * hidden * hidden + 3 * hidden * width
    # With 64 tokens reading the weights takes longer than multiplying by them.
    forward = backward = layers * 2 * weights / rates.memory
    held = layers * (weights + 2 * hidden) + 2 * vocabulary * hidden + hidden
    gather = 2 * held * rates.gather(dp, 1)
    network = (1 / 8 - 1 / 16) / rates.network
    reduce = 2 * held * max((1 + 1 / 8) / rates.nvlink, 2 * network)
    both = forward + backward
    expected = {
        0: reduce - backward,
        1: gather - backward + gather - forward,
        2: (m - 1) * (gather - both) + gather - backward + gather - forward,
        3: m * (3 * gather - both),
    }[zero]
    agree({"data": expected}, parts(found, "step_time"))


def test_experts(catalog, rates, tmp_path) -> None:
    """Router, k experts of E, and two all-to-alls a layer and pass; ranks that split an expert gather what they received."""
    draw = random.Random(20261124)
    seen = 0
    while seen < COUNT:
        servers = draw.choice([1, 2, 4, 8])
        tp, cp = draw.choice([1, 1, 2, 4, 8]), draw.choice([1, 1, 2])
        dp = PER_SERVER * servers // (tp * cp)
        split = draw.choice([tp, 1])
        experts, k, ep = draw.choice([8, 16, 64]), draw.choice([1, 2, 6]), draw.choice([1, 2, 4, 8, 16, 32])
        if dp < 1 or experts % ep or (dp * cp * tp // split) % ep or ep == 1:
            continue
        seen += 1
        dispatch, recompute = draw.choice(["per-copy", "per-node"]), draw.choice(["none", "full"])
        layers, m, seq = draw.choice([1, 2, 4]), draw.choice([1, 2, 4]), 4096
        hidden, heads, kv_heads, width, vocabulary = 2048, 16, 8, 1536, 32000
        config = mixtral(
            experts, k, layers=layers, hidden=hidden, heads=heads, kv_heads=kv_heads, width=width, vocabulary=vocabulary
        )
        found = trnspec.evaluate(
            "training", catalog, model=written(tmp_path, config), on=f"p5.48xlarge*{servers}", seq=seq, global_batch=m * dp,
            tp=tp, cp=cp, ep=ep, expert_tp=split, dispatch=dispatch, expert_overlap=False, recompute=recompute,
            calibration="none", must_fit=False,
        )  # fmt: skip

        tokens = seq / cp
        own, each = 2 * hidden * hidden + 2 * hidden * kv_heads * 128 + hidden * experts, 3 * hidden * width
        matrices = 2 * (own + k * each) * tokens / tp / rates.peak
        scores = 2 * 2 * hidden * (seq / 2) * tokens / tp / rates.peak
        # Of the routed weights those of one token count, spread over the ranks that split them.
        read = 2 * (own / tp + k * each / (ep * split)) / rates.memory
        forward, backward = max(matrices + scores, read), max(2 * matrices + 2.5 * scores, read)
        passes = 6 if recompute == "full" else 4
        copies = k if dispatch == "per-copy" else ep * (1 - (1 - 1 / ep) ** k)
        reduce = 2 * tokens * hidden * 2 * rates.gather(tp, 1)
        inner = 2 * tokens * hidden * 2 * copies * split / tp * rates.gather(split, 1)
        sent = tokens / tp * hidden * 2 * rates.dispatch(ep, k, split, dispatch)
        expected = {
            "compute": m * layers * (forward + backward),
            "recompute": m * layers * forward if recompute == "full" else 0.0,
            "expert": m * layers * passes * sent,
            "tensor": m * (layers * passes / 2 * (reduce + inner) + 2 * reduce),
        }
        agree(expected, parts(found, "step_time"))
