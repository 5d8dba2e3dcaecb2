"""Amounts with a suffix."""

from __future__ import annotations

from datetime import date

import pytest

from trnspec.errors import UsageError
from trnspec.evaluators.planning.amounts import amount, duration, until


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("60d", 60 * 86400.0), ("1.5 h", 5400.0), ("10min", 600.0), ("90s", 90.0), ("2w", 14 * 86400.0), ("1e3h", 3.6e6)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text, "deadline") == seconds


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10T", 1e13),
        ("300B", 3e11),
        ("300b tokens", 3e11),
        ("2.5M", 2.5e6),
        ("1e12", 1e12),
        ("512", 512.0),
        ("15 T", 1.5e13),
    ],
)
def test_amounts(text: str, value: float) -> None:
    assert amount(text, "tokens", "tokens") == value


@pytest.mark.parametrize("text", ["", "d", "60", "60 days ago", "-1d", "0d", "1e999d", "1,000h", "inf"])
def test_not_a_duration(text: str) -> None:
    with pytest.raises(UsageError, match="deadline: a duration above 0"):
        duration(text, "deadline")


def test_the_last_day() -> None:
    """Counted with it; a duration is one."""
    today = date(2026, 11, 22)

    assert until("2026-11-22", "deadline", today) == 86400.0
    assert until("2027-03-01", "deadline", today) == 100 * 86400.0
    assert until("60d", "deadline", today) == 60 * 86400.0


@pytest.mark.parametrize("text", ["2026-11-21", "2026-02-30", "2026-13-01"])
def test_not_a_day(text: str) -> None:
    with pytest.raises(UsageError, match="deadline: "):
        until(text, "deadline", date(2026, 11, 22))


@pytest.mark.parametrize("text", ["", "T", "10X", "10 apples", "-1T", "0", "1,000", "nan", "10TT"])
def test_not_an_amount(text: str) -> None:
    with pytest.raises(UsageError, match="tokens: a number above 0"):
        amount(text, "tokens", "tokens")
