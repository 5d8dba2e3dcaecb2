"""Conditions of a search in the three-valued logic of Kleene, against a definition for one row."""

from __future__ import annotations

import operator

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trnspec.perf.searching.conditions import All, AnyOf, Compare, Condition, Constant, IsKnown, Named, Negation, holds

OPERATORS = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, "!=": operator.ne,
}  # fmt: skip
NAMES = ("a", "b", "c")
TERMS = st.one_of(
    st.builds(Named, st.sampled_from(NAMES), st.sampled_from(["", "", *NAMES])),
    st.integers(1, 3).map(lambda n: Constant(float(n))),
)
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    st.builds(Compare, TERMS, st.sampled_from(list(OPERATORS)), TERMS) | st.builds(IsKnown, st.sampled_from(NAMES)),
    lambda inner: st.one_of(
        st.builds(Negation, inner),
        *(st.builds(kind, st.lists(inner, min_size=1, max_size=3).map(tuple)) for kind in (All, AnyOf)),
    ),
    max_leaves=6,
)
NUMBERS = st.integers(1, 3).map(float)
MEASURES = st.fixed_dictionaries({n: st.none() | NUMBERS | st.lists(NUMBERS, min_size=4, max_size=4) for n in NAMES})
"""A measure is unknown, one number, or one for each of four rows."""


def term(of: Named | Constant, row: dict[str, float | None]) -> float | None:
    if isinstance(of, Constant):
        return float(of.value)
    number, divisor = row[of.name], row[of.over] if of.over else 1.0
    return None if number is None or divisor is None else number / divisor


def truth(of: Condition, row: dict[str, float | None]) -> bool | None:
    """What is true of a row; ``None`` where it is unknown."""
    if isinstance(of, IsKnown):
        return row[of.name] is not None
    if isinstance(of, Compare):
        left, right = term(of.left, row), term(of.right, row)
        return None if left is None or right is None else OPERATORS[of.operator](left, right)
    if isinstance(of, Negation):
        inner = truth(of.inner, row)
        return None if inner is None else not inner
    parts, decisive = [truth(part, row) for part in of.parts], isinstance(of, AnyOf)
    return decisive if decisive in parts else None if None in parts else not decisive


def read(of: Condition) -> set[str]:
    if isinstance(of, IsKnown):
        return {of.name}
    if isinstance(of, Compare):
        named = (t for t in (of.left, of.right) if isinstance(t, Named))
        return {name for t in named for name in (t.name, t.over) if name}
    return set().union(*map(read, (of.inner,) if isinstance(of, Negation) else of.parts))


@given(condition=CONDITIONS, measures=MEASURES)
def test_a_condition_holds_where_it_is_true(condition, measures) -> None:
    columns = {n: np.array(v) if isinstance(v, list) else v for n, v in measures.items()}
    rows = [{n: v[i] if isinstance(v, list) else v for n, v in measures.items()} for i in range(4)]

    assert [truth(condition, row) is True for row in rows] == holds(condition, columns.__getitem__, 4).tolist()
    assert read(condition) == set(condition.names())
    assert holds(None, columns.__getitem__, 4).all()
