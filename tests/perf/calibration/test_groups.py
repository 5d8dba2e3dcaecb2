"""Groups of held-out rows: clusters count once, and intervals have the finite-sample levels of conformal prediction."""

import numpy as np
import pytest
from attrs import frozen

from trnspec.perf.calibration.fits.fit import Errors
from trnspec.perf.calibration.groups import ENOUGH, FEW, LEAST, groups, interval


def test_the_levels_of_an_interval():
    """Of 9 clusters from the first to the ninth, of 19 from the second to the 18th: floor and ceil of (n + 1) a / 2."""
    for n, ends in ((9, (1.0, 9.0)), (19, (2.0, 18.0)), (25, (2.0, 24.0)), (4, (1.0, 4.0))):
        assert ends == pytest.approx(interval(np.arange(1.0, n + 1.0), np.arange(n)))


def test_the_next_cluster_is_inside():
    """Over many draws at least the share of the coverage, and not much more."""
    random = np.random.default_rng(0)
    inside = []
    for _ in range(2000):
        *seen, unseen = random.lognormal(0.0, 0.3, 40)
        low, high = interval(np.array(seen), np.arange(39))
        inside.append(low <= unseen <= high)
    assert 0.78 < np.mean(inside) < 0.86


@frozen
class Row:
    """The group of a row."""

    scale: str
    models: str
    chip: str
    model: str
    cluster: str


def labels(scale, models, count, of=""):
    return [Row(scale, models, of or "c", f"m{i}", f"{of or scale}{models}{i}") for i in range(count)]


def found(rows, errors, chip="", fit=None):
    return groups("step", Errors(cases=tuple(rows), fit=errors if fit is None else fit, held_out=errors), chip)


def test_the_groups():
    """All rows, then those with enough clusters; those that have all rows of another are left out."""
    rows = [
        *labels("server", "dense", LEAST),
        *labels("server", "experts", LEAST - 1),
        *labels("large", "dense", LEAST),
    ]
    some = found(rows, np.linspace(-0.1, 0.1, len(rows)))
    expected = [("", ""), ("large", "dense"), ("server", "dense"), ("server", ""), ("", "dense")]
    assert expected == [(g.scale, g.models) for g in some]
    assert [3 * LEAST - 1, LEAST, LEAST, 2 * LEAST - 1, 2 * LEAST] == [g.clusters for g in some]
    assert [("", "")] == [(g.scale, g.models) for g in found(labels("server", "dense", 30), np.zeros(30))]


def test_a_group_of_few_is_drawn_towards_all_rows():
    """In proportion to the clusters that it lacks, and the more, the fewer models it has."""
    rows = [*labels("server", "dense", 40), *labels("large", "dense", 4)]
    errors = np.concatenate([np.linspace(-0.5, 1.0, 40), np.zeros(4)])
    everything, few, many = found(rows, errors)
    assert ("large", "server") == (few.scale, many.scale)
    own = 4 / ENOUGH * 4 / (4 + FEW)
    assert (few.low, few.high) == pytest.approx((everything.low ** (1 - own), everything.high ** (1 - own)))
    own = 40 / (40 + FEW)
    alone = interval(1 / (1 + errors[:40]), np.arange(40))
    expected = [a**own * e ** (1 - own) for a, e in zip(alone, (everything.low, everything.high), strict=True)]
    assert expected == pytest.approx([many.low, many.high])


def test_the_rows_of_the_chip_are_the_group_where_they_are_enough():
    rows = [*labels("server", "dense", ENOUGH, "a"), *labels("server", "dense", ENOUGH - 1, "b")]
    errors = np.concatenate([np.full(ENOUGH, 0.25), np.full(ENOUGH - 1, -0.5)])
    (of_a,) = found(rows, errors, "a")
    (of_b,) = found(rows, errors, "b")
    assert (ENOUGH, 0.8, 0.8) == (of_a.rows, pytest.approx(of_a.low), pytest.approx(of_a.high))
    assert (2 * ENOUGH - 1, 0.8, 2.0) == (of_b.rows, pytest.approx(of_b.low), pytest.approx(of_b.high))
