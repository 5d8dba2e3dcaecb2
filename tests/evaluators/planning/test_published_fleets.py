"""Plans of serving fleets against fleets that served a published load: MLPerf Inference 5.1 server results and a service.

As a program it prints the ratio of planned to published chips for each fleet, or for that many of it together: ``python -m
tests.evaluators.planning.test_published_fleets [FILE.csv [TIMES [spread]]]``, the last with prompts of the published lengths. A file
has the columns of ``catalog/measured/runs_serving.csv``.
"""

import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from statistics import median

import pytest
from attrs import frozen

from tests.support.engine import everything
from tests.support.evaluations import keywords
from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError
from trnspec.evaluation.result import Evaluation
from trnspec.evaluators.planning.serving import run
from trnspec.loading.measured import MeasuredRow, read_table
from trnspec.perf.calibration.measured.cells import measured_rows, stated_name
from trnspec.perf.lowering.lower import lower

FLEETS = tuple(measured_rows(everything(), "serve_run"))


@frozen
class Score:
    """A plan and the published fleet; chips, the ends of their interval, and the answer."""

    id: str
    published: float
    planned: float | None
    low: float | None = None
    high: float | None = None
    kind: str = ""
    text: str = ""

    @property
    def ratio(self) -> float:
        return (self.planned or float("nan")) / self.published

    @property
    def inside(self) -> bool:
        return self.low is not None and self.high is not None and self.low <= self.published <= self.high


def scored(fleets: Iterable[MeasuredRow], times: int = 1, *, spread: bool = False) -> list[Score]:
    """Each fleet of a table, planned with the fewest chips.

    Args:
        fleets: The rows.
        times: The fleet serves this many times the load, and the published one has as many times the chips: with many,
            chips are not rounded to whole servers.
        spread: Prompts have the published lengths where the shortest is known, instead of the mean.
    """
    catalog = Catalog(everything())
    scores = []
    with tempfile.TemporaryDirectory() as folder:
        for row in (fleet.cells for fleet in fleets):
            inputs: dict[str, object] = {n: f"{row[f'{n}_limit_ms']}ms" for n in ("ttft", "tpot")}
            numbers = {n: float(row[c] or 0.0) for n, c in (("percentile", "limit_percentile"), ("prefix_hit",) * 2)}
            isl, osl = (round(float(row[name])) for name in ("isl", "osl"))
            shortest = int(row["shortest"] or 0) if spread else 0
            inputs |= {"lengths": _lengths(folder, isl, osl, shortest)} if shortest else {"isl": isl, "osl": osl}
            rate, published = (times * float(row[name]) for name in ("rate_rps", "n_chips"))
            try:
                found: Evaluation = keywords(run)(
                    catalog, **inputs, **numbers, model=row["model"], rate=rate, on=(_system(row),),
                    framework=row["framework"] or None, dtype=(row["precision"],), objective="chips",
                )  # fmt: skip
            except RefusalError as error:
                scores.append(Score(row["id"], published, None, text=str(error)))
                continue
            chips = next(a for a in found.answers if a.name == "chips")
            ends = chips.low, chips.high
            scores.append(Score(row["id"], published, float(str(chips.value)), *ends, found.evidence.kind, found.title))
    return scores


def _system(row: Mapping[str, str]) -> str:
    return stated_name(everything(), row["hardware"], "serve_run")


def _lengths(folder: str, isl: int, osl: int, shortest: int, number: int = 64) -> str:
    """A file of requests whose prompts are equally likely from the shortest length to as far above the mean."""
    prompts = (round(shortest + 2.0 * (isl - shortest) * (i + 0.5) / number) for i in range(number))
    file = Path(folder) / "lengths.csv"
    file.write_text("isl,osl\n" + "".join(f"{prompt},{osl}\n" for prompt in prompts), encoding="utf-8")
    return str(file)


def summary(scores: list[Score]) -> tuple[float, float]:
    """The median of the larger of planned/published and published/planned chips, and the share inside the interval."""
    planned = [one for one in scores if one.planned]
    return median(max(one.ratio, 1.0 / one.ratio) for one in planned), sum(one.inside for one in planned) / len(scores)


@pytest.mark.parametrize("row", [row.cells for row in FLEETS], ids=lambda row: row["id"])
def test_the_mfu_of_a_fleet_is_that_of_its_load(row) -> None:
    system = lower(everything(), _system(row))
    active, rate, isl, osl, chips = (float(row[n]) for n in ("active_params_b", "rate_rps", "isl", "osl", "n_chips"))
    tokens = rate * (isl * (1.0 - float(row["prefix_hit"] or 0.0)) + osl)

    mfu = 200e9 * active * tokens / (chips * system.peak(row["precision"]) / system.chips)
    assert float(row["implied_mfu_pct"]) == pytest.approx(mfu, abs=0.051)


@pytest.mark.slow
def test_plans_of_published_fleets() -> None:
    scores = scored(FLEETS)

    assert len(scores) == 14
    assert all(one.planned for one in scores)
    ratio, inside = summary(scores)
    assert ratio <= 1.45
    assert inside >= 0.9
    # An interval that is wide enough for anything would be no answer.
    assert median((one.high or 0.0) / (one.low or 1.0) for one in scores) <= 2.5


if __name__ == "__main__":
    given = dict(enumerate(sys.argv))
    rows = read_table(Path(given[1])).rows if 1 in given else FLEETS
    every = scored(rows, int(given.get(2, 1)), spread="spread" in sys.argv[3:])
    for one in every:
        interval = "" if one.low is None or one.high is None else f"[{one.low:g}, {one.high:g}]"
        counts = f"{one.published:6g} {one.planned or 0:6g} {interval:14} {one.ratio:5.2f}"
        sys.stdout.write(f"{one.id:52} {counts} {one.kind} {one.text}\n")
    sys.stdout.write("median ratio {:.2f}, inside {:.0%}\n".format(*summary(every)))
