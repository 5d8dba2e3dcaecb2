"""Rooflines: ridge points in print, kernels, and the parts of models."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import trnspec
from tests.support.engine import LATENT, LLAMA_3_8B, MIXTRAL, forward_flops, refusal
from tests.support.evaluations import keywords
from trnspec.errors import RefusalError, UnknownNameError, UsageError
from trnspec.evaluation.result import Evaluation
from trnspec.evaluation.runner import unsound
from trnspec.evaluators.roofline import run as roofline_
from trnspec.perf.roofline import ELEMENT_BYTES, attainable, least_time, pieces, ridge

run = keywords(roofline_)

CATALOG = trnspec.load()
POSITIVE = st.floats(1e-3, 1e18)


def asked(**question) -> Evaluation:
    """An evaluation that is sound."""
    found = run(CATALOG, **question)
    assert [] == list(unsound(found, "roofline"))
    return found


def table(found: Evaluation, title: str) -> dict[str, dict]:
    rows = next(t for t in found.tables if t.title.startswith(title))
    return {row[0]: dict(zip(rows.columns, row, strict=True)) for row in rows.rows}


@pytest.mark.parametrize(
    ("peak", "bandwidth", "expected"),
    [
        (190e12, 820 * 2**30, 215.794),
        (190e12, 820e9, 231.707),
        (667e12, 2.9e12, 230.000),
        (2517e12, 4.9e12, 513.673),
        (312e12, 2.039e12, 153.016),
        (989e12, 3.35e12, 295.224),
    ],
)
def test_ridge_points_in_print(peak, bandwidth, expected):
    assert expected == round(ridge(peak, bandwidth), 3)


@given(POSITIVE, POSITIVE, POSITIVE, POSITIVE)
def test_the_roof(flops, traffic, peak, bandwidth):
    time, rate = least_time(flops, traffic, peak, bandwidth), attainable(flops / traffic, peak, bandwidth)
    assert math.isclose(flops / time, rate, rel_tol=1e-12)
    assert time >= flops / peak
    assert time >= traffic / bandwidth
    # Rates twice as high take half the time, exactly.
    assert time / 2 == least_time(flops, traffic, 2 * peak, 2 * bandwidth)
    assert least_time(flops, traffic, 2 * peak, bandwidth) <= time
    arrays = [np.array([v, 1.0]) for v in (flops, traffic, peak, bandwidth)]
    assert time.hex() == float(least_time(*arrays)[0]).hex()
    assert rate.hex() == float(attainable(arrays[0] / arrays[1], *arrays[2:])[0]).hex()


def test_a_large_matrix_multiplication_is_bound_by_computation():
    found = asked(on="trainium2", matmul="4096x4096x4096")
    assert (2 * 4096**3, 3 * 2 * 4096**2, 4096 / 3) == (found["flops"], found["traffic"], found["intensity"])
    assert (629.1e12, 2 * 4096**3 / 629.1e12) == (found["attainable_rate"], found["time"])
    assert found.bottleneck.startswith("compute-bound: 1,365 FLOP/B, ridge point 216.9 FLOP/B")
    rate = found.answer("attainable_rate")
    # The rate follows from a clock of 2.4 GHz, which is anything from 2.35 to 2.45.
    elements = 8 * 128 * 128 * 2
    assert (2.35e9 * elements, 2.45e9 * elements) == pytest.approx((rate.low, rate.high), rel=1e-12)
    # The bandwidth is 2.9 TB/s, anything from 2.85 to 2.95.
    ridge_point = found.answer("ridge_point")
    ends = (rate.low / 2.95e12, rate.high / 2.85e12)
    assert ends == pytest.approx((ridge_point.low, ridge_point.high), rel=1e-12)


def test_sparse_operands():
    found = asked(on="trainium2", intensity=1e4, sparse=True)
    assert 2516.6e12 == found["attainable_rate"]
    assert {"tensor_peak.sparse.bf16", "memory.bandwidth"} == {b.at for b in found.figures_used}
    assert {"tensor_peak.dense.bf16", "peak.dense.bf16", "memory.bandwidth"} == {
        b.at for b in asked(on="trainium2", intensity=1e4).figures_used
    }


@pytest.mark.parametrize("phase", ["prefill", "decode"])
def test_every_model_of_the_catalog(phase):
    assert CATALOG.models
    for name in CATALOG.models:
        found = asked(on="trainium2", model=name, seq=2048, batch=2, phase=phase)
        rows = table(found, "Parts of the model")
        assert {"projections", "head"} <= set(rows)
        assert found["attainable_rate"] <= 629.1e12 * (1 + 1e-12)
        assert found["time"] * 2.9e12 >= found["traffic"] * (1 - 1e-12)
        assert {"compute", "memory"} >= {row["bound_by"] for row in rows.values()}


@pytest.mark.parametrize("d", [LLAMA_3_8B, MIXTRAL, LATENT])
def test_the_parts_are_the_whole_work(d):
    each = pieces(d, tokens=512.0, sequences=1.0, seq=512.0, convention="causal", element_bytes=2.0, kv_bytes=2.0,
                  logits=512.0)  # fmt: skip
    whole = forward_flops(d, 512.0, 512.0, "causal").total
    assert math.isclose(whole, sum(p.count * p.flops for p in each), rel_tol=1e-12)


def test_traffic_of_decoded_tokens():
    """Weights of the experts that tokens are sent to, inputs and results of each matrix, keys and values, logits of 4 bytes."""
    d, h = MIXTRAL, 4096
    for tokens in (1.0, 64.0):
        found = {
            p.name: p.traffic
            for p in pieces(
                d, tokens=tokens, sequences=tokens, seq=4096.0, convention="full", element_bytes=2.0, kv_bytes=1.0, logits=tokens
            )
        }  # fmt: skip
        assert found == {
            "projections": 2 * d.attention_weights + tokens * (2 * (2 * h + 2 * h) + 2 * 1024),
            "scores": tokens * (2 * 2 * h + 4096 * 2 * 1024),
            "router": 2 * d.router_weights + tokens * 2 * (h + 8),
            "experts": 2 * min(8, 2 * tokens) * d.expert_weights + tokens * 2 * 2 * (2 * h + 3 * 14336),
            "head": 2 * d.head + tokens * (2 * h + 4 * 32000),
        }


@pytest.mark.parametrize(
    ("question", "error", "message"),
    [
        ({"matmul": "4096x4096"}, UsageError, r"such as 4096x4096x4096, not '4096x4096'"),
        ({"matmul": "0x1x1"}, UsageError, r"such as 4096x4096x4096, not '0x1x1'"),
        ({"matmul": "1x1x1", "intensity": 1.0}, UsageError, "matmul and intensity exclude each other"),
        ({"intensity": 0.0}, UsageError, "intensity: a positive number of FLOP/B is expected, not 0.0"),
        ({"model": "llama-3.1-8b", "seq": 0}, UsageError, "seq: a whole number of at least 1 is expected, not 0"),
        ({"model": "llama-3.1-9b"}, UnknownNameError, "llama-3.1-9b"),
        ({"dtype": "fp4"}, RefusalError, "trainium2 has no published dense rate for fp4"),
        ({"dtype": "fp32", "sparse": True}, RefusalError, "trainium2 has no published sparse rate for fp32"),
    ],
)
def test_refuses_invalid_questions(question, error, message):
    with pytest.raises(error, match=message):
        run(CATALOG, on="trainium2", **question)


@pytest.mark.parametrize(
    ("on", "question", "stated"),
    [
        ("trainium1", {"sparse": True}, ("trainium1 spec.peak.sparse.bf16", "sparse=False uses the dense rate")),
        ("trainium2", {"intensity": 1.0}, ("trainium2 spec.memory.bandwidth", "")),
    ],
)
def test_a_refusal_names_the_figure(on, question, stated):
    caught = refusal(run, CATALOG.replace("trainium2", {"memory.bandwidth": None}), on=on, **question)
    assert ("unknown-figure", *stated) == (caught.reason, caught.place, caught.hint)


def test_every_type_of_the_catalog_has_a_size():
    types = {at.rsplit(".", 1)[-1] for chip in CATALOG.chips.values() for at in chip.figures if ".dense." in at}
    assert types <= set(ELEMENT_BYTES), types - set(ELEMENT_BYTES)


def test_training_has_three_products_for_each_of_a_forward_pass():
    forward, both = (asked(on="trainium2", model="llama-3.1-8b", seq=2048, phase=p) for p in ("prefill", "train"))
    before, after = (table(found, "Parts of the model") for found in (forward, both))

    for name in ("projections", "scores", "mlp"):
        assert [3 * before[name][c] for c in ("count", "time")] == pytest.approx(
            [after[name][c] for c in ("count", "time")]
        )
        assert before[name]["intensity"] == after[name]["intensity"]
    assert 2048 * before["head"]["flops"] == after["head"]["flops"]
    # 6 FLOP per parameter and token, attention apart; the input embedding is no product.
    parameters = 8_030_261_248 - 128_256 * 4096
    assert 6.0 * parameters * 2048 == pytest.approx(both["flops"] - 3 * 32 * after["scores"]["flops"], rel=1e-3)
