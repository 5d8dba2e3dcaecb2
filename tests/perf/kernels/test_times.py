"""The time of one kernel: bounds, tiles and waves, and what adds to them."""

import numpy as np
import pytest

from trnspec.perf.kernels import times

FLOP, BYTE = 1e-15, 2.5e-13
PRODUCT = {"m": 4096.0, "n": 8192.0, "k": 4096.0, "element": 2.0, "quantized": 0.0, "flop": FLOP, "byte": BYTE}
FITTED = times.Roof(
    compute=0.8, memory=0.8, fixed=3e-6, inner=1e-7, token=1e-7, quantize=2e-6, waves=0.5, split=0.5, sharpness=3.0
)


def test_without_losses_it_is_the_longer_of_compute_and_memory_time() -> None:
    assert 2 * 4096 * 8192 * 4096 * FLOP == pytest.approx(times.gemm(**PRODUCT, roof=times.Roof()))
    thin = {**PRODUCT, "m": 1.0}
    assert (4096 + 8192 * 4096 + 8192) * 2 * BYTE == pytest.approx(times.gemm(**thin, roof=times.Roof()))


@pytest.mark.parametrize("m", [1.0, 100.0, 257.0, 4096.0])
@pytest.mark.parametrize("n", [64.0, 1000.0, 8192.0])
def test_losses_only_add(m: float, n: float) -> None:
    shape = {**PRODUCT, "m": m, "n": n}
    assert times.gemm(**shape, roof=times.Roof()) < times.gemm(**shape, roof=FITTED)


def test_a_tile_more_is_a_wave_more() -> None:
    """One row more than fills the cores takes a further, almost empty wave: with the smallest tiles the 17th."""
    full = {**PRODUCT, "m": 256.0 * times.CORES, "n": 256.0, "byte": 1e-20}
    over = {**full, "m": 256.0 * times.CORES + 1.0}
    whole = times.Roof(waves=1.0, sharpness=20.0)
    partial = times.Roof(waves=0.0, sharpness=20.0)
    assert 17 / 16 == pytest.approx(float(times.gemm(**over, roof=whole) / times.gemm(**full, roof=whole)), rel=1e-3)
    assert 1.0 < times.gemm(**over, roof=partial) / times.gemm(**full, roof=partial) < 1.01


def test_the_ends_of_a_tile_weigh_more_on_a_short_inner_dimension() -> None:
    long, short = (
        float(times.gemm(**{**PRODUCT, "k": k, "byte": 1e-20}, roof=times.Roof(sharpness=20.0, epilogue=0.1)))
        / float(times.gemm(**{**PRODUCT, "k": k, "byte": 1e-20}, roof=times.Roof(sharpness=20.0)))
        for k in (10000.0, 500.0)
    )
    assert (1.01, 1.2) == pytest.approx((long, short))


def test_quantizing_the_activation_reads_and_writes_it() -> None:
    narrow = {**PRODUCT, "element": 1.0}
    roof = times.Roof(quantize=2e-6, token=1e-6, sharpness=3.0)
    more = times.gemm(**{**narrow, "quantized": 1.0}, roof=roof) - times.gemm(**narrow, roof=roof)
    assert 2e-6 + 4.096e-6 + 4096 * 4096 * 3 * BYTE == pytest.approx(more)


def test_compute_and_memory_time_overlap_partly() -> None:
    assert (2.0, 5.0) == (float(times.overlapped(2.0, 1.0, np.inf)), float(times.overlapped(3.0, 5.0, np.inf)))
    assert (3**2 + 4**2) ** 0.5 == pytest.approx(float(times.overlapped(3.0, 4.0, 2.0)))


def test_attention_computes_whole_tiles_along_the_diagonal() -> None:
    shape = {"batch": 1.0, "heads": 132.0, "kv_heads": 132.0, "size": 128.0, "element": 2.0, "flop": FLOP, "byte": 0.0}
    roof = times.Roof(sharpness=20.0)
    whole = times.attention_prefill(q=1024.0, kv=1024.0, **shape, roof=roof)
    assert 4 * 132 * 1024 * (1024 - 512 + 64) * 128 * FLOP == pytest.approx(float(whole))
    ideal = times.attention_prefill(q=1024.0, kv=1024.0, **shape, roof=times.Roof())
    assert 4 * 132 * 1024 * (1024 - 511.5) * 128 * FLOP == pytest.approx(float(ideal))


def test_decoding_splits_a_long_cache_over_idle_cores() -> None:
    shape = {"kv": 131072.0, "heads": 8.0, "kv_heads": 1.0, "size": 128.0, "element": 2.0, "flop": 1e-25, "byte": 1e-25}
    alone, many = (
        times.attention_decode(batch=b, **shape, roof=times.Roof(inner=1e-6, sharpness=3.0)) for b in (1.0, 132.0)
    )
    assert times.CORES * float(alone) == pytest.approx(float(many))


def test_experts_hit() -> None:
    assert [1.0, 8.0, 8.0] == [float(times.experts_hit(8.0, p, balanced=1.0)) for p in (1.0, 8.0, 100.0)]
    assert [1.0, 8 * (1 - (7 / 8) ** 8)] == pytest.approx(
        [float(times.experts_hit(8.0, p, balanced=0.0)) for p in (1.0, 8.0)]
    )


def test_attention_moves_its_operands_once() -> None:
    """Queries and results in 16 bit, keys and values in 8; besides, a time for each call, token, and key of a sequence."""
    shape = {
        "batch": 3.0, "kv": 300.0, "heads": 8.0, "kv_heads": 2.0, "size": 128.0, "element": 1.0, "flop": 0.0,
        "byte": BYTE,
    }  # fmt: skip
    roof = times.Roof(memory=0.5, fixed=5e-6, token=2e-6, inner=7e-6, split=0.0, sharpness=3.0)
    for q in (1.0, 100.0):
        moved = 3 * 128 * (2 * 2 * q * 8 + 2 * 300 * 2) * BYTE / 0.5
        assert 5e-6 + 2e-9 * 3 * q + moved == pytest.approx(float(times.attention_prefill(q=q, **shape, roof=roof)))
        if q == 1.0:
            assert 5e-6 + 7e-9 * 300 + moved == pytest.approx(float(times.attention_decode(**shape, roof=roof)))


def test_the_experts_of_a_layer() -> None:
    """Three matrices of each that has a token; with losses 16 rows at least, and what passes between the multiplications."""
    shape = {"tokens": 8.0, "pairs": 12.0, "hit": 4.0, "hidden": 256.0, "width": 64.0, "stored": 1.0}
    roof = times.Roof(compute=0.5, memory=0.8, fixed=5e-6, token=2e-6, inner=3e-6, sharpness=20.0)
    weights = 3 * 4 * 256 * 64
    for flop, byte, ideal, real in (
        (FLOP, 0.0, 6 * 12 * 256 * 64 * FLOP, 6 * 4 * 16 * 256 * 64 * FLOP / 0.5),
        (0.0, BYTE, (weights + 4 * 8 * 256) * BYTE, (weights + 4 * 8 * 256 + 2 * 12 * (2 * 256 + 3 * 64)) * BYTE / 0.8),
    ):
        assert ideal == pytest.approx(float(times.expert_layer(**shape, flop=flop, byte=byte, roof=times.Roof())))
        found = float(times.expert_layer(**shape, flop=flop, byte=byte, roof=roof))
        assert 5e-6 + 2e-9 * 8 + 3e-9 * 4 + real == pytest.approx(found)
