"""Invalid batches and sweeps, and their messages."""

import re

import numpy as np
import pytest

from tests.support.engine import SYSTEMS, estimator
from trnspec.errors import UsageError
from trnspec.perf.sweep.batch import rows, sweep
from trnspec.perf.work.layout import OPTIMIZERS

SWEPT = tuple(estimator(name, SYSTEMS[0]) for name in ("llama-8b", "latent", "gpt"))


@pytest.mark.parametrize(
    ("given_", "message"),
    [
        ({"tpp": 1}, "'tpp' is not an axis of a sweep; expected one of tp, pp"),
        ({"tp": 0}, "tp is 0; expected 1 or more"),
        ({"tp": [1, 2.0]}, "tp is 2.0; expected an integer"),
        ({"tp": True}, "tp is True; expected an integer"),
        ({"tp": []}, "the axis tp has no values"),
        ({"tp": [2, 2]}, "the axis tp has duplicate values"),
        ({"zero": 4}, "zero is 4; expected an integer from 0 to 3"),
        ({"node_limit": [0, 63, 64]}, "node_limit is 64; expected an integer from 0 to 63"),
        ({"schedule": "2f2b"}, "'2f2b' is not a schedule; expected one of 1f1b"),
        ({"schedule": "interleaved"}, "the schedule interleaved needs the number of chunks: ('interleaved', 2)"),
        ({"recompute": "some"}, "recompute is 'some'; expected one of none, selective, full"),
        ({"overlap": 1}, "overlap is 1; expected True or False"),
        ({"parts": ["data", "dates"]}, "a step has no part 'dates'; expected some of compute"),
        ({"block": 0}, "block is 0; expected 1 or more"),
    ],
)
def test_misuse_of_a_sweep(given_, message) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        sweep(SWEPT[0], **{"seq": 2048, "global_batch": 8} | given_)


def test_a_sweep_needs_seq() -> None:
    with pytest.raises(UsageError, match="a sweep needs the axis seq"):
        sweep(SWEPT[0], global_batch=8)


@pytest.mark.parametrize(
    ("which", "given_", "message"),
    [
        (0, {"tpp": 1}, "'tpp' is not a column of a batch; expected one of tp, pp"),
        (0, {"tp": np.array([1, 2]), "pp": np.array([1, 2, 3])}, "different lengths: 2, 3"),
        (0, {"tp": 1.5}, "the column tp has a value that is not an integer"),
        (0, {"tp": float("nan")}, "the column tp has a value that is not an integer"),
        (0, {"schedule": "2f2b"}, "schedule is '2f2b'; expected one of 1f1b"),
        (0, {"optimizer": ["adam", "eve"]}, "optimizer is 'eve'; expected one of adam"),
        (0, {"tp": [[1]]}, "the column tp is neither a number nor an array with one number per row"),
        (0, {"tp": "four"}, "the column tp is neither a number nor an array with one number per row"),
        *(
            (which, {}, "which names an estimator that does not exist; there are 3")
            for which in (-1, 3, [0, 3], [-1, 2])
        ),
        ([0.0], {}, "which is the position of an estimator: an integer"),
        ([[0]], {}, "which is the position of an estimator: an integer"),
        (0, {"parts": ["dates"]}, "a step has no part 'dates'"),
        (0, {"block": -1}, "block is -1; expected 1 or more"),
    ],
)
def test_misuse_of_a_batch(which, given_, message) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        rows(SWEPT, which, **{"seq": 2048, "global_batch": 8} | given_)


@pytest.mark.parametrize(
    ("name", "highest"),
    [
        *(("zero", 3), ("node_limit", 63), ("schedule", 7), ("recompute", 3), ("optimizer", len(OPTIMIZERS) - 1)),
        *((name, 1) for name in ("dispatch", "dispatch_dtype", "uneven", "overlap", "flash", "expert_overlap")),
    ],
)
def test_the_highest_value_of_a_column(name, highest) -> None:
    for value in (highest, [0, highest]):
        assert len(rows(SWEPT, 0, seq=2048, global_batch=8, **{name: value}).code) in (1, 2)
    for value in (highest + 1, -1, [0, highest + 1], [-1, 0]):
        with pytest.raises(UsageError, match=f"outside 0 to {highest}$"):
            rows(SWEPT, 0, seq=2048, global_batch=8, **{name: value})


def test_a_batch_needs() -> None:
    with pytest.raises(UsageError, match="a batch needs the column seq"):
        rows(SWEPT, 0, global_batch=8)
    with pytest.raises(UsageError, match="a batch needs an estimator"):
        rows((), 0, seq=8, global_batch=8)
