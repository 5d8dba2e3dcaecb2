"""trnspec.graph.quotes: the order of prices, and how they are shown, in a small catalog."""

import pytest

from tests.support.rules import document, graph, source
from trnspec.graph.quotes import PRICE_TYPES, Quote, chosen, quotes

PAGES = [
    source("old", "'2024'"),
    source("month", "2024-11"),
    source("day", "2024-11-19"),
    source("later", "2024-11-20"),
]
CHIP = document("Chip", "one", "spec: {memory: {capacity: 1 GiB}}", "source: old")
BOX = document("Server", "box", "spec: {chips: {chip: one, count: 4}}", "source: old, aliases: [crate]")
TIN = document("Server", "tin", "spec: {chips: {chip: one, count: 2}}", "source: old")


def price(name: str, type_: str, hourly: str, origin: str, more: str = "", server: str = "box") -> str:
    hours = f", hourly: {{{hourly}}}" if hourly else ""
    return document("Price", name, f"spec: {{server: {server}, type: {type_}{hours}{more}}}", f"source: {origin}")


MADE = graph(
    *PAGES, CHIP, BOX, TIN,
    price("spot-a", "spot", "us-east-2c: 2.5 USD/h, us-west-2: 2.5 USD/h", "day"),
    price("spot-z", "spot", "us-east-2b: 2 USD/h, unstated: 1 USD/h, eu-west-1: 2.5 USD/h", "later"),
    price("spot-old", "spot", "ap-south-1: 1 USD/h", "old"),
    price("spot-month", "spot", "ap-south-1: 1 USD/h", "month"),
    price("reserved", "reserved", "us-east-2: 6 USD/h, us-east-1: 7 USD/h", "old", ", term: 1 year"),
    price("demand", "on-demand", "us-east-1: 9.5 USD/h", "old"),
    price("demand-b", "on-demand", "us-east-1: 9 USD/h", "old", server="crate"),
    price("block", "capacity-block", "unstated: 5 USD/h", "old"),
    price("of-tin", "on-demand", "us-east-1: 1 USD/h", "old", server="tin"),
)  # fmt: skip
SERVER = MADE.named("box")


def shown(found: tuple[Quote, ...]) -> list[str]:
    return [f"{quote.document.name}: {quote}" for quote in found]


SPOT = [
    # Of stated regions the newest day; of one day the lowest; of one price the first document, then the first place.
    "spot-z: 2 USD/h spot (us-east-2b, 2024-11-20)",
    "spot-z: 2.5 USD/h spot (eu-west-1, 2024-11-20)",
    "spot-a: 2.5 USD/h spot (us-east-2c, 2024-11-19)",
    "spot-a: 2.5 USD/h spot (us-west-2, 2024-11-19)",
    "spot-month: 1 USD/h spot (ap-south-1, 2024-11)",
    "spot-old: 1 USD/h spot (ap-south-1, 2024)",
    # No region is stated, although it is new and low.
    "spot-z: 1 USD/h spot (no region stated, 2024-11-20)",
]
DEMAND = ["demand-b: 9 USD/h on-demand (us-east-1, 2024)", "demand: 9.5 USD/h on-demand (us-east-1, 2024)"]
RESERVED = [
    "reserved: 7 USD/h reserved of 1 year (us-east-1, 2024)",
    "reserved: 6 USD/h reserved of 1 year (us-east-2, 2024)",
]


@pytest.mark.parametrize(
    ("type_", "region", "expected"),
    [
        ("spot", None, SPOT),
        ("on-demand", None, DEMAND),
        ("reserved", None, RESERVED),
        ("capacity-block", None, ["block: 5 USD/h capacity-block (no region stated, 2024)"]),
        (None, "us-east-1", [*DEMAND, RESERVED[0]]),
        # A zone is in its region, and another zone of it is not meant by it.
        ("spot", "us-east-2", [SPOT[0], SPOT[2]]),
        ("spot", "us-east-2c", [SPOT[2]]),
        ("spot", "unstated", [SPOT[-1]]),
        ("spot", "us-east-1", []),
    ],
)
def test_quotes(type_, region, expected) -> None:
    found = quotes(MADE, SERVER, type_, region)

    assert expected == shown(found)
    if type_ is not None:
        first = chosen(MADE, SERVER, type_, region)
        assert expected[:1] == shown(() if first is None else (first,))


def test_all_quotes_by_type() -> None:
    every = {"spot": SPOT, "on-demand": DEMAND, "reserved": RESERVED}
    found = quotes(MADE, SERVER)

    assert [line for t in PRICE_TYPES for line in every.get(t, [])] == [
        line for line in shown(found) if "capacity-block" not in line
    ]
    assert sorted((q.type for q in found), key=PRICE_TYPES.index) == [q.type for q in found]
