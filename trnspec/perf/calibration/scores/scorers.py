"""The scorers of all kinds of measured rows, and scores of tables of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from attrs import evolve

from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.measured.tables import Skipped, row_hashes
from trnspec.perf.calibration.scores.collectives import refit_collectives, score_collectives
from trnspec.perf.calibration.scores.kernels import refit_kernels, score_kernels
from trnspec.perf.calibration.scores.neuron_kernels import score_ops, score_profiles
from trnspec.perf.calibration.scores.score import Scored
from trnspec.perf.calibration.scores.serving import refit_serving, score_serving
from trnspec.perf.calibration.scores.training import refit_training, score_training

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from trnspec.graph.graph import Graph
    from trnspec.perf.calibration.fits.training import Holdout
    from trnspec.perf.calibration.measured.tables import Part, Record
    from trnspec.perf.calibration.scores.score import Refit, Scorer

SCORERS: Mapping[str, Scorer] = {
    "train": score_training,
    "infer": score_serving,
    "collective": score_collectives,
    **{kind: partial(score_kernels, kind=kind) for kind in ("matmul", "attention", "moe")},
    "device_profile": score_profiles,
    "op": score_ops,
}
"""The scorer of each kind of row, the value of the column ``kind``."""

REFITS: Mapping[str, Refit] = {
    "train": refit_training,
    "infer": refit_serving,
    "collective": refit_collectives,
    **dict.fromkeys(("matmul", "attention", "moe"), refit_kernels),
}
"""The fit to other models of each kind of row, for rows that a calibration was fitted to."""

COST = 8
"""Time to compute the rows of a fit by fits to other models, over that to score them."""


def score(
    graph: Graph,
    tables: Mapping[str, list[Record]],
    *,
    calibration: str = "auto",
    refit: bool = False,
    holdout: Holdout = "model",
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, list[Scored | Skipped]]:
    """Scores of every row, by the name of its table.

    A row counts as seen where its calibration was fitted to a row with the same content, whatever the names of row and file.

    Args:
        graph: The catalog.
        tables: The rows of each table.
        calibration: Name of a calibration for all rows, ``none``, or ``auto``.
        refit: Also compute each row that was seen with a fit to the models, or to the chips, other than its own.
        holdout: Which of them.
        progress: Called with the work done and the work in all.

    Raises:
        UsageError: The calibration is of another kind than the rows.
        UnknownNameError: No calibration of that name.
    """
    fitted = {n.name: frozenset((n.spec.rows or "").split()) for n in graph.of(Calibration)}
    total = sum(map(len, tables.values())) * (1 + COST * refit)
    done = 0
    advance = progress or _ignored
    scores: dict[str, list[Scored | Skipped]] = {}
    for name, rows in tables.items():
        hashes = {row.get("id") or f"line {i}": row_hashes(row) for i, row in enumerate(rows, 2)}
        scores[name] = [
            s if isinstance(s, Skipped) or s.calibration not in fitted else evolve(s, seen=_seen(s, hashes, fitted))
            for s in _scores(graph, rows, name, calibration)
        ]
        done += len(rows)
        advance(done, total)
    if refit:
        held_out: dict[tuple[str, Part], float] = {}
        for kind, rows in _of_fits(graph, tables, scores):
            held_out |= REFITS[kind](graph, rows, holdout)
            done += COST * len(rows)
            advance(done, total)
        scores = {name: [_with_held_out(s, held_out) for s in some] for name, some in scores.items()}
    advance(total, total)
    return scores


def _with_held_out(s: Scored | Skipped, held_out: Mapping[tuple[str, Part], float]) -> Scored | Skipped:
    if isinstance(s, Skipped) or not s.seen or s.held_out is not None:
        return s
    return evolve(s, held_out=held_out.get((s.id, s.part)))


def _ignored(_done: int, _total: int) -> None:
    """Progress that no caller follows."""


def _seen(score: Scored, hashes: Mapping[str, tuple[str, ...]], fitted: Mapping[str, frozenset[str]]) -> bool:
    return score.part != "memory" and not fitted[score.calibration].isdisjoint(hashes[score.id])


def _scores(graph: Graph, rows: list[Record], dataset: str, calibration: str) -> Iterable[Scored | Skipped]:
    for kind in dict.fromkeys(row["kind"] for row in rows):
        if kind in SCORERS:
            yield from SCORERS[kind](graph, rows, dataset, calibration=calibration)
        else:
            for line, row in enumerate(rows, 2):
                if row["kind"] == kind:
                    yield Skipped(
                        row.get("id") or f"line {line}",
                        f"no evaluator for {f'the kind {kind}' if kind else 'rows without a kind'}",
                    )


def _of_fits(
    graph: Graph, tables: Mapping[str, list[Record]], scores: Mapping[str, list[Scored | Skipped]]
) -> list[tuple[str, list[Record]]]:
    """The kind and the rows of each fit, of all tables: calibrations of several chips are of one fit if their rows are the same."""
    fits = {n.name: n.spec.rows or n.name for n in graph.of(Calibration)}
    groups: dict[tuple[str, str], dict[str, Record]] = {}
    for name, rows in tables.items():
        by_id = {row.get("id") or f"line {i}": row for i, row in enumerate(rows, 2)}
        for each in scores[name]:
            if isinstance(each, Scored) and each.seen and each.calibration in fits and by_id[each.id]["kind"] in REFITS:
                row = by_id[each.id]
                # Collectives of all chips are one fit, of which each chip has a document.
                fit = "" if row["kind"] == "collective" else fits[each.calibration]
                groups.setdefault((row["kind"], fit), {})[each.id] = row
    return [(kind, list(some.values())) for (kind, _), some in groups.items()]
