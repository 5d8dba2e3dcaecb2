"""trnspec.graph.currency: the newest source of every value, and the whole result for a small catalog."""

import pytest

from docs.currency import currencies
from tests.support.rules import document, graph, source
from trnspec.errors import UsageError
from trnspec.graph.currency import Age, ages, limit, months_between


@pytest.mark.parametrize(
    ("as_of", "reference", "months"),
    [
        ("2024-12-03", "2026-11-22", 23),
        ("2024-12", "2026.12", 24),
        ("2026-11-30", "2026-11", 0),
        # A year alone counts as its December, and nothing is younger than 0.
        ("2025", "2026-11", 11),
        ("2026", "2026-11", 0),
    ],
)
def test_months(as_of, reference, months) -> None:
    assert months_between(as_of, reference) == months


@pytest.mark.parametrize(("text", "months"), [("12mo", 12), ("1 month", 1), ("2y", 24), ("0mo", 0)])
def test_limits(text, months) -> None:
    assert limit(text) == months


@pytest.mark.parametrize("text", ["", "12", "-1mo", "12m", "1.5y", "soon", "99999mo"])
def test_refuses_invalid_limit(text) -> None:
    with pytest.raises(UsageError, match="is not an age"):
        limit(text)


PAGES = [source("old", "'2023'"), source("page", "2024-02"), source("new", "2025-03-15"), source("twin", "2025-03-15")]
LINK = document("Link", "a-wire", "spec: {connects: chips}", "source: old")
CHIP = document(
    "Chip",
    "one",
    """\
spec:
  dies: {value: 2, source: old}
  peak: {dense: {bf16: {value: 600 TFLOPS, source: new, derived: 2 x 300 TFLOPS}, fp8: {value: 1 PFLOPS, source: old}}}
  memory: {capacity: 100 GiB, bandwidth: {value: 3 TB/s, derived: 2 x 1.5 TB/s}}
  other: {extra: 5 us}
  ratios:
    - {of: spec.memory.capacity, over: bare, says: 2x, source: page}
    - {of: spec.memory.bandwidth, over: bare, says: 3x, source: old, verdict: rejected, reason: It is less.}
claims:
  - {at: spec.dies, says: 2, source: page}
  - {at: spec.dies, says: 2, source: old}
  - {at: spec.peak.dense.fp8, says: 0.9 PFLOPS, source: new, verdict: rounded, reason: To one digit.}
  - {at: spec.memory.capacity, says: 96 GiB, source: new, verdict: rejected, reason: It is not.}
  - {at: spec.memory.capacity, says: 90 GiB, source: new, verdict: superseded, reason: It was.}
  - {at: spec.memory.capacity, says: 50 GiB, source: new, verdict: other-scope, scope: half, reason: Of a half.}
  - {at: spec.memory.capacity, says: 80 GiB, source: new, verdict: unresolved, reason: Who knows.}
  - {at: spec.memory.capacity, says: 100 GiB, source: old}
  - {at: spec.other.extra, says: 5 us, source: twin}
  - {at: spec.other.extra, says: 5 us, source: new}
  - {at: spec.memory_pool, says: all of them, source: new, verdict: unresolved, reason: Who knows.}""",
    "source: page",
)
BARE = document("Chip", "bare", "spec: {memory: {capacity: {value: 50 GiB, source: old}}}", "source: page")
NONE = document("Chip", "none", "spec: {memory: {capacity: 50 GiB}}")
POWER = document("Power", "one-tdp", "spec: {of: one, type: tdp, power: 400 W}", "source: page")
CLAIMED = document(
    "Power",
    "bare-tdp",
    "spec: {of: bare, type: tdp}\nclaims: [{at: spec.power, says: 1 kW, source: page, verdict: unresolved, reason: So.}]",
    "source: page",
)
MADE = graph(*PAGES, CHIP, BARE, NONE, LINK, POWER, CLAIMED)


def age(at: str, value: str, origin: str, as_of: str, sources: int, months: int, name: str = "one") -> Age:
    return Age(name=name, at=at, value=value, source=origin, as_of=as_of, sources=sources, months=months)


AGES = [
    # A newer claim that agrees, or that is a rounding; the same source twice counts once.
    age("dies", "2", "page", "2024-02", 2, 22),
    age("peak.dense.fp8", "1 PFLOPS", "new", "2025-03-15", 2, 9),
    # Only a claim that agrees supports a value; an older one makes it no older.
    age("memory.capacity", "100 GiB", "page", "2024-02", 2, 22),
    # Of printed ratios too, whatever the verdict on them.
    age("ratios.0.says", "2x", "page", "2024-02", 1, 22),
    age("ratios.1.says", "3x", "old", "2023", 1, 24),
    # Of two sources of one day the last by name.
    age("other.extra", "5 us", "twin", "2025-03-15", 3, 9),
]


def test_ages() -> None:
    """Not those of derived values, although one has a source, and not of what is only claimed."""
    assert AGES == list(ages(MADE, "2025.12", ["one"]))


@pytest.mark.parametrize("names", [["bare", "one-tdp"], ["one-tdp", "bare", "nothing"]])
def test_ages_of_some_documents(names) -> None:
    found = [(a.name, a.at, a.source, a.months) for a in ages(MADE, "2025-12", names)]

    assert [
        ("bare", "memory.capacity", "old", 24),
        ("one-tdp", "of", "page", 22),
        ("one-tdp", "type", "page", 22),
        ("one-tdp", "power", "page", 22),
    ] == found


def test_documents() -> None:
    """In the order of kinds and names; a document without a source has no age, and is not a sibling either."""
    assert [
        # A power of the other chip is known, and one of this chip is claimed.
        ("bare", "Chip", "old", "2023", 24, (("2023", 1),), 0, ("dies", "memory.bandwidth", "memory_pool", "power")),
        ("one", "Chip", "twin", "2025-03-15", 9, (("2023", 1), ("2024", 3), ("2025", 2)), 2, ("memory_pool",)),
        ("a-wire", "Link", "old", "2023", 24, (("2023", 1),), 0, ()),
        ("bare-tdp", "Power", "page", "2024-02", 22, (("2024", 2),), 0, ("power",)),
        ("one-tdp", "Power", "page", "2024-02", 22, (("2024", 3),), 0, ()),
    ] == [
        (c.name, c.kind, c.source, c.as_of, c.months, c.years, c.derived, c.unknown)
        for c in currencies(MADE, "2025-12")
    ]


def test_power_that_is_only_claimed_of_another_chip_is_unknown() -> None:
    dated = document("Chip", "dated", "spec: {memory: {capacity: 50 GiB}}", "source: page")
    (found,) = (c for c in currencies(graph(*PAGES, BARE, dated, CLAIMED), "2025.12") if c.name == "dated")

    assert ("power",) == found.unknown


def test_values_below_what_is_not_stated_are_not_listed() -> None:
    bare, wide = (
        document("Chip", name, f"spec: {{memory: {{capacity: 50 GiB}}{more}}}", "source: page")
        for name, more in (("bare", ""), ("wide", ", dma: {bandwidth: 1 TB/s}"))
    )
    assert {"bare": ("dma",), "wide": ()} == {c.name: c.unknown for c in currencies(graph(*PAGES, bare, wide), "2025")}
