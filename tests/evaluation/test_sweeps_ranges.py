"""Ranges of values: written out exactly, and one error for each that is wrong."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnspec.errors import UsageError
from trnspec.evaluation.sweeps import MOST, expanded


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("8", ["8"]),
        ("1..64:x2", ["1", "2", "4", "8", "16", "32", "64"]),
        ("1..60:x2", ["1", "2", "4", "8", "16", "32"]),
        ("8..64:+8", ["8", "16", "24", "32", "40", "48", "56", "64"]),
        ("1..4", ["1", "2", "3", "4"]),
        ("7..7", ["7"]),
        ("0.1..0.5:+0.1", ["0.1", "0.2", "0.3", "0.4", "0.5"]),
        ("0.001..0.03:x3", ["0.001", "0.003", "0.009", "0.027"]),
        ("1e3..1e4:x10", ["1000", "10000"]),
        ("1.6..6.4Tbps:x2", ["1.6 Tbps", "3.2 Tbps", "6.4 Tbps"]),
        ("1 TB/s .. 3 TB/s : +1", ["1 TB/s", "2 TB/s", "3 TB/s"]),
    ],
)
def test_values(text: str, values: list[str]) -> None:
    assert values == expanded(text, "--x")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1..", "is not a range"),
        ("..8", "is not a range"),
        ("1..64:2", "is not a range"),
        ("1..64:*2", "is not a range"),
        ("-4..4:+1", "is not a range"),
        ("1..2..3", "is not a range"),
        ("8..1", "ends below its first value"),
        ("1..8:x1", "does not grow"),
        ("1..8:x0.5", "does not grow"),
        ("0..8:x2", "does not grow"),
        ("1..8:+0", "does not grow"),
        ("1..8.5", "has no step"),
        ("1..8TB/s", "has no step"),
        ("1GB/s..2TB/s:x2", "has two units"),
        ("1GB/s..2:x2", "has two units"),
        ("0..10000:+1", "has more than 10,000 values"),
        ("1e-9..1:+1", "is not a range"),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=r"^--x: ") as caught:
        expanded(text, "--x")

    assert message in str(caught.value)


def test_texts_are_ranges_only_with_a_step() -> None:
    assert ["../a.json"] == expanded("../a.json", "--x", numeric=False)
    assert ["1..4"] == expanded("1..4", "--x", numeric=False)
    assert ["1 T", "2 T", "4 T"] == expanded("1T..4T:x2", "--x", numeric=False)


@given(st.integers(0, 10**6), st.integers(0, 10**4), st.integers(1, 300))
def test_steps_are_those_of_arithmetic(first: int, span: int, step: int) -> None:
    values = expanded(f"{first / 10}..{(first + span) / 10}:+{step / 10}", "--x") if span // step < MOST else []

    assert [Fraction(n, 10) for n in range(first, first + span + 1, step)][: len(values)] == [
        Fraction(v) for v in values
    ]
