"""``trnspec check``: compares a value with a figure of the catalog."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

from trnspec.checks.reconcile.hints import sentence
from trnspec.checks.reconcile.judge import Judgement, judge
from trnspec.cli.common import catalog_options, graph_for
from trnspec.cli.complete import documents, path_list
from trnspec.cli.help import documented
from trnspec.cli.render import colored, emit, format_option, width
from trnspec.evaluation.amounts import spaced
from trnspec.text_table import Block, Cell, Column, table, wrapped


@documented(
    "check",
    ("trnspec check trn2.48xlarge memory.bandwidth '46 TB/s'", "Whether 46 TB/s is right for trn2.48xlarge:"),
    ("trnspec check trainium1 peak.dense.bf16 '210 TFLOPS'", "An outdated figure:"),
    ("trnspec check trn1.32xlarge chips.count 16 --format json", "A count, for programs:"),
    ("trnspec check trainium1 memory.bandwidth '820 GB/s' --as-of 2026-08", "Against what was published by a date:"),
)
@click.argument("name", shell_complete=documents())
@click.argument("figure", shell_complete=path_list)
@click.argument("value")
@format_option
@catalog_options
def command(name: str, figure: str, value: str, format_: str, **options: Any) -> None:
    """Compare a value with a figure of the catalog: does it agree, and if not, by how much and why?

    FIGURE is a path as in queries: peak.dense.bf16 of a chip; of a server the total over its chips, computed from the
    parts. VALUE is a quantity with its unit, or a count. The exit status is 0 if the value agrees, also after rounding,
    and 1 if it differs.
    """
    graph = graph_for(name, **options)
    result = judge(graph, graph.named(name), figure, spaced(value))
    heads = ("name", "figure", "value", "verdict", "source", "date", "where")
    emit(format_, lambda: _page(result), lambda: table(heads, list(_rows(result))), lambda: _about(result))
    if result.outcome == "differs":
        raise click.exceptions.Exit(1)


_VERDICT = {"agrees": "agrees", "rounded": "rounded", "differs": "rejected"}
"""The verdict whose colour an outcome has."""


def _page(result: Judgement) -> Sequence[Block]:
    computed = f", {result.formula}" if result.formula else ""
    known = f"{result.at} of {result.name} is {result.value}{computed}"
    off = f"; {result.says} is {result.factor:.4g}x that" if result.outcome == "differs" and result.factor else ""
    lines = [wrapped(f"{colored(_VERDICT[result.outcome], result.outcome)}: ", known + off, width())]
    if result.outcome == "rounded":
        lines.append("note: the values agree if the trailing zeros are not significant")
    # The hypotheses are about quantities, not about counts.
    if result.outcome == "differs" and any(fact.figure is not None for fact in result.facts):
        lines.append(wrapped("hint: ", sentence(result.causes), width()))
    columns = [
        Column("value", keep=True),
        Column("verdict", keep=True),
        Column("source", wrap=True, keep=True),
        Column("date"),
        Column("where", wrap=True, importance=-1),
    ]
    rows: list[tuple[Cell, ...] | str] = []
    for row in _rows(result):
        heading = f"{row[0]} {row[1]}"
        if heading not in rows:
            rows.append(heading)
        rows.append(row[2:])
    return ["\n".join(lines), table(columns, rows)]


def _rows(result: Judgement) -> Iterator[tuple[Cell, ...]]:
    """Every source of the value, with what it states."""
    for fact in result.facts:
        if fact.value is not None:
            yield fact.of, fact.at, fact.text, fact.verdict, fact.cited or fact.reason, fact.as_of, fact.where
        for other in fact.conflicting:
            yield fact.of, fact.at, other.says, other.verdict, other.source, other.as_of, other.where


def _about(result: Judgement) -> dict[str, Any]:
    return {
        "name": result.name,
        "figure": result.at,
        "says": result.says,
        "value": result.value,
        "formula": result.formula,
        "outcome": result.outcome,
        "factor": result.factor,
        "causes": [{"id": cause.id, "sentence": cause.sentence} for cause in result.causes],
    }
