"""Errors of computed times against published measurements."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING

from attrs import asdict, frozen

from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation.progress import report
from trnspec.evaluation.questions import CalibratedSystem, Question, axis, like
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Table
from trnspec.evidence import Kind
from trnspec.loading.files import shipped
from trnspec.perf.calibration.fits.fit import Holdout
from trnspec.perf.calibration.measured.case import Part, Skipped
from trnspec.perf.calibration.measured.tables import records
from trnspec.perf.calibration.score import Scored, score

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluation.result import Value

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


@frozen(kw_only=True)
class AccuracyRow:
    """One row of measurements; ``--format json`` lists them under ``rows``.  A stable interface: fields are only added.

    Attributes:
        id: The name of the row, as in its table; its line where it has none.
        set: The table: the name of its file without ``.csv``.
        part: What was measured: ``step``, ``memory``, ``tpot``, ``ttft``, ``encoder``, ``collective``, ``gemm``, ``attention_prefill``,
            ``attention_decode``, ``moe`` or ``op``; ``null`` where the row was skipped.
        unit: ``s``, or ``B`` for memory; empty where the row was skipped.
        measured: The measured value.
        computed: The computed value: with the calibration, or ideal without one.
        ideal: Computed from published figures only: a lower bound of a time.
        low: The lower end of the interval; ``null`` without a calibration.
        high: Its upper end.
        kind: The kind of evidence: ``ideal``, ``estimate``, ``extrapolated`` or ``transferred``; empty where skipped. Of a row held out with its
            chip or framework it is ``transferred``, with that interval.
        calibration: The name of the calibration; empty without one.
        seen: Whether the calibration was fitted to a row with the same content; ``null`` where the row was skipped.
        held_out: With ``--refit`` the value by a fit to rows of other models or chips, of a row that was seen; else ``null``.
        chip: The chip.
        framework: The framework, as ``--framework`` names it; empty if unknown.
        models: ``dense`` or ``experts``; empty where the row runs no model.
        scale: ``server`` (chips connected without the network), ``cluster`` (up to 512) or ``large``; empty for a kernel.
        skipped: Why the row has no computed value; empty where it has one.
    """

    id: str
    set: str
    part: Part | None = None
    unit: str = ""
    measured: float | None = None
    computed: float | None = None
    ideal: float | None = None
    low: float | None = None
    high: float | None = None
    kind: Kind = ""
    calibration: str = ""
    seen: bool | None = None
    held_out: float | None = None
    chip: str = ""
    framework: str = ""
    models: str = ""
    scale: str = ""
    skipped: str = ""


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
    holdout: Holdout = axis(
        "What --refit leaves out of a fit together: all rows of a model (of kernels a shape, of collectives a size), of a "
        "chip, as if only its data sheet were known, or of a framework (not of collectives).",
        group="System",
        default="model",
    )
    rows: bool = axis("List every row, as --format json and csv always do.", group="Output", default=False)


def run(catalog: Catalog, question: AccuracyQuestion) -> Evaluation:
    """Compare computed times with published measurements.

    Whether a row was used in a fit is decided by its content: the conditions and the measured values, not the names of
    row and file. --format json and --format csv list every row; docs/reference/accuracy.md describes the fields.

    Args:
        catalog: The catalog.
        question: The inputs.

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
    outcomes = score(
        catalog.graph, tables, calibration=q.calibration, refit=q.refit, holdout=q.holdout, progress=report
    )
    scored = [s for some in outcomes.values() for s in some if isinstance(s, Scored)]
    missed = {name: [s for s in some if isinstance(s, Skipped)] for name, some in outcomes.items()}
    if not scored:
        reasons = Counter(s.reason for some in missed.values() for s in some)
        skipped = "; ".join(f"{n} rows: {reason}" for reason, n in reasons.most_common(3))
        raise RefusalError(
            "no-rows", f"no row can be computed: {skipped or 'there are none'}", place="data",
            hint="measurements on NVIDIA chips need the plugin trnspec-nvidia, those on Inferentia trnspec-inferentia",
        )  # fmt: skip
    left_out = sum(len(some) for some in missed.values())
    return Evaluation(
        evaluator="accuracy",
        title=f"{len(scored):,} measured values, {left_out:,} rows without an estimate",
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
            *([_skipped(missed)] if left_out else []),
        ),
        rows=tuple(asdict(row) for row in (*map(_row, scored), *_rows_skipped(missed))),
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


def _row(s: Scored) -> AccuracyRow:
    return AccuracyRow(
        id=s.id, set=s.dataset, part=s.part, unit="B" if s.part == "memory" else "s", measured=s.measured,
        computed=s.computed, ideal=s.ideal, low=s.low, high=s.high, kind=s.kind, calibration=s.calibration, seen=s.seen,
        held_out=s.held_out, chip=s.chip, framework=s.framework, models=s.models, scale=s.scale,
    )  # fmt: skip


