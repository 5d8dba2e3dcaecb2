"""Errors of computed times against published measurements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import mean, median

from attrs import asdict, frozen

from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation.progress import report
from trnspec.evaluation.questions import CalibratedSystem, Question, axis, like
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Table, Value
from trnspec.loading.files import shipped
from trnspec.perf.calibration.fits.fit import Holdout
from trnspec.perf.calibration.measured.case import Part
from trnspec.perf.calibration.measured.cells import records
from trnspec.perf.calibration.score import AccuracyRow, score
from trnspec.text_table import plural

WORDS: Mapping[Part, tuple[str, str]] = {
    "step": ("training step", "step"),
    "memory": ("memory of a rank", "memory"),
    "tpot": ("time per output token", "output token"),
    "ttft": ("time to first token", "first token"),
    "encoder": ("pass of an encoder", "encoder"),
    "collective": ("collective", "collective"),
    "gemm": ("matrix multiplication", "GEMM"),
    "attention_prefill": ("attention in prefill", "prefill attention"),
    "attention_decode": ("attention in decoding", "decode attention"),
    "moe": ("layer of experts", "experts"),
    "op": ("other kernels", "kernel"),
}
"""The measured quantities: full name, and short name for tables."""

ERRORS = ("mean", "median", "bias", "worst", "inside")
"""Mean and median of the absolute error, mean of the signed one, the largest, and the share inside the interval."""


@frozen(kw_only=True, slots=False)
class AccuracyQuestion(Question):
    """The inputs of the evaluator; see :mod:`trnspec.evaluation.questions`."""

    data: tuple[str, ...] | None = axis(
        "CSV files of measurements, or folders of them; a document of kind Measurements is not needed.",
        "FILE",
        group="Workload",
        unset="those of the catalog",
    )
    calibration: str = like(CalibratedSystem, "calibration")
    refit: bool = axis(
        "Also compute each row that a calibration was fitted to with a fit to other models; takes half a minute.",
        group="System",
        default=False,
    )
    holdout: tuple[Holdout, ...] = axis(
        "What --refit leaves out of a fit together: all rows of a model (of kernels a shape, of collectives a size), of a "
        "chip, as if only its data sheet were known, or of a framework (not of collectives); of model,chip a row by a fit "
        "with neither. With parameters, seq or ranks the rows above the middle of its range (steps and serving).",
        group="System",
        default=("model",),
    )
    rows: bool = axis("List every row, as --format json and csv always do.", group="Output", default=False)


def run(catalog: Catalog, question: AccuracyQuestion) -> Evaluation:
    """Compare computed times with published measurements.

    Whether a row was used in a fit is decided by its content: the conditions and the measured values, not the names of
    row and file. --format json and --format csv list every row; docs/reference/accuracy.md describes the fields.

    Raises:
        RefusalError: No row can be computed.
        UsageError: A file or folder does not exist or holds no measurements.

    Examples:
        All measurements of the catalog:

            trnspec eval accuracy

        Every row of two tables of your own, for programs:

            trnspec eval accuracy --data mine.csv,theirs.csv --format json

        Errors without a calibration:

            trnspec eval accuracy --data mine.csv --calibration none

        The errors by table, as CSV:

            trnspec eval accuracy --data mine.csv --format csv
    """
    q = question
    tables = {name: records(file, catalog.graph) for name, file in _files(q.data).items()}
    rows = score(catalog.graph, tables, calibration=q.calibration, refit=q.refit, holdout=q.holdout, progress=report)
    scored, missed = [r for r in rows if not r.skipped], [r for r in rows if r.skipped]
    if not scored:
        reasons = Counter(r.skipped for r in missed)
        skipped = "; ".join(f"{plural(n, 'row')}: {reason}" for reason, n in reasons.most_common(3))
        raise RefusalError(
            "no-rows", f"no row can be computed: {skipped or 'there are none'}", place="data",
            hint="measurements on NVIDIA chips need the plugin trnspec-nvidia, those on Inferentia trnspec-inferentia",
        )  # fmt: skip
    return Evaluation(
        evaluator="accuracy",
        title=f"{len(scored):,} measured values, {len(missed):,} rows without an estimate",
        inputs=q.values(),
        answers=_answers(scored),
        assumptions=(
            Assumption("error", "|computed / measured - 1|", "bias: its mean with the sign"),
            Assumption(
                "seen", "rows with the content of a row that the calibration was fitted to", "errors of the fit"
            ),
            Assumption("unseen", "other rows; with --refit also seen ones, by a fit without their model"),
            Assumption("ideal", "ideal (no losses)", "lower bound on time, not an estimate"),
        ),
        tables=(
            *_summaries(scored),
            *((_every(scored),) if q.rows else ()),
            *([_skipped(missed)] if missed else []),
        ),
        rows=tuple(map(asdict, (*scored, *missed))),
    )


def _files(data: Sequence[str] | None) -> dict[str, Path]:
    """The tables by name: that of the file, or its path where two files have one name."""
    files: list[Path] = []
    for place in [shipped() / "measured"] if data is None else map(Path, data):
        some = sorted(place.glob("*.csv")) if place.is_dir() else [place]
        if not some:
            raise UsageError(f"{place} holds no CSV files")
        files += some
    names = Counter(file.stem for file in files)
    return {file.stem if names[file.stem] == 1 else str(file.with_suffix("")): file for file in files}


def _answers(scored: Sequence[AccuracyRow]) -> tuple[Answer, ...]:
    """Errors of the fit, and apart from them those of rows that were not in the fit."""
    answers: list[Answer] = []
    for part, (name, _) in WORDS.items():
        of_kind = [s for s in scored if s.part == part]
        fitted = [abs(s.error(s.computed)) for s in of_kind if s.calibration and s.seen]
        held = [abs(s.error(s.unseen)) for s in of_kind if s.unseen is not None]
        counted = [abs(s.error(s.ideal)) for s in of_kind if part == "memory"]
        answers += [
            Answer(f"{part}_{of}", 100.0 * statistic(errors), "%", note=note)
            for of, errors, statistic, note in (
                ("error", fitted, mean, f"of the fit: mean of {len(fitted):,} rows, {name}"),
                ("unseen_error", held, mean, f"of rows not in the fit: mean of {len(held):,}, {name}"),
                ("unseen_median", held, median, "of rows not in the fit: median"),
                ("error", counted, mean, f"not fitted: mean of {len(counted):,} rows, {name}"),
            )
            if errors
        ]
    if inside := [s.inside for s in scored if s.inside is not None]:
        note = "of the measurements, in intervals that cover 80 %"
        answers.append(Answer("inside", 100.0 * sum(inside) / len(inside), "%", note=note))
    return tuple(answers)


def _summaries(scored: Sequence[AccuracyRow]) -> list[Table]:
    """Errors by table; those of rows not in the fit also by chip and framework; and errors without calibration."""
    unseen = [s for s in scored if s.unseen is not None or s.part == "memory"]
    by_set, by_chip = {"data_set": "set"}, {"chip": "chip", "framework": "framework", "models": "models"}
    groups = (
        ("Errors by data set", scored, by_set, lambda s: s.computed),
        ("Errors of rows not in the fit", unseen, by_set, _unseen),
        ("Errors of rows not in the fit by chip and framework", unseen, by_chip, _unseen),
        ("Errors without calibration", scored, by_set, lambda s: s.ideal),
    )
    return [_summary(*each) for each in groups if each[1]]


def _unseen(s: AccuracyRow) -> float | None:
    return s.ideal if s.unseen is None else s.unseen


def _summary(
    title: str, scored: Sequence[AccuracyRow], by: Mapping[str, str], value: Callable[[AccuracyRow], float | None]
) -> Table:
    """Errors of groups of rows; ``by`` are the columns with the fields of a row in them."""
    groups: dict[tuple[str, ...], list[AccuracyRow]] = {}
    for s in scored:
        assert s.part is not None
        groups.setdefault((*(getattr(s, name) or "-" for name in by.values()), WORDS[s.part][1]), []).append(s)
    rows = tuple((*group, len(some), *_errors(some, value)) for group, some in groups.items())
    columns = (*by, "of", "rows")
    return Table(title, (*columns, *ERRORS), rows, (*("",) * len(columns), *("%",) * len(ERRORS)))


def _errors(some: Sequence[AccuracyRow], value: Callable[[AccuracyRow], float | None]) -> tuple[Value | None, ...]:
    """The figures of :data:`ERRORS` [%]."""
    signed = [s.error(value(s)) for s in some]
    off = [abs(e) for e in signed]
    inside = [s.inside for s in some if s.inside is not None]
    figures = (mean(off), median(off), mean(signed), max(off), mean(inside) if inside else None)
    return tuple(None if f is None else 100.0 * f for f in figures)


def _every(scored: Sequence[AccuracyRow]) -> Table:
    columns = ("data_set", "row", "measured", "ideal", "computed", "held_out", "low", "high")
    rows = tuple(
        (s.set, s.id, s.measured, s.ideal, s.calibrated, s.held_out, s.low, s.high)
        for s in scored
        if s.part != "memory"
    )
    return Table("Rows", columns, rows, ("", "", *("s",) * 6))


def _skipped(missed: Sequence[AccuracyRow]) -> Table:
    reasons = Counter((s.set, s.skipped) for s in missed)
    rows = tuple((name, number, reason) for (name, reason), number in reasons.most_common())
    return Table("Rows without an estimate", ("data_set", "rows", "reason"), rows)
