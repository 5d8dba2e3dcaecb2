"""Compiled static graphs: buckets of batch and context, all experts, and shards narrower than a tile."""

from __future__ import annotations

import numpy as np
import pytest

from trnspec.perf.serving.static_graphs import bucket, powers_of_two


@pytest.mark.parametrize(
    ("smallest", "size", "expected"),
    [
        (128, 1, (128,)),
        (128, 128, (128,)),
        (128, 129, (128, 256)),
        (1, 5, (1, 2, 4, 8)),
        (128, 1000, (128, 256, 512, 1024)),
    ],
)
def test_powers_of_two(smallest, size, expected):
    assert expected == powers_of_two(smallest, size)


def test_the_smallest_bucket_that_holds_a_size():
    buckets = (128, 640, 1024)

    assert [128.0, 128.0, 640.0, 640.0, 1024.0] == [bucket(float(n), buckets) for n in (1, 128, 129, 640, 641)]
    assert [128.0, 640.0, 1024.0] == list(bucket(np.array([5.0, 600.0, 1000.0]), buckets))