def _rows_skipped(missed: Mapping[str, Sequence[Skipped]]) -> Iterator[AccuracyRow]:
    for name, some in missed.items():
        yield from (AccuracyRow(id=s.id, set=name, skipped=s.reason) for s in some)


def _answers(scored: Sequence[Scored]) -> tuple[Answer, ...]:
    """Errors of the fit, and apart from them those of rows that were not in the fit."""
    answers: list[Answer] = []
    for part, (name, _) in WORDS.items():
        of_kind = [s for s in scored if s.part == part]
        fitted = [_error(s, s.computed) for s in of_kind if s.calibrated is not None and s.seen]
        held = [_error(s, s.unseen) for s in of_kind if s.unseen is not None]
        if fitted:
            note = f"of the fit: mean of {len(fitted):,} rows, {name}"
            answers.append(Answer(f"{part}_error", 100.0 * mean(fitted), "%", note=note))
        if held:
            note = f"of rows not in the fit: mean of {len(held):,}, {name}"
            answers.append(Answer(f"{part}_unseen_error", 100.0 * mean(held), "%", note=note))
            answers.append(
                Answer(f"{part}_unseen_median", 100.0 * median(held), "%", note="of rows not in the fit: median")
            )
        if part == "memory" and of_kind:
            counted = [_error(s, s.ideal) for s in of_kind]
            note = f"not fitted: mean of {len(counted):,} rows, {name}"
            answers.append(Answer(f"{part}_error", 100.0 * mean(counted), "%", note=note))
    inside = [s.inside for s in scored if s.inside is not None]
    if inside:
        share = 100.0 * sum(inside) / len(inside)
        answers.append(Answer("inside", share, "%", note="of the measurements, in intervals that cover 80 %"))
    return tuple(answers)


def _error(score: Scored, value: float | None) -> float:
    assert value is not None
    return abs(value / score.measured - 1.0)


def _summaries(scored: Sequence[Scored]) -> list[Table]:
    """Errors by table; those of rows not in the fit also by chip and framework; and errors without calibration."""
    unseen = [s for s in scored if s.unseen is not None or s.part == "memory"]
    groups = (
        ("Errors by data set", scored, _set, lambda s: s.computed),
        ("Errors of rows not in the fit", unseen, _set, _unseen),
        ("Errors of rows not in the fit by chip and framework", unseen, _chip, _unseen),
        ("Errors without calibration", scored, _set, lambda s: s.ideal),
    )
    return [table for each in groups if (table := _summary(*each)).rows]


def _unseen(s: Scored) -> float:
    return s.ideal if s.unseen is None else s.unseen


def _set(s: Scored) -> dict[str, str]:
    return {"data_set": s.dataset, "of": WORDS[s.part][1]}


def _chip(s: Scored) -> dict[str, str]:
    return {"chip": s.chip or "-", "framework": s.framework or "-", "models": s.models or "-", "of": WORDS[s.part][1]}


def _summary(
    title: str, scored: Sequence[Scored], key: Callable[[Scored], dict[str, str]], value: Callable[[Scored], float]
) -> Table:
    groups: dict[tuple[str, ...], list[Scored]] = {}
    for s in scored:
        groups.setdefault(tuple(key(s).values()), []).append(s)
    names = tuple(key(scored[0])) if scored else ()
    rows = tuple((*group, len(some), *_errors(some, value)) for group, some in groups.items())
    return Table(title, (*names, "rows", *ERRORS), rows, (*("",) * (len(names) + 1), *("%",) * len(ERRORS)))


def _errors(some: Sequence[Scored], value: Callable[[Scored], float]) -> tuple[Value | None, ...]:
    """The figures of :data:`ERRORS` [%]."""
    signed = [value(s) / s.measured - 1.0 for s in some]
    off = [abs(e) for e in signed]
    inside = [s.inside for s in some if s.inside is not None]
    figures = (mean(off), median(off), mean(signed), max(off), mean(inside) if inside else None)
    return tuple(None if f is None else 100.0 * f for f in figures)


def _every(scored: Sequence[Scored]) -> Table:
    columns = ("data_set", "row", "measured", "ideal", "computed", "held_out", "low", "high")
    rows = tuple(
        (s.dataset, s.id, s.measured, s.ideal, s.calibrated, s.held_out, s.low, s.high)
        for s in scored
        if s.part != "memory"
    )
    return Table("Rows", columns, rows, ("", "", *("s",) * 6))


def _skipped(missed: Mapping[str, Sequence[Skipped]]) -> Table:
    reasons = Counter((name, s.reason) for name, some in missed.items() for s in some)
    rows = tuple((name, number, reason) for (name, reason), number in reasons.most_common())
    return Table("Rows without an estimate", ("data_set", "rows", "reason"), rows)
