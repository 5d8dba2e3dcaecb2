"""A run of training on one system, and what it must achieve."""

from __future__ import annotations

import math
from typing import Literal

from attrs import field, frozen

from trnspec.evaluation.evidence import Evidence
from trnspec.evaluation.result import UsedFigure
from trnspec.evaluators.planning.system_cost import ChipPower, Rent
from trnspec.perf.goodput import Goodput
from trnspec.perf.work.layout import Layout

HOUR, DAY = 3600.0, 86400.0

_NORMAL_90 = 1.2815515655446004
"""The 90 % quantile of the normal distribution: 80 % of it are between this and its negative."""

Objective = Literal["cost", "time", "chips", "energy"]
"""What is smallest in the best plan."""


@frozen(kw_only=True)
class Plan:
    """A run on one system.

    Attributes:
        on: The system and its count.
        chips: Its chips.
        layout: The fastest layout.
        step: Time of a step: value, low and high end [s]; the last is ``None`` of a bound.
        run: The run with its interruptions, at the value of the step time.
        steps: Number of steps.
        mfu: Model FLOP utilization [%].
        evidence: What the step time is based on.
        rent: The price; ``None`` if none is known.
        power: The power of all chips; ``None`` if it is not published.
        spares: Servers rented in addition, as a share.
        figures_used: The catalog figures used.
    """

    on: str
    chips: float
    layout: Layout
    step: tuple[float, float, float | None]
    run: Goodput
    steps: float
    mfu: float
    evidence: Evidence
    rent: Rent | None
    power: ChipPower | None
    spares: float
    figures_used: tuple[UsedFigure, ...] = field(default=(), repr=False)

    @property
    def time(self) -> tuple[float, float, float | None]:
        """Time of the run with its interruptions: value, low and high end [s]."""
        value, low, high = self.step
        factor = self.run.total / value
        return self.run.total, low * factor, None if high is None else high * factor

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

    def measure(self, objective: Objective) -> float | None:
        """What an objective compares; ``None`` if it is not known."""
        values = {"cost": self.cost, "time": self.time[0], "chips": self.chips, "energy": self.energy}
        return values[objective]

    def probability(self, deadline: float) -> float | None:
        """The probability of a time up to ``deadline`` [s], of a log-normal one with this 80 % interval."""
        _, low, high = self.time
        if high is None or not low < high:
            return None
        sigma = math.log(high / low) / (2.0 * _NORMAL_90)
        # The median is the middle of the interval: it may differ from the value.
        middle = math.sqrt(low * high)
        return 0.5 * math.erfc(math.log(middle / deadline) / (sigma * math.sqrt(2.0)))


@frozen(kw_only=True)
class Goals:
    """What a run must achieve, in base units.

    Attributes:
        tokens: Tokens of the run.
        deadline: Time that it may take [s]; ``None`` without a limit.
        confidence: Least probability of meeting the deadline.
        budget: Cost that it may have [USD]; ``None`` without a limit.
        mtbf: Mean time between failures of a chip [s].
        restart: Time from a failure to the first repeated step [s].
        checkpoint_rate: Rate of all servers together [B/s]; ``None`` for that of their block storage.
    """

    tokens: float
    deadline: float | None
    confidence: float
    budget: float | None
    mtbf: float
    restart: float
    checkpoint_rate: float | None

    def in_time(self, plan: Plan) -> bool:
        """Whether a plan meets the deadline with the required confidence."""
        if self.deadline is None:
            return True
        chance = plan.probability(self.deadline)
        return plan.time[0] <= self.deadline if chance is None else chance >= self.confidence

    def met(self, plan: Plan) -> bool:
        """Whether a plan meets the goals; a cost that is not known does not."""
        return self.in_time(plan) and (self.budget is None or (plan.cost is not None and plan.cost <= self.budget))

    def missed(self, plan: Plan) -> str:
        """The goals that a plan misses, as a sentence."""
        texts = []
        if self.deadline is not None and not self.in_time(plan):
            texts.append(f"takes {plan.time[0] / DAY:.3g} d of {self.deadline / DAY:.3g} d")
        if self.budget is not None:
            if plan.cost is None:
                texts.append("has no known cost")
            elif plan.cost > self.budget:
                texts.append(f"costs {plan.cost:,.3g} of {self.budget:,.3g} USD")
        return f"no plan meets the goals; the nearest {' and '.join(texts)}"
