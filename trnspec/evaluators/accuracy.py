"""How far the engine lies from published measurements."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING

from trnspec.errors import UsageError
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
"""What was measured, in words for people and in a word for tables."""

COLUMNS = ("data_set", "of", "rows", "ideal", "mean", "median", "worst", "inside")
"""Mean error of published figures alone, then errors of calibrated answers, and how many lie in the interval."""
UNITS = ("", "", "", *("%",) * 5)


def run(
    catalog: Catalog,
    *,
    data: str | None = None,
    calibration: str = "auto",
    refit: bool = False,
    rows: bool = False,
) -> Evaluation:
    """Errors of computed times against published measurements, a table a data set.

    Args:
        catalog: The catalog.
        data: A CSV file of measurements, or a folder of them; those that the catalog ships when not given.
        calibration: The name of a calibration for all rows of training, none, or auto for the best known of each row.
        refit: Also compute every row of training with a fit to the other models of its table; takes a minute.
        rows: Tell every row.

    Raises:
        RefusalError: No row can be computed.
        UsageError: The file or the folder is not there or holds no measurements.
    """
    found: list[Scored | Skipped] = []
    missed: dict[str, list[Skipped]] = {}
    for file in _files(data):
        some = _score(catalog, file, calibration, refit=refit)
        found += some
        missed[file.name] = [s for s in some if isinstance(s, Skipped)]
    scored = [s for s in found if isinstance(s, Scored)]
    if not scored:
        reasons = Counter(s.reason for some in missed.values() for s in some)
        told = "; ".join(f"{n} rows: {reason}" for reason, n in reasons.most_common(3))
        raise RefusalError(
            "no-rows", f"no row can be computed: {told or 'there are none'}", place="data",
            hint="measurements on NVIDIA chips need the plugin trnspec-nvidia, those on Inferentia trnspec-inferentia",
        )  # fmt: skip
    left_out = sum(len(some) for some in missed.values())
    return Evaluation(
        evaluator="accuracy",
        title=f"{len(scored):,} measured times, {left_out:,} rows that cannot be computed",
        inputs={"data": data, "calibration": calibration, "refit": refit, "rows": rows},
        answers=_answers(scored),
        assumptions=(
            Assumption("error", "computed over measured, minus 1, without its sign", ""),
            Assumption("seen", "the rows that a calibration was fitted to", "their errors are those of the fit"),
            Assumption("ideal", "published figures alone, nothing lost", "a bound of the time, not an estimate of it"),
            Assumption("left_out", "fits that had not seen the row", "of training: that had not seen its model"),
        ),
        tables=(
            *_summaries(scored),
            *((_every(scored),) if rows else ()),
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
    rows = records(file)
    kinds = {row["kind"] for row in rows}
    graph = catalog.graph
    found: list[Scored | Skipped] = []
    if "train" in kinds:
        found += score_training(graph, rows, file.name, calibration=calibration, refit=refit)
    if "infer" in kinds:
        found += score_inference(graph, rows, file.name, calibration=calibration, refit=refit)
    if "collective" in kinds:
        found += score_collectives(graph, rows, file.name)
    if "matmul" in kinds:
        found += score_matmul(graph, rows, file.name)
    for kind in sorted(kinds - {"train", "infer", "collective", "matmul"}):
        found.append(Skipped(f"kind {kind}", "measurements of this kind are not computed here"))
    return found


def _answers(scored: Sequence[Scored]) -> tuple[Answer, ...]:
    """Errors of the fit apart from those of rows that no fit has seen: the one says little of the other."""
    found: list[Answer] = []
    for what, (words, _) in WORDS.items():
        some = [s for s in scored if s.what == what]
        fitted = [_error(s, s.calibrated) for s in some if s.calibrated is not None and not s.unseen]
        held = [_error(s, s.held_out) for s in some if s.held_out is not None]
        if fitted:
            told = f"of the fit: mean of {len(fitted):,} rows, {words}"
            found.append(Answer(f"{what}_error", 100.0 * mean(fitted), "%", note=told))
        if held:
            told = f"of rows that the fit had not seen: mean of {len(held):,}"
            found.append(Answer(f"{what}_unseen_error", 100.0 * mean(held), "%", note=told))
            found.append(Answer(f"{what}_unseen_median", 100.0 * median(held), "%", note="the same: median"))
        if what == "memory" and some:
            counted = [_error(s, s.ideal) for s in some]
            told = f"nothing is fitted: mean of {len(counted):,} rows, {words}"
            found.append(Answer(f"{what}_error", 100.0 * mean(counted), "%", note=told))
    inside = [s.low <= s.measured <= s.high for s in scored if s.low is not None and s.high is not None]
    if inside:
        share = 100.0 * sum(inside) / len(inside)
        found.append(Answer("inside", share, "%", note="of the measurements lie in the interval, which says 80 %"))
    return tuple(found)


def _error(score: Scored, value: float | None) -> float:
    assert value is not None
    return abs(value / score.measured - 1.0)


def _summaries(scored: Sequence[Scored]) -> list[Table]:
    """Errors with calibration; of rows that no fit has seen, where there are any; and without calibration."""
    groups: dict[tuple[str, str], list[Scored]] = {}
    for score in scored:
        groups.setdefault((score.dataset, score.what), []).append(score)
    lines = tuple(_line(dataset, what, some) for (dataset, what), some in groups.items())
    found = [Table("Errors by data set", COLUMNS, lines, UNITS)]
    held = {group: [_error(s, s.held_out) for s in some if s.held_out is not None] for group, some in groups.items()}
    ideal = {group: [_error(s, s.ideal) for s in some] for group, some in groups.items()}
    for title, errors in (
        ("Errors of rows that the fit had not seen", held),
        ("Errors without calibration: of published figures alone", ideal),
    ):
        lines = tuple(
            (dataset.removesuffix(".csv"), WORDS[what][1], len(some), *_three(some))
            for (dataset, what), some in errors.items()
            if some
        )
        if lines:
            columns = ("data_set", "of", "rows", "mean", "median", "worst")
            found.append(Table(title, columns, lines, ("", "", "", *("%",) * 3)))
    return found


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
    told = tuple(
        (s.dataset.removesuffix(".csv"), s.id, s.measured, s.ideal, s.calibrated, s.held_out, s.low, s.high)
        for s in scored
        if s.what != "memory"
    )
    return Table("Rows", columns, told, ("", "", *("s",) * 6))


def _skipped(missed: dict[str, list[Skipped]]) -> Table:
    reasons = Counter((name.removesuffix(".csv"), s.reason) for name, some in missed.items() for s in some)
    told = tuple((name, number, reason) for (name, reason), number in reasons.most_common())
    return Table("Rows that cannot be computed", ("data_set", "rows", "reason"), told)
