"""``trnspec calibrate``: fits the achieved efficiencies of a chip to measurements."""

from __future__ import annotations

import json
import re
from functools import partial
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import click

from trnspec.cli.calibrate_report import json_report, print_fit, print_skipped, warn_undetermined
from trnspec.cli.common import load_catalog
from trnspec.cli.complete import documents
from trnspec.cli.help import GroupedCommand, GroupedOption
from trnspec.diagnostics import did_you_mean
from trnspec.errors import UnknownNameError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from trnspec.catalog.catalog import Catalog
    from trnspec.perf.calibration.fits.prior import Prior
    from trnspec.perf.calibration.fits.training import Fitted, Holdout
    from trnspec.perf.calibration.measured.collectives import CollectiveCase
    from trnspec.perf.calibration.measured.inference import InferenceCase
    from trnspec.perf.calibration.measured.tables import Record, Skipped
    from trnspec.perf.calibration.measured.training import Case
    from trnspec.perf.collectives.library import Library

    AnyCase = Case | InferenceCase

KINDS = {"train": "training", "infer": "inference", "collective": "collectives"}
"""The fitted model, by the kind of the rows."""


def _option(*names: str, group: str, **more: Any) -> Callable[[Any], Any]:
    return click.option(*names, cls=GroupedOption, group=group, **more)


