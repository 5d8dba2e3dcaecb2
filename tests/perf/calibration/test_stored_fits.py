"""Scores and fits of fixed rows of the catalog's tables, those of ``tests/data/measured_rows.json``.

A line of ``tests/data/answers/scores.txt`` is a row, one of ``tests/data/answers/fits.txt`` a part of a fit.  After a change,
``python tests/perf/calibration/test_stored_fits.py`` writes both files; read the difference.
"""

import json
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from attrs import asdict, evolve

# Run as a program, too.
sys.path.extend(map(str, [Path(__file__).parents[3], *Path(__file__).parents[3].glob("plugins/*/src")]))

from tests.perf.oracles.fits import fixed
from tests.support.stored import number, read, same, sums, write
from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.fits import inference, prior
from trnspec.perf.calibration.fits.collectives import fit_collectives
from trnspec.perf.calibration.fits.fit import INPUTS, FitModel, Fitted, fit, for_chip, splits
from trnspec.perf.calibration.fits.kernels import fit_kernels
from trnspec.perf.calibration.fits.serving import fit_serving
from trnspec.perf.calibration.fits.training import training
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.cells import Record, records, row_hashes
from trnspec.perf.calibration.measured.collectives import collective_cases
from trnspec.perf.calibration.measured.inference import inference_cases
from trnspec.perf.calibration.measured.kernels import kernel_cases
from trnspec.perf.calibration.measured.serving import serving_cases
from trnspec.perf.calibration.measured.training import training_cases
from trnspec.perf.calibration.score import score
from trnspec.perf.calibration.transfer import beyond
from trnspec.perf.lowering.calibrated import nearest

DATA = Path(__file__).parents[2] / "data"
SCORES, FITS = "answers/scores.txt", "answers/fits.txt"
CHOSEN: dict[str, list[str]] = json.loads((DATA / "measured_rows.json").read_text("utf-8"))
MEASURED = Path(__file__).parents[3] / "catalog" / "measured"
BY_ID = {name: {row["id"]: row for row in records(MEASURED / f"{name}.csv")} for name in CHOSEN}
TABLES: dict[str, list[Record]] = {name: [BY_ID[name][i] for i in ids] for name, ids in CHOSEN.items()}
ROWS = [row for rows in TABLES.values() for row in rows]
GRAPH = fixed().graph
REFITTED = ("training_h100", "training_korthikanti", "inference_neuron", "collectives_neuron", "gemm_gpu")
ROUNDING = 1e-12
"""A spread that is 0 but for rounding, which differs between processors."""


def cases(found: Any) -> list[Any]:
    return [case for case in found if not isinstance(case, Skipped)]


def scores() -> Iterator[tuple[str, str]]:
    """Values by table and row; and values by fits to other rows, where the calibrations were fitted to the rows themselves.

    What a row has in common with the one above is left out: kind, calibration, chip, framework, models and scale.
    """
    above = ""
    for one in score(GRAPH, TABLES):
        if not one.skipped:
            values = " ".join(number(v) for v in (one.measured, one.ideal, one.calibrated, one.low, one.high))
            about = f"{one.kind} {one.calibration}; {one.chip} {one.framework} {one.models} {one.scale}".strip()
            yield f"{one.set}: {one.id} {one.part}", values if about == above else f"{values}; {about}"
            above = about
    tables = {name: TABLES[name][:6] for name in REFITTED}
    hashes = " ".join(h for rows in tables.values() for row in rows[1:] for h in row_hashes(row))
    graph = GRAPH
    for node in GRAPH.of(Calibration):
        graph = graph.replace(node.name, evolve(node.spec, rows=hashes))
    for holdout in ("model", "chip"):
        found = [one for one in score(graph, tables, refit=True, holdout=(holdout,)) if not one.skipped]
        for table in tables:
            some = [one for one in found if one.set == table]
            seen, held = sum(bool(one.seen) for one in some), [one.held_out for one in some]
            yield f"{holdout} held out {table}", f"{seen} seen, {' '.join(map(number, held))}"


