"""trnspec.graph.totals: a total is its part times the count, digit by digit."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnspec.api import registry
from trnspec.graph.graph import Graph
from trnspec.graph.totals import chips, total
from trnspec.loading.pipeline import link, load_document
from trnspec.yaml import read_text

KNOWN = registry()
BF16 = ("spec", "peak", "dense", "bf16")


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


@pytest.mark.parametrize(
    "made", [graph(chip="none"), graph(chip="cable"), graph(server="rack"), graph(server="one"), graph(server="none")]
)
def test_wrong_parts(made) -> None:
    """A part that is not there or is of another kind, the document itself among them, gives no total."""
    assert chips(made, made.named("rack")) is None
    assert total(made, made.named("rack"), BF16) is None


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
