"""trnspec.graph.totals: a total is its part times the count, digit by digit."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnspec.api import registry
from trnspec.graph.totals import chips, total
from trnspec.loading.pipeline import link, load_document
from trnspec.yaml import read_text

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph

KNOWN = registry()
BF16 = ("spec", "peak", "dense", "bf16")
CAPACITY = ("spec", "memory", "capacity")


def graph(chip: str = "one", count: int = 16, server: str = "box", servers: int = 4, bf16: str = "190 TFLOPS") -> Graph:
    """A chip, a server of it, an UltraServer of that, and a link."""
    head = "api_version: trnspec/v1\nkind: {}\nmetadata: {{name: {}, title: T}}\nspec: "
    texts = [
        head.format("Chip", "one") + f"{{peak: {{dense: {{bf16: {bf16}}}}}, memory: {{capacity: 96 GiB}}}}",
        head.format("Server", "box") + f"{{chips: {{chip: {chip}, count: {count}}}}}",
        head.format("UltraServer", "rack") + f"{{servers: {{server: {server}, count: {servers}}}}}",
        head.format("Link", "cable") + "{connects: chips}",
    ]
    return link(load_document(read_text(t, f"{i}.yaml"), KNOWN) for i, t in enumerate(texts))[0]


@pytest.mark.parametrize(("name", "count"), [("one", 1), ("box", 16), ("rack", 64)])
def test_chips(name, count) -> None:
    made = graph()

    assert (count, made.named("one")) == chips(made, made.named(name))


def test_no_chips_in_a_link() -> None:
    made = graph()

    assert (chips(made, made.named("cable")), total(made, made.named("cable"), BF16)) == (None, None)


@pytest.mark.parametrize(
    "made", [graph(chip="none"), graph(chip="cable"), graph(server="rack"), graph(server="one"), graph(server="none")]
)
def test_wrong_parts(made) -> None:
    """A part that is not there or is of another kind, the document itself among them, gives no total."""
    assert chips(made, made.named("rack")) is None
    assert total(made, made.named("rack"), BF16) is None


def test_figure_that_the_chip_does_not_have() -> None:
    made = graph()

    assert total(made, made.named("box"), ("spec", "memory", "bandwidth")) is None
    assert total(made, made.named("box"), ("spec", "dies")) is None


@pytest.mark.parametrize(
    ("bf16", "count", "text"),
    [
        ("190 TFLOPS", 16, "3,040 TFLOPS"),
        ("667 TFLOPS", 16, "10.672 PFLOPS"),
        ("~1 TFLOPS", 16, "~16 TFLOPS"),
        ("47.5 TFLOPS", 3, "142.5 TFLOPS"),
    ],
)
def test_shown_with_all_digits(bf16, count, text) -> None:
    """A product is not rounded; from five digits on it moves to the next unit."""
    made = graph(bf16=bf16, count=count)

    assert text == str(total(made, made.named("box"), BF16))


def test_binary_units_stay() -> None:
    made = graph(count=144)

    assert str(total(made, made.named("box"), CAPACITY)) == "13,824 GiB"


@given(count=st.integers(1, 10_000), servers=st.integers(1, 100), tenths=st.integers(1, 99_999))
def test_total_is_part_times_count(count, servers, tenths) -> None:
    """Value and interval are scaled exactly."""
    made = graph(bf16=f"{tenths / 10} TFLOPS", count=count, servers=servers)
    found = total(made, made.named("rack"), BF16)
    part = total(made, made.named("one"), BF16)

    assert found is not None
    assert part is not None
    assert count * servers == found.count
    assert Fraction(tenths, 10) * 10**12 * count * servers == found.figure.value.value * found.count
    assert (part.interval.low * found.count, part.interval.high * found.count) == (
        found.interval.low,
        found.interval.high,
    )
    assert float(found) == pytest.approx(float(part) * found.count)