def lines(name: str, fitted: Fitted) -> Iterator[tuple[str, str]]:
    """What the document of a fit states."""
    yield f"{name}: values", " ".join(f"{n} {number(value)}" for n, value in fitted.values.items())
    for part, errors in fitted.errors.items():
        ends = f"{number(float(errors.low))} to {number(float(errors.high))}"
        each = (errors.fit, errors.held_out, [] if errors.elsewhere is None else errors.elsewhere)
        yield f"{name}: {part}", f"{ends}; {'; '.join(sums(map(float, of)) for of in each)}"
    yield (
        f"{name}: beyond",
        " ".join(
            number(v)
            for b in fitted.beyond
            for v in (b.exponent, *(asdict(b.elsewhere).values() if b.elsewhere else ()))
        ),
    )
    if fitted.learned:
        yield (
            f"{name}: learned",
            " ".join(f"{x.name} {number(x.prior)} {number(float(x.width))}" for x in fitted.learned),
        )
    if fitted.library:
        values = (
            f"{p.name} {number(p.call)} {number(p.hop)} {number(p.link)} {number(p.network)}"
            for p in fitted.library.protocols
        )
        yield f"{name}: protocols", "; ".join(values)
    for roof in fitted.roofs:
        yield f"{name}: {roof['kernel']} {roof['precision']}", " ".join(number(v) for v in [*roof.values()][2:])
    if fitted.groups:
        each = (
            f"{g.phase} {g.scale} {g.models} {g.rows} {g.clusters} {number(g.low)} {number(g.high)}"
            for g in fitted.groups
        )
        yield f"{name}: groups", "; ".join(" ".join(one.split()) for one in each)


def of_models(
    model: FitModel, plain: FitModel, some: list[Any], others: list[Any], holdout: Any, chip: str, known: Any
) -> Iterator[Fitted]:
    fitted = fit(model, some, (holdout,), known)[holdout]
    rest = {of: [c for c in others if c.chip == of] for of in dict.fromkeys(c.chip for c in others)}
    yield evolve(for_chip(fitted, chip, "2026"), beyond=beyond(plain, fitted, rest, splits(plain, some, INPUTS)))


def of_steps(holdout: Any, of: slice, eras: tuple[str, ...] = ()) -> Iterator[Fitted]:
    every = cases(training_cases(GRAPH, ROWS))
    some = [case for case in every if case.chip != "trainium1"][of]
    others = [case for case in every if case not in some]
    yield from of_models(training(eras), training(), some, others, holdout, "h100-sxm", prior.TYPICAL)


def of_tokens() -> Iterator[Fitted]:
    every = [c for c in cases(inference_cases(GRAPH, ROWS)) if c.tpot]
    some = [c for c in every if c.chip == "trainium2"][:3]
    known = prior.prior_of(GRAPH, "trainium2", "inference", framework="nxd-inference")
    others = [c for c in every if c not in some]
    yield from of_models(inference.MODEL, inference.MODEL, some, others, "model", "trainium2", known)


def of_libraries() -> Iterator[Fitted]:
    every = cases(collective_cases(GRAPH, ROWS))
    for framework, chip in (("nccom", "trainium2"), ("vllm", "")):
        known = prior.library_of(GRAPH, chip, framework=framework) if chip else None
        used = [c for c in every if c.framework in {framework, "nccl"}]
        yield from fit_collectives(used, framework, partial(nearest, GRAPH), {chip: known} if known else {})


def of_kernels() -> Iterator[Fitted]:
    some = [c for kind in ("matmul", "attention", "moe") for c in cases(kernel_cases(GRAPH, ROWS, kind))]
    yield from fit_kernels(some)


FITTED: dict[str, Callable[[], Iterator[Fitted]]] = {
    "training by models": partial(of_steps, "model", slice(2, 26, 2), ("2025", "2026")),
    "training by chips": partial(of_steps, "chip", slice(5, 24, 3)), "inference": of_tokens,
    "serving": lambda: iter(fit_serving(cases(serving_cases(GRAPH, ROWS))[::5])), "kernels": of_kernels,
    "collectives": of_libraries,
}  # fmt: skip


def fits(kind: str) -> Iterator[tuple[str, str]]:
    for fitted in FITTED[kind]():
        yield from lines(" ".join(f"{kind} {fitted.chip} {fitted.framework} {fitted.models}".split()), fitted)


def differences(stored: dict[str, str], found: dict[str, str]) -> dict[str, tuple[str | None, str | None]]:
    pairs = {name: (stored.get(name), found.get(name)) for name in {**stored, **found}}
    return {n: (a, b) for n, (a, b) in pairs.items() if a is None or b is None or not same(a, b, abs_tol=ROUNDING)}


def test_scores_as_stored() -> None:
    assert {} == differences(read(SCORES), dict(scores()))


SLOW = {"collectives": [pytest.mark.slow]}


@pytest.mark.parametrize("kind", [pytest.param(kind, marks=SLOW.get(kind, [])) for kind in FITTED])
def test_fits_as_stored(kind: str) -> None:
    stored = {name: line for name, line in read(FITS).items() if name.startswith(f"{kind} ")}
    assert {} == differences(stored, dict(fits(kind)))


def test_every_stored_fit_is_made() -> None:
    assert [] == [name for name in read(FITS) if not name.startswith(tuple(f"{kind} " for kind in FITTED))]


if __name__ == "__main__":
    write(SCORES, dict(scores()))
    write(FITS, dict(line for kind in FITTED for line in fits(kind)))
