"""The work of transformers against figures in print, and against what must hold for any transformer."""

import math
from fractions import Fraction

import numpy as np
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.support import engine
from trnspec.errors import UsageError
from trnspec.model.transformers.counting import dimensions
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.work import transformer as work


def utilization(flops: float, seconds: float, ranks: float, peak: float) -> float:
    """Achieved over peak rate: MFU of model FLOP, HFU of model and recomputed FLOP."""
    return flops / (seconds * ranks * peak)


def near(expected: float, actual: float, digits: int) -> None:
    """The figure, rounded to the significant digits in which it is printed, is the printed one."""
    assert f"{expected:.{digits - 1}e}" == f"{actual:.{digits - 1}e}"


F1 = [1.546683e16, 3.265550e16, 6.718456e16, 3.248397e17, 1.021226e18, 2.302047e18, 5.641682e18, 1.119401e19,
      2.221594e19, 5.139051e19]  # fmt: skip
F2 = [3.5280, 3.6974, 3.6963, 9.3993, 14.4535, 16.0578, 24.8174, 37.6143, 54.0850, 102.6300]


@pytest.mark.parametrize(("row", "flops", "seconds"), list(zip(engine.SC21, F1, F2, strict=True)))
def test_step_with_full_recompute(row, flops, seconds):
    layers, hidden, heads, batch, ranks, rate = row
    whole = work.model_flops_per_token(engine.gpt(layers, hidden, heads), 2048.0, "sc21") * batch * 2048
    s, h, v = Fraction(2048), Fraction(hidden), Fraction(51200)
    closed = 96 * batch * s * layers * h**2 * (1 + s / (6 * h) + v / (16 * layers * h))
    assert math.isclose(closed, whole, rel_tol=1e-12)
    near(flops, whole, 7)
    assert seconds == round(whole / (ranks * rate * 1e12), 4)


def test_full_recompute_is_the_model_and_the_layers_forward_again():
    again = work.recomputed_flops_per_token(engine.GPT_3, 2048.0, 2.0, "full")
    model = work.model_flops_per_token(engine.GPT_3, 2048.0, "korthikanti")
    assert math.isclose(work.model_flops_per_token(engine.GPT_3, 2048.0, "sc21"), model + again, rel_tol=1e-15)
    assert work.recomputed_flops_per_token(engine.GPT_3, 2048.0, 0.0, "full") == 0.0
    selective = work.recomputed_flops_per_token(engine.GPT_3, 2048.0, 1.0, "full")
    assert selective == work.all_scores(engine.GPT_3, 2048.0, "full")
    # Half of the matrices, and none of the scores.
    assert (again - selective) / 2 == work.recomputed_flops_per_token(engine.GPT_3, 2048.0, 1.5, "full")


@pytest.mark.parametrize(
    ("d", "batch", "ranks", "seconds", "model", "hardware", "mfu", "hfu"),
    [
        (engine.GPT_22B, 4, 8, 1.10, 1.143561e15, 1.202934e15, 41.65, 43.81),
        (engine.GPT_175B, 64, 64, 13.75, 1.410915e17, 1.448914e17, 51.39, 52.77),
        (engine.GPT_530B, 280, 280, 37.83, 1.852230e18, 1.882536e18, 56.05, 56.96),
        (engine.GPT_1T, 512, 512, 71.49, 6.425876e18, 6.510318e18, 56.27, 57.01),
    ],
)
def test_utilisation_as_korthikanti_counts(d, batch, ranks, seconds, model, hardware, mfu, hfu):
    found = work.model_flops_per_token(d, 2048.0, "korthikanti") * batch * 2048
    done = work.model_flops_per_token(d, 2048.0, "korthikanti-hardware") * batch * 2048
    s, h, v, layers = Fraction(2048), Fraction(d.hidden), Fraction(51200), Fraction(d.layers)
    for times, flops in ((6, found), (3, done)):
        closed = 72 * batch * layers * s * h**2 * (1 + s / (times * h) + v / (12 * h * layers))
        assert math.isclose(closed, flops, rel_tol=1e-12)
    near(model, found, 7)
    near(hardware, done, 7)
    assert mfu == round(100 * utilization(found, seconds, float(ranks), 312e12), 2)
    assert hfu == round(100 * utilization(done, seconds, float(ranks), 312e12), 2)


