"""trnspec.graph.totals.sums: every total of a system, as it is shown."""

from __future__ import annotations

from fractions import Fraction

import pytest

from tests.support.rules import document, graph
from tests.support.small_catalog import CORE, FULL, GRAPH, OLD, PAGE, WIRE
from trnspec.graph.totals import Sum, count_total, sums, terms, total
from trnspec.model.parts import CountRange
from trnspec.quantities.quantity import Qualifier

SMALL = document("Server", "small", "spec: {chips: {chip: full, count: 2}, host: {memory: 200 GiB}}", "source: page")
MORE = document("Cluster", "more", "spec: {servers: [small], chips: 'over 10,001'}")
MOST = document("Cluster", "most", "spec: {servers: [small], chips: 'up to 1,001'}")
EXACT = document("Cluster", "exact", "spec: {servers: [small], chips: '24,000'}")
SYSTEMS = graph(PAGE, OLD, CORE, FULL, WIRE, SMALL, MORE, MOST, EXACT)
PLACES = {"box": GRAPH, "rack": GRAPH, "tin": GRAPH, "full": GRAPH, "core": GRAPH, "page": GRAPH}


def found(name: str) -> tuple[Sum, ...]:
    made = PLACES.get(name, SYSTEMS)
    return sums(made, made.named(name))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "box",
            [
                ("chips", "chips.count", "4", "4 x full", "exact"),
                ("cores", "cores.count", "32", "4 x 8 core", "exact"),
                ("dies", "dies", "8", "4 x 2", "exact"),
                ("peak.dense.bf16", "peak.dense.bf16", "2,400 TFLOPS", "4 x 600 TFLOPS", "[2,398, 2,402)"),
                ("peak.dense.fp8", "peak.dense.fp8", "4.8 PFLOPS", "4 x 1.2 PFLOPS", "[4.6, 5)"),
                ("peak.sparse.bf16", "peak.sparse.bf16", "4.8 PFLOPS", "4 x 1.2 PFLOPS", "[4.6, 5)"),
                ("memory.capacity", "memory.capacity", "400 GiB", "4 x 100 GiB", "[398, 402)"),
                ("memory.bandwidth", "memory.bandwidth", "~12 TB/s", "4 x ~3 TB/s", "[8, 16)"),
            ],
        ),
        (
            "rack",
            [
                ("chips", "chips.count", "12", "12 x full", "exact"),
                ("cores", "cores.count", "96", "12 x 8 core", "exact"),
                ("dies", "dies", "24", "12 x 2", "exact"),
                ("peak.dense.bf16", "peak.dense.bf16", "7,200 TFLOPS", "12 x 600 TFLOPS", "[7,194, 7,206)"),
                ("peak.dense.fp8", "peak.dense.fp8", "14.4 PFLOPS", "12 x 1.2 PFLOPS", "[13.8, 15)"),
                ("peak.sparse.bf16", "peak.sparse.bf16", "14.4 PFLOPS", "12 x 1.2 PFLOPS", "[13.8, 15)"),
                ("memory.capacity", "memory.capacity", "1,200 GiB", "12 x 100 GiB", "[1,194, 1,206)"),
                ("memory.bandwidth", "memory.bandwidth", "~36 TB/s", "12 x ~3 TB/s", "[24, 48)"),
                ("host.vcpus", "host.vcpus", "96", "3 x 32", "exact"),
                ("host.memory", "host.memory", "600 GiB", "3 x 200 GiB", "[598.5, 601.5)"),
                ("network.nics", "network.nics", "24", "3 x 8", "exact"),
                ("network.bandwidth", "network.bandwidth", "300 Gbit/s", "3 x 100 Gbps", "[298.5, 301.5)"),
            ],
        ),
        (
            "tin",
            [
                ("chips", "chips.count", "2", "2 x bare", "exact"),
                ("memory.capacity", "memory.capacity", "100 GiB", "2 x 50 GiB", "[99, 101)"),
            ],
        ),
        (
            "more",
            [
                ("chips", "chips.count", ">= 10,002", ">= 10,002 x full", "[10,002, ...)"),
                ("cores", "cores.count", ">= 80,016", ">= 10,002 x 8 core", "[80,016, ...)"),
                ("servers", "servers.count", ">= 5,001", ">= 5,001 x small", "[5,001, ...)"),
                ("dies", "dies", ">= 20,004", ">= 10,002 x 2", "[20,004, ...)"),
                ("peak.dense.bf16", "peak.dense.bf16", ">= 6.0012 EFLOPS", ">= 10,002 x 600 TFLOPS", "[5.996199, ...)"),
                ("peak.dense.fp8", "peak.dense.fp8", ">= 12.0024 EFLOPS", ">= 10,002 x 1.2 PFLOPS", "[11.5023, ...)"),
                ("peak.sparse.bf16", "peak.sparse.bf16", ">= 12.0024 EFLOPS", ">= 10,002 x 1.2 PFLOPS", "[11.5023, ...)"),
                ("memory.capacity", "memory.capacity", ">= 1,000,200 GiB", ">= 10,002 x 100 GiB", "[995,199, ...)"),
                ("memory.bandwidth", "memory.bandwidth", ">= 30.006 PB/s", ">= 10,002 x ~3 TB/s", "[20.004, ...)"),
                ("host.memory", "host.memory", ">= 1,000,200 GiB", ">= 5,001 x 200 GiB", "[997,699.5, ...)"),
            ],
        ),
        (
            "most",
            [
                ("chips", "chips.count", "<= 1,000", "<= 1,000 x full", "[0, 1,000)"),
                ("cores", "cores.count", "<= 8,000", "<= 1,000 x 8 core", "[0, 8,000)"),
                ("servers", "servers.count", "<= 500", "<= 500 x small", "[0, 500)"),
                ("dies", "dies", "<= 2,000", "<= 1,000 x 2", "[0, 2,000)"),
                ("peak.dense.bf16", "peak.dense.bf16", "<= 600 PFLOPS", "<= 1,000 x 600 TFLOPS", "[0, 600.5)"),
                ("peak.dense.fp8", "peak.dense.fp8", "<= 1,200 PFLOPS", "<= 1,000 x 1.2 PFLOPS", "[0, 1,250)"),
                ("peak.sparse.bf16", "peak.sparse.bf16", "<= 1,200 PFLOPS", "<= 1,000 x 1.2 PFLOPS", "[0, 1,250)"),
                ("memory.capacity", "memory.capacity", "<= 100,000 GiB", "<= 1,000 x 100 GiB", "[0, 100,500)"),
                ("memory.bandwidth", "memory.bandwidth", "<= 3,000 TB/s", "<= 1,000 x ~3 TB/s", "[0, 4,000)"),
                ("host.memory", "host.memory", "<= 100,000 GiB", "<= 500 x 200 GiB", "[0, 100,250)"),
            ],
        ),
        ("full", []),
        ("core", []),
        ("page", []),
    ],
)  # fmt: skip
def test_sums(name, expected) -> None:
    """Numbers of parts first, then figures and counts, those of the innermost parts first."""
    assert expected == [(s.at, s.path, s.text, s.parts, s.interval_text) for s in found(name)]


