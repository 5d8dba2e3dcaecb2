"""Layouts in words: their numbers, and every reason why one cannot be."""

import pytest
from attrs import evolve

from tests.support.engine import LLAMA_3_8B, MIXTRAL
from trnspec.errors import RefusalError
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.validity import check

BASE = Layout(tp=8, pp=4, dp=16, cp=2, seq=8192, global_batch=256, microbatch=2)
"""1,024 ranks, eight microbatches of a replica."""


def test_counts():
    assert (1024, 8, 256 * 8192) == (BASE.ranks, BASE.microbatches, BASE.tokens)


REFUSED = [
    *(({name: value}, "not-positive", name, f"{name} is {value}") for value in (0, -2) for name in (
        "tp", "pp", "dp", "cp", "ep", "seq", "global_batch", "microbatch", "interleave")),
    ({"optimizer": "lion"}, "unknown-optimizer", "optimizer", "no optimizer lion"),
    ({"dp": 8}, "rank-count", "dp", "512 ranks; the system has 1,024"),
    ({"tp": 3}, "rank-count", "tp", "1,024 ranks are not divisible by tp 3 x pp 4 x cp 2"),
    ({"pp": 3}, "rank-count", "pp", "1,024 ranks are not divisible by tp 8 x pp 3 x cp 2"),
    ({"cp": 256}, "rank-count", "cp", "1,024 ranks are not divisible by tp 8 x pp 4 x cp 256"),
    ({"global_batch": 250}, "batch-not-divisible", "global_batch", "250 is not divisible into microbatches of 2"),
    ({"microbatch": 32}, "batch-not-divisible", "global_batch", "of 32 on each of 16 replicas"),
    ({"tp": 64, "pp": 1, "dp": 8}, "heads-not-divisible", "tp", "tp 64 exceeds the 32 heads"),
    ({"tp": 3, "pp": 1, "dp": 16, "cp": 1, "ranks": 48}, "heads-not-divisible", "tp", "32 heads are not divisible by tp 3"),
    ({"pp": 16, "dp": 4, "schedule": "1f1b", "layers": 30.0}, None, "", ""),
    ({"pp": 4, "layers": 33.0}, "layers-not-divisible", "pp", "33 layers, or 35 with embedding and output"),
    ({"schedule": "zbv", "layers": 36.0}, "layers-not-divisible", "pp", "not divisible into 8 parts"),
    ({"interleave": 2, "schedule": "zb1p"}, "schedule", "interleave", "zb1p cannot have interleave 2"),
    ({"pp": 1, "dp": 64, "schedule": "zbv"}, "schedule", "schedule", "zbv needs more than one stage; pp is 1"),
    ({"pp": 1, "dp": 64, "schedule": "interleaved", "interleave": 2}, "schedule", "interleave", "interleaved needs more than one stage"),
    ({"schedule": "interleaved"}, "schedule", "interleave", "interleaved cannot have interleave 1"),
    ({"schedule": "interleaved", "interleave": 2, "global_batch": 192}, "microbatches-not-divisible", "global_batch",
     "multiple of pp 4 microbatches, not 6"),
    ({"ep": 2}, "experts-not-divisible", "ep", "the model has no experts"),
    ({"ep": 16, "experts": 8}, "experts-not-divisible", "ep", "8 experts are not divisible by ep 16"),
    ({"ep": 3, "experts": 9}, "experts-not-divisible", "ep", "dp x cp, which is 32, is not divisible by ep 3"),
    ({"seq": 8191}, "sequence-not-divisible", "cp", "8191 tokens are not divisible by cp 2"),
    ({"seq": 8190, "sequence_parallel": True}, "sequence-not-divisible", "sequence_parallel",
     "4095 tokens are not divisible by tp 8"),
    ({"positions": 1.0, "seq": 16384}, "context", "seq", "16,384 tokens exceeds the 8,192 learned positions"),
    ({"positions": 1.0}, None, "", ""),
    ({"seq": 16384}, None, "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("asked", "reason", "place", "reported"), REFUSED, ids=lambda x: str(x)[:50])
def test_refused(asked, reason, place, reported):
    asked = dict(asked)
    ranks, layers, experts = asked.pop("ranks", 1024), asked.pop("layers", 32.0), asked.pop("experts", 0)
    d = evolve(
        MIXTRAL if experts else LLAMA_3_8B,
        layers=layers,
        positions=asked.pop("positions", 0.0),
        **({"experts": float(experts)} if experts else {}),
    )
    layout = evolve(BASE, **asked)
    if reason is None:
        check(layout, d, ranks)
        return
    with pytest.raises(RefusalError) as refused:
        check(layout, d, ranks)
    assert (reason, place) == (refused.value.reason, refused.value.place)
    assert reported in str(refused.value)


@pytest.mark.parametrize(
    ("batch", "hint"),
    [
        (250, "global_batch 224 or global_batch 256"),
        (20, "global_batch 32, or fewer replicas by a larger tp, pp or cp"),
    ],
)
def test_batches_that_are_divisible(batch, hint):
    with pytest.raises(RefusalError) as refused:
        check(evolve(BASE, global_batch=batch), LLAMA_3_8B, 1024)
    assert hint == refused.value.hint


def test_the_hint_of_a_count_that_does_not_come_out():
    with pytest.raises(RefusalError) as refused:
        check(evolve(BASE, dp=8), LLAMA_3_8B, 1024)
    assert "dp 16" == refused.value.hint
    for asked, ranks, hint in (
        ({"tp": 3}, 1024, "tp 2 or tp 4"),
        # Of what divides the ranks only what divides the heads too.
        ({"tp": 5, "pp": 1, "cp": 1}, 72, "tp 4 or tp 8"),
        ({"tp": 64, "pp": 1, "cp": 1}, 32, "tp 32"),
        ({"pp": 5}, 1024, "pp 4 or pp 8"),
        ({"cp": 100}, 1024, "cp 32"),
        # Nothing will do where pp alone does not divide the ranks.
        ({"tp": 7, "pp": 3, "cp": 1}, 1024, ""),
        ({}, 1000, ""),
    ):
        with pytest.raises(RefusalError) as refused:
            check(evolve(BASE, dp=8, **asked), LLAMA_3_8B, ranks)
        assert hint == refused.value.hint
