"""``trnspec audit``: every disagreement, recorded or found."""

from __future__ import annotations

import json
import sys
from pathlib import Path as FilePath
from typing import Any

import attrs
import click

from trnspec.api import graph, registry
from trnspec.checks.reconcile.audit import Audit, Disagreement, Side, audit
from trnspec.checks.reconcile.hypotheses import extra_hypotheses, shown
from trnspec.checks.reconcile.proportions import Proportion, proportions
from trnspec.loading import settings as settings_


@click.command("audit")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--format", "format_", type=click.Choice(["text", "json", "markdown"]), default="text", show_default=True)
@click.option(
    "--catalog", metavar="DIR", help="Audit with the documents in this folder; they come before others of their names."
)
def command(names: tuple[str, ...], format_: str, catalog: str | None) -> None:
    """Print every disagreement of the catalog, or of the documents NAME, recorded or found.

    For each figure: what is adopted, who says otherwise and when, the gap, whether rounding alone can explain it, the
    likely cause, the verdict and its reason. Exit status 1 when a disagreement was found that is not recorded.
    """
    with extra_hypotheses(registry().explanations):
        known = graph([catalog] if catalog else [], settings=settings_.find(FilePath.cwd()))
        chosen = frozenset(known.named(name).name for name in names)
        result = audit(known, chosen)
        found = [] if chosen else proportions(known)
    writer = {"text": _text, "json": _json, "markdown": _markdown}[format_]
    click.echo(writer(result, found))
    sys.exit(1 if any(d.verdict == "found" for d in result.disagreements) else 0)


def _gap(value: float | None) -> str:
    return "" if value is None else f"{value:+.1%}".replace("%", " %")


def _side(side: Side) -> str:
    date = f", {side.as_of}" if side.as_of else ""
    return f"{side.source}{date}"


def _text(result: Audit, found: list[Proportion]) -> str:
    lines: list[str] = []
    for each in result.disagreements:
        lines += [*_entry(each), ""]
    if found:
        lines += ["Proportions that differ between siblings; none of them is an error:", ""]
    for proportion in found:
        lines.append(proportion.name)
        lines += [f"  {s!s:>12}  {s.of}{f' ({s.note})' if s.note else ''}" for s in proportion.shares]
        lines += [*_wrapped("cause: ", proportion.cause), ""]
    if result.views:
        lines.append("Each source by itself, sums among its own figures:")
        for view in result.views:
            lines.append(f"  {view.source} ({view.as_of}): {view.closing} close, {len(view.contradicting)} do not")
            lines += [f"      {sentence}" for sentence in view.contradicting]
        lines.append("")
    new = sum(d.verdict == "found" for d in result.disagreements)
    lines.append(f"{len(result.disagreements) - new} disagreements are recorded or explained, {new} are not.")
    return "\n".join(lines)


def _entry(each: Disagreement) -> list[str]:
    adopted = "nothing is adopted" if each.adopted is None else f"{each.adopted.says} ({_side(each.adopted)})"
    lines = [f"{each.name}  {each.at}", f"  adopted   {adopted}"]
    said = [r.says for r in each.conflicting]
    words = " against ".join(said) if each.is_pair else " = ".join(sorted(set(said)))
    lines.append(f"  {each.verdict:<9} {words}  {_gap(each.gap)}".rstrip())
    for rival in each.conflicting:
        says = f"{rival.says}: " if each.is_pair else ""
        where = f", {rival.where}" if rival.where else ""
        lines.append(f"            {says}{_side(rival)}{where}")
    if each.rounding != "-":
        lines.append(f"  rounding  {each.rounding}")
    for index, cause in enumerate(shown(each.causes)):
        lines += _wrapped("  cause     " if index == 0 else "        or  ", cause)
    if each.rounding == "cannot explain it" and not each.causes:
        lines.append("  cause     none of the usual causes closes the gap")
    if each.reason:
        lines += _wrapped("  reason    ", each.reason)
    return lines


def _wrapped(head: str, text: str) -> list[str]:
    import textwrap

    return textwrap.wrap(text, 80, initial_indent=head, subsequent_indent=" " * len(head)) or [head]


def _json(result: Audit, found: list[Proportion]) -> str:
    data: dict[str, Any] = {
        "version": 1,
        "disagreements": [attrs.asdict(d) for d in result.disagreements],
        "proportions": [
            {
                "name": p.name,
                "cause": p.cause,
                "shares": [{"of": s.of, "value": str(s), "verdict": s.note} for s in p.shares],
            }
            for p in found
        ],
        "views": [attrs.asdict(v) for v in result.views],
    }
    return json.dumps(data, indent=2, ensure_ascii=False)


def _markdown(result: Audit, found: list[Proportion]) -> str:
    lines = ["| figure | adopted | says otherwise | gap | rounding | cause | verdict and reason |", "|" + "---|" * 7]
    for each in result.disagreements:
        adopted = "-" if each.adopted is None else f"{each.adopted.says} ({_side(each.adopted)})"
        conflicting = "; ".join(f"{r.says} ({_side(r)})" for r in each.conflicting)
        causes = "; or ".join(shown(each.causes)) or "-"
        cells = [f"{each.name} {each.at}", adopted, conflicting, _gap(each.gap), each.rounding, causes]
        cells.append(f"{each.verdict}: {each.reason}" if each.reason else each.verdict)
        lines.append("| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |")
    if found:
        lines += ["", "| proportion | quotients | cause |", "|---|---|---|"]
    for proportion in found:
        shares = "; ".join(f"{s} ({s.of})" for s in proportion.shares)
        lines.append(f"| {proportion.name} | {shares} | {proportion.cause} |")
    if result.views:
        lines += ["", "| source | date | sums that close | that do not |", "|---|---|---|---|"]
    lines += [f"| {v.source} | {v.as_of} | {v.closing} | {'; '.join(v.contradicting) or '-'} |" for v in result.views]
    return "\n".join(lines)
