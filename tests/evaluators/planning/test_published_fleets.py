"""Plans of serving fleets against fleets that served a published load: MLPerf Inference 5.1 server results and a service.

As a program it prints the ratio of planned to published chips for each fleet, or for that many of it together: ``python -m
tests.evaluators.planning.test_published_fleets [FILE.csv [TIMES]]``.
"""

import csv
import sys
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

FLEETS = Path(__file__).parents[2] / "data" / "published_fleets.csv"


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


def scored(file: Path, times: int = 1) -> list[Score]:
    """Each fleet of a table, planned with the fewest chips.

    Args:
        file: The table.
        times: The fleet serves this many times the load, and the published one has as many times the chips: with many,
            chips are not rounded to whole servers.
    """
    catalog = Catalog(everything())
    scores = []
    with file.open(newline="", encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            inputs = {name: row[name] for name in ("model", "ttft", "tpot")}
            numbers = {name: float(row[name] or 0.0) for name in ("percentile", "prefix_hit")}
            rate, published = (times * float(row[name]) for name in ("rate", "chips"))
            try:
                found: Evaluation = keywords(run)(
                    catalog, **inputs, **numbers, rate=rate, on=(row["on"],), isl=round(float(row["isl"])), osl=round(float(row["osl"])),
                    framework=row["framework"] or None, dtype=(row["dtype"],), objective="chips",
                )  # fmt: skip
            except RefusalError as error:
                scores.append(Score(row["id"], published, None, text=str(error)))
                continue
            chips = next(a for a in found.answers if a.name == "chips")
            ends = chips.low, chips.high
            scores.append(Score(row["id"], published, float(str(chips.value)), *ends, found.evidence.kind, found.title))
    return scores


def summary(scores: list[Score]) -> tuple[float, float]:
    """The median of the larger of planned/published and published/planned chips, and the share inside the interval."""
    planned = [one for one in scores if one.planned]
    return median(max(one.ratio, 1.0 / one.ratio) for one in planned), sum(one.inside for one in planned) / len(scores)


@pytest.mark.slow
def test_plans_of_published_fleets() -> None:
    scores = scored(FLEETS)

    assert len(scores) == 14
    assert all(one.planned for one in scores)
    ratio, inside = summary(scores)
    assert ratio <= 1.55
    assert inside >= 0.9
    # An interval that is wide enough for anything would be no answer.
    assert median((one.high or 0.0) / (one.low or 1.0) for one in scores) <= 2.5


if __name__ == "__main__":
    every = scored(Path(sys.argv[1]) if len(sys.argv) > 1 else FLEETS, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    for one in every:
        interval = "" if one.low is None or one.high is None else f"[{one.low:g}, {one.high:g}]"
        counts = f"{one.published:6g} {one.planned or 0:6g} {interval:14} {one.ratio:5.2f}"
        sys.stdout.write(f"{one.id:52} {counts} {one.kind} {one.text}\n")
    sys.stdout.write("median ratio {:.2f}, inside {:.0%}\n".format(*summary(every)))
