"""Questions about serving: what cannot be is refused at the input at fault, and what is of no use is reported."""

import pytest

from tests.support.engine import refusal, shipped
from trnspec.evaluators.deployment import InferenceQuestion, Setup, idle, prepare
from trnspec.perf.lowering.calibrated import Calibrated

LLAMA = {"model": "llama-3.1-8b", "on": "trn1.32xlarge"}
GPT = {"model": "gpt2", "on": "trn1.32xlarge", "tp": 4}


def prepared(**given) -> Setup:
    return prepare(shipped().graph, InferenceQuestion(**given), Calibrated())


REFUSED = [
    ({**LLAMA, "tp": 128}, "rank-count", "tp", "tp up to 32"),
    ({**LLAMA, "tp": 33, "dp": 4}, "rank-count", "tp", "tp up to 32"),
    ({**LLAMA, "pp": 64}, "rank-count", "pp", "pp up to 32"),
    ({**LLAMA, "tp": 8, "pp": 8}, "rank-count", "pp", "pp up to 4"),
    ({**LLAMA, "tp": 8, "pp": 2, "dp": 3}, "rank-count", "dp", "dp up to 2"),
    ({**LLAMA, "prefill_on": "trn1.2xlarge", "pp": 4}, "rank-count", "prefill_on", "pp up to 2"),
    ({**GPT, "prompt": 1025, "output": 1}, "context", "prompt", "up to 1,024 tokens"),
    ({**GPT, "prompt": 1024, "output": 1}, "context", "output", "up to 1,024 tokens"),
    ({**GPT, "prompt": 1, "output": 1024}, "context", "output", "up to 1,024 tokens"),
]


@pytest.mark.parametrize(("given", "reason", "place", "hint"), REFUSED, ids=lambda x: str(x)[:60])
def test_refused(given, reason, place, hint):
    refused = refusal(prepared, **given)
    assert (reason, place, hint) == (refused.reason, refused.place, refused.hint)


def test_as_long_as_the_positions():
    assert 1024.0 == prepared(**GPT, prompt=1000, output=24).dims.context
    # Positions that are turned and not learned have no end.
    assert prepared(**LLAMA, prompt=200_000, output=1).question.prompt == 200_000


IDLE = [
    ({"tp": 8}, {}),
    ({"tp": 8, "pp": 2, "dp": 2}, {}),
    ({"tp": 5}, {"idle_ranks": "2 of 32"}),
    ({"tp": 7}, {"idle_ranks": "4 of 32"}),
    ({"tp": 24}, {"idle_ranks": "8 of 32"}),
    ({"tp": 31}, {"idle_ranks": "1 of 32"}),
    ({"tp": 8, "dp": 1}, {"idle_ranks": "24 of 32"}),
    ({"tp": 8, "pp": 2, "dp": 1, "prefill_on": "trn2.48xlarge"}, {"idle_ranks": "16 of 32"}),
    ({"tp": 8, "pp": 32, "on": "trn1.32xlarge*9", "prefill_on": "trn2.48xlarge*9"},
     {"idle_ranks": "32 of 288", "prefill_idle_ranks": "64 of 576"}),
]  # fmt: skip


@pytest.mark.parametrize(("given", "expected"), IDLE, ids=lambda x: str(x)[:60])
def test_ranks_that_no_replica_has_are_reported(given, expected):
    found = list(idle(prepared(**LLAMA | given)))
    assert expected == {a.name: a.value for a in found}
    assert all("tp" in a.why for a in found)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"context_buckets": (1024, 2048), "prompt": 2000, "output": 49},
            "prompt + output is 2,049; the largest of context_buckets is 2,048",
        ),
        ({"batch_buckets": (4, 1), "batch": 5}, "the batch is 5; the largest of batch_buckets is 4"),
    ],
)
def test_no_bucket_holds_a_request(given, message):  # fmt: skip
    refused = refusal(prepared, **LLAMA, **given)
    assert ("no-bucket", message) == (refused.reason, str(refused))


def test_the_largest_bucket_holds_a_request_of_its_size():
    given = {"context_buckets": (2048, 1024), "prompt": 2000, "output": 48, "batch_buckets": (4, 1), "batch": 4}
    question = prepared(**LLAMA, **given).question

    assert ((1024, 2048), (1, 4)) == (question.context_buckets, question.batch_buckets)
