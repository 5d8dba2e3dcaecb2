"""Report of ``trnspec calibrate``: errors, parameters with what the rows add to the prior, and rows, as text or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trnspec.perf.calibration.fits.training import Fitted, Holdout
    from trnspec.perf.calibration.measured.collectives import CollectiveCase
    from trnspec.perf.calibration.measured.inference import InferenceCase
    from trnspec.perf.calibration.measured.tables import Skipped
    from trnspec.perf.calibration.measured.training import Case

    AnyCase = Case | InferenceCase

HELD_OUT = {"model": "rows", "chip": "chips"}
"""The group that cross-validation holds out: the rows of a model, or those of a chip."""


def print_fit(
    fits: Mapping[Holdout, Fitted],
    cases: Sequence[AnyCase | CollectiveCase],
    skipped: Sequence[Skipped],
    *,
    every: bool,
) -> None:
    """Prints the errors, the parameters, and with ``every`` each row."""
    from trnspec.perf.calibration.document import printed_values
    from trnspec.perf.calibration.fits.inference import FittedServing
    from trnspec.perf.calibration.measured.inference import InferenceCase

    click.echo(f"{len(cases)} rows fitted, {len(skipped)} cannot be evaluated")
    click.echo("")
    click.echo(f"{'error':<36}{'mean':>9}{'median':>9}{'worst':>9}")
    first_fit = next(iter(fits.values()))
    for what, of in (
        ("", fits),
        (", first token", {a: f.ttft for a, f in fits.items() if isinstance(f, FittedServing)}),
    ):
        each = {holdout: fitted for holdout, fitted in of.items() if fitted is not None}
        lines = [("of the fit", fitted.summary(held_out=False)) for fitted in [*each.values()][:1]]
        lines += [
            (f"of {HELD_OUT[holdout]} held out", fitted.summary(held_out=True)) for holdout, fitted in each.items()
        ]
        for name, (mean, median, worst) in lines:
            click.echo(f"{name + what:<36}{mean:>9.1%}{median:>9.1%}{worst:>9.1%}")
    click.echo("")
    if first_fit.learned:
        _print_learned(first_fit)
    else:
        click.echo("achieved")
        for name, value in printed_values(first_fit).items():
            click.echo(f"  {name:<20}{value:>12}")
    if every:
        click.echo("")
        for case, error, left_out in zip(cases, first_fit.errors, first_fit.held_out, strict=True):
            seconds = case.tpot if isinstance(case, InferenceCase) else case.seconds
            click.echo(f"  {error:+8.1%} {left_out:+8.1%}  {seconds:>10.4g} s  {case.id}")
    if skipped:
        click.echo("")
        print_skipped(skipped)


def _print_learned(fitted: Fitted) -> None:
    """Each parameter, the prior, and how much the rows narrow it."""
    from trnspec.perf.calibration.document import printed_learned

    prior = fitted.prior
    click.echo(f"prior: {prior.name or 'typical values'}" + (f"; {prior.relation}" if prior.relation else ""))
    click.echo("")
    click.echo(f"{'achieved':<22}{'':>12}{'prior':>12}{'learned':>10}")
    for name, value, before, each in printed_learned(fitted):
        added = "" if each is None else f"{before:>12}{each.share:>10.0%}  {each.origin}"
        click.echo(f"  {name:<20}{value:>12}{added}")


def print_skipped(skipped: Sequence[Skipped]) -> None:
    """Prints the rows that cannot be evaluated, with the reasons."""
    if skipped:
        click.echo("cannot be evaluated")
    for row in skipped:
        click.echo(f"  {row.id}: {row.reason}")


def warn_undetermined(fitted: Fitted, rows: int) -> None:
    """Lists the parameters that the rows do not determine."""
    from trnspec.perf.calibration.fits.prior import undetermined

    names = [*undetermined(fitted.learned)]
    if names:
        start = fitted.prior.name or "typical values"
        click.echo(
            f"trnspec: warning: {rows} {'row does' if rows == 1 else 'rows do'} not determine {len(names)} of "
            f"{len(fitted.learned)} parameters, which stay near {start}: {', '.join(names)}",
            err=True,
        )


def json_report(
    fits: Mapping[Holdout, Fitted],
    cases: Sequence[AnyCase | CollectiveCase],
    skipped: Sequence[Skipped],
    wrote: Sequence[str],
    *,
    every: bool,
) -> dict[str, Any]:
    """A fit as JSON.

    Args:
        fits: The fit by what was held out; their parameters are the same.
        cases: The fitted rows.
        skipped: The rows that cannot be evaluated.
        wrote: The files written.
        every: Whether to list the fitted rows.
    """
    from trnspec.perf.calibration.document import printed_learned
    from trnspec.perf.calibration.fits.collectives import FittedLibrary
    from trnspec.perf.calibration.fits.inference import FittedServing
    from trnspec.perf.calibration.measured.inference import InferenceCase

    first = next(iter(fits.values()))
    texts = {name: text for name, text, *_ in printed_learned(first)}
    phase = "tpot" if isinstance(first, FittedServing) else "collective" if isinstance(first, FittedLibrary) else "step"
    document: dict[str, Any] = {
        "rows": len(cases),
        "skipped": [{"id": row.id, "reason": row.reason} for row in skipped],
        "prior": {"calibration": first.prior.name or None, "differences": first.prior.relation},
        "parameters": [
            {
                "name": each.name, "value": each.value, "text": texts.get(each.name), "prior": each.prior,
                "prior_width": each.prior_width, "width": each.width, "learned": each.share, "origin": each.origin,
            }
            for each in first.learned
        ],
        "errors": _errors(fits, phase),
        "wrote": list(wrote),
    }  # fmt: skip
    served = {holdout: f.ttft for holdout, f in fits.items() if isinstance(f, FittedServing) and f.ttft is not None}
    document["errors"] += _errors(served, "ttft")
    if every:
        document["fitted"] = [
            {
                "id": case.id, "measured": case.tpot if isinstance(case, InferenceCase) else case.seconds,
                "error": float(error), "held_out": float(held_out),
            }
            for case, error, held_out in zip(cases, first.errors, first.held_out, strict=False)
        ]  # fmt: skip
    return document


def _errors(fits: Mapping[Holdout, Fitted], phase: str) -> list[dict[str, Any]]:
    each = [("", fitted, False) for fitted in [*fits.values()][:1]]
    each += [(holdout, fitted, True) for holdout, fitted in fits.items()]
    return [
        {"phase": phase, "held_out": holdout or None}
        | dict(zip(("mean", "median", "worst"), fitted.summary(held_out=held_out), strict=True))
        for holdout, fitted, held_out in each
    ]
