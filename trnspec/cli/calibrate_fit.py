"""Fits of ``trnspec calibrate``: rows as cases, a fit for each chip and software, reports and documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path as FilePath
from typing import Any

import click
from attrs import evolve, frozen

from trnspec.api import load, registry
from trnspec.atomic_write import write
from trnspec.catalog.catalog import Catalog
from trnspec.cli import calibrate_report as report
from trnspec.cli.common import here
from trnspec.diagnostics import did_you_mean, unknown_name
from trnspec.errors import UnknownNameError, UsageError
from trnspec.loading.files import shipped
from trnspec.loading.forms.fits import fits_text, list_name
from trnspec.loading.pipeline import load_document
from trnspec.model.annotations import NAME_PATTERN
from trnspec.model.source import Source
from trnspec.perf.calibration.document import document
from trnspec.perf.calibration.fit_range import fitted_on
from trnspec.perf.calibration.fits import inference, prior
from trnspec.perf.calibration.fits.collectives import fit_collectives
from trnspec.perf.calibration.fits.fit import INPUTS, FitModel, Fitted, Holdout, fit, for_chip, splits
from trnspec.perf.calibration.fits.kernels import fit_kernels
from trnspec.perf.calibration.fits.prior import FitPrior
from trnspec.perf.calibration.fits.serving import fit_serving
from trnspec.perf.calibration.fits.training import training
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.cells import Record, fitted_tables, records
from trnspec.perf.calibration.measured.collectives import collective_cases
from trnspec.perf.calibration.measured.inference import inference_cases
from trnspec.perf.calibration.measured.kernels import kernel_cases
from trnspec.perf.calibration.measured.serving import serving_cases
from trnspec.perf.calibration.measured.training import training_cases
from trnspec.perf.calibration.transfer import CHIPS, beyond
from trnspec.perf.lowering.calibrated import nearest
from trnspec.yaml import Document, read_file, read_text

KINDS = {"train": "training", "infer": "inference", "collective": "collectives"}
"""The fitted model, by the kind of the rows."""

KERNELS = ("matmul", "attention", "moe")
"""Kinds of rows of kernels."""

SOFTWARE = {"vllm": "vLLM", "trtllm": "TensorRT-LLM", "sglang": "SGLang", "torch": "PyTorch"}
"""The name of the software of a framework, for documents of ``--pool``."""

_READERS = {"training": training_cases, "inference": inference_cases, "collectives": collective_cases}

Label = tuple[str, str, str, str]
"""Chip, framework, era and kind of models of a document."""

Result = tuple[Mapping[Label, "Fitted"], Mapping[str, "Mapping[Holdout, Fitted]"]]
"""The fit of each document, and what is reported: fits by what was held out, of each chip or of all."""


@frozen
class FileRows:
    """The rows of some files.

    Attributes:
        catalog: The catalog.
        files: The files.
        of: ``training``, ``inference``, ``collectives`` or ``kernels``.
        cases: Those that are fitted; of collectives also those of the library that theirs uses.
        skipped: Those that cannot be computed.
        also: Those that widen the interval but are not fitted.
        framework: Their framework; empty if unknown, or with ``--pool``.
        options: The options of the command.
    """

    catalog: Catalog
    files: Sequence[str]
    of: str
    cases: list[Any]
    skipped: list[Skipped]
    also: list[Any]
    framework: str
    options: Mapping[str, Any]

    @property
    def own(self) -> list[Any]:
        """The rows that are fitted."""
        chips = self.options["chips"]
        if self.of != "collectives":
            return self.cases
        return [c for c in self.cases if c.framework == self.framework and (not chips or c.chip in chips)]

    @property
    def labels(self) -> list[Label]:
        """The documents of the fits."""
        eras = self.options["eras"] or ("",)
        if self.options["pool"]:
            return [*dict.fromkeys((c.chip, c.framework, eras[0], getattr(c, "models", "")) for c in self.cases)]
        chips = self.options["written"] or sorted({c.chip for c in self.own})
        models = "" if self.of == "collectives" else self.options["models"] or ""
        return [(chip, self.framework, era, models) for chip in chips for era in eras]


def run(files: Sequence[str], options: Mapping[str, Any]) -> None:
    """Fits the rows of some files, prints the result and writes a document for each chip and software.

    Raises:
        UsageError: An option or a file is wrong, or there are too few rows.
    """
    catalog = load(options["catalogs"], settings=here())
    rows = _rows(catalog, files, options)
    collectives, text = rows.of == "collectives", options["format_"] == "text"
    targets = _targets(rows)
    fits, reports = (_fit_pooled if options["pool"] else _fit_collectives if collectives else _fit_models)(
        rows, targets
    )
    texts = _lists(rows, {name: evolve(fits[label], era=label[2]) for label, name in targets.items()})
    write({target: text.encode() for target, text in texts.items()})
    if text and texts and not collectives:
        click.echo("")
    for target in texts if text else ():
        click.echo(f"wrote {target}")
    if not text:
        each = {
            chip: report.json_report(of, rows.skipped, [*texts], every=options["every"]) for chip, of in reports.items()
        }
        click.echo(json.dumps(each if collectives else each[""], indent=2))
    for of in reports.values():
        report.warn_undetermined(next(iter(of.values())))


def _rows(catalog: Catalog, files: Sequence[str], options: Mapping[str, Any]) -> FileRows:
    """The rows of some files as cases; what cannot be fitted together is an error."""
    rows = [row for file in files for row in records(FilePath(file), catalog.graph)]
    kinds = {row["kind"] for row in rows if row.get("kind")}
    if options["pool"]:
        for name, default in (("prior", "auto"), ("format_", "text")):
            if options[name] not in (default, "none"):
                raise UsageError(f"--{name.rstrip('_')} is not an option of --pool, whose rows borrow from each other")
        kernels = [kind for kind in KERNELS if kind in kinds]
        if "infer" in kinds and kernels:
            raise UsageError("the rows are of serving and of kernels; fit them one after the other")
        read: list[Any] = [c for kind in kernels for c in kernel_cases(catalog.graph, rows, kind)]
        cases, skipped = _split(read or serving_cases(catalog.graph, rows))
        return FileRows(catalog, files, "kernels" if kernels else "inference", cases, skipped, [], "", options)
    if options["software"] is None:
        raise UsageError("missing option --software")
    named = sorted({KINDS[kind] for kind in kinds & KINDS.keys()})
    if len(named) > 1 and options["of"] is None:
        raise UsageError(f"{', '.join(files)}: the rows are of {' and of '.join(named)}; choose one with --of")
    of = options["of"] or (named[0] if named else "training")
    cases, skipped = _cases(catalog, rows, of, options["only"])
    also: list[Any] = []
    framework = options["framework"] or ""
    if of == "collectives":
        software = sorted({c.framework for c in cases})
        if not framework and len(software) != 1:
            raise UsageError(f"the rows are of {' and of '.join(software) or 'none'}; choose one with --framework")
        framework = framework or software[0]
    else:
        fitted = {c.id for c in cases}
        if options["also"] is not None:
            also = [c for c in _cases(catalog, rows, of, options["also"])[0] if c.id not in fitted]
        chips, models = options["chips"], options["models"]
        cases, also = (
            [c for c in some if (not chips or c.chip in chips) and models in {None, c.models}] for some in (cases, also)
        )
    return FileRows(catalog, files, of, cases, skipped, also, framework, options)


def _cases(catalog: Catalog, rows: list[Record], of: str, only: str | None) -> tuple[list[Any], list[Skipped]]:
    """The rows whose names match, as cases and as skipped."""
    try:
        pattern = re.compile(only or "")
    except re.error as error:
        raise UsageError(f"--only: {only!r} is not a regular expression: {error}") from error
    read = [c for c in _READERS[of](catalog.graph, rows) if pattern.search(c.id)]
    cases, skipped = _split(read)
    # A row with a time to first token alone is scored and not fitted.
    return [c for c in cases if of != "inference" or c.tpot], skipped


def _split(read: Sequence[Any]) -> tuple[list[Any], list[Skipped]]:
    return [c for c in read if not isinstance(c, Skipped)], [c for c in read if isinstance(c, Skipped)]


def _fit_models(rows: FileRows, targets: Mapping[Label, str]) -> Result:
    """Fits of training or of serving without requests in flight: one search, and a document for each chip and era."""
    options, of, cases = rows.options, rows.of, rows.cases
    if not cases:
        report.print_skipped(rows.skipped)
    own = sorted({c.chip for c in cases})
    needed = {_holdout(chip, own, of) for chip, *_ in targets} or {"model"}
    # The error on other chips with the same software is stated, too.
    needed |= {"model", "chip"} if targets and len(own) >= CHIPS else set()
    # Beyond the rows of a fit eras are not distinguished.
    model, plain = (inference.MODEL if of == "inference" else training(eras) for eras in (options["eras"], ()))
    fits = fit(model, cases, sorted(needed, reverse=True), _prior(rows))
    if rows.also:
        fits = {holdout: _with_rows(plain, fitted, rows.also) for holdout, fitted in fits.items()}
    if options["format_"] == "text":
        report.print_fit(fits, rows.skipped, every=options["every"])
    masks = splits(plain, cases, INPUTS)
    further = beyond(plain, next(iter(fits.values())), _others(rows), masks) if targets else ()
    documents = {
        label: evolve(
            for_chip(fits[_holdout(label[0], own, of)], label[0], label[2]), framework=label[1], models=label[3],
            beyond=further, fitted_on=fitted_on(cases), note=" ".join(_notes(label[0], own, len(rows.also))),
        )
        for label in targets
    }  # fmt: skip
    return documents, {"": fits}


def _holdout(chip: str, own: Sequence[str], of: str) -> Holdout:
    """Models for a chip that has rows, chips for one that has none; of serving models where the rows are of one chip."""
    # Transfer widens the interval of serving.
    return "model" if chip in own or (of == "inference" and len(own) < 2) else "chip"


def _with_rows(model: FitModel, fitted: Fitted, also: Sequence[Any]) -> Fitted:
    """A fit whose errors include those of rows that were not fitted."""
    assert fitted.found is not None
    part, times = model.parts[0], model.times(also, fitted.found)
    off = [time / case.measured(part) - 1.0 for case, time in zip(also, times[part], strict=True)]
    return evolve(fitted, errors={**fitted.errors, part: fitted.main.with_rows(also, off)})


def _prior(rows: FileRows) -> FitPrior:
    """The prior of a fit, by the chip, the framework and the era that most rows have."""
    options, cases = rows.options, rows.cases
    experts = {c.chosen_by[-1] for c in cases}
    return prior.prior_of(
        rows.catalog.graph,
        prior.commonest([c.chip for c in cases]),
        rows.of,
        options["prior"],
        framework=rows.framework or prior.commonest([c.software for c in cases]),
        era="".join(options["eras"][:1]) or prior.commonest([c.era for c in cases]),
        experts=experts.pop() if len(experts) == 1 else None,
        hashes=_hashes(cases),
    )


def _others(rows: FileRows) -> dict[str, list[Any]]:
    """Rows that are not fitted, by chip and software: a table with many rows of one software would outweigh all others."""
    place = rows.options["transfer"]
    folder = shipped() / "measured" if place is None else FilePath(place)
    fitted = {c.id for c in rows.cases}
    others: dict[str, list[Any]] = {}
    for file in sorted(folder.glob("*.csv")) if folder.is_dir() else [folder]:
        for case in _cases(rows.catalog, records(file, rows.catalog.graph), rows.of, None)[0]:
            if case.id not in fitted:
                # Of "Kiln 7c91df0, piecewise graphs" the name.
                named = re.split(r"[^A-Za-z-]", case.row.get("software", ""))[0].lower()
                software = case.framework or named or file.name
                others.setdefault(f"{case.chip} {software}", []).append(case)
    return others


def _notes(chip: str, own: Sequence[str], more: int) -> Iterator[str]:
    if chip not in own:
        held = "chip" if len(own) > 1 else "model"
        yield f"No row was measured on this chip; the rows are of {', '.join(own)}, and the errors those of fits that held out a {held}."
    if more:
        yield f"The interval and the errors include {more} rows that were not fitted."


def _fit_collectives(rows: FileRows, targets: Mapping[Label, str]) -> Result:
    """Fits of the protocols of a collective library, a document for each chip."""
    options, own, graph, framework = rows.options, rows.own, rows.catalog.graph, rows.framework
    era, hashes = "".join(options["eras"][:1]), _hashes(own)
    known = {
        chip: prior.library_of(graph, chip, options["prior"], framework=framework, era=era, hashes=hashes)
        for chip in sorted({case.chip for case in own})
    }
    priors = {chip: each for chip, each in known.items() if each is not None}
    every = fit_collectives(rows.cases, framework, partial(nearest, graph), priors)
    fits = {f.chip: f for f in every if not options["chips"] or f.chip in options["chips"]}
    if lacking := [chip for chip, *_ in targets if chip not in fits]:
        raise UsageError(f"{lacking[0]} has too few rows of {framework}; choose chips with --chip")
    for chip, fitted in fits.items() if options["format_"] == "text" else ():
        click.echo(chip)
        report.print_fit({"model": fitted}, rows.skipped, every=options["every"])
        click.echo("")
    return {label: fits[label[0]] for label in targets}, {chip: {"model": fitted} for chip, fitted in fits.items()}


def _fit_pooled(rows: FileRows, _targets: Mapping[Label, str]) -> Result:
    """One fit to rows of several chips and frameworks, of serving or of kernels, and a document for each."""
    fits = (fit_kernels if rows.of == "kernels" else fit_serving)(rows.cases)
    click.echo(f"{len(rows.cases)} rows fitted, {len(rows.skipped)} cannot be evaluated\n")
    report.print_pooled(fits)
    report.print_skipped(rows.skipped, blank=True)
    by_label = {(f.chip, f.framework, f.models): f for f in fits}
    return {label: by_label[label[0], label[1], label[3]] for label in rows.labels}, {}


def _hashes(cases: Sequence[Any]) -> list[str]:
    return [each for case in cases for each in case.hashes]


def _lists(rows: FileRows, fits: Mapping[str, Fitted]) -> dict[FilePath, str]:
    """The texts of the lists that some fits are added to, by name; a fit replaces one of its name."""
    lists: dict[FilePath, dict[str, Document]] = {}
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    for name, fitted in fits.items():
        file = _list_file(rows.options, fitted.chip, fitted.framework)
        if file not in lists:
            lists[file] = _calibrations(file)
        former: Any = lists[file].get(name)
        document = read_text(_document(rows, fitted, name, former.data["spec"]["fitted"] if former else today))
        # A fit that is repeated without a change keeps its date.
        if former is None or document.data != former.data:
            lists[file][name] = read_text(_document(rows, fitted, name, today))
    return {file: _text(documents, file) for file, documents in lists.items()}


def _text(documents: Mapping[str, Document], file: FilePath) -> str:
    data: list[Any] = [documents[name].data for name in sorted(documents)]
    return fits_text(data, _schema_of(file.parent))


def _list_file(options: Mapping[str, Any], chip: str, framework: str) -> FilePath:
    return FilePath(options["out"]) / "calibrations" / f"{list_name(chip, framework)}.yaml"


def _calibrations(file: FilePath) -> dict[str, Document]:
    """The calibrations of a list by name; none where there is no file."""
    if not file.is_file():
        return {}
    read = load_document(read_file(file), registry())
    if read.node is None or read.node.kind != "CalibrationList" or any(p.problems for p in (read, *read.parts)):
        raise UsageError(f"{file} is not a valid list of calibrations: trnspec validate {file}")
    return {part.name: part.document for part in read.parts}


def _document(rows: FileRows, fitted: Fitted, name: str, date: str) -> str:
    """The text of a document."""
    options = rows.options
    # A chip has a fit of its own to collectives, to the rows of some of the files.
    cases = fitted.cases if rows.of == "collectives" else rows.cases
    tables, data, left = fitted_tables(rows.catalog.graph, rows.files, _hashes(cases))
    return document(
        fitted, name=name, of=rows.of, software=options["software"] or SOFTWARE.get(fitted.framework, fitted.framework),
        source=options["source"], date=date, tables=tables, data=data, hashes=left,
    )  # fmt: skip


def _targets(rows: FileRows) -> dict[Label, str]:
    """The name of each document; reasons not to write it are reported before the fit, which may take minutes."""
    options, labels = rows.options, rows.labels
    if not options["out"]:
        return {}
    eras = dict.fromkeys(era for _, _, era, _ in labels)
    framework = options["framework"]
    if framework and not re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", framework):
        raise UsageError(f"--framework: {framework!r} is not the name of a framework, such as megatron")
    if not (options["source"] and (options["name"] or all(software for _, software, *_ in labels))):
        raise UsageError("--out needs --source, and --name or --framework")
    _check_names(rows.catalog, options)
    targets = {}
    for chip, software, era, models in labels:
        given = options["name"] or "-".join(filter(None, (software, era if len(eras) == 1 else "")))
        # Documents of training keep the plain name; those of other rows do not replace them.
        parts = (given, era if len(eras) > 1 else "", models, "" if rows.of == "training" else rows.of)
        name = "-".join(filter(None, parts))
        if not re.fullmatch(NAME_PATTERN.regex, name):
            raise UsageError(f"--name: {name!r} is not {NAME_PATTERN.words}")
        name, file = f"{chip}-{name}", _list_file(options, chip, software)
        known = _calibrations(file)
        alone = file.with_name(f"{name}.yaml")
        if name in known and not options["force"]:
            raise UsageError(f"{file} has a fit {name}; --force replaces it")
        if alone.is_file():
            raise UsageError(
                f"{alone} is a document of its own; trnspec fix {file.parent} makes lists of such documents"
            )
        former: Any = known[name].data if name in known else None
        if former and former["spec"]["of"] != rows.of:
            raise UsageError(
                f"{name} is a calibration of {former['spec']['of']}, not of {rows.of}; choose another --name"
            )
        if file.is_file() and not options["force"] and file.read_text("utf-8") != _text(known, file):
            raise UsageError(f"{file} has comments or another order than trnspec writes; --force rewrites it")
        targets[chip, software, era, models] = name
    return targets


def _check_names(catalog: Catalog, options: Mapping[str, Any]) -> None:
    """Source and chips of documents are those of the catalog."""
    known = [n.name for n in catalog.graph.of(Source)]
    if options["source"] not in known:
        advice = did_you_mean(options["source"], known) or "write one, and name its catalog with --catalog"
        raise UnknownNameError(f"--source: no source is named {options['source']!r}; {advice}")
    for chip in options["written"]:
        if chip not in catalog.chips:
            raise unknown_name(f"--document: no chip is named {chip!r}", chip, catalog.chips)


def _schema_of(folder: FilePath) -> str:
    """The path of the schema relative to a folder: in the nearest parent folder that has one, as in a checkout."""
    place = FilePath("schemas", "v1", "calibrationlist.schema.json")
    above = folder.resolve()
    for steps, parent in enumerate([above, *above.parents]):
        if (parent / place).is_file():
            return "/".join([*[".."] * steps, *place.parts])
    return "../../schemas/v1/calibrationlist.schema.json"
