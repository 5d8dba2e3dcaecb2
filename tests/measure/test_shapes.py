"""The shapes that are measured are those of models of the catalog."""

from tests.support.engine import shipped
from trnspec.measure.shapes import FULL, SMALL, AttentionShape, Layer
from trnspec.model.transformers.counting import dimensions

MODELS = [dimensions(shipped().graph.named(name).spec) for name in ("llama-3.1-8b", "llama-3.1-70b")]


def test_matrices_are_projections_of_models() -> None:
    """Of 8B the output, the queries with keys and values, the two inputs and the output of an MLP; of 70B two."""
    small, large = MODELS
    expected = {
        (small.hidden, small.hidden), (small.hidden + 2 * small.kv_heads * small.v_size, small.hidden),
        (2 * small.width, small.hidden), (small.hidden, small.width),
        (large.hidden, large.hidden), (2 * large.width, large.hidden),
    }  # fmt: skip

    assert expected == {(n, k) for _, n, k in FULL.gemms}
    assert {1, 16, 64, 256, 1024, 4096, 8192} == {m for m, *_ in FULL.gemms}
    assert len(FULL.gemms) == len({*FULL.gemms}) == 42


def test_layers_are_those_of_models() -> None:
    expected = [
        Layer(batch=1, seq=seq, hidden=d.hidden, heads=d.heads, kv_heads=d.kv_heads, width=d.width)
        for d, seq in ((MODELS[0], 4096), (MODELS[0], 8192), (MODELS[1], 4096))
    ]
    assert expected == [*FULL.layers]


def test_attention_is_that_of_models() -> None:
    prefill = [(1, 1024), (1, 4096), (4, 4096), (1, 16384)]
    decoding = [(batch, keys) for batch in (1, 16, 64) for keys in (1024, 8192, 32768)]
    asked = [(batch, keys, keys) for batch, keys in prefill] + [(batch, 1, keys) for batch, keys in decoding]
    expected = [
        AttentionShape(batch=b, queries=q, keys=k, heads=d.heads, kv_heads=d.kv_heads, size=d.v_size)
        for b, q, k in asked
        for d in MODELS
    ]
    assert expected == [*FULL.attention]


def test_sizes_are_a_factor_of_four_apart() -> None:
    kib, mib, gib = 2**10, 2**20, 2**30
    assert [mib, 4 * mib, 16 * mib, 64 * mib, 256 * mib, gib, 4 * gib] == [*FULL.copies]
    assert [kib * 4**i for i in range(11)] == [*FULL.collectives]
    assert gib == FULL.collectives[-1]
    # A processor measures each kind too, in seconds.
    assert all((SMALL.gemms, SMALL.copies, SMALL.attention, SMALL.layers, SMALL.collectives))
    assert max(2 * m * n * k for m, n, k in SMALL.gemms) <= 1e6
