"""A replica under a load of requests that arrive at random: percentiles of TTFT and TPOT against the request rate.

Requests arrive as a Poisson process. A server computes the prompts that have arrived one after another. Without chunked
prefill a prompt stops decoding; with it the chunks of a prompt share decode steps, and prolong them.

- Prompts see an M/G/1 queue with vacations, which are the decode steps (Fuhrmann and Cooper 1985): the wait is that of the
  queue without vacations, and independently of it the rest of a decode step. With chunks a prompt occupies the server for
  its decode steps too.
- Decoding is a processor-sharing queue whose rate depends on the number of running requests. Without chunks the requests
  whose prompts are of one busy period begin to decode together; output lengths are taken as geometric.

The page docs/explanation/performance/load.md compares the percentiles with a simulation.

Times are in s, rates in requests/s.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from statistics import NormalDist
from typing import Any

import numpy as np
from attrs import evolve, field, frozen

MOST_UTILIZED = 0.8
"""The share of the rate at saturation up to which percentiles are used: beyond, they are off by more than 30 %."""
MOST_QUEUED = 4
"""Running and queued requests that are counted, as a multiple of those that can run."""

POINTS = (np.arange(64) + 0.5) / 64.0
"""The probabilities by which two times are added."""

_STEPS = 60
_HALVINGS = 40
_ENDLESS = 1e9
_LARGE = 1e200
_NEGLIGIBLE = 1e-12


@frozen(kw_only=True, eq=False)
class Replica:
    """The times of one replica.

    Attributes:
        prompt: Time by which a mean prompt keeps the server busy [s].
        fixed: Time of a pass with prompts, however many it has [s].
        prompt_squared: Mean square of that time [s^2].
        first: Time from the end of the queue to the first token, beyond ``prompt`` [s].
        steps: Time of a decode step with 1, 2, ... running requests [s]; shape (most,).
        output: Mean output length [tokens].
        shared: Decode steps that a mean prompt shares, one for each of its chunks; 0 where a prompt stops decoding.
        packed: Prompts that can share a pass.
        lengths: Times of some prompts over ``prompt``, which are equally likely.
    """

    prompt: float
    prompt_squared: float
    first: float
    steps: Any = field(repr=False)
    output: float
    shared: float = 0.0
    packed: int = 1
    fixed: float = 0.0
    lengths: tuple[float, ...] = (1.0,)

    @classmethod
    def of(  # the numbers of a replica
        cls,
        prompts: Sequence[float],
        steps: Mapping[int, float],
        *,
        first: float,
        output: float,
        shared: float = 0.0,
        packed: int = 1,
        fixed: float = 0.0,
    ) -> Replica:
        """A replica from some of its times.

        Args:
            prompts: Time of each of some prompts, which are equally likely [s].
            steps: Time of a decode step by the number of running requests, up to the most [s]; linear in between.
            first: As of the class.
            output: As of the class.
            shared: As of the class.
            packed: As of the class.
            fixed: As of the class.
        """
        numbers = sorted(steps)
        mean = math.fsum(prompts) / len(prompts)
        return cls(
            prompt=mean,
            prompt_squared=math.fsum(p * p for p in prompts) / len(prompts),
            first=first,
            steps=np.interp(np.arange(1.0, numbers[-1] + 1.0), numbers, [steps[n] for n in numbers]),
            output=output,
            shared=shared,
            packed=packed,
            fixed=fixed,
            lengths=tuple(prompt / mean for prompt in prompts) if mean and len({*prompts}) > 1 else (1.0,),
        )

    @property
    def most(self) -> int:
        """Requests that can run at the same time."""
        return len(self.steps)

    @property
    def each(self) -> float:
        """Time by which a mean prompt of a full pass keeps the server busy [s]."""
        return self.prompt + self.fixed / self.packed

    @property
    def saturation(self) -> float:
        """The request rate that the replica cannot exceed."""
        decoded = max(self.output - 1.0, 0.0)
        # A request takes prompt + decoded steps / number running of the time; some prompts at a time share steps.
        alone = self.each + decoded * self.steps / np.arange(1.0, self.most + 1.0)
        return 1.0 / float(np.min(np.maximum(alone, self.each + self.shared / self.packed * self.steps)))

    def slower(self, prompts: float, steps: float) -> Replica:
        """The replica with longer times.

        Where prompts and decoding share steps, measured times per output token have both, so that their factor is that of
        the time by which prompts keep the server busy; that of prompts is of the time to first token.

        Args:
            prompts: Factor of the times of prompts.
            steps: Factor of the times of decode steps.
        """
        busy = steps if self.shared else prompts
        latency = prompts * (self.first + self.prompt + self.fixed) - busy * (self.prompt + self.fixed)
        return evolve(
            self,
            prompt=self.prompt * busy,
            prompt_squared=self.prompt_squared * busy**2,
            fixed=self.fixed * busy,
            first=max(latency, 0.0),
            steps=self.steps * steps,
        )


@frozen(kw_only=True, eq=False)
class Loaded:
    """A replica at one request rate.

    Attributes:
        replica: The replica.
        rate: Requests per second.
        busy: Share of the time in which prompts are computed.
        running: Mean number of running requests.
        deviation: Its standard deviation.
        numbers: Probability of 0, 1, 2, ... requests after their prompt, queued ones included.
    """

    replica: Replica
    rate: float
    busy: float
    running: float
    deviation: float
    numbers: Any = field(repr=False)

    @property
    def _shared_time(self) -> float:
        """Time of the decode steps that a mean prompt shares [s].

        Prompts and running requests are many at the same times, so the step is one with more than the mean number of them.
        """
        step = self._step(self.running + self.deviation)
        return self.replica.shared * step * float(1.0 - self.numbers[0])

    @property
    def queued(self) -> float:
        """Share of the time in which there are prompts."""
        return self.busy + self.rate * self._shared_time / self.replica.packed

    def ttft(self, percentile: float) -> float:
        """A percentile of the time to first token [s].

        Args:
            percentile: From 0 to 100, without its ends.
        """
        if len(self.replica.lengths) == 1:
            return float(self.own[0] + self.waits(np.array([percentile / 100.0]))[0])
        return float(np.quantile(np.add.outer(self.typical_waits, self.own), percentile / 100.0))

    @cached_property
    def typical_waits(self) -> Any:
        """The waits at :data:`POINTS` [s]."""
        return self.waits(POINTS)

    @property
    def own(self) -> Any:
        """Time to first token without a wait, by the lengths of prompts [s]."""
        replica = self.replica
        return (replica.prompt + self._shared_time) * np.array(replica.lengths) + replica.first + replica.fixed

    def waits(self, shares: Any) -> Any:
        """Quantiles of the time from the arrival of a request to the begin of its prompt [s].

        Args:
            shares: The probabilities of a shorter wait; shape (n,).
        """
        replica, queued = self.replica, self.queued
        step = self._step(self.running) if self.running > 0.0 else 0.0
        # The mean wait of those that find prompts; a prompt and the steps that it shares are proportional to its length.
        longer = (1.0 + self._shared_time / replica.packed / replica.prompt) ** 2 if replica.prompt else 0.0
        queue = self.rate * longer * replica.prompt_squared / (2.0 * (1.0 - queued)) / queued if queued else 0.0
        # The rest of a decode step is uniform; only arrivals outside of prompts meet one.
        rests = ((np.arange(_STEPS) + 0.5) / _STEPS * step)[:, None]
        decoding = (1.0 - queued) * float(1.0 - self.numbers[0])
        # A request that finds all places taken waits for one, as in a queue with as many servers.
        full = float(self.numbers[replica.most :].sum())
        freed = replica.most * (1.0 - self.busy) / (max(replica.output - 1.0, 1e-9) * float(replica.steps[-1]))

        def exceeded(wait: Any) -> Any:
            """Probability of a longer wait."""
            tail = queued * np.exp(-np.maximum(wait - rests, 0.0) / queue) if queue else 0.0 * (rests + wait)
            met = np.where(wait < rests, 1.0, tail).mean(axis=0)
            alone = queued * np.exp(-wait / queue) if queue else 0.0 * wait
            place = full * np.exp(-max(freed - self.rate, 0.0) * wait)
            return place + (1.0 - full) * (decoding * met + (1.0 - decoding) * alone)

        left = 1.0 - shares
        low, high = np.zeros(len(left)), np.full(len(left), step + queue + 1e-9)
        # Where almost all find all places taken, the wait has no end.
        while (above := exceeded(high) > left).any() and float(high.max()) < _ENDLESS:
            low, high = np.where(above, high, low), np.where(above, 2.0 * high, high)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            above = exceeded(middle) > left
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return high

    def tpot(self, percentile: float) -> float:
        """A percentile of the time per output token of a request [s].

        Mean and variance are those of the number of running requests and of the prompts that interrupt the request; the
        distribution with these moments is taken as a gamma distribution.

        Args:
            percentile: From 0 to 100, without its ends.
        """
        decoded = max(self.replica.output - 1.0, 1.0)
        step = self._step(self.running + 1.0)
        varying = self._step(self.running + 1.0 + self.deviation) - step
        # By Little's law; alone a request has the time of a step without others.
        typical = max(self.running / (self.rate * decoded), float(self.replica.steps[0]))
        behind, deviation = self._behind()
        typical += behind / decoded
        # Prompts arrive during decoding and during each other: a busy period that decoding begins.
        interrupted = self.rate * self.replica.prompt_squared * step / decoded / (1.0 - self.busy) ** 3
        spread = math.hypot(varying / (1.0 - self.busy), math.sqrt(interrupted), deviation / decoded)
        return float(_gamma_quantiles(typical, spread, np.array([percentile / 100.0]))[0])

    def _behind(self) -> tuple[float, float]:
        """Mean and standard deviation of the time from the end of a prompt to the end of its busy period [s].

        A prompt leaves behind those that arrived meanwhile (Pollaczek-Khinchine), each of which begins a busy period.
        """
        free, prompt = 1.0 - self.busy, self.replica.prompt
        number = self.busy + self.rate**2 * self.replica.prompt_squared / (2.0 * free)
        each = prompt / free
        variance = self.replica.prompt_squared / free**3 - each**2
        return number * each, math.sqrt(number * variance + number * (1.0 + number) * each**2)

    def _step(self, running: float) -> float:
        """The time of a decode step, between whole numbers of requests by interpolation."""
        return float(np.interp(max(running, 1.0), np.arange(1.0, self.replica.most + 1.0), self.replica.steps))


def _gamma_quantiles(mean: float, deviation: float, shares: Any) -> Any:
    """Quantiles of a gamma distribution, by the approximation of Wilson and Hilferty 1931.

    Args:
        mean: Its mean.
        deviation: Its standard deviation.
        shares: The probabilities of a smaller value; shape (n,).
    """
    ninth = (deviation / mean) ** 2 / 9.0
    normal = np.array([NormalDist().inv_cdf(float(share)) for share in shares])
    return mean * np.maximum(1.0 - ninth + normal * math.sqrt(ninth), 0.0) ** 3


@lru_cache(256)
def loaded(replica: Replica, rate: float) -> Loaded | None:
    """A replica in the steady state at a request rate; ``None`` at or beyond saturation.

    The same object for the same replica: with several sizes of a prefill pool the pool that decodes is computed once.
    """
    if rate >= replica.saturation:
        return None
    busy = rate * replica.prompt
    numbers = _numbers(replica, rate, busy)
    running = np.minimum(np.arange(len(numbers)), replica.most)
    mean = float((numbers * running).sum())
    deviation = math.sqrt(max(float((numbers * running**2).sum()) - mean**2, 0.0))
    state = Loaded(replica=replica, rate=rate, busy=busy, running=mean, deviation=deviation, numbers=numbers)
    return state if state.queued < 1.0 else None


def _numbers(replica: Replica, rate: float, busy: float) -> Any:
    """Probability of 0, 1, 2, ... requests that decode or wait for a place.

    While prompts are computed nothing is decoded. In the time of decoding, requests arrive in batches: those whose prompts
    are of one busy period, whose number has a Borel distribution; alone where prompts share decode steps. As many requests
    leave a number as enter it from below.
    """
    most, decoded = replica.most, replica.output - 1.0
    if decoded <= 0.0:
        return np.array([1.0])
    size = MOST_QUEUED * most + 1
    if not busy:
        places = np.minimum(np.arange(1, size), most)
        ratios = rate / (1.0 - busy) * decoded * replica.steps[places - 1] / places
        logs = np.concatenate([[0.0], np.cumsum(np.log(ratios))])
        shares = np.exp(logs - logs.max())
        return shares / shares.sum()
    larger = 1.0 - np.cumsum(_borel(busy, size))
    larger = larger[: int(np.count_nonzero(larger > _NEGLIGIBLE)) or 1]
    places = np.minimum(np.arange(1, size), most)
    leaving = (places / (decoded * replica.steps[places - 1])).tolist()
    backwards, width = rate * larger[::-1], len(larger)
    shares = np.zeros(size + width)
    # The numbers begin after as many zeros as there are batch sizes.
    shares[width] = largest = 1.0
    for number in range(size - 1):
        share = float(backwards @ shares[number + 1 : number + 1 + width]) / leaving[number]
        shares[width + number + 1] = share
        if share < _NEGLIGIBLE * largest:
            break
        largest = max(largest, share)
        if largest > _LARGE:
            shares, largest = shares / _LARGE, largest / _LARGE
    return shares[width:] / shares[width:].sum()


def _borel(busy: float, size: int) -> Any:
    """Probability of 0, 1, 2, ... prompts in a busy period; Borel 1942."""
    counts = np.arange(1.0, float(size))
    factorials = np.cumsum(np.log(counts))
    logs = -busy * counts + (counts - 1.0) * np.log(np.maximum(busy * counts, 1e-300)) - factorials
    return np.concatenate([[0.0], np.exp(logs)])