@pytest.mark.parametrize(
    ("d", "seq", "expected", "exact"),
    [
        (engine.LLAMA_3_8B, 8192, 5.147040e10, 51_470_401_536),
        (engine.MIXTRAL, 4096, 7.970646e10, 79_706_456_064),
        (engine.GPT_3, 2048, 1.061947e12, 1_061_947_441_152),
    ],
)
def test_megatron(d, seq, expected, exact):
    found = work.model_flops_per_token(d, float(seq), "megatron")
    assert exact == found
    near(expected, found, 7)


@pytest.mark.parametrize(("seq", "window"), [(7, 3), (7, 7), (7, 9), (128, 16), (1, 1)])
def test_attention_flops_of_a_window(seq, window):
    # Token i of a causal sequence meets min(i + 1, w) keys, itself counted; the halves of a block are its continuum.
    met = sum(min(i + 1, window) - 0.5 for i in range(seq)) / seq
    inside = min(seq, window)
    closed = inside - inside**2 / (2 * seq)
    found = work.span(float(seq), float(window), 1.0, "causal")
    assert math.isclose(closed, found, rel_tol=1e-12)
    assert abs(met - found) <= 0.5
    assert float(inside) == work.span(float(seq), float(window), 1.0, "full")


def test_an_unknown_convention_is_named():
    with pytest.raises(UsageError, match=r"'chinchilla' is not a FLOP convention; expected one of sc21, korthikanti"):
        work.model_flops_per_token(engine.GPT_3, 2048.0, "chinchilla")


def test_a_matrix_multiplication():
    assert 2 * 3 * 5 * 7 == work.matmul_flops(3.0, 5.0, 7.0)
    assert (15 + 35) * 2 + 21 * 4 == work.matmul_traffic(3.0, 5.0, 7.0, 2.0, 4.0)


def counts(low: int, high: int) -> st.SearchStrategy[float]:
    return st.integers(low, high).map(float)


@st.composite
def any_dimensions(draw: st.DrawFn) -> Dimensions:
    """A decoder with grouped queries; of its layers some have experts, some are windowed."""
    kv, repeat, size, layers = (draw(counts(1, n)) for n in (16, 8, 256, 128))
    h = kv * repeat * size
    d = engine.llama(layers, h, kv * repeat, kv, draw(counts(1, 65536)), draw(counts(1, 300000)))
    if draw(st.booleans()):
        d = evolve(engine.experts(d, draw(counts(1, 256)), 1.0), expert_layers=draw(counts(1, int(layers))),
                   width=d.width, mlp_weights=d.mlp_weights)  # fmt: skip
        d = evolve(d, active=draw(counts(1, int(d.experts))))
    return evolve(d, window=draw(counts(0, 8192)), windowed_layers=draw(counts(0, int(layers))))


CASES = [engine.LLAMA_3_8B, engine.MIXTRAL, engine.LATENT, engine.GPT_3]


@given(any_dimensions() | st.sampled_from(CASES), counts(1, 65536), counts(1, 131072))
def test_parts_of_the_operations_sum_to_the_model(d, tokens, seq):
    model = work.model_flops_per_token(d, seq, "matmul-full")
    assert math.isclose(model * tokens, 3 * engine.forward_flops(d, tokens, seq, "full").total, rel_tol=1e-12)


@given(st.sampled_from([engine.LLAMA_3_8B, engine.GPT_3]), counts(1, 65536), counts(1, 65536))
def test_one_expert_without_router_is_a_dense_layer(d, tokens, seq):
    one = engine.experts(d, 1, 1, router=False)
    for name in work.CONVENTIONS:
        assert work.model_flops_per_token(d, seq, name) == work.model_flops_per_token(one, seq, name)


