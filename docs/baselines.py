"""Tables of docs/explanation/accuracy.md: plans against published runs and fleets, and trivial baselines of times."""

from __future__ import annotations

import csv
import itertools
import sys
from math import log
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

import training_runs  # noqa: E402  # benchmarks is a folder of scripts

from tests.evaluators.planning import test_published_fleets as fleets  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

Row = dict[str, Any]

CONDITIONS = ("isl", "osl", "batch_conc", "tp")
"""The conditions by which a row is near to another one, next to its ideal time."""

COLUMNS = (
    "set",
    "phase",
    "rows",
    "models",
    "trnspec",
    "constant share",
    "nearest row",
    "baselines with less mean error",
)

MANY = 32
"""Fleets that are planned together, so that rounding to whole servers has little effect."""


def plans(catalog: Any) -> list[list[str]]:
    """A line for published training runs with and without the production factor, for 6ND, and for published fleets."""
    lines = []
    for one in training_runs.scored(catalog):
        for title, some in one.lines:
            known = training_runs.intervals(some)
            ends = ["", ""] if known is None else [f"{known[0]} of {len(some)}", f"{known[1]:.2f}"]
            name = title if title == one.title else f"{one.title}: {title}"
            lines.append(
                [f"training, {name}", str(len(some)), *(f"{x:.2f}x" for x in training_runs.errors(some)), *ends]
            )
    many = f"chips of {MANY} such fleets together"
    for title, times, spread in (
        ("chips of a fleet", 1, False), (many, MANY, False), (f"{many}, lengths of prompts differ", MANY, True)
    ):  # fmt: skip
        scores = fleets.scored(fleets.FLEETS, times, spread=spread)
        off = sorted(max(one.ratio, 1.0 / one.ratio) for one in scores if one.planned)
        widths = [one.high / one.low for one in scores if one.high and one.low]
        ends = [f"{sum(one.inside for one in scores)} of {len(scores)}", f"{median(widths):.2f}"]
        ninth = off[round(0.9 * (len(off) - 1))]
        lines.append([f"serving, {title}", str(len(off)), f"{median(off):.2f}x", f"{ninth:.2f}x", *ends])
    return lines


def conditions() -> dict[tuple[str, str], Row]:
    """The cells of each row, by its table and name."""
    found = {}
    for path in (ROOT / "catalog" / "measured").glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            found |= {(path.stem, row.get("id", "")): row for row in csv.DictReader(file)}
    return found


def _number(text: str | None) -> float:
    """The number in a cell; 1 where it states none."""
    return float(text) if text and text.replace(".", "", 1).isdigit() and float(text) else 1.0


def constant_share(row: Row, others: Sequence[Row]) -> float:
    """The time as a constant share of the roofline: the median of measured over ideal times of other models."""
    return row["ideal"] * median(r["measured"] / r["ideal"] for r in others)


def nearest(row: Row, others: Sequence[Row]) -> float:
    """The time as that of the nearest row of another model, by the ratios of its conditions, times the ratio of ideal times."""
    best = min(others, key=lambda r: sum(abs(a - b) for a, b in zip(row["at"], r["at"], strict=True)))
    return row["ideal"] * best["measured"] / best["ideal"]


def chance(differences: Mapping[str, float]) -> float:
    """The probability of a sum as large or larger if the sign of each model's difference were random: an exact paired test.

    Args:
        differences: The sum of differences of each model; few, as all signs are enumerated.
    """
    total = sum(differences.values())
    signs = itertools.product((1.0, -1.0), repeat=len(differences))
    sums = [sum(s * d for s, d in zip(each, differences.values(), strict=True)) for each in signs]
    return mean(s >= total - 1e-9 for s in sums)


def baselines(rows: Iterable[Row], phases: Mapping[str, str]) -> list[list[str]]:
    """A line for each table of models and phase: errors by fits without the model of a row, and of both baselines.

    Args:
        rows: Rows with ``held_out``, or ``computed`` where no fit has seen them.
        phases: The names of phases.
    """
    cells, groups = conditions(), {}
    for row in rows:
        own = row["held_out"] if row["seen"] else row["computed"]
        if not row["skipped"] and row["model"] and own and row["calibration"]:
            stated = cells[row["set"], row["id"]]
            at = [log(row["ideal"]), *(log(_number(stated.get(n))) for n in CONDITIONS)]
            groups.setdefault((row["set"], row["part"]), []).append(row | {"own": own, "at": at})
    lines = []
    for (name, part), some in sorted(groups.items()):
        errors: dict[str, list[float]] = {"own": [], "share": [], "nearest": []}
        gains: dict[str, dict[str, float]] = {"share": {}, "nearest": {}}
        by_model = {row["model"]: [r for r in some if r["model"] != row["model"]] for row in some}
        for row in some:
            if not (others := by_model[row["model"]]):
                continue
            times = {"own": row["own"], "share": constant_share(row, others), "nearest": nearest(row, others)}
            for key, time in times.items():
                errors[key].append(abs(time / row["measured"] - 1.0))
            for key, of_models in gains.items():
                of_models[row["model"]] = of_models.get(row["model"], 0.0) + errors["own"][-1] - errors[key][-1]
        if not errors["own"]:
            continue
        means = {key: mean(each) for key, each in errors.items()}
        texts = [f"{100 * means[key]:.0f} %, {100 * median(each):.0f} %" for key, each in errors.items()]
        better = [
            f"{text} (by chance {100 * chance(gains[key]):.2g} %)"
            for key, text in (("share", "constant share"), ("nearest", "nearest row"))
            if means[key] < means["own"]
        ]
        count = [f"{len(errors['own']):,}", str(len(by_model))]
        lines.append([f"`{name}`", phases[part], *count, *texts, " and ".join(better)])
    return lines
