"""Columns of figures in one unit."""

from __future__ import annotations

import re
from collections.abc import Sequence

from trnspec.graph.totals import Total
from trnspec.quantities.display import Displayed, common_unit
from trnspec.text_table import Cell, Column, Number


def figure_column(name: str, values: Sequence[Displayed | Cell]) -> tuple[Column, list[Cell], str]:
    """A column of figures in one unit, with the unit in its heading.

    Args:
        name: The name of the column; ``--columns`` and programs use it without the unit.
        values: Figures of one dimension, gaps, or other cells.

    Returns:
        The column, its cells, and the base unit of their values, empty where none is a figure.
    """
    figures = [v for v in values if isinstance(v, Displayed)]
    if not figures:
        right = any(isinstance(v, int) for v in values)
        return Column(name, right=right), [v for v in values if not isinstance(v, Displayed)], ""
    unit = common_unit(figures)
    cells = [Number(v.value, v.text(unit)) if isinstance(v, Displayed) else v for v in values]
    return Column(f"{name} [{unit.symbol}]", right=True, key=name), cells, unit.dimension.base


def displayed_total(total: Total | None) -> Displayed | None:
    """A total over parts as a cell of such a column; its qualifier, such as ``>=``, stays."""
    if total is None:
        return None
    prefix = re.match(r"(?:~|[<>]=? ?|up to )?", str(total))
    return Displayed(total.value, total.unit, total.digits, prefix[0] if prefix else "", total.figures[0].value.table)
