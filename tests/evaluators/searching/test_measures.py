"""Conditions of a search: what they mean, in three-valued logic, and what is wrong with one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tables import tables
from trnspec.catalog.query.tree import QueryError
from trnspec.errors import UsageError
from trnspec.evaluators.searching.measures import MEASURES, condition
from trnspec.quantities.units import UNITS

ROWS = {
    "ttft": np.array([0.1, 0.5, 2.0]), "tpot": np.array([0.03, 0.02, 0.01]), "memory": np.array([1.0, 2.0, 3.0]) * 2**30,
    "tp": np.array([1, 4, 8]), "chips": 16.0, "tokens_per_s": np.array([100.0, 200.0, 300.0]), "usd": None, "fits": True,
    "kv_dtype": np.array(["bf16", "fp8", "fp8"]), "capacity": 2.0 * 2**30,
}  # fmt: skip
TABLES = tables(__file__)


def holds(text: str, mode="inference", rows=ROWS) -> list[bool]:
    return np.broadcast_to(condition(text, mode, UNITS).holds(rows.__getitem__), 3).tolist()


@pytest.mark.parametrize("text", TABLES["holds"])
def test_where_it_holds(text) -> None:
    assert TABLES["holds"][text] == holds(text)


def test_shares_are_percentages() -> None:
    rows = {"mfu": np.array([39.0, 40.0, 50.0])}

    for text in ("mfu >= 40 %", "mfu >= 40%", "mfu >= 0.4x", "mfu >= 40"):
        assert [False, True, True] == holds(text, "training", rows)


@pytest.mark.parametrize("text", TABLES["mistakes"])
def test_mistakes_have_a_position(text) -> None:
    message, at = TABLES["mistakes"][text]
    with pytest.raises(QueryError) as caught:
        condition(text, "inference", UNITS)

    assert message in str(caught.value)
    assert at == text[caught.value.start : caught.value.end]


def test_what_is_better() -> None:
    assert TABLES["goals"] == {
        mode: {n: k.sign for n, k in kinds.items() if k.sign} for mode, kinds in MEASURES.items()
    }


def test_a_text_has_a_limit() -> None:
    with pytest.raises(UsageError, match="at most 4,000 characters"):
        condition(" or ".join(["tp = 1"] * 1000), "inference", UNITS)


CONDITIONS = st.recursive(
    st.sampled_from([("tp > 3", [0, 1, 1]), ("usd > 1", [None] * 3), ("fits", [1, 1, 1]), ("tpot < 15 ms", [0, 0, 1])]),
    lambda inner: st.one_of(
        st.tuples(st.just("not"), inner), st.tuples(st.sampled_from(["and", "or"]), inner, inner)
    ),
    max_leaves=6,
)  # fmt: skip


def text_of(tree) -> str:
    if tree[0] == "not":
        return f"not ({text_of(tree[1])})"
    return f"({text_of(tree[1])} {tree[0]} {text_of(tree[2])})" if tree[0] in ("and", "or") else tree[0]


def value_of(tree, at: int) -> bool | None:
    """Kleene's logic: the least of both for ``and``, where unknown is between false and true."""
    if tree[0] not in ("not", "and", "or"):
        value = tree[1][at]
        return None if value is None else bool(value)
    values = [value_of(inner, at) for inner in tree[1:]]
    order = [False, None, True]
    if tree[0] == "not":
        return None if values[0] is None else not values[0]
    return order[(min if tree[0] == "and" else max)(map(order.index, values))]


@given(tree=CONDITIONS)
def test_three_valued_logic(tree) -> None:
    assert [value_of(tree, at) is True for at in range(3)] == holds(text_of(tree))


def test_the_measures_it_reads() -> None:
    found = condition("tp = 1 and not (usd / chips < 3 or fits) and known usd and 16 = chips", "inference", UNITS)

    assert ("tp", "usd", "chips", "fits") == found.names()
