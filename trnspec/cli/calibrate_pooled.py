"""``trnspec calibrate --pool``: one fit to rows of several chips and frameworks, and a document for each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trnspec.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trnspec.catalog.catalog import Catalog
    from trnspec.perf.calibration.fits.training import Fitted
    from trnspec.perf.calibration.measured.tables import Record, Skipped


KERNELS = ("matmul", "attention", "moe")
"""Kinds of rows of kernels."""


def fit_pooled_rows(catalog: Catalog, rows: list[Record], options: dict[str, Any]) -> None:
    """Fits rows of serving, or of kernels, and writes a document for each chip and framework.

    Args:
        catalog: The catalog.
        rows: The rows of the tables.
        options: Of the command: ``out``, ``era``, ``source``, ``data``, ``force``.

    Raises:
        UsageError: There are no such rows, they are of both, or a document exists.
    """
    kinds = {row["kind"] for row in rows}
    if "infer" in kinds and kinds & {*KERNELS}:
        raise UsageError("the rows are of serving and of kernels; fit them one after the other")
    if kinds & {*KERNELS}:
        _fit_kernels(catalog, rows, options)
    else:
        _fit_serving(catalog, rows, options)


def _fit_serving(catalog: Catalog, rows: list[Record], options: dict[str, Any]) -> None:
    from trnspec.perf.calibration.fit_range import fitted_on
    from trnspec.perf.calibration.fits.serving import fit_serving
    from trnspec.perf.calibration.measured.serving import ServingCase, serving_cases
    from trnspec.perf.calibration.measured.tables import Skipped

    read = serving_cases(catalog.graph, rows)
    cases = [c for c in read if isinstance(c, ServingCase)]
    fits = fit_serving(cases)
    click.echo(f"{len(cases)} rows fitted, {len(read) - len(cases)} cannot be evaluated")
    click.echo("")
    click.echo(
        f"{'':<12}{'':<10}{'':<10}{'rows':>6}{'fit':>8}{'models held out':>18}{'first':>9}{'models held out':>18}"
    )
    documents = {}
    for each in fits:
        first = each.fitted.ttft
        errors = "".join(
            f"{_mean(fitted, held_out=False):>{narrow}.1%}{_mean(fitted, held_out=True):>18.1%}"
            for fitted, narrow in ((each.fitted, 8), (first, 9))
            if fitted is not None
        )
        click.echo(f"{each.chip:<12}{each.framework:<10}{each.models:<10}{len(each.cases):>6}{errors}")
        documents[each.chip, each.framework, each.models] = each.fitted, {
            "models": each.models, "fitted_on": fitted_on(each.cases), "beyond": each.beyond,
            "note": f"Partially pooled: what its {len(each.cases)} rows leave open is that of all {len(cases)} rows of "
            "the fit. Errors are of fits without the model of a row.",
        }  # fmt: skip
    if options["out"]:
        _write("inference", documents, _hashes(rows, {c.id for c in cases}), options)
    _print_skipped([c for c in read if isinstance(c, Skipped)])


def _fit_kernels(catalog: Catalog, rows: list[Record], options: dict[str, Any]) -> None:
    from trnspec.perf.calibration.fits.kernels import fit_kernels
    from trnspec.perf.calibration.fits.serving import PooledErrors
    from trnspec.perf.calibration.measured.kernels import KernelCase, kernel_cases
    from trnspec.perf.calibration.measured.tables import Skipped
    from trnspec.perf.lowering.system import IDEAL

    read = [c for kind in KERNELS for c in kernel_cases(catalog.graph, rows, kind)]
    cases = [c for c in read if isinstance(c, KernelCase)]
    click.echo(f"{len(cases)} rows fitted, {len(read) - len(cases)} cannot be evaluated")
    click.echo("")
    click.echo(f"{'':<12}{'':<10}{'':<20}{'rows':>6}{'shapes held out':>18}")
    documents = {}
    for each in fit_kernels(cases):
        for group in each.groups:
            click.echo(f"{each.chip:<12}{each.framework:<10}{group.phase:<20}{group.rows:>6}{group.mean:>18.1%}")
        roofs = [
            {
                "kernel": kernel, "precision": precision,
                "rows": sum((c.part, c.precision) == (kernel, precision) for c in each.cases),
                **values,
            }
            for (kernel, precision), values in each.roofs.items()
        ]  # fmt: skip
        fitted = PooledErrors(IDEAL, each.errors, each.held_out, (), scales=each.held_out * 0.0, ends=each.ends)
        documents[each.chip, each.framework, ""] = fitted, {
            "beyond": (each.beyond,), "groups": each.groups, "roofs": roofs,
            "note": f"Partially pooled: what its {len(each.cases)} rows leave open is that of all {len(cases)} rows of "
            "the fit. Errors are of fits without the shape of a row.",
        }  # fmt: skip
    if options["out"]:
        _write("kernels", documents, _hashes(rows, {c.id for c in cases}), options)
    _print_skipped([c for c in read if isinstance(c, Skipped)])


def _hashes(rows: Sequence[Record], fitted: set[str]) -> list[str]:
    from trnspec.perf.calibration.measured.tables import row_hashes

    return [h for row in rows if row.get("id") in fitted for h in row_hashes(row)]


def _mean(fitted: Fitted, *, held_out: bool) -> float:
    return fitted.summary(held_out=held_out)[0]


def _write(
    of: str,
    documents: Mapping[tuple[str, str, str], tuple[Fitted, dict[str, Any]]],
    hashes: Sequence[str],
    options: dict[str, Any],
) -> None:
    """Writes a document for each chip, framework and kind of models."""
    from datetime import UTC, datetime

    from trnspec.atomic_write import write
    from trnspec.cli.calibrate import schema_of
    from trnspec.perf.calibration.document import document

    folder = Path(options["out"]) / "calibrations"
    texts: dict[Path, bytes] = {}
    for (chip, framework, models), (fitted, about) in documents.items():
        name = "-".join(filter(None, (chip, framework, options["era"], models, of)))
        texts[folder / f"{name}.yaml"] = document(
            fitted, name=name, chip=chip, of=of, software=SOFTWARE.get(framework, framework), framework=framework,
            era=options["era"] or "", source=options["source"], data=options["data"],
            fitted=f"{datetime.now(UTC):%Y-%m-%d}", schema=schema_of(folder), hashes=hashes, **about,
        ).encode()  # fmt: skip
    existing = [path for path in texts if path.exists()]
    if existing and not options["force"]:
        raise UsageError(f"{existing[0]} exists; --force overwrites it")
    write(texts)
    click.echo("")
    for path in texts:
        click.echo(f"wrote {path}")


SOFTWARE = {"vllm": "vLLM", "trtllm": "TensorRT-LLM", "sglang": "SGLang", "torch": "PyTorch"}
"""The name of the software of a framework."""


def _print_skipped(skipped: Sequence[Skipped]) -> None:
    if skipped:
        click.echo("")
        click.echo("cannot be evaluated")
    for row in skipped:
        click.echo(f"  {row.id}: {row.reason}")
