"""Counts as publishers round them."""

from fractions import Fraction

import pytest

from tests.support.tables import tables
from trnspec.loading.conversion import converter
from trnspec.model.reflection import shape_of
from trnspec.model.rounded import count_of, interval_of, rounded
from trnspec.model.transformers.model import Parameters


@pytest.mark.parametrize(("text", "interval"), tables(__file__).items())
def test_interval(text, interval):
    assert rounded(text).interval_text == interval


@pytest.mark.parametrize("text", ["70.6", "B", "seventy billion", "7,06 B", "-1 B", "70 GB", "1B\n"])
def test_other_texts_are_not_counts(text):
    assert count_of(text) is None


def test_a_whole_number_is_exact():
    counts = {"70.6 B": 70_600_000_000, "100M": 10**8, "128 thousand": 128_000, "2 T": 2 * 10**12}
    assert counts == {text: int(rounded(text)) for text in counts}
    assert interval_of(7) == interval_of(7).point(Fraction(7))


@pytest.mark.parametrize("plain", ["70.6 B", {"value": "671B", "where": "README.md"}, 8030261248])
def test_it_comes_back_as_written(plain):
    parameters = converter().structure({"total": plain}, shape_of(Parameters))

    assert converter().unstructure(parameters) == {"total": plain}
