"""Amounts with a suffix."""

from datetime import date
from functools import partial

import pytest

from trnspec.errors import UsageError
from trnspec.evaluation.amounts import OF_UNIT, amount, duration, suffixed, until

TODAY = date(2026, 11, 22)
deadline, last_day = partial(duration, name="deadline"), partial(until, name="deadline", today=TODAY)
tokens, budget = partial(amount, name="tokens", noun="tokens"), partial(amount, name="budget", noun="USD")
seq, rate, share = (
    partial(OF_UNIT[each], name="x") for each in ((int, "TOKENS"), (float, "REQUESTS/S"), (float, "SHARE"))
)


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (deadline, "60d", 60 * 86400.0), (deadline, "1.5 h", 5400.0), (deadline, "10min", 600.0),
        (deadline, "90s", 90.0), (deadline, "1e3h", 3.6e6), (deadline, "1 week", 7 * 86400.0),
        (deadline, "12hrs", 12 * 3600.0), (last_day, "2026-11-22", 86400.0), (last_day, "2027-03-01", 100 * 86400.0),
        (last_day, "60d", 60 * 86400.0), (last_day, "2027-02", 99 * 86400.0), (tokens, "10T", 1e13),
        (tokens, "300b tokens", 3e11), (tokens, "2.5M", 2.5e6), (tokens, "3G", 3e9), (tokens, "7k", 7e3), (tokens, "1e12", 1e12), (tokens, "15 T", 1.5e13),
        (budget, "3M USD", 3e6), (budget, "$3M", 3e6), (budget, "2.5m usd", 2.5e6), (seq, "4096", 4096),
        (seq, "8K", 8192), (seq, "1M", 1048576), (seq, "0.5k", 512), (seq, "4 k", 4096), (rate, "20", 20.0),
        (rate, "20 requests/s", 20.0), (rate, "1200/min", 20.0), (rate, "72k/h", 20.0), (rate, "20 req/sec", 20.0),
        (share, "0.5", 0.5), (share, "12.5 %", 0.125), (share, "1e-3", 0.001),
    ],
)  # fmt: skip
def test_values(read, text: str, value: float) -> None:
    """The last day is counted; lengths have binary multiples."""
    assert read(text) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("read", "texts", "message"),
    [
        (
            deadline,
            ["", "d", "60", "60 days ago", "-1d", "0d", "1e999d", "1,000h", "inf"],
            "deadline: a duration above 0",
        ),
        (last_day, ["2026-11-21", "2026-02-30", "2026-13-01", "2026-10", "2026-13"], "deadline: "),
        (tokens, ["", "T", "10X", "10 apples", "-1T", "0", "1,000", "nan", "10TT", "$10T"], "tokens: a number above 0"),
        (seq, ["", "k", "8.3", "8kk", "8b", "-8k", "1e3k", "1_024"], "a whole number is expected, such as 4096 or 4k"),
        (rate, ["", "fast", "20/", "20 per second", "20/parsec", "-20/s"], "x: a rate is expected"),
        (share, ["", "%", "half", "-5%", "50%%", "50 percent"], "x: a share is expected"),
    ],
)
def test_mistakes(read, texts: list[str], message: str) -> None:
    for text in texts:
        with pytest.raises(UsageError, match=message):
            read(text)


@pytest.mark.parametrize("value", [10e12, 2.5e9, 123456.0, 0.5, 1e6 + 1])
def test_a_number_is_read_back(value: float) -> None:
    assert tokens(suffixed(value)) == value
