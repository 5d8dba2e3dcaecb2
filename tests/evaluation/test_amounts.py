"""Amounts with a suffix."""

from __future__ import annotations

from datetime import date

import pytest

from trnspec.errors import UsageError
from trnspec.evaluation.amounts import amount, duration, in_unit, suffixed, until

length, rate, share = in_unit(int, "TOKENS"), in_unit(float, "REQUESTS/S"), in_unit(float, "SHARE")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60d", 60 * 86400.0),
        ("1.5 h", 5400.0),
        ("10min", 600.0),
        ("90s", 90.0),
        ("2w", 14 * 86400.0),
        ("1e3h", 3.6e6),
        ("60 days", 60 * 86400.0),
        ("1 week", 7 * 86400.0),
        ("30 s", 30.0),
        ("12hrs", 12 * 3600.0),
    ],
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
        ("15T tokens", 1.5e13),
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
    assert until("2027-02", "deadline", today) == until("2027-02-28", "deadline", today) == 99 * 86400.0


@pytest.mark.parametrize("text", ["2026-11-21", "2026-02-30", "2026-13-01", "2026-10", "2026-13"])
def test_not_a_day(text: str) -> None:
    with pytest.raises(UsageError, match="deadline: "):
        until(text, "deadline", date(2026, 11, 22))


@pytest.mark.parametrize("text", ["", "T", "10X", "10 apples", "-1T", "0", "1,000", "nan", "10TT", "$10T"])
def test_not_an_amount(text: str) -> None:
    with pytest.raises(UsageError, match="tokens: a number above 0"):
        amount(text, "tokens", "tokens")


@pytest.mark.parametrize(("text", "value"), [("3M USD", 3e6), ("$3M", 3e6), ("500k", 5e5), ("2.5m usd", 2.5e6)])
def test_money(text: str, value: float) -> None:
    assert amount(text, "budget", "USD") == value


@pytest.mark.parametrize(
    ("text", "value"), [("4096", 4096), ("8k", 8192), ("8K", 8192), ("1M", 1048576), ("0.5k", 512), ("4 k", 4096)]
)
def test_lengths_have_binary_multiples(text: str, value: int) -> None:
    assert length(text, "seq") == value


@pytest.mark.parametrize("text", ["", "k", "8.3", "8kk", "8b", "-8k", "1e3k", "1_024"])
def test_not_a_length(text: str) -> None:
    with pytest.raises(UsageError, match="seq: a whole number is expected, such as 4096 or 4k"):
        length(text, "seq")


@pytest.mark.parametrize(
    ("text", "value"),
    [("20", 20.0), ("20/s", 20.0), ("20 requests/s", 20.0), ("1200/min", 20.0), ("72k/h", 20.0), ("20 req/sec", 20.0)],
)
def test_rates(text: str, value: float) -> None:
    assert rate(text, "rate") == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "fast", "20/", "20 per second", "20/parsec", "-20/s"])
def test_not_a_rate(text: str) -> None:
    with pytest.raises(UsageError, match="rate: a rate is expected"):
        rate(text, "rate")


@pytest.mark.parametrize(
    ("text", "value"), [("0.5", 0.5), ("50%", 0.5), ("12.5 %", 0.125), ("1e-3", 0.001), ("1", 1.0)]
)
def test_shares(text: str, value: float) -> None:
    assert share(text, "prefix_hit") == value


@pytest.mark.parametrize("text", ["", "%", "half", "-5%", "50%%", "50 percent"])
def test_not_a_share(text: str) -> None:
    with pytest.raises(UsageError, match="prefix_hit: a share is expected"):
        share(text, "prefix_hit")


@pytest.mark.parametrize("value", [10e12, 2.5e9, 123456.0, 0.5, 1e6 + 1])
def test_a_number_is_read_back(value: float) -> None:
    assert amount(suffixed(value), "tokens", "tokens") == value
