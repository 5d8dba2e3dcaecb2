"""Errors of computed times against published measurements."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING

from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.evaluation.questions import CalibratedSystem, Question, axis, like
from trnspec.evaluation.result import Answer, Assumption, Evaluation, RefusalError, Table
from trnspec.loading.files import shipped
from trnspec.perf.calibration.measurements import Skipped, records
from trnspec.perf.calibration.score import Scored, score_collectives, score_inference, score_matmul
from trnspec.perf.calibration.score_training import score_training

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluation.result import Value

WORDS = {
    "step": ("training step", "step"),
    "memory": ("memory of a rank", "memory"),
    "tpot": ("time per output token", "output token"),
    "ttft": ("time to first token", "first token"),
    "collective": ("collective", "collective"),
    "matmul": ("matrix multiplication", "matmul"),
}
"""The measured quantities: full name, and short name for tables."""

COLUMNS = ("data_set", "of", "rows", "ideal", "mean", "median", "worst", "inside")
"""Mean error without calibration, errors with calibration, and the share inside the interval."""
UNITS = ("", "", "", *("%",) * 5)


@frozen(kw_only=True, slots=False)
class AccuracyQuestion(Question):
    """The inputs of the evaluator; see :mod:`trnspec.evaluation.questions`."""

    data: str | None = field(
        default=None,
        metadata=axis(
            "CSV file of measurements, or a folder of them.", "FILE", group="Workload", unset="those of the catalog"
        ),
    )
    calibration: str = field(default="auto", metadata=like(CalibratedSystem, "calibration"))
    refit: bool = field(
        default=False,
        metadata=axis(
            "Also compute each training row with a fit to the other models of its table; takes a minute.",
            group="System",
        ),
    )
    rows: bool = field(default=False, metadata=axis("List every row.", group="Output"))


def run(catalog: Catalog, question: AccuracyQuestion) -> Evaluation:
    """Compare computed times with published measurements, one table per data set.

    Args:
        catalog: The catalog.
        question: The inputs.

    Raises:
        RefusalError: No row can be computed.
        UsageError: The file or folder does not exist or holds no measurements.

    Examples:
        All measurements of the catalog:

            trnspec eval accuracy
    """
    q = question
    outcomes: list[Scored | Skipped] = []
    missed: dict[str, list[Skipped]] = {}
    for file in _files(q.data):
        of_file = _score(catalog, file, q.calibration, refit=q.refit)
        outcomes += of_file
        missed[file.name] = [s for s in of_file if isinstance(s, Skipped)]
    scored = [s for s in outcomes if isinstance(s, Scored)]
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
        title=f"{len(scored):,} measured times, {left_out:,} rows without an estimate",
        inputs=q.values(),
        answers=_answers(scored),
        assumptions=(
            Assumption("error", "|computed / measured - 1|", ""),
            Assumption("seen", "the rows that a calibration was fitted to", "their errors are those of the fit"),
            Assumption("ideal", "ideal (no losses)", "lower bound on time, not an estimate"),
            Assumption("left_out", "fits without the row", "of training: without its model"),
        ),
        tables=(
            *_summaries(scored),
            *((_every(scored),) if q.rows else ()),
            *([_skipped(missed)] if left_out else []),
        ),
        edition=catalog.edition or "",
    )


def _files(data: str | None) -> list[Path]:
    place = shipped() / "measured" if data is None else Path(data)
    files = sorted(place.glob("*.csv")) if place.is_dir() else [place]
    if not files:
        raise UsageError(f"{place} holds no CSV files")
    return files


def _score(catalog: Catalog, file: Path, calibration: str, *, refit: bool) -> list[Scored | Skipped]:
    graph = catalog.graph
    rows = records(file, graph)
    kinds = {row["kind"] for row in rows}
    scores: list[Scored | Skipped] = []
    if "train" in kinds:
        scores += score_training(graph, rows, file.name, calibration=calibration, refit=refit)
    if "infer" in kinds:
        scores += score_inference(graph, rows, file.name, calibration=calibration, refit=refit)
    if "collective" in kinds:
        scores += score_collectives(graph, rows, file.name)
    if "matmul" in kinds:
        scores += score_matmul(graph, rows, file.name)
    for kind in sorted(kinds - {"train", "infer", "collective", "matmul"}):
        scores.append(Skipped(f"kind {kind}", "no evaluator for this kind of measurement"))
    return scores


def _answers(scored: Sequence[Scored]) -> tuple[Answer, ...]:
    """Errors of the fit, and apart from them those of rows that were not in the fit."""
    answers: list[Answer] = []
    for what, (name, _) in WORDS.items():
        of_kind = [s for s in scored if s.what == what]
        fitted = [_error(s, s.calibrated) for s in of_kind if s.calibrated is not None and not s.unseen]
        held = [_error(s, s.held_out) for s in of_kind if s.held_out is not None]
        if fitted:
            note = f"of the fit: mean of {len(fitted):,} rows, {name}"
            answers.append(Answer(f"{what}_error", 100.0 * mean(fitted), "%", note=note))
        if held:
            note = f"of rows not in the fit: mean of {len(held):,}"
            answers.append(Answer(f"{what}_unseen_error", 100.0 * mean(held), "%", note=note))
            answers.append(
                Answer(f"{what}_unseen_median", 100.0 * median(held), "%", note="of rows not in the fit: median")
            )
        if what == "memory" and of_kind:
            counted = [_error(s, s.ideal) for s in of_kind]
            note = f"not fitted: mean of {len(counted):,} rows, {name}"
            answers.append(Answer(f"{what}_error", 100.0 * mean(counted), "%", note=note))
    inside = [s.low <= s.measured <= s.high for s in scored if s.low is not None and s.high is not None]
    if inside:
        share = 100.0 * sum(inside) / len(inside)
        answers.append(Answer("inside", share, "%", note="of the measurements, in intervals that cover 80 %"))
    return tuple(answers)


def _error(score: Scored, value: float | None) -> float:
    assert value is not None
    return abs(value / score.measured - 1.0)


def _summaries(scored: Sequence[Scored]) -> list[Table]:
    """Errors with calibration; of rows not in the fit, if any; and without calibration."""
    groups: dict[tuple[str, str], list[Scored]] = {}
    for score in scored:
        groups.setdefault((score.dataset, score.what), []).append(score)
    lines = tuple(_line(dataset, what, some) for (dataset, what), some in groups.items())
    tables = [Table("Errors by data set", COLUMNS, lines, UNITS)]
    held = {group: [_error(s, s.held_out) for s in some if s.held_out is not None] for group, some in groups.items()}
    ideal = {group: [_error(s, s.ideal) for s in some] for group, some in groups.items()}
    for title, errors in (
        ("Errors of rows not in the fit", held),
        ("Errors without calibration", ideal),
    ):
        lines = tuple(
            (dataset.removesuffix(".csv"), WORDS[what][1], len(some), *_three(some))
            for (dataset, what), some in errors.items()
            if some
        )
        if lines:
            columns = ("data_set", "of", "rows", "mean", "median", "worst")
            tables.append(Table(title, columns, lines, ("", "", "", *("%",) * 3)))
    return tables


def _line(dataset: str, what: str, some: Sequence[Scored]) -> tuple[Value | None, ...]:
    ideal = mean(_error(s, s.ideal) for s in some)
    fitted = [_error(s, s.calibrated) for s in some if s.calibrated is not None]
    inside = [s.low <= s.measured <= s.high for s in some if s.low is not None and s.high is not None]
    share = 100.0 * sum(inside) / len(inside) if inside else None
    return (dataset.removesuffix(".csv"), WORDS[what][1], len(some), 100.0 * ideal, *_three(fitted), share)


def _three(errors: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    if not errors:
        return None, None, None
    return 100.0 * mean(errors), 100.0 * median(errors), 100.0 * max(errors)


def _every(scored: Sequence[Scored]) -> Table:
    columns = ("data_set", "row", "measured", "ideal", "computed", "left_out", "low", "high")
    rows = tuple(
        (s.dataset.removesuffix(".csv"), s.id, s.measured, s.ideal, s.calibrated, s.held_out, s.low, s.high)
        for s in scored
        if s.what != "memory"
    )
    return Table("Rows", columns, rows, ("", "", *("s",) * 6))


def _skipped(missed: dict[str, list[Skipped]]) -> Table:
    reasons = Counter((name.removesuffix(".csv"), s.reason) for name, some in missed.items() for s in some)
    rows = tuple((name, number, reason) for (name, reason), number in reasons.most_common())
    return Table("Rows without an estimate", ("data_set", "rows", "reason"), rows)