@given(any_dimensions() | st.sampled_from(CASES), st.lists(counts(1, 131072), min_size=1, max_size=9))
def test_one_call_and_the_element_of_a_batch_have_the_same_bits(d, seqs):
    batch = np.array(seqs)

    def calls(seq):
        yield from (work.model_flops_per_token(d, seq, name) for name in work.CONVENTIONS)
        yield from (3 * work.all_scores(d, seq, convention) for convention in ("full", "causal"))
        yield from (work.recomputed_flops_per_token(d, seq, r, "causal") for r in (0.0, 1.0, 1.5, 2.0))

    batched = [np.broadcast_to(b, batch.shape) for b in calls(batch)]
    for i, seq in enumerate(seqs):
        assert [float(b[i]).hex() for b in batched] == [float(a).hex() for a in calls(seq)]


def test_megatron_counts_multi_token_prediction_and_latent_norms():
    spec = engine.shipped().models["deepseek-v3"].node.spec
    without, with_ = (
        work.model_flops_per_token(dimensions(s), 4096.0, "megatron") for s in (spec, evolve(spec, mtp=1))
    )
    near(2.498121e11, without, 7)
    near(2.599930e11, with_, 7)
    # A layer with its eight experts and the shared one, the joining matrix, the norms that are counted, and an output.
    d = dimensions(spec)
    layer = d.attention_weights + 9 * 3 * 7168 * 2048 + 1536 + 512
    module = layer + 2 * 7168**2 + 3 * 7168 + 129280 * 7168
    assert with_ - without == 6 * module + 3 * 2 * 128 * (192 + 128) * 4096 / 2


def test_every_convention_counts_multi_token_prediction():
    d = engine.LLAMA_3_8B
    module = evolve(d, mtp_layers=1.0, mtp_weights=2.0 * 4096**2, mtp_small=3.0 * 4096)
    layer, joined, output = 218_103_808, 2 * 4096**2, 128256 * 4096
    for name, each in {"megatron": 8192 / 2, "matmul-full": 8192}.items():
        more = work.model_flops_per_token(module, 8192.0, name) - work.model_flops_per_token(d, 8192.0, name)
        small = {"megatron": 3 * 4096, "matmul-full": 0}[name]
        assert more == 6 * (layer + joined + output + small) + 12 * 4096 * each, name


def test_hybrids_as_megatron_bridge_counts_them():
    """The formulas of NVIDIA-NeMo/Megatron-Bridge, training/utils/flop_utils.py (067f987), for one token, by hand.

    Bridge leaves out the convolution of Mamba-2, and counts that of a gated delta net.
    """
    seq = 8192
    h, heads, state, groups = 4096, 128, 128, 8
    inner = heads * 64
    attention = 4 * h * (h + h * 2 / 32) + 2 * h * seq
    mamba = 2 * h * (2 * inner + 2 * groups * state + heads) + 7 * inner * state + 2 * inner * h
    convolution = 2 * 4 * (inner + 2 * groups * state)
    experts = 4 * 1024 * 2688 * 22 + 4 * h * 1024 + 4 * h * 5376
    forward = 8 * attention + 40 * (mamba + convolution + experts) + 2 * h * 131072
    spec = engine.shipped().graph.named("nemotron-3-super").spec
    assert 3 * forward == pytest.approx(work.model_flops_per_token(dimensions(spec), seq, "megatron"), rel=1e-12)

    h, keys, values = 5120, 16 * 128, 48 * 128
    attention = 2 * h * (2 * 24 + 2 * 4 + 24) * 256 + 4 * 24 * 256 * seq / 2
    delta = 2 * (h * (2 * keys + 2 * values + 2 * 48) + 4 * (2 * keys + values) + 48 * 128**2 * 4 + h * values)
    forward = 16 * attention + 48 * delta + 64 * 6 * h * 17408 + 2 * h * 248320
    spec = engine.shipped().graph.named("qwen3.5-27b").spec
    assert 3 * forward == pytest.approx(work.model_flops_per_token(dimensions(spec), seq, "megatron"), rel=1e-12)
