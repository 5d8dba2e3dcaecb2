"""A fleet under a load: replicas that do everything, or a pool that computes prompts and a pool that decodes.

Requests are spread evenly over the replicas of a pool, which are queues of their own; the prefill pool has one queue.
Times are in s, rates in requests/s.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

from trnspec.perf.serving.load import POINTS, Loaded, Replica, loaded


@frozen(kw_only=True, eq=False)
class Fleet:
    """A number of replicas.

    Attributes:
        replica: The replica that decodes, and computes prompts unless another pool does.
        replicas: How many.
        prefill: The replica of the pool that computes prompts; its decode steps are not used.
        prefills: How many.
        transfer: Time to send the KV cache of a prompt to the pool that decodes [s].
    """

    replica: Replica
    replicas: int
    prefill: Replica | None = None
    prefills: int = 0
    transfer: float = 0.0

    @property
    def saturation(self) -> float:
        """The request rate that the fleet cannot exceed."""
        decoding = self.replicas * self.replica.saturation
        return decoding if self.prefill is None else min(decoding, self.prefills / self.prefill.each)

    def slower(self, prompts: float, steps: float) -> Fleet:
        """The fleet with longer times; see :meth:`Replica.slower`."""
        before = None if self.prefill is None else self.prefill.slower(prompts, steps)
        return evolve(self, replica=self.replica.slower(prompts, steps), prefill=before)

    def at(self, rate: float) -> FleetState | None:
        """The steady state at a request rate; ``None`` at or beyond saturation."""
        one = loaded(self.replica, rate / self.replicas)
        if one is None or (self.prefill is not None and rate * self.prefill.each >= self.prefills):
            return None
        return FleetState(fleet=self, rate=rate, one=one)


@frozen(kw_only=True, eq=False)
class FleetState:
    """A fleet at one request rate.

    Attributes:
        fleet: The fleet.
        rate: Requests per second.
        one: One of the replicas that decode.
    """

    fleet: Fleet
    rate: float
    one: Loaded = field(repr=False)

    @property
    def utilization(self) -> float:
        """The rate over that at saturation."""
        return self.rate / self.fleet.saturation

    @property
    def running(self) -> float:
        """Mean number of running requests of a replica."""
        return self.one.running

    def ttft(self, percentile: float) -> float:
        """A percentile of the time to first token [s], with the transfer of the KV cache.

        Args:
            percentile: From 0 to 100, without its ends.
        """
        before = self.fleet.prefill
        if before is None:
            return self.one.ttft(percentile)
        # The waits for a prefill replica and for a place in a decode step are taken as independent.
        waits = np.add.outer(self._prefill_waits(before), self.one.typical_waits)
        own = before.prompt * np.array(before.lengths) + (
            before.first + before.fixed + self.fleet.transfer + float(self.one.own[0])
        )
        return float(np.quantile(np.add.outer(waits, own), percentile / 100.0))

    def _prefill_waits(self, before: Replica) -> Any:
        """Quantiles of the wait for a replica of the prefill pool [s]: M/G/k, exponential for those who wait.

        Source: Lee and Longton 1959: the mean wait of M/M/k, with the mean of 1 and the squared coefficient of variation.
        """
        load = self.rate * before.each
        servers = self.fleet.prefills
        waiting = erlang_c(servers, load)
        mean = before.prompt_squared / (2.0 * before.prompt) / (servers - load)
        left = 1.0 - POINTS
        return mean * np.log(np.maximum(waiting / left, 1.0))

    def tpot(self, percentile: float) -> float:
        """A percentile of the time per output token of a request [s].

        Args:
            percentile: From 0 to 100, without its ends.
        """
        return self.one.tpot(percentile)


def erlang_c(servers: int, load: float) -> float:
    """The probability that a request finds all of some servers busy (Erlang 1917).

    Args:
        servers: How many.
        load: Request rate times service time, below their number.
    """
    # The recursion of Erlang B does not overflow.
    blocked = 1.0
    for n in range(1, servers + 1):
        blocked = load * blocked / (n + load * blocked)
    share = load / servers
    return blocked / (1.0 - share * (1.0 - blocked))


def least(meets: Any, low: int, most: int) -> int | None:
    """The smallest number from ``low`` to ``most`` for which a condition holds; ``None`` if for none.

    Args:
        meets: A function of the number that holds for all larger ones if it holds for one.
        low: The smallest number.
        most: The largest.
    """
    above = low
    while above > most or not meets(above):
        if above >= most:
            return None
        low, above = above + 1, min(most, max(above + 1, math.ceil(1.5 * above)))
    while low < above:
        middle = (low + above) // 2
        low, above = (low, middle) if meets(middle) else (middle + 1, above)
    return above
