"""``trnspec calibrate --pool``: one fit to rows of several chips and frameworks, and a document for each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trnspec.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.catalog.catalog import Catalog
    from trnspec.perf.calibration.fit_training import Fitted
    from trnspec.perf.calibration.measurements import Record, Skipped


def fit_pooled_serving(catalog: Catalog, rows: list[Record], options: dict[str, Any]) -> None:
    """Fits serving with requests in flight, prints the errors of each chip and framework, and writes their documents.

    Args:
        catalog: The catalog.
        rows: The rows of the tables.
        options: Of the command: ``out``, ``era``, ``source``, ``data``, ``force``.

    Raises:
        UsageError: There are no such rows, or a document exists.
    """
    from trnspec.perf.calibration.fit_serving import fit_serving
    from trnspec.perf.calibration.measured_serving import ServingCase, serving_cases
    from trnspec.perf.calibration.measurements import Skipped, row_hashes

    read = serving_cases(catalog.graph, rows)
    cases = [c for c in read if isinstance(c, ServingCase)]
    fits = fit_serving(cases)
    click.echo(f"{len(cases)} rows fitted, {len(read) - len(cases)} cannot be evaluated")
    click.echo("")
    click.echo(
        f"{'':<12}{'':<10}{'':<10}{'rows':>6}{'fit':>8}{'models held out':>18}{'first':>9}{'models held out':>18}"
    )
    for each in fits:
        first = each.fitted.ttft
        errors = "".join(
            f"{_mean(fitted, held_out=False):>{narrow}.1%}{_mean(fitted, held_out=True):>18.1%}"
            for fitted, narrow in ((each.fitted, 8), (first, 9))
            if fitted is not None
        )
        click.echo(f"{each.chip:<12}{each.framework:<10}{each.models:<10}{len(each.cases):>6}{errors}")
    if options["out"]:
        fitted = {c.id for c in cases}
        hashes = [h for row in rows if row.get("id") in fitted for h in row_hashes(row)]
        _write(fits, len(cases), hashes, options)
    _print_skipped([c for c in read if isinstance(c, Skipped)])


def _mean(fitted: Fitted, *, held_out: bool) -> float:
    return fitted.summary(held_out=held_out)[0]


def _write(fits: Sequence[Any], rows: int, hashes: Sequence[str], options: dict[str, Any]) -> None:
    from datetime import UTC, datetime

    from trnspec.atomic_write import write
    from trnspec.cli.calibrate import schema_of
    from trnspec.perf.calibration.document import document
    from trnspec.perf.calibration.fit_range import fitted_on

    folder = Path(options["out"]) / "calibrations"
    texts: dict[Path, bytes] = {}
    for each in fits:
        name = "-".join(
            filter(None, (each.chip, each.framework, "".join(options["eras"][:1]), each.models, "inference"))
        )
        note = (
            f"Partially pooled: what its {len(each.cases)} rows leave open is that of all {rows} rows of the fit. "
            "Errors and interval are of fits without the model of a row."
        )
        texts[folder / f"{name}.yaml"] = document(
            each.fitted, name=name, chip=each.chip, of="inference", software=SOFTWARE[each.framework],
            framework=each.framework, era="".join(options["eras"][:1]), models=each.models, source=options["source"],
            data=options["data"], fitted=f"{datetime.now(UTC):%Y-%m-%d}", schema=schema_of(folder), note=note,
            fitted_on=fitted_on(each.cases), beyond=each.beyond, hashes=hashes,
        ).encode()  # fmt: skip
    existing = [path for path in texts if path.exists()]
    if existing and not options["force"]:
        raise UsageError(f"{existing[0]} exists; --force overwrites it")
    write(texts)
    click.echo("")
    for path in texts:
        click.echo(f"wrote {path}")


SOFTWARE = {"vllm": "vLLM", "trtllm": "TensorRT-LLM", "sglang": "SGLang"}
"""The name of the software of a framework."""


def _print_skipped(skipped: Sequence[Skipped]) -> None:
    if skipped:
        click.echo("")
        click.echo("cannot be evaluated")
    for row in skipped:
        click.echo(f"  {row.id}: {row.reason}")
