"""Conditions of invalid layouts against the remainders of whole numbers."""

from __future__ import annotations

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.engine import GPT_175B, LLAMA_3_8B, MIXTRAL
from trnspec.perf.work.layout import SCHEDULES, V_SHAPED, Layout
from trnspec.perf.work.transformer import common_heads
from trnspec.perf.work.validity import REASONS, conditions, reason_codes

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
