"""A run of training on one system, and what it must achieve."""

from __future__ import annotations

import math
from statistics import NormalDist
from typing import Literal

from attrs import evolve, field, frozen

from trnspec.evaluators.planning.system_cost import ChipPower, Rent
from trnspec.evidence import Evidence, UsedFigure
from trnspec.perf.goodput import Goodput, ProductionFactor
from trnspec.perf.work.layout import Layout

HOUR, DAY = 3600.0, 86400.0

_NORMAL_90 = 1.2815515655446004
"""The 90 % quantile of the normal distribution: 80 % of it are between this and its negative."""

Objective = Literal["cost", "time", "chips", "energy"]
"""Objectives, smallest in the best plan."""


@frozen(kw_only=True)
class Plan:
    """A run on one system.

    Attributes:
        on: The system and its count.
        chip: The name of its chip.
        chips: Its chips.
        layout: The fastest layout.
        step: Time of a production step: value, low and high end [s]; the last is ``None`` of a bound.
        production: Its time over that of a benchmark step.
        run: The run with its interruptions, at the value of the step time.
        ends: The same with the fewest and shortest interruptions, and with the most and longest; both are ``run`` where
            they are given.
        steps: Number of steps.
        mfu: Model FLOP utilization [%].
        evidence: What the step time is based on.
        rent: The price; ``None`` if none is known.
        power: The power of all chips; ``None`` if it is not published.
        spares: Servers rented in addition, as a share.
        figures_used: The catalog figures used.
    """

    on: str
    chip: str
    chips: float
    layout: Layout
    step: tuple[float, float, float | None]
    production: ProductionFactor
    run: Goodput
    ends: tuple[Goodput, Goodput]
    steps: int
    mfu: float
    evidence: Evidence
    rent: Rent | None
    power: ChipPower | None
    spares: float
    figures_used: tuple[UsedFigure, ...] = field(default=(), repr=False)

    @property
    def time(self) -> tuple[float, float, float | None]:
        """Time of the run with its interruptions: value, low and high end [s].

        The errors of the step time and of the interruptions are independent: the squares of their half-widths on the
        logarithmic scale add up.
        """
        value, low, high = self.step
        total = self.run.total
        few, many = (abs(math.log(end.total / total)) for end in self.ends)
        faster = math.exp(-math.hypot(math.log(value / low), few))
        slower = None if high is None else math.exp(math.hypot(math.log(high / value), many))
        return total, total * faster, None if slower is None else total * slower

    @property
    def chip_hours(self) -> float:
        """Chip hours of the run."""
        return self.time[0] / HOUR * self.chips

    @property
    def cost(self) -> float | None:
        """Cost of the servers of the run [USD]; ``None`` without a price."""
        return self._costs(self.time[0])

    def _costs(self, seconds: float | None) -> float | None:
        if self.rent is None or seconds is None:
            return None
        return seconds / HOUR * self.rent.hourly * (1.0 + self.spares)

    @property
    def cost_ends(self) -> tuple[float | None, float | None]:
        """The ends of the cost that follow from those of the time [USD]."""
        return self._costs(self.time[1]), self._costs(self.time[2])

    @property
    def energy(self) -> float | None:
        """Energy of the chips at their maximum power [J]; ``None`` if that is not published."""
        return None if self.power is None else self.power.watts * self.time[0]

    @property
    def costs(self) -> tuple[float | None, ...]:
        """Objectives of a Pareto front: time, cost and energy; without a price chip hours, with others of the chip only."""
        return self.time[0], self.cost, self.energy, self.chip_hours if self.cost is None else None

    @property
    def energy_ends(self) -> tuple[float | None, float | None]:
        """The ends of the energy that follow from those of the time [J]."""
        if self.power is None:
            return None, None
        _, low, high = self.time
        return self.power.watts * low, None if high is None else self.power.watts * high

    def measure(self, objective: Objective) -> float | None:
        """Value of an objective; ``None`` if it is not known."""
        values = {"cost": self.cost, "time": self.time[0], "chips": self.chips, "energy": self.energy}
        return values[objective]

    def expected(self, objective: Objective) -> float | None:
        """The expected value of what an objective compares: of the distribution of the time; ``None`` if it is not known."""
        value, known = self.measure(objective), self.logarithm
        if value is None or known is None or objective == "chips":
            return value
        return value * math.exp(known.mean + 0.5 * known.variance) / self.time[0]

    @property
    def logarithm(self) -> NormalDist | None:
        """The distribution of the logarithm of the time: log-normal with this 80 % interval; ``None`` of a bound."""
        _, low, high = self.time
        if high is None or not low < high:
            return None
        # The median is the middle of the interval: it may differ from the value.
        return NormalDist(0.5 * math.log(low * high), math.log(high / low) / (2.0 * _NORMAL_90))

    def probability(self, deadline: float) -> float | None:
        """The probability of a time up to ``deadline`` [s]; ``None`` of a bound."""
        return None if self.logarithm is None else self.logarithm.cdf(math.log(deadline))

    def likely(self, confidence: float) -> float:
        """The time that the run does not exceed with some probability [s]; of a bound its value."""
        return self.time[0] if self.logarithm is None else math.exp(self.logarithm.inv_cdf(confidence))


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
        checkpoint_rate: Rate of all servers together [B/s]; ``None`` for that of their block storage.
    """

    tokens: float
    deadline: float | None
    confidence: float
    budget: float | None
    mtbf: tuple[float, float, float]
    restart: tuple[float, float, float]
    repair: float | None = None
    checkpoint_rate: float | None

    def longest(self, plan: Plan) -> float:
        """The time up to which a plan meets the deadline and the budget [s]; infinite without either, 0 without a known cost."""
        limits = [math.inf if self.deadline is None else self.deadline]
        if self.budget is not None:
            limits.append(0.0 if plan.cost is None else self.budget / plan.cost * plan.time[0])
        return min(limits)

    def probability(self, plan: Plan) -> float | None:
        """The probability that a plan meets the goals; ``None`` of a bound, and without goals."""
        longest = self.longest(plan)
        return plan.probability(longest) if 0.0 < longest < math.inf else None

    def in_time(self, plan: Plan) -> bool:
        """Whether a plan meets the deadline with the required confidence."""
        return self.deadline is None or plan.likely(self.confidence) <= self.deadline

    def in_budget(self, plan: Plan) -> bool:
        """Whether a plan meets the budget with the required confidence; a cost that is not known does not."""
        return self.budget is None or (plan.cost is not None and self._likely_cost(plan) <= self.budget)

    def met(self, plan: Plan) -> bool:
        """Whether a plan meets the goals with the required confidence."""
        return self.in_time(plan) and self.in_budget(plan)

    def excess(self, plan: Plan) -> tuple[bool, float]:
        """Distance of a plan from the goals, for comparison: plans of unknown cost under a limit of cost are last.

        The second number is the factor by which the plan exceeds the limit that it misses most, of those that can be
        checked; 1 where it meets all.
        """
        checked = evolve(self, budget=None) if self.unchecked(plan) else self
        return self.unchecked(plan), max(1.0, plan.likely(self.confidence) / checked.longest(plan))

    def unchecked(self, plan: Plan) -> bool:
        """Whether the budget cannot be checked, because the cost is not known."""
        return self.budget is not None and plan.cost is None

    def missed(self, plan: Plan) -> list[str]:
        """The limits that a plan misses, each as the end of a sentence; that by the largest factor first."""
        texts: list[tuple[float, str]] = []
        if self.deadline is not None and not self.in_time(plan):
            needed = plan.likely(self.confidence)
            with_ = "" if plan.logarithm is None else f" with a probability of {self.confidence:.0%}"
            text = f"takes {needed / DAY:,.3g} d{with_}, and the deadline is {self.deadline / DAY:,.3g} d"
            texts.append((needed / self.deadline, text))
        if self.unchecked(plan):
            texts.append((math.inf, "has no known price, so that the budget cannot be checked: give price"))
        elif self.budget is not None and not self.in_budget(plan):
            cost = self._likely_cost(plan)
            text = f"costs {_usd(cost)}, and the budget is {_usd(self.budget)}"
            texts.append((cost / self.budget, text))
        return [text for _, text in sorted(texts, reverse=True)]

    def needed(self, plan: Plan) -> dict[str, str]:
        """The limits that a plan would meet, as inputs, in place of those that it misses; none if its cost is not known."""
        if self.unchecked(plan):
            return {}
        inputs = {}
        if self.deadline is not None and not self.in_time(plan):
            inputs["deadline"] = f"{_up(plan.likely(self.confidence) / DAY)}d"
        if not self.in_budget(plan):
            cost = self._likely_cost(plan)
            inputs["budget"] = f"{_up(cost / _MILLION)}M" if cost >= _MILLION else _up(cost)
        return inputs

    def _likely_cost(self, plan: Plan) -> float:
        """The cost that the run does not exceed with the required confidence [USD]; 0 if it is not known."""
        return (plan.cost or 0.0) * plan.likely(self.confidence) / plan.time[0]


def _up(value: float) -> str:
    """A number rounded up to three digits."""
    step = 10.0 ** (math.floor(math.log10(value)) - 2)
    return f"{math.ceil(value / step) * step:.6g}"


def _usd(value: float) -> str:
    return f"{value / 1e6:,.3g} M USD" if value >= _MILLION else f"{value:,.0f} USD"


_MILLION = 1e6