@pytest.mark.parametrize("name", ["box", "rack", "more", "most", "exact"])
def test_amounts_and_bounds(name) -> None:
    """An amount to calculate with, where the number of parts is exact; else the bounds alone."""
    exact = name not in ("more", "most")
    seen = found(name)

    assert seen
    for s in seen:
        value, low, high = s.bounds
        assert exact == (s.amount is not None)
        if exact:
            assert value == (s.amount if isinstance(s.amount, int) else s.amount.value)
            assert low <= value <= high
        elif name == "more":
            assert (True, None) == (Fraction(0) < low <= value, high)
        else:
            assert (0, True) == (low, value <= high)


@pytest.mark.parametrize(
    ("number", "part", "qualifier"),
    [
        ("4", "2 TB/s", ""),
        ("4", "~2 TB/s", "~"),
        ("4", "up to 2 TB/s", "up to"),
        ("4", "<= 2 TB/s", "<="),
        ("4", "< 2 TB/s", "<"),
        ("4", ">= 2 TB/s", ">="),
        ("4", "over 2 TB/s", ">"),
        ("over 4", "2 TB/s", ">="),
        ("over 4", "~2 TB/s", ">="),
        ("over 4", ">= 2 TB/s", ">="),
        ("over 4", "> 2 TB/s", ">="),
        ("up to 4", "2 TB/s", "<="),
        ("up to 4", "~2 TB/s", "<="),
        ("up to 4", "< 2 TB/s", "<="),
        ("up to 4", "up to 2 TB/s", "<="),
        # An upper and a lower bound together bound nothing.
        ("over 4", "up to 2 TB/s", None),
        ("up to 4", "over 2 TB/s", None),
    ],
)
def test_qualifiers(number, part, qualifier) -> None:
    chip = document("Chip", "one", f"spec: {{memory: {{capacity: 1 GiB, bandwidth: '{part}'}}}}")
    made = graph(chip, document("Cluster", "hall", f"spec: {{chip: one, chips: '{number}'}}"))
    whole = total(made, made.named("hall"), ("spec", "memory", "bandwidth"))

    if qualifier is None:
        assert whole is None
    else:
        assert whole is not None
        space = " " if qualifier in ("up to", "<=", ">=") else ""
        assert (Qualifier(qualifier), f"{qualifier}{space}8 TB/s") == (whole.qualifier, str(whole))
        assert (number == "4") == whole.is_exact_count
        assert 8e12 == float(whole)


@pytest.mark.parametrize(
    ("name", "path", "expected"),
    [
        ("exact", "dies", 48_000),
        ("exact", "cores.count", 192_000),
        ("more", "dies", CountRange(20_004)),
        ("most", "dies", CountRange(0, 2_000)),
        ("full", "dies", 2),
        # A figure, a word, a path of no part.
        ("exact", "memory.capacity", None),
        ("exact", "memory.technology", None),
        ("exact", "nothing", None),
        ("page", "dies", None),
    ],
)
def test_counts(name, path, expected) -> None:
    node = SYSTEMS.named(name)

    assert expected == count_total(SYSTEMS, node, ("spec", *path.split(".")))


def test_terms() -> None:
    """A part with its count; what does not add up has none, although a chip alone has it."""
    node = SYSTEMS.named("exact")

    assert [("full", 24_000, "24,000 x 8 core")] == [
        (t.part.name, t.count, str(t)) for t in terms(SYSTEMS, node, ("spec", "cores", "count")) or ()
    ]
    assert terms(SYSTEMS, node, ("spec", "launched")) is None
    assert terms(SYSTEMS, SYSTEMS.named("full"), ("spec", "launched")) is None
    assert terms(SYSTEMS, SYSTEMS.named("full"), ("spec", "links", "bandwidth", "both")) is not None
