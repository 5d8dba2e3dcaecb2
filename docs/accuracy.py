"""Generates docs/explanation/accuracy.md, its plots and the errors that a test compares with; ``make accuracy``.

Takes minutes of processor time, since every fit is repeated without each model, each chip and each pair of them.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import comb
from pathlib import Path
from statistics import mean, median
from typing import Any

import numpy as np
from attrs import frozen

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "docs"))

import baselines  # noqa: E402  # docs is a folder of scripts
import plots  # noqa: E402

import trnspec  # noqa: E402
from tests.support.engine import everything  # noqa: E402
from trnspec.catalog.catalog import Catalog  # noqa: E402
from trnspec.model.calibration import Calibration  # noqa: E402
from trnspec.perf.calibration import fit_range  # noqa: E402

PAGE = ROOT / "docs" / "explanation" / "accuracy.md"
FOLDER = ROOT / "docs" / "explanation" / "accuracy"
ERRORS = ROOT / "tests" / "data" / "accuracy.json"

Row = dict[str, Any]
CELLS = baselines.conditions()

PHASES = {
    "step": "training step",
    "memory": "memory of a rank",
    "tpot": "time per output token",
    "ttft": "time to first token",
    "encoder": "encoders",
    "collective": "collectives",
    "gemm": "matrix multiplications",
    "attention_prefill": "attention in prefill",
    "attention_decode": "attention in decoding",
    "moe": "layers of experts",
    "op": "other kernels",
}


HOLDOUTS = ("model", "chip", "framework", "model,chip", "model,framework", "parameters", "seq", "ranks")
"""What is left out of fits: for errors of new models, chips and frameworks, and after these for the kinds of evidence."""


def rows(cat: Catalog, *, refit: bool = True, holdout: str = "model") -> list[Row]:
    """The rows of all measurements."""
    found = trnspec.evaluate(
        "accuracy", cat, data=str(ROOT / "catalog" / "measured"), refit=refit, holdout=holdout.split(",")
    )
    return [{**row, "model": CELLS.get((row["set"], row["id"]), {}).get("model") or ""} for row in found.rows]


def value(row: Row) -> float | None:
    """The value of a row by a fit that did not see it; of memory, to which nothing is fitted, the computed one."""
    return row["held_out"] if row["seen"] else row["computed"]


def unseen(some: Iterable[Row]) -> list[Row]:
    """The rows that have such a value, by a calibration."""
    return [r for r in some if value(r) is not None and (r["calibration"] or r["part"] == "memory")]


@frozen
class Errors:
    """The errors of some rows, as shares.

    ``inside`` is the share of measurements in the interval, which is as wide about a held-out value as about that of the fit.
    """

    rows: int
    mean: float
    median: float
    bias: float
    worst: float
    inside: float | None

    @classmethod
    def of(cls, some: Sequence[Row], computed: Callable[[Row], float | None] = value) -> Errors | None:
        """The errors; ``None`` without rows."""
        signed = [v / r["measured"] - 1.0 for r in some if (v := computed(r)) is not None]
        if not signed:
            return None
        off = [abs(e) for e in signed]
        moved = [(v / r["computed"], r) for r in some if r["low"] is not None and (v := computed(r)) is not None]
        inside = [r["low"] * by <= r["measured"] <= r["high"] * by for by, r in moved]
        return cls(len(signed), mean(off), median(off), mean(signed), max(off), mean(inside) if inside else None)

    def cells(self) -> list[str]:
        """For a table."""
        inside = "" if self.inside is None else f"{100 * self.inside:.0f} %"
        mean, median, worst = map(percent, (self.mean, self.median, self.worst))
        return [f"{self.rows:,}", mean, median, f"{100 * self.bias:+.0f} %", worst, inside]


HEADS = ("rows", "mean", "median", "bias", "worst", "inside")


def percent(x: float) -> str:
    """Two digits."""
    return f"{100 * x:.2g} %" if x < 0.995 else f"{100 * x:.0f} %"


def grouped(some: Iterable[Row], *names: str) -> dict[tuple[str, ...], list[Row]]:
    """Rows by some of their fields, in the order of the fields."""
    groups: dict[tuple[str, ...], list[Row]] = {}
    for row in some:
        groups.setdefault(tuple(row[n] or "" for n in names), []).append(row)
    return dict(sorted(groups.items()))


def gate(every: Sequence[Row]) -> list[dict[str, Any]]:
    """The error of each group that the test compares with, and how many rows it has."""
    names = ("chip", "framework", "part")
    groups = {key: Errors.of(some, lambda r: r["computed"]) for key, some in grouped(every, *names).items()}
    return [
        {**dict(zip(names, key, strict=True)), "rows": e.rows, "mean": round(e.mean, 4)}
        for key, e in groups.items()
        if e
    ]


def table(heads: Sequence[str], lines: Iterable[Sequence[str]], texts: int) -> list[str]:
    """A Markdown table, of which the first columns are texts and the others numbers."""
    rule = ["---"] * texts + ["---:"] * (len(heads) - texts)
    return [f"| {' | '.join(cells)} |" for cells in (heads, rule, *lines)]


def by_group(every: Sequence[Row]) -> list[str]:
    """A line for each chip, framework, phase and kind of models: rows not in the fit, and seen ones as fitted."""
    lines = []
    for (part, *names), some in grouped(every, "part", "chip", "framework", "models").items():
        errors = Errors.of(unseen(some))
        seen = Errors.of([r for r in some if r["seen"]], lambda r: r["computed"])
        if errors or seen:
            cells = errors.cells() if errors else [""] * len(HEADS)
            lines.append(
                [PHASES[part], *names, *cells, *((f"{seen.rows:,}", percent(seen.mean)) if seen else ("", ""))]
            )
    heads = ["phase", "chip", "framework", "models", *HEADS, "seen rows", "their mean"]
    return table(heads, lines, 4)


def by_set(every: Sequence[Row]) -> list[str]:
    """A line for each table and phase: rows not in the fit, and what is ideal."""
    lines = []
    for (name, part), some in grouped(every, "set", "part").items():
        errors, ideal = Errors.of(unseen(some)), mean(abs(r["ideal"] / r["measured"] - 1.0) for r in some)
        mark = ""
        if errors and errors.inside is not None and errors.rows >= 10 and not 0.72 <= errors.inside <= 0.9:
            mark = f"outside 72 to 90 %; by chance {by_chance(errors)}"
        fitted = Errors.of([r for r in some if r["seen"]], lambda r: r["computed"])
        of_fit = fitted.cells()[-1] if fitted else ""
        cells = errors.cells() if errors else [""] * len(HEADS)
        lines.append([f"`{name}`", PHASES[part], *cells, of_fit, percent(ideal), mark])
    return table(["set", "phase", *HEADS, "inside, as fitted", "ideal, mean", "coverage"], lines, 2)


def by_chance(errors: Errors) -> str:
    """The probability that as many rows are inside an interval of 80 %, or more, or as few, or fewer: rows that are independent."""
    assert errors.inside is not None
    inside, cover = round(errors.inside * errors.rows), 0.8
    counts = range(inside, errors.rows + 1) if inside > cover * errors.rows else range(inside + 1)
    return percent(sum(comb(errors.rows, k) * cover**k * (1.0 - cover) ** (errors.rows - k) for k in counts))


@frozen
class Target:
    """A target of accuracy on rows that no fit has seen.

    Attributes:
        name: What is to be computed.
        bounds: The largest error of some statistics: ``mean``, ``median``.
        chosen: Which rows count.
        reason: Why it is missed, where it is.
        before: The error before there were these calibrations.
    """

    name: str
    bounds: dict[str, float]
    chosen: Callable[[Row], bool]
    before: str = ""
    reason: str = ""


def _in(*sets: str, part: str = "", **more: Any) -> Callable[[Row], bool]:
    def chosen(row: Row) -> bool:
        return row["set"] in sets and part in ("", row["part"]) and all(row[n] == v for n, v in more.items())

    return chosen


TARGETS = (
    Target("Korthikanti et al. 2022", {"mean": 0.0365}, _in("training_korthikanti", part="step"), "3.4 to 5.1 %"),
    Target(
        "vTrain, one server", {"mean": 0.06}, _in("training_a100_vtrain", part="step", scale="server"), "5.7 %"
    ),
    Target(
        "vTrain, several servers", {"mean": 0.08},
        lambda r: _in("training_a100_vtrain", part="step")(r) and r["scale"] != "server", "8.9 %",
    ),
    Target("MLPerf and NeMo, H100 and H200", {"mean": 0.068},
           lambda r: r["set"] in ("training_mlperf", "training_h100") and r["chip"] in ("h100-sxm", "h200"), "10 to 22 %"),
    Target("Megatron Bridge, dense", {"mean": 0.09}, _in("training_megatron_bridge", part="step", models="dense"), "5 to 27 %"),
    Target("Megatron Bridge, experts", {"mean": 0.18}, _in("training_megatron_bridge", part="step", models="experts"), "19 to 37 %"),
    Target("memory, Megatron and torchtitan", {"mean": 0.025}, lambda r: r["part"] == "memory", "20 and 47 %"),
    Target("Neuron SDK, time per output token", {"mean": 0.15, "median": 0.08}, _in("inference_neuron", part="tpot"), "28 and 11 %"),
    Target("Trn2 serving of 2026, time per output token", {"mean": 0.25, "median": 0.15},
           _in("inference_neuron_2026", part="tpot"), "53 and 55 %",
           "26 rows of mini-verl are bound by its host: about 37 ms at TP 1, 2 and 4 alike, which no fit of another framework has. 4 rows are of "
           "GLM-5, whose implementation is not tuned. Without these the mean is 24 %, the median 20 %."),
    Target("Trn2 serving of 2026, time to first token", {"mean": 0.4, "median": 0.25},
           _in("inference_neuron_2026", part="ttft"), "2,047 and 1,868 %"),
    Target("serving on GPUs, time per output token", {"mean": 0.25, "median": 0.15}, _in("serving_gpu", part="tpot"), "61 and 60 %"),
    Target("serving on GPUs, time to first token", {"mean": 0.5, "median": 0.3}, _in("serving_gpu", part="ttft"), "155 and 79 %"),
    Target("collectives, 512 B to 1 GiB", {"mean": 0.15}, lambda r: r["part"] == "collective", "73 %"),
    Target("matrix multiplications", {"mean": 0.15}, lambda r: r["part"] == "gemm", "65 %"),
    Target("matrix multiplications, compute-bound", {"mean": 0.08}, lambda r: r["part"] == "gemm" and CELLS[r["set"], r["id"]].get("bound") == "compute", "65 %",
           "Without effect: the cores of each chip (132 to 148), tiles of 64 to 256 whose operands come from the cache at a limited "
           "rate, small operands kept in the L2 cache, a clock that falls with the length of the kernel (of each chip, precision or "
           "library), a rate of quantizing of each library, and a reach of split sums of each library: held-out means of 10.2 to 11.9 %, against "
           "10.2 % before the ends of tiles and deviations of an architecture, which lower it to 9.8 %. A Gaussian process over the "
           "logarithms of m, n and k, for each precision and generation, reaches 9.6 %: the rest does not follow "
           "the shape smoothly. Likely causes that the rows do not state: the kernel that the library chose, and the clock under the power limit."),
)  # fmt: skip

OTHERS = (
    ("A100, 2 to 8 chips, Megatron-DeepSpeed", "8.37 %", "vTrain, Bang et al. 2024",
     _in("training_a100_vtrain", part="step", scale="server")),
    ("A100, 64 to 512 chips, the same", "14.73 %", "vTrain",
     lambda r: _in("training_a100_vtrain", part="step")(r) and r["scale"] != "server"),
    ("A100, the runs of Korthikanti et al. 2022", "3.65 %", "Calculon, Isaev et al. 2023", _in("training_korthikanti", part="step")),
    ("serving on GPUs, time per output token", "30 %", "NVIDIA AISimulate", _in("serving_gpu", part="tpot")),
    ("serving on GPUs, time to first token", "76 %; median 17.6 %", "NVIDIA AISimulate; BLIS", _in("serving_gpu", part="ttft")),
)  # fmt: skip


def targets(every: Sequence[Row]) -> list[str]:
    """A line for each target, and what is known of why it is missed."""
    lines, notes = [], []
    for target in TARGETS:
        errors = Errors.of(unseen(filter(target.chosen, every)))
        wanted = ", ".join(f"{name} < {100 * bound:g} %" for name, bound in target.bounds.items())
        if errors is None:
            lines.append([target.name, wanted, target.before, "no rows", ""])
            continue
        now = ", ".join(f"{name} {percent(getattr(errors, name))}" for name in target.bounds)
        missed = {n: getattr(errors, n) - bound for n, bound in target.bounds.items() if getattr(errors, n) >= bound}
        by = ", ".join(f"{name} by {100 * more:.1f} points" for name, more in missed.items())
        lines.append([target.name, wanted, target.before, f"{now} of {errors.rows:,} rows", by])
        if missed:
            notes.append("- " + " ".join(filter(None, (f"**{target.name}**:", target.reason, largest(every, target)))))
    heads = ["rows", "target", "before", "now, rows not in the fit", "missed"]
    return [*table(heads, lines, 5), *(["Where a target is missed:", *notes] if notes else [])]


def largest(every: Sequence[Row], target: Target) -> str:
    """Which rows contribute most to an error: of which model and chip."""
    some = unseen(filter(target.chosen, every))
    total = sum(abs(value(r) / r["measured"] - 1.0) for r in some)  # type: ignore[operator]
    lines = []
    for (chip, framework, models), few in grouped(some, "chip", "framework", "models").items():
        errors = Errors.of(few)
        if errors is not None:
            share = errors.mean * errors.rows / total
            about = ", ".join(filter(None, (chip, framework, models)))
            lines.append(
                (share, f"{about}: {percent(errors.mean)} of {errors.rows:,} rows, bias {100 * errors.bias:+.0f} %")
            )
    lines.sort(reverse=True)
    off = sorted((abs(value(r) / r["measured"] - 1.0) for r in some), reverse=True)  # type: ignore[operator]
    few = max(len(off) // 20, 1)
    return (
        f"Largest contributions: {'; '.join(text for _, text in lines[:3])}. The {few} rows that are furthest off are "
        f"{percent(sum(off[:few]) / total)} of the sum; without them the mean is {percent(mean(off[few:]))}."
    )


CHIPS = (
    ("training steps, dense models", lambda r: r["part"] == "step" and r["models"] == "dense"),
    ("training steps, models with experts", lambda r: r["part"] == "step" and r["models"] == "experts"),
    ("time per output token", lambda r: r["part"] == "tpot"),
    ("time to first token", lambda r: r["part"] == "ttft"),
    ("collectives", lambda r: r["part"] == "collective"),
    ("matrix multiplications", lambda r: r["part"] == "gemm"),
    ("attention", lambda r: r["part"].startswith("attention")),
    ("layers of experts", lambda r: r["part"] == "moe"),
)
"""What a chip that is left out of all fits is judged by."""

DATA_SHEET = 0.25
"""The target of the mean error of a prediction from a data sheet alone."""


def left_out(some: Sequence[Row], column: str, target: float = math.inf) -> list[str]:
    """A line for each quantity: rows by fits to other chips, models or frameworks.

    Args:
        some: Rows with ``held_out``.
        column: What was left out: ``chip``, ``model`` or ``framework``.
        target: That of the mean error.
    """
    lines = []
    for name, chosen in CHIPS:
        of_name = [r for r in some if r["held_out"] is not None and chosen(r)]
        if (errors := Errors.of(of_name)) is None:
            continue
        each = {key: e for (key,), few in grouped(of_name, column).items() if (e := Errors.of(few))}
        worst, of_worst = max(each.items(), key=lambda one: one[1].mean)
        line = [name, str(len(each)), f"{worst}: {percent(of_worst.mean)} of {of_worst.rows}", *errors.cells()]
        if target < math.inf:
            line.append(f"missed: mean by {100 * (errors.mean - target):.1f} points" if errors.mean >= target else "")
        lines.append(line)
    heads = ["quantity", f"{column}s", f"worst {column}", *HEADS]
    return table([*heads, *([f"target: mean < {percent(target)}"] if target < math.inf else [])], lines, 3)


def resampled(some: Sequence[Row], stronger: Sequence[Row]) -> float | None:
    """The probability of a mean error of rows below that of rows with stronger evidence, by resampling of clusters."""
    of_both = [grouped(each, "model", "chip", "framework") for each in (some, stronger)]
    means = [[e.mean for few in groups.values() if (e := Errors.of(few))] for groups in of_both]
    if not all(means):
        return None
    random = np.random.default_rng(0)
    weaker, other = (random.choice(each, (2000, len(each))).mean(axis=1) for each in means)
    return float((weaker < other).mean())


def by_kind(every: Sequence[Row], left_out: Sequence[Row]) -> list[dict[str, Any]]:
    """The errors of each quantity by kind of evidence; those of clusters (model, chip and framework) count once.

    ``same_rows`` are the errors of those that are estimates too: as an estimate, and with the kind.

    Args:
        every: Rows by fits without their model.
        left_out: Rows by fits without their model and their chip or framework, or to less of an input.
    """
    own = unseen(every)
    held = [r for r in left_out if r["held_out"] is not None and r["kind"] != "estimate"]
    estimates = {(r["set"], r["id"], r["part"]): r for r in own if r["kind"] == "estimate"}

    def of_clusters(some: Iterable[Row]) -> list[Errors]:
        return [e for few in grouped(some, "model", "chip", "framework").values() if (e := Errors.of(few))]

    result = []
    for name, chosen in CHIPS:
        groups = grouped(filter(chosen, (*own, *held)), "kind")
        stronger: Sequence[Row] = ()
        for (kind,), some in groups.items():
            known = of_clusters(some)
            less, stronger = resampled(some, stronger), some
            pairs = [(estimates[key], r) for r in some if (key := (r["set"], r["id"], r["part"])) in estimates]
            same = [round(mean(each.mean for each in of_clusters(rows)), 4) for rows in zip(*pairs, strict=True)]
            result.append({
                "quantity": name, "kind": kind, "rows": len(some), "clusters": len(known),
                "mean": round(mean(each.mean for each in known), 4), "inside": round(mean(each.inside or 0.0 for each in known), 4),
                "width": round(median(r["high"] / r["low"] for r in some), 2),
                **({"same_rows": same} if same and kind != "estimate" else {}), **({} if less is None else {"less": round(less, 2)}),
            })  # fmt: skip
    return result


BINS = (2.0, 4.0, 8.0, math.inf)
"""The ends of ranges of the distance to the nearest row."""


def by_distance(cat: Catalog, every: Sequence[Row]) -> list[str]:
    """A line for each quantity and range of distances to the nearest row of another model: the largest factor between two inputs."""
    far: dict[tuple[str, str], float] = {}
    for name in {r["calibration"] for r in every if r["seen"]}:
        fitted = fit_range.rows_of(cat.graph, name)
        inputs = sorted({n for row in fitted for n in row.inputs})
        at = np.array([[np.log(row.inputs.get(n, np.nan)) for n in inputs] for row in fitted])
        about = np.array([(row.model, str(row.experts)) for row in fitted])
        for i, row in enumerate(fitted):
            others = (about[:, 0] != about[i, 0]) & (about[:, 1] == about[i, 1])
            if others.any():
                apart = np.nan_to_num(np.abs(at[others] - at[i])).max(axis=1).min()
                far[row.set, row.id] = float(np.exp(apart))
    lines = []
    for name, chosen in CHIPS[:4]:
        some = [r for r in unseen(filter(chosen, every)) if r["seen"] and r["kind"] == "estimate"]
        for low, high in itertools.pairwise((0.0, *BINS)):
            few = [r for r in some if low < far.get((r["set"], r["id"]), 0.0) <= high]
            if errors := Errors.of(few):
                clusters = len(grouped(few, "model", "chip", "framework"))
                title = f"up to {high:g}" if high < math.inf else f"more than {low:g}"
                cells = errors.cells()
                lines.append([name, title, cells[0], str(clusters), cells[1], cells[2], cells[5]])
    return table(["quantity", "factor", "rows", "clusters", "mean", "median", "inside"], lines, 2)


def of_neuron(by_chip: Sequence[Row]) -> str:
    """What is known of a chip of AWS that is left out of a fit."""
    texts = []
    for part, models in (("tpot", "dense"), ("tpot", "experts"), ("ttft", "dense"), ("ttft", "experts")):
        some = [r for r in by_chip if r["held_out"] is not None and (r["part"], r["models"]) == (part, models)]
        for (chip,), few in grouped(some, "chip").items():
            if chip.startswith(("trainium", "inferentia")) and (errors := Errors.of(few)):
                texts.append(f"{chip}, {PHASES[part]}, {models}: {percent(errors.mean)} of {errors.rows} rows")
    return "; ".join(texts)


def others(every: Sequence[Row]) -> list[str]:
    """Errors that other tools publish."""
    lines = []
    for name, theirs, tool, chosen in OTHERS:
        e = Errors.of(unseen(filter(chosen, every)))
        ours = f"{percent(e.mean)} of {e.rows:,} rows (median {percent(e.median)})" if e else "no rows"
        lines.append([name, f"{theirs}, {tool}", ours])
    return table(["rows", "other tool", "trnspec, rows not in the fit"], lines, 3)


def calibrations(cat: Catalog) -> list[str]:
    """A line for each document of kind Calibration."""
    lines = []
    for node in sorted(cat.graph.of(Calibration), key=lambda n: n.name):
        spread = node.spec.spread
        shares = [percent(float(x)) for x in (spread.mean, spread.median, spread.worst)]
        ends = f"{float(spread.low):.2f} to {float(spread.high):.2f}"
        lines.append([f"`{node.name}`", str(int(spread.rows)), *shares, ends])
    return table(["calibration", "rows", "mean", "median", "worst", "80 % of measured / computed"], lines, 1)


def skipped(every: Sequence[Row]) -> list[str]:
    """How many rows of each table have no computed value."""
    lines = []
    for (name,), some in grouped((r for r in every if r["skipped"]), "set").items():
        reasons = [r["skipped"] for r in some]
        most = max(sorted(set(reasons)), key=reasons.count)
        lines.append([f"`{name}`", f"{len(reasons):,}", f"{most.replace('|', '/')} ({reasons.count(most)})"])
    return table(["set", "rows", "most frequent reason"], lines, 1)


def spaced(lines: Iterable[str]) -> Iterator[str]:
    """Lines with an empty one where a heading, a paragraph, a list or a table begins or ends."""
    last = ""
    for line in lines:
        form = {"#": line, "|": "|", "-": "-", " ": "-"}.get(line[:1], line and "text")
        if last and form and form != last:
            yield ""
        yield line
        last = form


def page(cat: Catalog, held: Mapping[str, Sequence[Row]]) -> str:
    """The text of the page, of the rows by what was left out of fits."""
    every, by_chip, by_framework, *further = ([r for r in some if not r["skipped"]] for some in held.values())
    parts = [p for p in PHASES if any(r["part"] == p for r in every)]
    kinds = by_kind(every, [*itertools.chain(*further)])
    unordered = [f"{k['quantity']}, {k['kind']} ({100 * k['less']:.0f} %)" for k in kinds if k.get("less", 0.0) > 0.5]
    ordered = {n: math.prod(1.0 - k.get("less", 0.0) for k in kinds if k["quantity"] == n) for n, _ in CHIPS}
    of_kinds = [
        [k["quantity"], k["kind"], f"{k['rows']:,}", str(k["clusters"]), percent(k["mean"]),
         ", ".join(map(percent, k.get("same_rows", ()))), f"{100 * k['less']:.0f} %" if "less" in k else "",
         f"{100 * k['inside']:.0f} %", f"{k['width']:.1f}"]
        for k in kinds
    ]  # fmt: skip
    lines = [
        "# Accuracy",
        "Generated by `make accuracy`. The page lists the errors of computed times and of memory against the measurements of the",
        "catalog, as computed by `trnspec eval accuracy --refit` with the plugins of this repository. The error is computed over",
        "measured, minus 1; mean, median and worst are of its absolute value, bias is its signed mean. `inside` is the share of measurements inside",
        "the interval, with a nominal value of 80 %; a held-out value has an interval of the same relative width as the fitted one.",
        "",
        "Rows to which a calibration was fitted count with the value of a fit to other models; the errors of the fit itself are in",
        "the columns `seen rows` and `their mean`. A row was seen if a row with the same conditions and the same measured value was",
        "fitted, in any file. [How intervals are computed](performance/calibration.md);",
        "[the rows as JSON](../reference/accuracy.md).",
        "## Targets",
        *targets(every),
        "## Plans",
        "`plan train` on published runs (`python benchmarks/training_runs.py`) and `plan serve` on published fleets",
        "(`python -m tests.evaluators.planning.test_published_fleets`): the factor between planned and published chip hours, or chips. The",
        "production factor is fitted without the family of each run. 6ND is the estimate with 6 FLOP per parameter and token at 40 %",
        "MFU, 20 % for MoE models. Where it is closer, for runs with published degrees, plans are combined with a constant MFU",
        "([how](performance/training.md#from-a-benchmark-to-a-run)). Fleets have whole servers, most of the published ones a single",
        "server; these engines are tuned, and run at their limit: a plan of 1.1 servers has two. 32 such fleets planned together are hardly",
        "rounded. An interval of chips that is wider than a factor of 8 is printed as its lower end, and is not counted as inside. Of 32",
        "fleets of Llama 3.1 405B together the plans have 0.53 to 0.75 times the published chips with prompts of the mean length, 0.66 to",
        "0.78 times with lengths of 476 to 18,380 tokens (`test_published_fleets FILE 32 spread`; the source has 476 to 19,988 and",
        "the mean), and 0.91 to 1.03 times if replicas are aggregated too. Llama 2 70B on H100 has 1.25 times, extrapolated to 2.1 times",
        "the parameters, 0.29 times the prompt length and 7.6 times the requests in flight of the fitted rows: with 970 requests its matrix",
        "multiplications take 2.1 times their time at the peak rate. Pipeline parallelism, 2,048 requests in flight, links at NCCL's 0.85: no effect.",
        *table(["plans", "number", "median", "90th percentile", "inside", "median width"], baselines.plans(cat), 1),
        "## Trivial baselines",
        "Mean and median errors of times of held-out models, by the fits and by two baselines. The first is a constant share",
        "of the ideal time, the median of the other models of the table. The second is the nearest row of another model (by ideal",
        "time, lengths, requests in flight, tensor-parallel degree), scaled by the ratio of the ideal times. `models` is the number of",
        "clusters of a table: if there are two models of one family, as on one H100, the nearest row is that of the other model, which",
        "is closer than a fit across chips and frameworks. Estimates do not use its constant share, 1.6 times the ideal time of two models",
        "of 0.6 and 1.7 billion parameters: dense models of 8 and 32 billion on H100 and H200 take 4.5 to 5.5 times their ideal time.",
        "`eval inference` rejects encoders (`not-a-decoder`): their passes are computed only here, by fits to decoders. `by chance` is the probability of as large a gain if the sign of the difference",
        "were random for each model (exact paired test): of two models it is at least 25 %, so that one H100 does not show that a",
        "baseline is better. For passes of encoders a constant share is better, which is not by chance, and there is no answer that could use it.",
        "`eval training` and `plan train` answer for encoders, by a fit with three rows of BERT-large (`training_trn1`), which is closer.",
        *table(baselines.COLUMNS, baselines.baselines(every, PHASES), 2),
        "## Kinds of evidence",
        "Errors of clusters (rows of one model, chip and framework count once), by the kind of evidence of the answer. An `estimate` is computed",
        "by a fit without the model of the row; extrapolated are rows above the middle of the range of parameters, sequence or ranks, by fits to",
        "the rows below it (`--holdout parameters`), where they are outside by more than a factor of 1.25; transferred are rows of software that no",
        "fit has, and rows by fits without their model and without their chip or framework (`--holdout model,chip`). `same rows` are the mean errors",
        "of those of these rows that are estimates too: as estimates, and by their kind. `width` is the ratio of the ends of the interval.",
        "`less` is the probability that the mean error of a kind is less than that of the kind above it, by 2,000 resamplings of clusters: of",
        f"25 to 75 % the clusters are too few to order both. It is above 50 % for {'; '.join(unordered)}: the rows of both kinds differ.",
        f"By these, taken as independent, {sum(ordered.values()):.1f} of {len(ordered)} quantities are expected in order; that all are has a",
        f"probability of {percent(math.prod(ordered.values()))}.",
        "The interval of transferred rows is that of what they lack: of rows held out with their chip where the software is the same and at",
        "least three chips were measured, and else that of other software. It is never narrower than that of estimates.",
        *table(["quantity", "kind", "rows", "clusters", "mean", "same rows", "less", "inside", "width"], of_kinds, 2),
        "## Distance to measured rows",
        "Estimates of models that were left out, by the distance to the nearest row of another model of the fit (dense or with experts, as the",
        "model): the factor of the input that differs most. From a factor of 2 on answers count as extrapolated; the interval inside",
        "the range of a fit does not widen with the distance.",
        *by_distance(cat, every),
        "## From a data sheet alone",
        "Rows of each chip are computed by a fit to the rows of other chips (`trnspec eval accuracy --refit --holdout chip`), using",
        "only the published figures of the chip. Fits to one chip alone, such as those to vTrain and to training on Trainium1, have no such row.",
        *left_out(by_chip, "chip", DATA_SHEET),
        "Without effect on those that miss it:",
        "- **layers of experts**: waves of tiles, traffic of all pairs of token and expert instead of those of one rank, tiles of 8 to 64",
        "  tokens, and deviations of an implementation (Triton, Marlin, CUTLASS, TensorRT-LLM) that several frameworks share: 29 to 37 %.",
        "  The 170 rows are of 65 pairs of a kernel and a chip.",
        "- **time to first token**: prompts ahead of a new one that grow as a power of 0.5 or 0.75 of the requests in flight, as requests",
        "  of equal length arrive together: 31 and 29 % of the rows on GPUs, against 30 %.",
        "**Trainium3**: target mean < 30 %, from its data sheet and Trainium2. The only measurements are of gpt-oss-20b; for dense models the error is unknown.",
        f"Errors for held-out AWS chips: {of_neuron(by_chip)}. Where a chip is the only one with its framework, as",
        "Trainium2 with NxD Inference and dense models, none can be left out.",
        "## New models and new frameworks",
        "Rows of each model by a fit to other models, and rows of each framework by a fit to other frameworks (`--refit --holdout",
        "framework`): whole clusters are left out, and their number counts more than that of rows. A fit of one framework, such as those",
        "of training and on Trainium, has no such row, and collectives are fitted to each library.",
        *left_out([r for r in every if r["part"] in ("step", "tpot", "ttft")], "model"),
        "",
        *left_out(by_framework, "framework"),
        "## By chip, framework and phase",
        *by_group(every),
        "## By set",
        "`ideal` is the mean error of published figures alone, which are a bound and no estimate. `inside, as fitted` is the share of",
        "rows of a fit that are in the interval about the fitted value. It is larger than `inside`, since an interval must not be narrower than the",
        "errors of rows that a fit has not seen: sets of few models with a fit of their own are then all inside, such as those of",
        "Megatron-LM of 2021 and SimuMax, whose held-out errors are several times those of the fit. Where `inside` is",
        "out of its range, the probability is stated that an interval of 80 % contains as many or more of that many independent rows, or as few or fewer.",
        *by_set(every),
        "## Plots",
        "Computed over measured, of rows not in the fit, by what was measured. A row on the line in the middle is exact; the others",
        "are off by a factor of 1.25 and of 2.",
        *(line for part in parts for line in (f"![{PHASES[part]}](accuracy/{part}.svg)", "")),
        "## Other tools",
        "Errors that other tools publish, of rows like these or of the same rows. The comparison is not on equal terms: vTrain times",
        "kernels on the machine in question; a fit here uses other models on the same chip with the same software.",
        *others(every),
        "## Calibrations",
        "Errors of held-out rows as the documents state them.",
        *calibrations(cat),
        "## Rows without a computed value",
        *skipped(held["model"]),
    ]
    return "\n".join(spaced(lines)) + "\n"


def main() -> int:
    """Writes the page, its plots and the errors of groups."""
    cat = Catalog(everything())
    held = {holdout: rows(cat, holdout=holdout) for holdout in HOLDOUTS}
    every, _, _, *further = ([r for r in some if not r["skipped"]] for some in held.values())
    FOLDER.mkdir(exist_ok=True)
    for part, title in PHASES.items():
        points = [
            plots.Point(r["measured"], value(r) / r["measured"], seen=bool(r["seen"]))  # type: ignore[operator]
            for r in unseen([r for r in every if r["part"] == part])
        ]
        if points:
            unit = "GiB" if part == "memory" else "s"
            text = plots.ratios(points, title, unit, 2.0**30 if part == "memory" else 1.0)
            (FOLDER / f"{part}.svg").write_text(text, encoding="utf-8")
    PAGE.write_text(page(cat, held), encoding="utf-8")
    errors = {"groups": gate(every), "kinds": by_kind(every, [*itertools.chain(*further)])}
    # A line for each.
    lists = (f'"{name}": [\n' + ",\n".join(map(json.dumps, some)) + "\n]" for name, some in errors.items())
    ERRORS.write_text("{" + ", ".join(lists) + "}\n", encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)} and {ERRORS.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