class _Calibrate(GroupedCommand):
    """``trnspec calibrate DATA.csv`` fits; ``trnspec calibrate import`` is a command of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the command that the arguments are for."""
        if args[:1] == ["import"]:
            from trnspec.cli.calibrate_import import command as import_

            return import_.make_context(f"{info_name} import", args[1:], parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


@click.command(
    "calibrate",
    cls=_Calibrate,
    examples=(
        ("trnspec calibrate steps.csv --software Megatron-LM --rows", "Print the fit and the error of every row:"),
        (
            "trnspec calibrate steps.csv --software Neuron --catalog my-catalog --out my-catalog --name neuron --source acme-2026-10",
            "Write a calibration document for each chip of the rows:",
        ),
    ),
)
@click.argument("files", metavar="DATA.csv...", nargs=-1, required=True, type=click.Path())
@_option(
    "--of",
    group="Measurements",
    type=click.Choice([*KINDS.values()]),
    help="What to fit; the kind of the rows when left out.",
)
@_option("--software", group="Measurements", metavar="TEXT", help="The software that ran: Megatron-LM.")
@_option(
    "--chip",
    "chips",
    group="Measurements",
    multiple=True,
    metavar="NAME",
    shell_complete=documents("chips"),
    help="Only rows of this chip; may be repeated.",
)
@_option(
    "--framework",
    group="Measurements",
    metavar="NAME",
    help="The framework that ran, as --framework of eval names it: megatron.",
)
@_option(
    "--era",
    "eras",
    group="Measurements",
    multiple=True,
    metavar="TEXT",
    help="Year or release with which the era of the software begins: 2026. May be repeated: a document for each, fitted together.",
)
@_option(
    "--models",
    group="Measurements",
    type=click.Choice(["dense", "experts"]),
    help="Only rows of dense models, or of models with experts.",
)
@_option("--only", group="Measurements", metavar="REGEX", help="Only rows whose id matches.")
@_option("--also", group="Measurements", metavar="REGEX", help="Rows that widen the interval but are not fitted.")
@_option(
    "--pool",
    group="Measurements",
    is_flag=True,
    help="Serving with requests in flight: one fit to all chips and frameworks of the rows, which borrow from each "
    "other; a document for each of them.",
)
@_option(
    "--prior",
    group="Measurements",
    metavar="NAME",
    default="auto",
    help="The calibration from which the fit starts, and near which it stays where the rows say little; none for typical "
    "values.  [default: auto, the nearest without one of the rows]",
)
@_option("--out", group="Output", metavar="DIR", help="Write a document for each chip into this catalog folder.")
@_option(
    "--name",
    group="Output",
    metavar="NAME",
    help="The name of the documents after the chip, before the "
    "models and what was measured.  [default: framework and era]",
)
@_option(
    "--source",
    group="Output",
    metavar="NAME",
    shell_complete=documents("sources"),
    help="The source of the measurements, a document of the catalog.",
)
@_option(
    "--document",
    "written",
    group="Output",
    multiple=True,
    metavar="CHIP",
    shell_complete=documents("chips"),
    help="Write only the document of this chip; may be repeated.",
)
@_option(
    "--transfer",
    group="Output",
    metavar="PATH",
    help="Measurements, or a folder of them, whose rows outside the fit show how it transfers to other chips and other "
    "software.  [default: those of trnspec]",
)
@_option("--force", group="Output", is_flag=True, help="Overwrite existing documents.")
@_option("--rows", "every", group="Output", is_flag=True, help="Print every row with its error.")
@_option(
    "--format",
    group="Output",
    type=click.Choice(["text", "json"]),
    default="text",
    help="How the result is printed.  [default: text]",
)
@_option(
    "--catalog",
    group="Catalog",
    multiple=True,
    metavar="DIR",
    help="Also resolve names in this catalog; may be repeated.",
)
def command(
    files: tuple[str, ...], software: str | None, chips: tuple[str, ...], only: str | None, **options: Any
) -> None:
    """Fit the achieved efficiencies of a chip to measured training steps, inference or collectives.

    The first line of DATA.csv names its columns; the column kind is required. A measured step is a row of kind train:
    model, hardware, n_chips, seq, global_batch, precision and step_time_s are required; tp, pp, dp, microbatch and
    others describe the parallelism. A measured deployment is a row of kind infer: model, hardware, n_chips, tp, isl,
    batch_conc, precision and tpot_ms are required; osl is with continuous batching; ttft_ms is fitted too. A measured
    collective is a row of kind collective: hardware, n_chips, collective, size_bytes and time_us are required. All columns are described in
    docs/reference/calibrate.md. Rows that cannot be evaluated are listed with the reason. The errors are printed of the
    fit, and of fits that held out the model of each row.

    A fit starts from the nearest calibration. For each parameter it prints the value of that prior, and how much the rows narrow
    it: 0% is the prior, 100% the rows alone. A warning lists the parameters that the rows do not determine.

    --document may name a chip without rows: the document then names the chips of its rows, and its errors and interval
    come from fits that held out one chip at a time, of which there must be at least two.

    trnspec calibrate import writes DATA.csv from logs and result files, see its --help.
    """
    catalog = _catalog(options["catalog"])
    rows, of = _rows(catalog, files, options["of"])
    if options["pool"]:
        for name, usual in (("prior", "auto"), ("format", "text")):
            if options[name] not in (usual, "none"):
                raise UsageError(f"--{name} is not an option of --pool, whose rows borrow from each other")
        from trnspec.cli.calibrate_pooled import fit_pooled_rows

        if options["out"]:
            _check_source(catalog, options["source"])
        data = ", ".join(FilePath(file).name for file in files)
        fit_pooled_rows(catalog, rows, {**options, "data": data, "era": "".join(options["eras"][:1])})
        return
    if software is None:
        raise UsageError("missing option --software")
    if of == "collectives":
        _collectives(catalog, files, chips, only, options | {"software": software})
        return
    cases, skipped = _cases(catalog, rows, of, chips, only)
    cases = _of_models(cases, options["models"])
    targets = _targets(catalog, cases, of, options) if options["out"] else {}
    _fit_and_write(
        catalog, rows, cases, skipped, files, targets, {**options, "of": of, "chips": chips, "software": software}
    )


def _fit_and_write(  # noqa: PLR0917  # the rows, and where they go
    catalog: Catalog,
    rows: list[Record],
    cases: list[AnyCase],
    skipped: list[Skipped],
    files: Sequence[str],
    targets: dict[tuple[str, str], FilePath],
    options: dict[str, Any],
) -> None:
    """Fits rows of training or of serving, prints the result and writes the documents."""
    from trnspec.perf.calibration.fit_range import inputs_of

    of, chips, software = options["of"], options["chips"], options["software"]
    if not cases:
        print_skipped(skipped)
    prior = _prior(catalog, rows, cases, of, options)
    own = sorted({c.system.chip for c in cases})
    fits = {
        holdout: _fit(cases, holdout, options["eras"], prior) for holdout in _holdouts([c for c, _ in targets], own, of)
    }
    more = _of_models(_also(catalog, rows, of, chips, cases, options["also"]), options["models"])
    if more:
        scales = [inputs_of(case)["ranks"] for case in more]
        fits = {holdout: fitted.with_errors(_errors(fitted, more), scales) for holdout, fitted in fits.items()}
    if options["format"] == "text":
        print_fit(fits, cases, skipped, every=options["every"])
    if targets:
        data = ", ".join(FilePath(file).name for file in files)
        others = _others(catalog, of, cases, options["transfer"])
        about = {name: options[name] or "" for name in ("framework", "models", "source")}
        hashes = _hashes(rows, cases)
        _write(fits, targets, cases, others, more, hashes, of=of, data=data, software=software, **about)
    if options["format"] == "json":
        wrote = [str(path) for path in targets.values()]
        click.echo(json.dumps(json_report(fits, cases, skipped, wrote, every=options["every"]), indent=2))
    elif targets:
        click.echo("")
        for target in targets.values():
            click.echo(f"wrote {target}")
    warn_undetermined(next(iter(fits.values())), len(cases))


def _prior(catalog: Catalog, rows: list[Record], cases: Sequence[AnyCase], of: str, options: dict[str, Any]) -> Prior:
    """What is known before the rows, by the chip, the framework and the era that most of them have."""
    from trnspec.perf.calibration.chosen import framework_of
    from trnspec.perf.calibration.fits import prior

    if not cases:
        return prior.TYPICAL
    experts = {c.dims.experts > 0 for c in cases}
    return prior.prior_of(
        catalog.graph,
        prior.commonest([c.system.chip for c in cases]),
        of,
        options["prior"],
        framework=options["framework"] or prior.commonest([framework_of(c) for c in cases]),
        era="".join(options["eras"][:1]) or prior.commonest([getattr(c, "era", "") for c in cases]),
        experts=experts.pop() if len(experts) == 1 else None,
        hashes=_hashes(rows, cases),
    )


def _collectives(
    catalog: Catalog, files: Sequence[str], chips: Sequence[str], only: str | None, options: dict[str, Any]
) -> None:
    """Fits the protocols of a collective library, a document for each chip."""
    from datetime import UTC, datetime

    from trnspec.atomic_write import write
    from trnspec.perf.calibration.document import document
    from trnspec.perf.calibration.fits.collectives import fit_collectives
    from trnspec.perf.calibration.measured.collectives import CollectiveCase, collective_cases
    from trnspec.perf.calibration.measured.tables import records, row_hashes
    from trnspec.perf.lowering.calibrated import nearest

    pattern = _pattern(only)
    by_file: dict[str, list[CollectiveCase]] = {}
    skipped: list[Skipped] = []
    for file in files:
        read = [*collective_cases(catalog.graph, records(FilePath(file), catalog.graph))]
        by_file[file] = [c for c in read if isinstance(c, CollectiveCase) and pattern.search(c.id)]
        skipped += [c for c in read if not isinstance(c, CollectiveCase) and pattern.search(c.id)]
    cases = [case for of_file in by_file.values() for case in of_file]
    named = {c.framework for c in cases}
    framework = options["framework"] or (named.pop() if len(named) == 1 else None)
    if framework is None:
        raise UsageError(f"the rows are of {' and of '.join(sorted(named)) or 'none'}; choose one with --framework")
    options = {**options, "framework": framework}
    own = [c for c in cases if c.framework == framework and (not chips or c.system.chip in chips)]
    targets = _targets(catalog, own, "collectives", options) if options["out"] else {}
    priors = _libraries(catalog, own, options)
    every = fit_collectives(cases, framework, partial(nearest, catalog.graph), priors)
    fits = {chip: fitted for chip, fitted in every.items() if not chips or chip in chips}
    as_text = options["format"] == "text"
    for chip, fitted in fits.items() if as_text else ():
        click.echo(chip)
        print_fit({"model": fitted}, fitted.cases, skipped, every=options["every"])
        click.echo("")
    texts = {}
    for (chip, era), target in targets.items():
        if chip not in fits:
            raise UsageError(f"{chip} has too few rows of {framework}; choose chips with --chip")
        fitted = fits[chip]
        ids = {c.id for c in fitted.cases}
        data = [FilePath(file).name for file, of_file in by_file.items() if any(c.id in ids for c in of_file)]
        texts[target] = document(
            fitted, name=target.stem, chip=chip, of="collectives", software=options["software"],
            source=options["source"], data=", ".join(data), fitted=f"{datetime.now(UTC):%Y-%m-%d}",
            schema=schema_of(target.parent), framework=framework, era=era, note=fitted.note(), fitted_on=fitted.fitted_on(),
            beyond=(fitted.elsewhere(),), groups=fitted.groups(), hashes=[each for c in fitted.cases for each in row_hashes(c.row)],
        ).encode()  # fmt: skip
    write(texts)
    if as_text:
        for target in texts:
            click.echo(f"wrote {target}")
    else:
        wrote = [str(target) for target in texts]
        reports = {
            chip: json_report({"model": fitted}, fitted.cases, skipped, wrote, every=options["every"])
            for chip, fitted in fits.items()
        }
        click.echo(json.dumps(reports, indent=2))
    for fitted in fits.values():
        warn_undetermined(fitted, len(fitted.cases))


def _libraries(
    catalog: Catalog, cases: Sequence[CollectiveCase], options: dict[str, Any]
) -> dict[str, tuple[Prior, Library]]:
    """By chip the nearest calibration of the framework that was not fitted to one of the rows, and its protocols."""
    from trnspec.perf.calibration.fits.prior import library_of
    from trnspec.perf.calibration.measured.tables import row_hashes

    hashes = [each for case in cases for each in row_hashes(case.row)]
    framework, era = options["framework"], "".join(options["eras"][:1])
    found = {
        chip: library_of(catalog.graph, chip, options["prior"], framework=framework, era=era, hashes=hashes)
        for chip in sorted({case.system.chip for case in cases})
    }
    return {chip: known for chip, known in found.items() if known is not None}


def _catalog(folders: tuple[str, ...]) -> Catalog:
    if len(folders) < 2:
        return load_catalog(catalog=folders[0] if folders else None)
    from trnspec.api import load

    return load(folders)


def _rows(catalog: Catalog, files: Sequence[str], of: str | None) -> tuple[list[Record], str]:
    """The rows of some files, and whether they are of training or of inference."""
    from trnspec.perf.calibration.measured.tables import records

    rows = [row for file in files for row in records(FilePath(file), catalog.graph)]
    if of is None:
        kinds = sorted({KINDS[row["kind"]] for row in rows if row.get("kind") in KINDS})
        if len(kinds) > 1:
            raise UsageError(f"{', '.join(files)}: the rows are of {' and of '.join(kinds)}; choose one with --of")
        of = kinds[0] if kinds else "training"
    return rows, of


def _of_models(cases: list[AnyCase], models: str | None) -> list[AnyCase]:
    """The rows of dense models, or of models with experts."""
    return [c for c in cases if models is None or (c.dims.experts > 0) == (models == "experts")]


def _hashes(rows: list[Record], cases: Sequence[AnyCase]) -> list[str]:
    """The hashes of the rows of some cases."""
    from trnspec.perf.calibration.measured.tables import row_hashes

    fitted = {c.id for c in cases}
    return [each for row in rows if row.get("id") in fitted for each in row_hashes(row)]


def _holdouts(targets: Iterable[str], own: Sequence[str], of: str) -> list[Holdout]:
    """The groups that cross-validation holds out: models for a chip that has rows, chips for one that has none."""
    needed: dict[Holdout, None] = dict.fromkeys(_holdout(chip, own, of) for chip in targets)
    return sorted(needed, reverse=True) or ["model"]


def _holdout(chip: str, own: Sequence[str], of: str) -> Holdout:
    """Chips for a chip without rows; of serving models where the rows are of one chip, since transfer widens its interval."""
    return "model" if chip in own or (of == "inference" and len(own) < 2) else "chip"


def _fit(cases: Sequence[AnyCase], holdout: Holdout, eras: Sequence[str], prior: Prior) -> Fitted:
    from trnspec.perf.calibration.fits.inference import fit_inference
    from trnspec.perf.calibration.fits.training import fit
    from trnspec.perf.calibration.measured.inference import InferenceCase
    from trnspec.perf.calibration.measured.training import Case

    served = [c for c in cases if isinstance(c, InferenceCase)]
    if served:
        return fit_inference(served, holdout, prior)
    return fit([c for c in cases if isinstance(c, Case)], holdout, eras, prior)


def _also(
    catalog: Catalog,
    rows: list[Record],
    of: str,
    chips: Sequence[str],
    cases: Sequence[AnyCase],
    also: str | None,
) -> list[AnyCase]:
    """The rows of --also, which are not fitted but count for the interval."""
    if also is None:
        return []
    fitted = {c.id for c in cases}
    return [c for c in _cases(catalog, rows, of, chips, also)[0] if c.id not in fitted]


def _others(catalog: Catalog, of: str, cases: Sequence[AnyCase], place: str | None) -> dict[str, list[AnyCase]]:
    """Rows that are not fitted, by chip and table."""
    from trnspec.loading.files import shipped
    from trnspec.perf.calibration.measured.tables import records

    folder = shipped() / "measured" if place is None else FilePath(place)
    fitted = {c.id for c in cases}
    others: dict[str, list[AnyCase]] = {}
    for file in sorted(folder.glob("*.csv")) if folder.is_dir() else [folder]:
        for case in _cases(catalog, records(file, catalog.graph), of, (), None)[0]:
            if case.id not in fitted:
                others.setdefault(f"{case.system.chip} {file.name}", []).append(case)
    return others


def _errors(fitted: Fitted, cases: Sequence[AnyCase]) -> Any:
    """The relative error, estimated over measured time minus 1, of some rows with a fit to other rows."""
    from trnspec.perf.calibration.fits.inference import FittedServing, runs
    from trnspec.perf.calibration.fits.training import batch
    from trnspec.perf.calibration.measured.inference import InferenceCase
    from trnspec.perf.calibration.measured.training import Case

    if isinstance(fitted, FittedServing):
        served = runs([c for c in cases if isinstance(c, InferenceCase)])
        return fitted.solved.times(served)[0] / served.tpot - 1.0
    steps = batch([c for c in cases if isinstance(c, Case)])
    return steps.times(fitted.pooled) / steps.seconds - 1.0


def _cases(
    catalog: Catalog, rows: list[Record], of: str, chips: Sequence[str], only: str | None
) -> tuple[list[AnyCase], list[Skipped]]:
    from trnspec.perf.calibration.measured.inference import InferenceCase, inference_cases
    from trnspec.perf.calibration.measured.tables import Skipped
    from trnspec.perf.calibration.measured.training import training_cases

    pattern = _pattern(only)
    read = inference_cases if of == "inference" else training_cases
    every: list[AnyCase | Skipped] = [*read(catalog.graph, rows)]
    cases = [c for c in every if not isinstance(c, Skipped) and pattern.search(c.id)]
    # A row with a time to first token alone is scored and not fitted.
    cases = [c for c in cases if not isinstance(c, InferenceCase) or c.tpot]
    skipped = [c for c in every if isinstance(c, Skipped) and pattern.search(c.id)]
    return [c for c in cases if not chips or c.system.chip in chips], skipped


def _pattern(only: str | None) -> re.Pattern[str]:
    try:
        return re.compile(only or "")
    except re.error as error:
        raise UsageError(f"--only: {only!r} is not a regular expression: {error}") from error


def _targets(
    catalog: Catalog, cases: Sequence[AnyCase | CollectiveCase], of: str, options: dict[str, Any]
) -> dict[tuple[str, str], FilePath]:
    """The file for each chip and era; reasons not to write it are reported before the fit, which may take minutes."""
    from trnspec.model.annotations import NAME_PATTERN

    framework, source, eras = options["framework"], options["source"], options["eras"] or ("",)
    if framework and not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", framework):
        raise UsageError(f"--framework: {framework!r} is not the name of a framework, such as megatron")
    name = options["name"] or "-".join(filter(None, (framework, eras[0] if len(eras) == 1 else "")))
    if not (name and source):
        raise UsageError("--out needs --source, and --name or --framework")
    # Documents of training keep the plain name; those of other rows do not replace them.
    parts = options["models"], "" if of == "training" else of
    names = {era: "-".join(filter(None, (name, era if len(eras) > 1 else "", *parts))) for era in eras}
    for each in names.values():
        if not re.fullmatch(NAME_PATTERN.regex, each):
            raise UsageError(f"--name: {each!r} is not {NAME_PATTERN.words}")
    _check_source(catalog, source)
    folder = FilePath(options["out"]) / "calibrations"
    chips = sorted({c.system.chip for c in cases})
    for chip in options["written"]:
        if chip not in catalog.chips:
            hint = did_you_mean(chip, catalog.chips)
            raise UnknownNameError(f"--document: no chip is named {chip!r}" + (f"; {hint}" if hint else ""))
    targets = {
        (chip, era): folder / f"{chip}-{each}.yaml"
        for chip in options["written"] or chips
        for era, each in names.items()
    }
    for target in targets.values():
        if target.exists() and not options["force"]:
            raise UsageError(f"{target} exists; --force overwrites it")
        other = re.search(r"^  of: (\w+)$", target.read_text("utf-8") if target.is_file() else "", re.MULTILINE)
        if other is not None and other[1] != of:
            raise UsageError(f"{target} is a calibration of {other[1]}, not of {of}; choose another --name")
    return targets


def _check_source(catalog: Catalog, source: str | None) -> None:
    from trnspec.model.source import Source

    if not source:
        raise UsageError("--out needs --source")
    known = [n.name for n in catalog.graph.of(Source)]
    if source not in known:
        hint = did_you_mean(source, known)
        advice = hint or "write one, and name its catalog with --catalog"
        raise UnknownNameError(f"--source: no source is named {source!r}; {advice}")


def _write(
    fits: dict[Holdout, Fitted],
    targets: dict[tuple[str, str], FilePath],
    cases: Sequence[AnyCase],
    others: dict[str, list[AnyCase]],
    more: Sequence[AnyCase],
    hashes: Sequence[str],
    **about: Any,
) -> None:
    from datetime import UTC, datetime

    from trnspec.atomic_write import write
    from trnspec.perf.calibration.document import document
    from trnspec.perf.calibration.fit_range import fitted_on
    from trnspec.perf.calibration.groups import ENOUGH, groups_of
    from trnspec.perf.calibration.transfer import beyond

    own = sorted({c.system.chip for c in cases})
    # The same parameters in each, since what is held out matters for their errors alone.
    further = beyond(next(iter(fits.values())), cases, others)
    texts = {}
    for (chip, era), target in targets.items():
        fitted, rows, errors = _own(fits[_holdout(chip, own, about["of"])], [*cases, *more], chip, era)
        text = document(
            fitted, name=target.stem, chip=chip, era=era, **about,
            fitted=f"{datetime.now(UTC):%Y-%m-%d}", schema=schema_of(target.parent),
            note=" ".join(_notes(chip, own, len(more))), fitted_on=fitted_on(cases), beyond=further,
            groups=[fitted.prior.drawn(g, ENOUGH) for g in groups_of(fitted, rows, chip, errors)], hashes=hashes,
        )  # fmt: skip
        texts[target] = text.encode()
    write(texts)


def _own(fitted: Fitted, cases: Sequence[AnyCase], chip: str, era: str) -> tuple[Fitted, Sequence[AnyCase], Any]:
    """The fit for a chip and an era: its efficiency, and the errors of the chip's rows where they are enough for an interval."""
    from trnspec.perf.calibration.fits.inference import FittedServing
    from trnspec.perf.calibration.groups import ENOUGH, label

    if isinstance(fitted, FittedServing):
        return fitted, cases, fitted.errors
    mask = [c.system.chip == chip for c in cases]
    mine = [c for c, kept in zip(cases, mask, strict=True) if kept]
    if len({label(c).cluster for c in mine}) < ENOUGH:
        return fitted.of(chip, era), cases, fitted.errors
    return fitted.of(chip, era, mask), mine, fitted.errors[mask[: len(fitted.errors)]]


def _notes(chip: str, own: Sequence[str], more: int) -> Iterator[str]:
    if chip not in own:
        held = "chip" if len(own) > 1 else "model"
        yield f"No row was measured on this chip; the rows are of {', '.join(own)}, and the errors those of fits that held out a {held}."
    if more:
        yield f"The interval and the errors include {more} rows that were not fitted."


def schema_of(folder: FilePath) -> str:
    """The path of the schema relative to a folder: in the nearest parent folder that has one, as in a checkout."""
    place = FilePath("schemas", "v1", "calibration.schema.json")
    above = folder.resolve()
    for steps, parent in enumerate([above, *above.parents]):
        if (parent / place).is_file():
            return "/".join([*[".."] * steps, *place.parts])
    return "../../schemas/v1/calibration.schema.json"
