"""Conditions of a search: what they mean, in three-valued logic, and what is wrong with one."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnspec.catalog.query.tree import QueryError
from trnspec.errors import UsageError
from trnspec.evaluators.searching.measures import condition
from trnspec.quantities.units import UNITS

ROWS = {
    "ttft": np.array([0.1, 0.5, 2.0]), "tpot": np.array([0.03, 0.02, 0.01]), "memory": np.array([1.0, 2.0, 3.0]) * 2**30,
    "tp": np.array([1, 4, 8]), "chips": 16.0, "tokens_per_s": np.array([100.0, 200.0, 300.0]), "usd": None, "fits": True,
    "kv_dtype": np.array(["bf16", "fp8", "fp8"]), "capacity": 2.0 * 2**30,
}  # fmt: skip
TEXTS = {
    "tpot < 30 ms": [False, True, True],
    "tpot <= 30ms": [True, True, True],
    "ttft >= 500 ms and memory <= 2 GiB": [False, True, False],
    "time < 25 ms": [False, True, True],
    "tp = 4 or tp == 8": [False, True, True],
    "not (tp > 1)": [True, False, False],
    "memory.fits": [True, True, True],
    "not fits or tp > 4": [False, False, True],
    'kv_dtype = "fp8" and tp != 4': [False, False, True],
    "tokens_per_s / chips > 12": [False, True, True],
    "memory > capacity": [False, False, True],
    "memory / capacity >= 1": [False, True, True],
    "16 = chips": [True, True, True],
    "usd < 3": [False, False, False],
    "not usd < 3": [False, False, False],
    "unknown usd": [True, True, True],
    "known usd or tp = 1": [True, False, False],
    "usd < 3 or tp = 1": [True, False, False],
    "not (usd < 3 and tp = 1)": [False, True, True],
    "usd / chips < 1 or ttft > 1 s": [False, False, True],
}
MISTAKES = {
    "tpot < 30": ("a number alone has no unit", "30"),
    "tpot < 30 GiB": ("time is expected", "30 GiB"),
    "tp < 30 ms": ("a number without a unit is expected", "30 ms"),
    "tp": ("tp is not true or false", "tp"),
    "step_time < 1 s": ("'step_time' is not a measure of a search for inference", "step_time"),
    'kv_dtype < "fp8"': ("texts are equal or not", '"fp8"'),
    "kv_dtype = 8": ("it is compared with a number", "8"),
    'tp = "8"': ("a text is expected nowhere here", '"8"'),
    "tpot ~ 3 ms": ("~ compares printed figures", "3 ms"),
    "1 < 2": ("a measure is compared with a value", "1"),
    "memory / tpot > 1": ("only by a count", "memory / tpot"),
    "kv_dtype / tp > 1": ("only numbers can be divided", "kv_dtype / tp"),
    "memory < tpot": ("different units", "tpot"),
    "fits < 3": ("it is compared with a number", "3"),
    "tpot < 3 ms and": ("a path such as memory.capacity, or a value is expected", ""),
    "tpot < 3 furlongs": ("unknown unit", "3 furlongs"),
    "(tp = 1": ("the parenthesis is not closed", "("),
    '"fp8" = kv_dtype tp': ("'and', 'or' or the end is expected", "tp"),
    "": ("is expected, not the end of the query", ""),
}  # fmt: skip


def holds(text: str, mode="inference", rows=ROWS) -> list[bool]:
    return np.broadcast_to(condition(text, mode, UNITS).holds(rows.__getitem__), 3).tolist()


@pytest.mark.parametrize("text", TEXTS)
def test_where_it_holds(text) -> None:
    assert TEXTS[text] == holds(text)


def test_shares_are_percentages() -> None:
    rows = {"mfu": np.array([39.0, 40.0, 50.0])}

    for text in ("mfu >= 40 %", "mfu >= 40%", "mfu >= 0.4x", "mfu >= 40"):
        assert [False, True, True] == holds(text, "training", rows)


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_have_a_position(text) -> None:
    message, at = MISTAKES[text]
    with pytest.raises(QueryError) as caught:
        condition(text, "inference", UNITS)

    assert message in str(caught.value)
    assert at == text[caught.value.start : caught.value.end]


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
