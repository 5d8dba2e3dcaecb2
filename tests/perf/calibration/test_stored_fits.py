"""trnspec.perf.calibration: complete scores and fits of fixed rows, with twelve digits.

The rows are in ``tests/data/measured_rows.json``, copied from ``catalog/measured``, and the expected lines in
``tests/data/stored_fits.json``; ``python tests/perf/calibration/test_stored_fits.py`` writes them anew, and the difference is to be
read.  Searches for parameters are stopped early: what a few steps reach depends on every term of what is minimized.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

# Run as a program, too.
sys.path.extend(
    str(Path(__file__).parents[3] / folder)
    for folder in (".", "plugins/trnspec-nvidia/src", "plugins/trnspec-inferentia/src")
)

from tests.perf.oracles.fits import different, fixed, lines, number
from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.document import document
from trnspec.perf.calibration.fit_range import fitted_on
from trnspec.perf.calibration.fits import pooled, prior
from trnspec.perf.calibration.fits.collectives import fit_collectives
from trnspec.perf.calibration.fits.inference import fit_inference
from trnspec.perf.calibration.fits.kernels import fit_kernels
from trnspec.perf.calibration.fits.serving import fit_serving
from trnspec.perf.calibration.fits.training import fit
from trnspec.perf.calibration.groups import ENOUGH, groups_of
from trnspec.perf.calibration.measured.collectives import collective_cases
from trnspec.perf.calibration.measured.inference import inference_cases
from trnspec.perf.calibration.measured.kernels import kernel_cases
from trnspec.perf.calibration.measured.serving import serving_cases
from trnspec.perf.calibration.measured.tables import Record, Skipped, row_hashes
from trnspec.perf.calibration.measured.training import training_cases
from trnspec.perf.calibration.scores.scorers import score
from trnspec.perf.calibration.transfer import beyond
from trnspec.perf.lowering.calibrated import nearest

DATA = Path(__file__).parents[2] / "data"
STORED = DATA / "stored_fits.json"
TABLES: dict[str, list[Record]] = json.loads((DATA / "measured_rows.json").read_text("utf-8"))
ROWS = [row for rows in TABLES.values() for row in rows]
GRAPH = fixed().graph
ABOUT = {"source": "made", "data": "made.csv", "fitted": "2026-01-01", "schema": "x.json", "software": "Made"}
ROUNDING = 1e-15
"""A spread that is 0 but for rounding, which differs between processors."""
TOLERANCE = 1e-5
"""Relative; a parameter that the rows hardly determine differs by 3e-6 between processors."""
ROUNDS = 2
"""Steps of a pooled search."""


def read(cases: Any) -> list[Any]:
    return [case for case in cases if not isinstance(case, Skipped)]


def scores() -> Iterator[str]:
    for table, found in score(GRAPH, TABLES).items():
        for one in found:
            yield f"{table}: {' | '.join(line.partition(' = ')[2] for line in lines(one))}"


def refits() -> Iterator[str]:
    """Scores where the calibrations were fitted to the rows themselves."""
    names = ("training_h100", "training_korthikanti", "inference_neuron", "collectives_neuron", "gemm_gpu")
    tables = {name: TABLES[name][:6] for name in names}
    graph = GRAPH
    for node in GRAPH.of(Calibration):
        hashes = " ".join(h for rows in tables.values() for row in rows[1:] for h in row_hashes(row))
        graph = graph.replace(node.name, evolve(node.spec, rows=hashes))
    for holdout in ("model", "chip"):
        for table, found in score(graph, tables, refit=True, holdout=holdout).items():
            for one in found:
                if not isinstance(one, Skipped):
                    yield f"{holdout} {table} {one.id} {one.part}: {one.seen} {number(one.held_out)} {number(one.calibrated)} {one.inside}"


def cases_of() -> Iterator[str]:
    """What rows are read as."""
    reads: dict[str, Callable[[], Any]] = {
        "training": lambda: training_cases(GRAPH, ROWS), "inference": lambda: inference_cases(GRAPH, ROWS),
        "serving": lambda: serving_cases(GRAPH, ROWS), "collectives": lambda: collective_cases(GRAPH, ROWS),
        **{kind: partial(kernel_cases, GRAPH, ROWS, kind) for kind in ("matmul", "attention", "moe")},
    }  # fmt: skip
    for kind, cases in reads.items():
        for case in cases():
            named = (
                line.split(" = ", 1)
                for line in lines(case)
                if not line.startswith(("system", "dims", "machine", "row"))
            )
            yield f"{kind}: {' | '.join(f'{name}={value}' for name, value in named if value not in {'', '0', '0.0', 'None'})}"


def of_steps(holdout: Any, of: slice, eras: tuple[str, ...] = ()) -> Iterator[str]:
    every = read(training_cases(GRAPH, ROWS))
    cases = [case for case in every if case.system.chip != "trainium1"][of]
    fitted = fit(cases, holdout, eras)
    yield from lines(fitted)
    groups = groups_of(fitted, cases, "h100-sxm", fitted.errors)
    yield from lines(groups, "groups")
    others = {case.system.chip: [case] for case in every if case not in cases}
    yield from document(
        fitted.of("h100-sxm", "2026"), name="made", chip="h100-sxm", of="training", framework="megatron", era="2026", models="dense",
        note="A note.", fitted_on=fitted_on(cases), beyond=beyond(fitted, cases, others),
        groups=[fitted.prior.drawn(g, ENOUGH) for g in groups], hashes=[h for r in ROWS[:9] for h in row_hashes(r)], **ABOUT,
    ).splitlines()  # fmt: skip


def of_requests() -> Iterator[str]:
    cases = [c for c in read(inference_cases(GRAPH, ROWS)) if c.tpot]
    some = [c for c in cases if c.system.chip == "trainium2"][:3]
    known = prior.prior_of(GRAPH, "trainium2", "inference", framework="nxd-inference")
    yield from lines(known, "prior")
    fitted = fit_inference(some, "model", known)
    yield from lines(fitted)
    yield from document(
        fitted, name="made", chip="trainium2", of="inference", framework="", era="", models="", note="",
        fitted_on=fitted_on(some), beyond=beyond(fitted, some, {"others": [c for c in cases if c not in some]}), groups=groups_of(fitted, some, "trainium2", fitted.errors),
        hashes=[], **ABOUT,
    ).splitlines()  # fmt: skip


def of_servers() -> Iterator[str]:
    for each in fit_serving(read(serving_cases(GRAPH, ROWS))[::5]):
        yield f"{each.chip} {each.framework} {each.models} {len(each.cases)}"
        yield from lines(each.fitted)
        yield from lines(each.beyond, "beyond")


def of_kernels() -> Iterator[str]:
    for each in fit_kernels(
        [c for kind in ("matmul", "attention", "moe") for c in read(kernel_cases(GRAPH, ROWS, kind))]
    ):
        yield from (line for line in lines(each) if not line.startswith("cases"))


def of_libraries() -> Iterator[str]:
    cases = read(collective_cases(GRAPH, ROWS))
    for framework, chip in (("nccom", "trainium2"), ("vllm", "")):
        known = prior.library_of(GRAPH, chip, framework=framework) if chip else None
        used = [c for c in cases if c.framework in {framework, "nccl"}]
        for of, fitted in fit_collectives(
            used, framework, partial(nearest, GRAPH), {chip: known} if known else {}
        ).items():
            yield f"{framework} {of} {len(fitted.cases)} {fitted.note()}"
            yield from (line for line in lines(fitted) if not line.startswith("cases"))
            for name, value in (
                ("elsewhere", fitted.elsewhere()),
                ("on", fitted.fitted_on()),
                ("groups", fitted.groups()),
            ):
                yield from lines(value, name)


OUTPUTS: dict[str, Callable[[], Iterator[str]]] = {
    "scores": scores, "cases": cases_of, "scores of fits": refits,
    "training by models": partial(of_steps, "model", slice(2, 26, 2), ("2025", "2026")),
    "training by chips": partial(of_steps, "chip", slice(5, 24, 3)), "inference": of_requests, "serving": of_servers, "kernels": of_kernels, "collectives": of_libraries,
}  # fmt: skip


@cache
def expected() -> dict[str, list[str]]:
    return json.loads(STORED.read_text("utf-8"))


@pytest.mark.parametrize("name", OUTPUTS)
def test_as_stored(name, monkeypatch) -> None:
    monkeypatch.setattr(pooled, "_ROUNDS", ROUNDS)

    assert different(expected()[name], list(OUTPUTS[name]()), TOLERANCE, ROUNDING) == []
    assert [*OUTPUTS] == [*expected()]


if __name__ == "__main__":
    pooled._ROUNDS = ROUNDS
    STORED.write_text(json.dumps({name: list(made()) for name, made in OUTPUTS.items()}, indent=0) + "\n", "utf-8")
