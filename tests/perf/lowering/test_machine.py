"""A rank in numbers, and groups of ranks on the levels of links they span."""

import itertools
import math

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.support.engine import FITTED, INF, SYSTEMS, everything
from tests.support.engine import system as made
from trnspec.errors import RefusalError
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.machine import IDEAL, GroupCost, Machine, carried, group, machine

NESTED = made(
    (("chip", 4.0, 3e11, 1e-6), ("server", 64.0, 9e10, 2e-6), ("ultraserver", 256.0, 3e10, 4e-6),
     ("network", INF, 3e9, 2e-5)), 1024,
)  # fmt: skip
"""Levels of 4, 64 and 256 ranks, each with a rate and a latency of its own."""


def spanned(n: int, stride: int) -> tuple[float, ...]:
    """Members that each level of it joins, counted rank by rank; none where a unit has more of the group than another."""
    ranks = [i * stride for i in range(n)]
    found, before = [], 1.0
    for size in (4, 64, 256, 1024):
        units = [len(list(g)) for _, g in itertools.groupby(ranks, key=lambda r: r // size)]
        if len(set(units)) > 1:
            return ()
        found.append(units[0] / before)
        before = float(units[0])
    return tuple(found)


DIVISIBLE = [
    (n, stride) for n in (1, 2, 3, 4, 8, 16, 32, 64, 128, 256, 1024) for stride in (1, 2, 4, 8, 64, 256)
    if n * stride <= 1024 and spanned(n, stride) and all(m == int(m) for m in spanned(n, stride))
]  # fmt: skip


ALPHAS = (1e-6, 2e-6, 4e-6, 2e-5)
"""The latencies of its levels."""


@pytest.mark.parametrize(("n", "stride"), DIVISIBLE)
def test_group_is_the_pipelined_hierarchical_collective(n, stride):
    """The slowest of the levels, and one message at each level that the group spans."""
    members = spanned(n, stride)
    betas = tuple(level.rate for level in NESTED.levels)
    on = group(machine(NESTED, IDEAL, "bf16"), float(n), float(stride))
    # Each level sees only the part of the buffer that the levels within it have left to a rank.
    inside = [math.prod(members[:i]) for i in range(4)]
    parts = [(k - 1) / k * 1e9 / n / beta for k, n, beta in zip(members, inside, betas, strict=True)]

    assert math.isclose(max(parts), 1e9 * on.allgather_s_per_byte, rel_tol=1e-9, abs_tol=1e-18)
    assert math.isclose(sum(a for a, m in zip(ALPHAS, members, strict=True) if m > 1), on.latency, abs_tol=1e-18)
    assert (n > 1) == bool(on.is_group)
    assert on.unknown == 0.0


@given(st.sampled_from(SYSTEMS), st.sampled_from([1.0, 2.0, 3.0, 7.0, 32.0, 1000.0]), st.sampled_from([IDEAL, FITTED]))
def test_one_rank_costs_exactly_nothing(system, stride, efficiency):
    assert GroupCost(0.0, 0.0, 0.0, 0.0, 0.0) == group(machine(system, efficiency, "bf16"), 1.0, stride)


@given(st.integers(1, 600), st.integers(1, 64), st.sampled_from(SYSTEMS))
def test_no_group_is_free_or_quicker_than_a_smaller_one(n, stride, system):
    on = machine(system, FITTED, "bf16")
    one, more = group(on, float(n), float(stride)), group(on, float(n + 1), float(stride))
    assert 0.0 <= one.allgather_s_per_byte
    assert 0.0 <= one.unknown
    # On a grid a larger group may span another ring, whose links it uses too.
    if not any(level.shape for level in system.levels):
        assert one.allgather_s_per_byte <= more.allgather_s_per_byte * (1.0 + 1e-12)
        assert one.unknown <= more.unknown + 1e-15


def unknown_server() -> Machine:
    return machine(lower(everything(), "trn3-gen2-server*4"), IDEAL, "bf16")


@pytest.mark.parametrize(
    ("n", "stride", "used"),
    [(1, 1, False), (4, 1, False), (8, 1, True), (16, 1, True), (2, 2, False), (2, 4, True), (4, 16, False),
     (64, 1, True)],
)  # fmt: skip
def test_an_unknown_link_is_counted_where_it_is_used(n, stride, used):
    assert used == (group(unknown_server(), float(n), float(stride)).unknown > 1e-12)


def test_a_level_that_is_absent_costs_nothing_and_reaches_no_further():
    """The switched UltraServer has no level of a server: chips are joined at once."""
    found = machine(lower(everything(), "trn3-gen2-ultraserver"), IDEAL, "bf16")
    assert [1 / 4, 1 / 4, 1 / 576] == [level.share for level in found.levels[:3]]
    assert (0.0, 1.0) == (found.levels[1].seconds_per_byte, found.levels[1].unknown)
    assert 0.0 == group(found, 576.0, 1.0).unknown


def test_without_a_bandwidth_of_device_memory_nothing_is_said():
    with pytest.raises(RefusalError, match="no published memory bandwidth") as refused:
        machine(evolve(NESTED, bandwidth=0.0), IDEAL, "bf16")
    assert ("unknown-figure", "a-chip spec.memory.bandwidth") == (refused.value.reason, refused.value.place)


def test_without_a_rate_for_a_type_nothing_is_said():
    with pytest.raises(RefusalError, match="no published dense rate for fp32") as refused:
        machine(NESTED, IDEAL, "fp32")
    assert "unknown-figure" == refused.value.reason
    # A narrow type needs one for attention as well.
    with pytest.raises(RefusalError, match="no published dense rate for bf16"):
        machine(evolve(NESTED, rates={"fp8": 1e14}), IDEAL, "fp8")


@pytest.mark.parametrize(
    ("on", "n", "stride", "share"),
    [
        # 16 chips in a torus of 4 x 4, 4 ranks each: a pair uses one of four links, a row two, two rows three.
        ("trn2.48xlarge", 8, 1, 1 / 4),
        ("trn2.48xlarge", 16, 1, 1 / 2),
        ("trn2.48xlarge", 32, 1, 3 / 4),
        ("trn2.48xlarge", 64, 1, 1.0),
        # A column is a ring too; every second chip of a row shares its links with the others.
        ("trn2.48xlarge", 4, 16, 1 / 2),
        ("trn2.48xlarge", 2, 8, 1 / 4),
    ],
)
def test_a_group_in_a_torus_uses_the_links_along_its_dimensions(on, n, stride, share) -> None:
    numbers = machine(lower(everything(), on), IDEAL, "bf16")

    assert share == pytest.approx(carried(numbers.levels[1], float(n), float(stride)), rel=1e-12)
