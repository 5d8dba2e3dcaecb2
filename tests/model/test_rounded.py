"""Counts as publishers round them."""

from fractions import Fraction

import pytest

from trnspec.loading.conversion import converter
from trnspec.model.reflection import shape_of
from trnspec.model.rounded import count_of, interval_of, rounded
from trnspec.model.transformers.model import Parameters


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [
        ("70.6 B", 70_553_706_496, 70_500_000_000),
        ("671B", 671_026_419_200, 673_000_000_000),
        ("1.23B", 1_235_814_400, 1_241_000_000),  # cut off
        ("340M", 336_226_108, 320_000_000),  # zeros in place of digits
        ("230 billion", 228_689_764_864, 220_000_000_000),
        ("128K", 131_072, 262_144),  # a power of two
        ("~6B", 6_120_003_328, 7_500_000_000),
    ],
)
def test_interval(text, inside, outside):
    interval = interval_of(rounded(text))

    assert Fraction(inside) in interval
    assert Fraction(outside) not in interval


@pytest.mark.parametrize("text", ["70.6", "B", "seventy billion", "7,06 B", "-1 B", "70 GB", "1B\n"])
def test_other_texts_are_not_counts(text):
    assert count_of(text) is None


def test_a_whole_number_is_exact():
    assert interval_of(7) == interval_of(7).point(Fraction(7))


@pytest.mark.parametrize("plain", ["70.6 B", {"value": "671B", "where": "README.md"}, 8030261248])
def test_it_comes_back_as_written(plain):
    parameters = converter().structure({"total": plain}, shape_of(Parameters))

    assert converter().unstructure(parameters) == {"total": plain}
