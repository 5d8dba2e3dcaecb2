"""Layouts in words: every reason why one cannot be, in words, and against the remainders of whole numbers."""

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.engine import GPT_175B, LLAMA_3_8B, MIXTRAL, refusal
from trnspec.perf.work.layout import SCHEDULES, V_SHAPED, Layout
from trnspec.perf.work.transformer import common_heads
from trnspec.perf.work.validity import REASONS, check, conditions, reason_codes

DEGREES = st.sampled_from([1, 2, 3, 4, 8])
LAYOUTS = st.builds(
    Layout, tp=DEGREES, pp=st.sampled_from([1, 2, 3, 4, 8, 128]), dp=DEGREES, cp=DEGREES, ep=DEGREES,
    expert_tp=st.sampled_from([None, 1, 2]),
    seq=st.sampled_from([6, 8, 12, 64]), microbatch=DEGREES, global_batch=st.sampled_from([8, 12, 48]),
    schedule=st.sampled_from([*SCHEDULES]), sequence_parallel=st.booleans(), interleave=st.sampled_from([1, 2]), uneven=st.booleans(),
)  # fmt: skip


@settings(max_examples=400)
@given(st.sampled_from([GPT_175B, evolve(LLAMA_3_8B, layers=30.0), MIXTRAL]), LAYOUTS, st.sampled_from([1, 8, 16, 64]))
def test_what_does_not_divide(d, x, ranks):
    of_expert, chunks = x.expert_tp or x.tp, x.pp * x.interleave * (1 + (x.schedule in V_SHAPED))
    microbatches, left = divmod(x.global_batch, x.microbatch * x.dp)
    experts = int(max(1, d.experts))
    expected = {
        "rank-count": x.tp * x.pp * x.dp * x.cp != ranks,
        "batch-not-divisible": left > 0,
        "heads-not-divisible": common_heads(d) % x.tp > 0,
        # One stage has 1F1B only; passes of V-shaped schedules are executed.
        "schedule": (x.interleave > 1) != (x.schedule == "interleaved")
        or (x.pp == 1 and (x.schedule != "1f1b" or x.interleave > 1))
        or (x.schedule in V_SHAPED and x.pp > 64),
        "layers-not-divisible": not x.uneven and x.pp > 1 and min(d.layers % chunks, (d.layers + 2) % chunks) > 0,
        "microbatches-not-divisible": left > 0 or (x.interleave > 1 and microbatches % x.pp > 0),
        "experts-not-divisible": experts % x.ep > 0
        or x.tp % of_expert > 0
        or x.dp * x.cp * x.tp % (of_expert * x.ep) > 0,
        "sequence-not-divisible": x.seq % (x.cp * (x.tp if x.sequence_parallel else 1)) > 0,
        "context": False,
    }
    found = conditions(x, d, ranks)
    assert expected == {name: bool(holds) for name, holds in found.items()}
    assert next((r for r in REASONS if expected.get(r)), "") == REASONS[int(reason_codes(found))]


BASE = Layout(tp=8, pp=4, dp=16, cp=2, seq=8192, global_batch=256, microbatch=2)
"""1,024 ranks, eight microbatches of a replica."""


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
    refused = refusal(check, layout, d, ranks)
    assert (reason, place) == (refused.reason, refused.place)
    assert reported in str(refused)


@pytest.mark.parametrize(
    ("batch", "hint"),
    [
        (250, "global_batch 224 or global_batch 256"),
        (20, "global_batch 32, or fewer replicas by a larger tp, pp or cp"),
    ],
)
def test_batches_that_are_divisible(batch, hint):
    assert hint == refusal(check, evolve(BASE, global_batch=batch), LLAMA_3_8B, 1024).hint


def test_the_hint_of_a_count_that_does_not_come_out():
    for asked, ranks, hint in (
        ({}, 1024, "dp 16"),
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
        assert hint == refusal(check, evolve(BASE, dp=8, **asked), LLAMA_3_8B, ranks).hint
