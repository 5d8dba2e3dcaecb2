"""A run of training on one system, and what it must achieve."""

from __future__ import annotations

import math
from typing import Literal

from attrs import field, frozen

from trnspec.evaluation.amounts import SECONDS
from trnspec.evaluation.result import Assumption
from trnspec.evaluators.planning.distribution import Distribution
from trnspec.evaluators.prices import HOUR, ChipPower, Rent
from trnspec.evidence import Evidence, UsedFigure
from trnspec.perf.goodput import Goodput, ProductionFactor
from trnspec.perf.work.layout import Layout

DAY = SECONDS["d"]
"""Seconds."""

Objective = Literal["cost", "time", "chips", "energy"]
"""Objectives, smallest in the best plan."""


@frozen(kw_only=True)
class RunPlan:
    """A run on one system.

    Attributes:
        systems: The system and its count.
        chip: The name of its chip.
        chips: Its chips.
        layout: The fastest layout.
        step: Time of a production step: value, low and high end [s]; the last is ``None`` of a bound.
        production: Its time over that of a benchmark step.
        run: The run with its interruptions, at the value of the step time.
        ends: The ends of the interval of its time with interruptions, at the value of the step time [s]; both are that of
            ``run`` where interruptions are given.
        steps: Number of steps.
        mfu: Model FLOP utilization [%].
        evidence: What the step time is based on.
        rent: The price; ``None`` if none is known.
        power: The power of all chips; ``None`` if it is not published.
        spares: Servers rented in addition, as a share.
        figures_used: The catalog figures used.
        notes: Inputs that have no effect on the step.
    """

    systems: str
    chip: str
    chips: float
    layout: Layout
    step: tuple[float, float, float | None]
    production: ProductionFactor
    run: Goodput
    ends: tuple[float, float]
    steps: int
    mfu: float
    evidence: Evidence
    rent: Rent | None
    power: ChipPower | None
    spares: float
    figures_used: tuple[UsedFigure, ...] = field(default=(), repr=False)
    notes: tuple[Assumption, ...] = field(default=(), repr=False)

    @property
    def time(self) -> tuple[float, float, float | None]:
        """Time of the run with its interruptions: value, low and high end [s].

        The errors of the step time and of the interruptions are independent: the squares of their half-widths on the
        logarithmic scale add up.
        """
        value, low, high = self.step
        total = self.run.total
        few, many = (abs(math.log(end / total)) for end in self.ends)
        faster = math.exp(-math.hypot(math.log(value / low), few))
        slower = None if high is None else math.exp(math.hypot(math.log(high / value), many))
        return total, total * faster, None if slower is None else total * slower

    @property
    def chip_hours(self) -> tuple[float, float, float | None]:
        """Chip hours of the run, and the ends that follow from those of the time."""
        value, low, high = self.time
        hours = self.chips / HOUR
        return value * hours, low * hours, None if high is None else high * hours

    @property
    def hourly(self) -> float | None:
        """The price of the servers per hour, spares included [USD]; ``None`` without a price."""
        return None if self.rent is None else self.rent.hourly * (1.0 + self.spares)

    @property
    def cost(self) -> tuple[float | None, float | None, float | None]:
        """Cost of the servers of the run, and its ends [USD]; each ``None`` without a price."""
        return self._times(None if self.hourly is None else self.hourly / HOUR)

    @property
    def energy(self) -> tuple[float | None, float | None, float | None]:
        """Energy of the chips at their maximum power, and its ends [J]; each ``None`` if that is not published."""
        return self._times(None if self.power is None else self.power.watts)

    def _times(self, rate: float | None) -> tuple[float | None, float | None, float | None]:
        """The time and its ends times a rate."""
        value, low, high = (None if rate is None or time is None else time * rate for time in self.time)
        return value, low, high

    @property
    def costs(self) -> tuple[float | None, ...]:
        """Objectives of a Pareto front: time, cost and energy; without a price chip hours, with others of the chip only."""
        cost = self.cost[0]
        return self.time[0], cost, self.energy[0], self.chip_hours[0] if cost is None else None

    def measure(self, objective: Objective) -> float | None:
        """Value of an objective; ``None`` if it is not known."""
        return {"cost": self.cost, "time": self.time, "chips": (self.chips,), "energy": self.energy}[objective][0]

    def expected(self, objective: Objective) -> float | None:
        """The expected value of what an objective compares: of the distribution of the time; ``None`` if it is not known."""
        value = self.measure(objective)
        if value is None or self.distribution is None or objective == "chips":
            return value
        return value * self.distribution.mean / self.time[0]

    @property
    def distribution(self) -> Distribution | None:
        """The distribution of the time, whose median is the value; ``None`` of a bound."""
        value, low, high = self.time
        return None if high is None or not low < high else Distribution.of(low, value, high)

    def probability(self, deadline: float) -> float | None:
        """The probability of a time up to ``deadline`` [s]; ``None`` of a bound."""
        return None if self.distribution is None else self.distribution.probability(deadline)

    def likely(self, confidence: float) -> float:
        """The time that the run does not exceed with some probability [s]; of a bound its value."""
        return self.time[0] if self.distribution is None else self.distribution.quantile(confidence)


