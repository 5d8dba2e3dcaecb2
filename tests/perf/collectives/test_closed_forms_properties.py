"""Laws of the closed forms, and what a step-by-step exchange of real blocks takes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tests.perf.oracles.closed_forms as c
from tests.perf.oracles.closed_forms import hierarchical

N = st.integers(1, 4096).map(float)
# Nothing, or a byte and more: of 1e-300 B halves are no longer exact.
SIZE = st.one_of(st.just(0.0), st.floats(1, 2.0**40))
ALPHA = st.one_of(st.just(0.0), st.floats(1e-9, 1e-2))
BETA = st.floats(1e6, 1e13)

FORMS = [
    c.ring_all_gather,
    c.ring_reduce_scatter,
    c.ring_all_reduce,
    c.ring_all_to_all,
    c.bidirectional_ring_all_gather,
    c.bidirectional_ring_reduce_scatter,
    c.bidirectional_ring_all_reduce,
    c.bidirectional_ring_all_to_all,
    c.recursive_all_gather,
    c.recursive_reduce_scatter,
    c.recursive_all_reduce,
    c.recursive_all_to_all,
    c.direct_all_gather,
    c.direct_reduce_scatter,
    c.direct_all_reduce,
    c.direct_all_reduce_one_step,
    c.direct_all_to_all,
    c.tree_broadcast,
    c.pipelined_broadcast,
    c.send,
]
MONOTONE = [form for form in FORMS if "bidirectional" not in form.__name__]
KINDS = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send"]
TORUS = [c.torus_all_gather, c.torus_reduce_scatter, c.torus_all_reduce, c.torus_all_to_all]

forms = pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
torus_forms = pytest.mark.parametrize("form", TORUS, ids=lambda f: f.__name__)
kinds = pytest.mark.parametrize("kind", KINDS)


@settings(deadline=None, max_examples=30)
@given(size=SIZE, n=N, alpha=ALPHA, beta=BETA)
def test_all_reduce_is_reduce_scatter_and_all_gather(size, n, alpha, beta):
    for prefix in ("ring", "bidirectional_ring", "recursive", "direct"):
        whole, half, other = (
            getattr(c, f"{prefix}_{kind}")(size, n, alpha, beta)
            for kind in ("all_reduce", "reduce_scatter", "all_gather")
        )

        assert whole == half + other


@forms
@settings(deadline=None, max_examples=30)
@given(size=SIZE, more=SIZE, n=N, alpha=ALPHA, beta=BETA)
def test_more_bytes_are_never_faster(form, size, more, n, alpha, beta):
    # A pipeline in whole pieces: the better of two neighbours, each of which grows.
    assert form(size, n, alpha, beta) <= form(size + more, n, alpha, beta) * (1 + 1e-12)


@pytest.mark.parametrize("form", MONOTONE, ids=lambda f: f.__name__)
@settings(deadline=None, max_examples=30)
@given(size=SIZE, n=N, more=N, alpha=ALPHA, beta=BETA)
def test_more_ranks_are_never_faster(form, size, n, more, alpha, beta):
    assert form(size, n, alpha, beta) <= form(size, n + more, alpha, beta) * (1 + 1e-12)


@forms
@settings(deadline=None, max_examples=30)
@given(size=SIZE, n=N, alpha=ALPHA, beta=BETA)
def test_twice_the_rate_and_half_the_latency_take_exactly_half(form, size, n, alpha, beta):
    assert form(size, n, alpha, beta) / 2.0 == form(size, n, alpha / 2.0, beta * 2.0)


@kinds
@settings(deadline=None, max_examples=30)
@given(size=SIZE, members=st.tuples(N, N, N), alpha=ALPHA, beta=BETA)
def test_levels_take_exactly_half_too(kind, size, members, alpha, beta):
    slow = hierarchical(kind, size, members, (alpha,) * 3, (beta,) * 3)

    assert slow / 2.0 == hierarchical(kind, size, members, (alpha / 2.0,) * 3, (beta * 2.0,) * 3)


ROWS = st.lists(st.tuples(SIZE, N, ALPHA, BETA), min_size=1, max_size=8)


@forms
@settings(deadline=None, max_examples=30)
@given(rows=ROWS)
def test_a_batch_gives_the_bits_of_single_calls(form, rows):
    batch = form(*(np.array(column) for column in zip(*rows, strict=True)))

    assert [form(*row) for row in rows] == batch.tolist()


@kinds
@settings(deadline=None, max_examples=30)
@given(rows=st.lists(st.tuples(SIZE, N, N, ALPHA, BETA), min_size=1, max_size=8))
def test_levels_in_a_batch_give_the_bits_of_single_calls(kind, rows):
    def one(size, inner, outer, alpha, beta):
        return hierarchical(kind, size, (inner, 1.0, outer), (alpha, 1.0, alpha), (beta, 0.0, beta))

    assert [one(*row) for row in rows] == one(*(np.array(column) for column in zip(*rows, strict=True))).tolist()


@torus_forms
@settings(deadline=None, max_examples=30)
@given(rows=st.lists(st.tuples(SIZE, N, N, ALPHA, BETA, BETA), min_size=1, max_size=8))
def test_a_torus_in_a_batch_gives_the_bits_of_single_calls(form, rows):
    def one(size, k, m, alpha, b, d):
        return form(size, (k, m), alpha, (b, d))

    assert [one(*row) for row in rows] == one(*(np.array(column) for column in zip(*rows, strict=True))).tolist()


@settings(deadline=None, max_examples=30)
@given(group=N, stride=N, inner=st.integers(1, 64).map(float), units=st.integers(1, 64).map(float))
def test_factors_cover_the_group(group, stride, inner, units):
    factors = c.members(group, stride, (inner, inner * units, float("inf")))

    assert group <= factors[0] * factors[1] * factors[2]
    assert all(f >= 1.0 for f in factors)


@settings(deadline=None, max_examples=30)
@given(k=st.integers(0, 6), stride=st.integers(0, 6), inner=st.integers(0, 3), outer=st.integers(0, 4))
def test_factors_of_powers_of_two_are_exact(k, stride, inner, outer):
    levels = (2.0**inner, 2.0 ** (inner + outer), float("inf"))
    ranks = [i * 2**stride for i in range(2**k)]
    within = [max(sum(1 for r in ranks if r // unit == 0), 1) for unit in (2**inner, 2 ** (inner + outer), 2**30)]

    factors = c.members(2.0**k, 2.0**stride, levels)

    assert tuple(float(b // a) for a, b in zip([1, *within], within, strict=False)) == factors


@settings(deadline=None, max_examples=30)
@given(dims=st.lists(st.integers(1, 9).map(float), min_size=1, max_size=3), size=SIZE, beta=BETA)
def test_a_torus_is_never_faster_than_its_links(dims, size, beta):
    n = float(np.prod(dims))
    links = sum(0.0 if k == 1 else 1.0 if k == 2 else 2.0 for k in dims)
    bound = c.injection_bound("all-gather", size, n, links * beta) if links else 0.0

    assert bound <= c.torus_all_gather(size, tuple(dims), 0.0, (beta,) * len(dims)) * (1 + 1e-12)


# Exchanges of real blocks, step by step.


class Exchange:
    """Ranks that hold blocks: a block can only be sent by who has it, and a link takes one thing after another."""

    def __init__(self, n, alpha):
        self.held = [{} for _ in range(n)]  # block -> size
        self.alpha = alpha
        self.time = 0.0

    def step(self, sends, rate):
        """All sends of one step, (from, to, blocks); the slowest link decides."""
        on_link = {}
        arriving = []
        for a, b, blocks in sends:
            assert blocks.keys() <= self.held[a].keys()
            on_link[a, b] = on_link.get((a, b), 0.0) + sum(blocks.values())
            arriving.append((b, blocks))
        for b, blocks in arriving:
            self.held[b].update(blocks)
        self.time += self.alpha + max(on_link.values()) / rate


def simulated_ring_all_gather(n, size, alpha, rate):
    made = Exchange(n, alpha)
    for i in range(n):
        made.held[i][i] = size / n
    for step in range(n - 1):
        made.step([(i, (i + 1) % n, {(i - step) % n: size / n}) for i in range(n)], rate)
    assert all(len(h) == n for h in made.held)
    return made.time


def both_ways(exchange, line, rate):
    """All members of a line gather what all hold, both ways round; the opposite member's halves meet."""
    k = len(line)
    own = [dict(exchange.held[v]) for v in line]
    start = exchange.time
    for step in range(1, k // 2 + 1):
        half = k % 2 == 0 and step == k // 2
        sends = []
        for i in range(k):
            for turn, part in ((1, 0), (-1, 1)):
                blocks = own[(i - turn * (step - 1)) % k]
                chosen = {b: s for b, s in blocks.items() if not half or b[-1] == part}
                sends.append((line[i], line[(i + turn) % k], chosen))
        exchange.step(sends, rate)
    taken, exchange.time = exchange.time - start, start
    return taken


def simulated_both_ways(n, size, alpha, rate):
    made = Exchange(n, alpha)
    for i in range(n):
        made.held[i] = {(i, part): size / n / 2 for part in (0, 1)}
    taken = both_ways(made, list(range(n)), rate) if n > 1 else 0.0
    assert all(len(h) == 2 * n for h in made.held)
    return taken


def simulated_torus_all_gather(rows, columns, size, alpha, rates):
    """Two parts of the buffer, one gathered along columns and then rows, the other along rows and then columns."""
    n = rows * columns
    shares = c.torus_shares((float(rows), float(columns)), rates)
    lines = {
        0: [[r * columns + q for r in range(rows)] for q in range(columns)],
        1: [[r * columns + q for q in range(columns)] for r in range(rows)],
    }
    parts = []
    for part in (0, 1):
        made = Exchange(n, alpha)
        for i in range(n):
            made.held[i] = {(part, i, half): size * shares[part] / n / 2 for half in (0, 1)}
        parts.append(made)
    total = 0.0
    for phase in (1, 0):
        slowest = 0.0
        for part, made in enumerate(parts):
            axis = (part + phase) % 2
            # The lines of an axis share no link, so that all take the time of one.
            taken = [both_ways(made, line, rates[axis]) for line in lines[axis]]
            assert len({round(t, 15) for t in taken}) == 1
            slowest = max(slowest, taken[0])
        total += slowest
    assert all(len(made.held[i]) == 2 * n for made in parts for i in range(n))
    return total


def simulated_all_reduce(n, size, alpha, rate, partners):
    """Recursive halving, then doubling, of numbers that are really added up."""
    values = [[(i + 1) * 100 + b for b in range(n)] for i in range(n)]
    expected = [sum(v[b] for v in values) for b in range(n)]
    mine = [set(range(n)) for _ in range(n)]
    time = 0.0
    for bit in partners:
        before, owned = [list(v) for v in values], [set(m) for m in mine]
        for i in range(n):
            keep = {b for b in owned[i] if b >> bit & 1 == i >> bit & 1}
            for b in keep:
                values[i][b] = before[i][b] + before[i ^ 1 << bit][b]
            mine[i] = keep
        time += alpha + len(mine[0]) * size / n / rate
    for bit in reversed(partners):
        owned = [set(m) for m in mine]
        time += alpha + len(owned[0]) * size / n / rate
        for i in range(n):
            for b in owned[i ^ 1 << bit]:
                values[i][b] = values[i ^ 1 << bit][b]
            mine[i] |= owned[i ^ 1 << bit]
    assert all(v == expected for v in values)
    return time


close = pytest.approx


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 12, 16])
@pytest.mark.parametrize("alpha", [0.0, 3e-6])
def test_ring_time_equals_simulated_block_exchange(n, alpha):
    one = simulated_ring_all_gather(n, 1e8, alpha, 48e9)
    both = simulated_both_ways(n, 1e8, alpha, 48e9)

    assert close(one, rel=1e-12) == c.ring_all_gather(1e8, float(n), alpha, 48e9)
    # A pair has one link, over which either way is the same.
    assert close(both, rel=1e-12) == c.bidirectional_ring_all_gather(1e8, float(n), alpha, 48e9)


@pytest.mark.parametrize("n", [1, 2, 4, 8, 16])
def test_halving_doubling_time_equals_simulated_sum(n):
    taken = simulated_all_reduce(n, 1e8, 3e-6, 48e9, range(n.bit_length() - 1))

    assert close(taken, rel=1e-12) == c.recursive_all_reduce(1e8, float(n), 3e-6, 48e9)


@pytest.mark.parametrize(("rows", "columns"), [(2, 2), (4, 4), (3, 3), (2, 4), (4, 8), (3, 5)])
@pytest.mark.parametrize("rates", [(48e9, 48e9), (64e9, 128e9)])
def test_torus_time_equals_simulated_block_exchange(rows, columns, rates):
    taken = simulated_torus_all_gather(rows, columns, 1e8, 3e-6, rates)

    assert close(taken, rel=1e-12) == c.torus_all_gather(1e8, (float(rows), float(columns)), 3e-6, rates)
