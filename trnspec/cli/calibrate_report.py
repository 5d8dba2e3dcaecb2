"""Report of ``trnspec calibrate``: errors, parameters with what the rows add to the prior, and rows, as text or JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from trnspec.perf.calibration.document import printed, printed_learned
from trnspec.perf.calibration.fits.fit import Fitted, Holdout
from trnspec.perf.calibration.measured.case import Skipped

HELD_OUT = {"model": "rows", "chip": "chips", "framework": "frameworks"}
"""The group that cross-validation holds out: the rows of a model, or those of a chip."""


def print_fit(fits: Mapping[Holdout, Fitted], skipped: Sequence[Skipped], *, every: bool) -> None:
    """Prints the errors, the parameters, and with ``every`` each row."""
    first = next(iter(fits.values()))
    click.echo(f"{len(first.cases)} rows fitted, {len(skipped)} cannot be evaluated")
    click.echo("")
    click.echo(f"{'error':<36}{'mean':>9}{'median':>9}{'worst':>9}")
    for part, holdout, errors in _summaries(fits):
        name = f"of {HELD_OUT[holdout]} held out" if holdout else "of the fit"
        mean, median, worst = errors
        click.echo(f"{name + (', first token' if part == 'ttft' else ''):<36}{mean:>9.1%}{median:>9.1%}{worst:>9.1%}")
    click.echo("")
    if first.learned:
        prior = first.prior
        click.echo(f"prior: {prior.name or 'typical values'}" + (f"; {prior.relation}" if prior.relation else ""))
        click.echo("")
        click.echo(f"{'achieved':<22}{'':>12}{'prior':>12}{'learned':>10}")
        for name, value, before, each in printed_learned(first):
            added = "" if each is None else f"{before:>12}{each.share:>10.0%}  {each.origin}"
            click.echo(f"  {name:<20}{value:>12}{added}")
    else:
        click.echo("achieved")
        for name, value in printed(first.values).items():
            click.echo(f"  {name:<20}{value:>12}")
    if every:
        click.echo("")
        for case, seconds, error, held_out in _every(first):
            click.echo(f"  {error:+8.1%} {held_out:+8.1%}  {seconds:>10.4g} s  {case}")
    print_skipped(skipped, blank=True)


def print_pooled(fits: Iterable[Fitted]) -> None:
    """Prints the errors of each document of one fit to several chips and frameworks."""
    kernels = any(fitted.roofs for fitted in fits)
    columns = ("shapes held out",) if kernels else ("fit", "models held out", "first", "models held out")
    click.echo(f"{'':<12}{'':<10}{'':<20}{'rows':>6}" + "".join(f"{name:>18}" for name in columns))
    for fitted in fits:
        if kernels:
            lines = [(group.phase, group.rows, [group.mean]) for group in fitted.groups]
        else:
            means = [e.summary(held_out=held)[0] for e in fitted.errors.values() for held in (False, True)]
            lines = [(fitted.models, len(fitted.cases), means)]
        for of, rows, shares in lines:
            errors = "".join(f"{share:>18.1%}" for share in shares)
            click.echo(f"{fitted.chip:<12}{fitted.framework:<10}{of:<20}{rows:>6}{errors}")


def print_skipped(skipped: Sequence[Skipped], *, blank: bool = False) -> None:
    """Prints the rows that cannot be evaluated, with the reasons; after an empty line if ``blank``."""
    if skipped:
        click.echo("\n" * blank + "cannot be evaluated")
    for row in skipped:
        click.echo(f"  {row.id}: {row.reason}")


def warn_undetermined(fitted: Fitted) -> None:
    """Lists the parameters that the rows do not determine."""
    names = [each.name for each in fitted.learned if each.origin == "prior"]
    if names:
        rows, start = len(fitted.cases), fitted.prior.name or "typical values"
        click.echo(
            f"trnspec: warning: {rows} {'row does' if rows == 1 else 'rows do'} not determine {len(names)} of "
            f"{len(fitted.learned)} parameters, which stay near {start}: {', '.join(names)}",
            err=True,
        )


def json_report(
    fits: Mapping[Holdout, Fitted], skipped: Sequence[Skipped], wrote: Sequence[object], *, every: bool
) -> dict[str, Any]:
    """A fit as JSON.

    Args:
        fits: The fit by what was held out; their parameters are the same.
        skipped: The rows that cannot be evaluated.
        wrote: The files written.
        every: Whether to list the fitted rows.
    """
    first = next(iter(fits.values()))
    texts = {name: text for name, text, *_ in printed_learned(first)}
    document: dict[str, Any] = {
        "rows": len(first.cases),
        "skipped": [{"id": row.id, "reason": row.reason} for row in skipped],
        "prior": {"calibration": first.prior.name or None, "differences": first.prior.relation},
        "parameters": [
            {
                "name": each.name, "value": each.value, "text": texts.get(each.name), "prior": each.prior,
                "prior_width": each.prior_width, "width": each.width, "learned": each.share, "origin": each.origin,
            }
            for each in first.learned
        ],
        "errors": [
            {"phase": part, "held_out": holdout or None, **dict(zip(("mean", "median", "worst"), errors, strict=True))}
            for part, holdout, errors in _summaries(fits)
        ],
        "wrote": [*map(str, wrote)],
    }  # fmt: skip
    if every:
        document["fitted"] = [
            dict(zip(("id", "measured", "error", "held_out"), line, strict=True)) for line in _every(first)
        ]
    return document


def _summaries(fits: Mapping[Holdout, Fitted]) -> list[tuple[str, Holdout | str, tuple[float, float, float]]]:
    """Errors of the fit for each measured time, and those of each way to hold out rows."""
    first = next(iter(fits.values()))
    return [
        (part, holdout, fitted.errors[part].summary(held_out=bool(holdout)))
        for part in first.errors
        for holdout, fitted in (("", first), *fits.items())
    ]


def _every(fitted: Fitted) -> list[tuple[str, float, float, float]]:
    """The name of each fitted row, its measured time [s], and its errors by the fit and held out."""
    errors, part = fitted.main, next(iter(fitted.errors))
    return [
        (case.id, case.measured(part), float(error), float(held_out))
        for case, error, held_out in zip(errors.cases, errors.fit, errors.held_out, strict=False)
    ]
