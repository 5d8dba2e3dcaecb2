"""trnspec.quantities.dates: comparing dates of different precision, and reading those in words."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables import tables
from trnspec.quantities.dates import compared, date_of, likely_date

TABLES = tables(__file__)

DATES = st.dates().map(str).flatmap(lambda day: st.sampled_from([day, day[:7], day[:4]]))


@given(DATES, DATES)
def test_comparison_is_antisymmetric_and_ignores_missing_precision(one, other):
    assert compared(one, other) == -compared(other, one)
    assert compared(one, one[:4]) == 0


@pytest.mark.parametrize(("text", "expected"), TABLES["date_in_words"])
def test_date_in_words(text, expected):
    assert expected == date_of(text)


@pytest.mark.parametrize(("text", "expected"), TABLES["likely_date"])
def test_likely_date(text, expected):
    assert expected == likely_date(text)
