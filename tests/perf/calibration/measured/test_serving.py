"""Rows of serving on GPUs: how they are read, and which are skipped."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.perf.calibration.measured.rows import changed
from tests.support.engine import everything
from trnspec.loading.files import shipped as folder
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.serving import ServingCase, on_gpu, serving_cases
from trnspec.perf.calibration.measured.tables import records

DATA = folder() / "measured"


@pytest.mark.parametrize(("below", "skipped"), [(2, 2), (3, 3), (4, 13)])
def test_a_sweep_with_many_rows_below_their_bounds_is_skipped(below: int, skipped: int) -> None:
    """Of 13 rows three are fewer than a quarter."""
    rows = [changed("serving", {"id": i, "tpot_ms": "0.5" if i < below else 20}) for i in range(13)]
    # The rows of another model are a sweep of their own.
    rows += [changed("serving", {"id": f"other {i}", "model": "openai/gpt-oss-20b", "tpot_ms": 20}) for i in range(3)]
    found = serving_cases(everything(), rows)
    assert skipped == sum(isinstance(c, Skipped) for c in found)
    assert all(isinstance(c, ServingCase) for c in found[-3:])


def test_gpu_rows() -> None:
    assert on_gpu(changed("serving", {}))
    assert not on_gpu(changed("inference", {}))
    assert not on_gpu(changed("serving", {"kind": "train"}))


def test_every_row_is_read_or_below_its_bound() -> None:
    found = serving_cases(everything(), records(DATA / "serving_gpu.csv"))
    reasons = Counter(c.reason.split(" with ")[0].split(":")[0] for c in found if isinstance(c, Skipped))
    sweep = "of the 21 rows of its sweep 7 are below their lower bound"
    assert {"the time per output token is below its lower bound": 15, sweep: 14} == reasons
    assert 967 == sum(isinstance(c, ServingCase) for c in found)
