"""Planned and published chip hours of training runs, next to 6ND at a constant MFU.

    python benchmarks/training_runs.py [--rows]

Every row of ``catalog/measured/runs_training.csv`` with ``use`` score is planned on its chips, once with the layout free and once with
its published tensor- and pipeline-parallel degrees.  Printed are the median and the 90th percentile of ``max(r, 1/r)``, where
``r`` is planned over published chip hours, the share of runs inside the interval, and the median of its high end over its low end.
6ND assumes 40 % of the peak rate, for models with experts 20 %.

The production factor of plans is fitted here, and printed: the logarithm of published over planned chip hours of benchmark steps
with a free layout, each family with the weight of one run. Plans with published degrees have a factor of their own, and are
combined with a constant MFU. In the table each run is planned with factors fitted without its family.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import re
import statistics
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from scipy.stats import norm, t

import trnspec
from trnspec.errors import RefusalError
from trnspec.evaluators.planning.training import PlanTrainingQuestion, run
from trnspec.perf.goodput import ProductionFactor

ROOT = Path(__file__).parents[1]
RUNS = ROOT / "catalog/measured/runs_training.csv"
NVIDIA = ROOT / "plugins/trnspec-nvidia/src/trnspec_nvidia/catalog"
SERVERS = {"A100-40GB": "p4d.24xlarge", "A100-80GB": "p4de.24xlarge", "A800-80GB": "p4de.24xlarge"}
"""The server with the chips of a run; that of H100 for the others. A800 and H800 have slower NVLink and the same peak rate."""
PEAKS = {"A100": 312e12, "A800": 312e12, "H100": 989.4e12, "H800": 989.4e12}
"""Dense 16-bit FLOP/s of a chip."""
CHIPS = 512
"""Chips of a run whose number is not published; chip hours are compared, which depend little on it."""


def six_nd(row: dict[str, str]) -> float:
    """Chip hours of 6ND at a constant MFU."""
    mfu = 0.2 if row["arch"] == "moe" else 0.4
    work = 6.0 * float(row["active_params_b"]) * 1e9 * float(row["tokens_t"]) * 1e12
    return work / (PEAKS[row["hardware"][:4]] * mfu) / 3600.0


def config(row: dict[str, str]) -> dict[str, Any]:
    """A configuration with the published dimensions: gated where that is nearer to the published parameters."""
    layers, hidden, ffn, heads, kv, vocab = (
        int(row[n]) for n in ("layers", "hidden", "ffn", "heads", "kv_heads", "vocab")
    )
    found: dict[str, Any] = {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": ffn,
        "num_attention_heads": heads,
        "num_key_value_heads": kv,
        "vocab_size": vocab,
        "max_position_embeddings": int(row["seq_len"]),
        "tie_word_embeddings": False,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
    }
    if row["arch"] == "moe":
        return found | {"model_type": "mixtral", "num_local_experts": 16, "num_experts_per_tok": 2}
    attention = 2 * hidden * hidden * (1 + kv / heads)
    blocks = [layers * (attention + matrices * hidden * ffn) + 2 * vocab * hidden for matrices in (2, 3)]
    published = float(row["params_b"]) * 1e9
    if abs(blocks[1] - published) <= abs(blocks[0] - published):
        return found | {"model_type": "llama"}
    if kv != heads:
        found["intermediate_size"] = ffn * 2 // 3
        return found | {"model_type": "llama"}
    del found["num_key_value_heads"]  # GPT-NeoX has no such key.
    return found | {"model_type": "gpt_neox", "layer_norm_eps": 1e-5, "hidden_act": "gelu", "rotary_pct": 0.25}


def family(row: dict[str, str]) -> str:
    """The family of a run: the letters at the beginning of its id."""
    return row["id"][: re.match("[a-z]+", row["id"]).end()]  # type: ignore[union-attr]


def log_normal(cases: list[tuple[dict[str, str], float]], *, new: bool = False) -> ProductionFactor:
    """The distribution of the ratios of some rows: each family has the weight of one run.

    Args:
        cases: The rows with their ratios.
        new: The deviation is that of a run of a new family: larger, since median and deviation are estimated from few
            families. The normal quantile of 90 % times it is that of the prediction interval by Student's t distribution.
    """
    number = Counter(family(row) for row, _ in cases)
    logs = [(math.log(ratio), 1.0 / number[family(row)]) for row, ratio in cases]
    weight = sum(w for _, w in logs)
    mean = sum(w * value for value, w in logs) / weight
    deviation = math.sqrt(sum(w * (value - mean) ** 2 for value, w in logs) / (weight - 1.0))
    if new:
        deviation *= math.sqrt(1.0 + 1.0 / weight) * float(t.ppf(0.9, weight - 1.0) / norm.ppf(0.9))
    return ProductionFactor(math.exp(mean), deviation)


def factors(free: Runs, fixed: Runs, *, without: str = "") -> tuple[ProductionFactor, ProductionFactor]:
    """The production factors of plans with a free layout and with a published one.

    The second is combined with a constant MFU, by the inverse variances of the logarithmic errors of both.

    Args:
        free: Plans of benchmark steps with a free layout.
        fixed: Those with published degrees.
        without: A family that is left out.
    """
    free, fixed = ([(row, plan) for row, plan in runs if family(row) != without] for runs in (free, fixed))
    run = log_normal([(row, 1.0 / plan.ratio) for row, plan in free], new=True)
    stated, mfu = (
        log_normal(cases)
        for cases in (
            [(row, 1.0 / plan.ratio) for row, plan in fixed],
            [(row, plan.ratio * plan.mfu) for row, plan in fixed],
        )
    )
    weight = mfu.deviation**2 / (stated.deviation**2 + mfu.deviation**2)
    combined = evolve(stated, weight=weight, mfu=mfu.value)
    left = [(row, plan.published / combined.applied(3 * (plan.value,), plan.mfu)[0]) for row, plan in fixed]
    return run, evolve(combined, deviation=log_normal(left, new=True).deviation)


@frozen
class Planned:
    """A planned run: its published chip hours, and the planned ones with their interval."""

    published: float
    value: float
    low: float
    high: float | None
    kind: str = ""
    layout: str = ""
    mfu: float = 100.0

    @property
    def ratio(self) -> float:
        """Planned over published chip hours."""
        return self.value / self.published


Runs = list[tuple[dict[str, str], Planned]]
"""Rows with their plans."""


def left_out(free: Runs, fixed: Runs) -> list[list[Planned]]:
    """Plans of both kinds with production factors that are fitted without the family of each."""
    found: list[list[Planned]] = [[], []]
    for at, runs in enumerate((free, fixed)):
        for row, plan in runs:
            fitted = factors(free, fixed, without=family(row))[at]
            value, low, high = fitted.applied((plan.value, plan.low, plan.high or math.inf), plan.mfu)
            found[at].append(evolve(plan, value=value, low=low, high=high))
    return found


def planned(catalog: Any, row: dict[str, str], folder: Path, *, fixed: bool) -> Planned | None:
    """The plan of a run; ``None`` if its layout is to be fixed and is not published, or if there is no plan."""
    if fixed and not (row["tp"] or row["pp"]):
        return None
    path = folder / f"{row['id']}.json"
    path.write_text(json.dumps(config(row)))
    hardware = row["hardware"].split()[0]
    count = -(-int(row["n_chips"] or CHIPS) // 8)
    batch = row["global_batch_tokens_m"]
    degrees = {n: (int(row[n]),) for n in ("tp", "pp") if fixed and row[n]}
    question = PlanTrainingQuestion(
        model=str(path),
        tokens=f"{float(row['tokens_t']) * 1e12:.0f}",
        on=(f"{SERVERS.get(hardware, 'p5.48xlarge')}*{count}",),
        seq=int(row["seq_len"]),
        global_batch=round(float(batch) * 1e6 / int(row["seq_len"])) if batch else None,
        objective="time",
        production_factor=1.0,
        **degrees,
    )
    try:
        (best,) = run(catalog, question).tables[0].records()[:1]
    except RefusalError as error:
        print(f"{row['id']}: {error}")
        return None
    hours = float(best["chips"]) / 3600.0
    high = best["time_high"]
    return Planned(
        float(row["chip_hours"]), best["run_time"] * hours, best["time_low"] * hours,
        None if high is None else high * hours, str(best["kind"]), str(best["layout"]), best["mfu"],
    )  # fmt: skip


def errors(plans: list[Planned]) -> tuple[float, float]:
    """Median and 90th percentile of the error."""
    each = sorted(max(p.ratio, 1.0 / p.ratio) for p in plans)
    return statistics.median(each), statistics.quantiles(each, n=10, method="inclusive")[-1]


def intervals(plans: list[Planned]) -> tuple[int, float] | None:
    """How many are inside the interval, and its median width; ``None`` without intervals."""
    widths = [p.high / p.low for p in plans if p.high is not None]
    inside = sum(p.high is not None and p.low <= p.published <= p.high for p in plans)
    return (inside, statistics.median(widths)) if widths else None


def summary(plans: list[Planned]) -> str:
    """The line of a table."""
    median, ninth = errors(plans)
    text = f"{len(plans):4} {median:8.2f} {ninth:8.2f}"
    return text + ("" if (known := intervals(plans)) is None else f" {known[0]:4} {known[1]:6.2f}")


TITLES = ("layout free", "TP, PP published")
"""What the runs of each kind of plan have."""


@frozen
class Scored:
    """The plans of runs of one kind: planned with production factors that were fitted without the family of each, and without.

    Attributes:
        title: One of :data:`TITLES`.
        runs: The runs, with plans of benchmark steps.
        plans: The plans with a production factor.
    """

    title: str
    runs: Runs
    plans: list[Planned]

    @property
    def lines(self) -> list[tuple[str, list[Planned]]]:
        """What a table compares."""
        six = [Planned(p.published, six_nd(row), 0.0, None) for row, p in self.runs]
        return [(self.title, self.plans), ("without factor", [plan for _, plan in self.runs]), ("6ND", six)]


def scored(catalog: Any) -> list[Scored]:
    """The plans of all published runs with ``use`` score."""
    with RUNS.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["use"] == "score"]
    with tempfile.TemporaryDirectory() as name:
        free, fixed = (
            [(row, plan) for row in rows if (plan := planned(catalog, row, Path(name), fixed=given))]
            for given in (False, True)
        )
    return [Scored(*one) for one in zip(TITLES, (free, fixed), left_out(free, fixed), strict=True)]


def main() -> None:
    """Print the scores."""
    parser = argparse.ArgumentParser(description="Score plans of published training runs.")
    parser.add_argument("--rows", action="store_true", help="Print every row.")
    shown = parser.parse_args().rows
    every = scored(trnspec.load([str(NVIDIA)]))
    print(f"{'':18} runs   median      p90   in  width")
    for one in every:
        for title, plans in one.lines:
            print(f"{title:18} {summary(plans)}")
        for (row, _), plan in zip(one.runs, one.plans, strict=True) if shown else ():
            inside = plan.high is not None and plan.low <= plan.published <= plan.high
            line = f"{plan.ratio:5.2f} {six_nd(row) / plan.published:5.2f} {inside:2d} {plan.kind:12} {plan.layout}"
            print(f"  {row['id']:22} {line}")
    fitted, stated = factors(*(one.runs for one in every))
    runs = [
        (row, plan) for row, plan in every[0].runs if row["arch"] == "dense" and float(row["active_params_b"]) >= 1.0
    ]
    ends = statistics.quantiles((40.0 * six_nd(row) / plan.published for row, plan in runs), n=10, method="inclusive")
    print(f"MFU of dense models from 1 billion parameters: {ends[0]:.0f} to {ends[-1]:.0f} %")
    print(f"production factor: {fitted.value:.2f}, deviation {fitted.deviation:.2f}")
    print(
        f"with published degrees: {stated.value:.2f}, weight {stated.weight:.2f}, MFU {stated.mfu:.1f} %, "
        f"deviation {stated.deviation:.2f}"
    )


if __name__ == "__main__":
    main()