@frozen(kw_only=True)
class Goals:
    """Goals of a run, in base units.

    Attributes:
        tokens: Tokens of the run.
        deadline: Time that it may take [s]; ``None`` without a limit.
        confidence: Least probability of meeting the deadline.
        budget: Cost that it may have [USD]; ``None`` without a limit.
        mtbf: Mean time between failures of a chip, and the ends of its interval, the least first [s].
        restart: Time from a failure to the first repeated step, and the ends of its interval [s].
        repair: Time for which a failed server is away [s]; ``None`` if it is replaced at once.
        checkpoint_rate: Rate of all servers together [B/s]; ``None`` for the default.
    """

    tokens: float
    deadline: float | None
    confidence: float
    budget: float | None
    mtbf: tuple[float, float, float]
    restart: tuple[float, float, float]
    repair: float | None = None
    checkpoint_rate: float | None

    def _limits(self, plan: RunPlan) -> dict[str, tuple[float, float]]:
        """The quantity of each limit that is not exceeded with the required confidence, and the limit; infinite where it is not known."""
        time = plan.likely(self.confidence)
        cost = math.inf if (value := plan.cost[0]) is None else value * time / plan.time[0]
        both = {"deadline": (time, self.deadline), "budget": (cost, self.budget)}
        return {name: (value, limit) for name, (value, limit) in both.items() if limit is not None}

    def _missed(self, plan: RunPlan) -> dict[str, tuple[float, float]]:
        """The limits that a plan misses; that by the largest factor first."""
        missed = {name: (value, limit) for name, (value, limit) in self._limits(plan).items() if value > limit}
        return dict(sorted(missed.items(), key=lambda one: one[1][0] / one[1][1], reverse=True))

    @property
    def met_as(self) -> str:
        """Name of the answer with the probability of meeting the goals, such as ``in_time``; empty without goals."""
        limited = self.deadline is not None, self.budget is not None
        return {(True, False): "in_time", (False, True): "in_budget", (True, True): "within_limits"}.get(limited, "")

    def probability(self, plan: RunPlan) -> float | None:
        """The probability that a plan meets the goals; ``None`` of a bound, without goals, and if the cost is not known."""
        exceeded = max((value / limit for value, limit in self._limits(plan).values()), default=math.inf)
        return plan.probability(plan.likely(self.confidence) / exceeded) if exceeded < math.inf else None

    def in_time(self, plan: RunPlan) -> bool:
        """Whether a plan meets the deadline with the required confidence."""
        return "deadline" not in self._missed(plan)

    def in_budget(self, plan: RunPlan) -> bool:
        """Whether a plan meets the budget with the required confidence; a cost that is not known does not."""
        return "budget" not in self._missed(plan)

    def met(self, plan: RunPlan) -> bool:
        """Whether a plan meets the goals with the required confidence."""
        return not self._missed(plan)

    def excess(self, plan: RunPlan) -> tuple[bool, float]:
        """How far a plan is from the goals, for comparison: those whose cost is not known but has a limit are last.

        The second number is the factor by which the plan exceeds the limit that it misses most, of those that can be
        checked; 1 where it meets all.
        """
        factors = [value / limit for value, limit in self._limits(plan).values()]
        return math.inf in factors, max([1.0, *(factor for factor in factors if factor < math.inf)])

    def missed(self, plan: RunPlan) -> list[str]:
        """The limits that a plan misses, each as the end of a sentence; that by the largest factor first."""
        texts = []
        for name, (value, limit) in self._missed(plan).items():
            if name == "deadline":
                certain = plan.distribution is None or self.confidence == _MEDIAN
                with_ = "" if certain else f" with a probability of {self.confidence:.0%}"
                texts.append(f"takes {value / DAY:,.3g} d{with_}, the deadline is {limit / DAY:,.3g} d")
            elif value < math.inf:
                texts.append(f"costs {_usd(value)}, the budget is {_usd(limit)}")
            else:
                texts.append("has no known price, so that the budget cannot be checked: give price")
        return texts

    def needed(self, plan: RunPlan) -> dict[str, str]:
        """The limits that a plan would meet, as inputs, in place of those that it misses; none if its cost is not known."""
        if self.excess(plan)[0]:
            return {}
        missed = self._missed(plan)
        inputs = {"deadline": f"{_up(missed['deadline'][0] / DAY)}d"} if "deadline" in missed else {}
        if "budget" in missed:
            cost = missed["budget"][0]
            inputs["budget"] = f"{_up(cost / _MILLION)}M" if cost >= _MILLION else _up(cost)
        return inputs


def _up(value: float) -> str:
    """A number rounded up to three digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / step) * step:.6g}"


def _usd(value: float) -> str:
    return f"{value / 1e6:,.3g} M USD" if value >= _MILLION else f"{value:,.0f} USD"


_MILLION = 1e6
_MEDIAN = 0.5
