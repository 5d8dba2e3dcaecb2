"""Discrete-event simulation of a fleet: TTFT and TPOT of each request of a trace, or of random arrivals.

The server is that of :mod:`trnspec.perf.serving.load`. Decode steps between two events are one event, so that the time of a
simulation grows with the number of requests and not with their lengths.
"""

from __future__ import annotations

import heapq
import math
from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import field, frozen

from trnspec.perf.serving.load import Replica
from trnspec.perf.serving.pools import Fleet


@frozen(kw_only=True, eq=False)
class Requests:
    """Requests in the order of their arrival; arrays of shape (n,).

    Attributes:
        arrivals: Times of arrival [s].
        prompts: Length of each prompt over the mean length.
        outputs: Output lengths [tokens].
    """

    arrivals: Any = field(repr=False)
    prompts: Any = field(repr=False)
    outputs: Any = field(repr=False)

    def __len__(self) -> int:
        return len(self.arrivals)

    @classmethod
    def of(cls, lines: Sequence[tuple[float, float, float]], rate: float | None = None) -> tuple[Requests, float]:
        """The requests of a trace, and their rate.

        Args:
            lines: Prompt length, output length [tokens] and arrival [s] of each; arrivals at two times or more.
            rate: Requests per second to which arrivals are scaled; that of the trace if left out.
        """
        table = np.array(sorted(lines, key=lambda line: line[2]), dtype=np.float64)
        arrivals = table[:, 2] - table[0, 2]
        own = (len(table) - 1) / float(arrivals[-1])
        prompts = table[:, 0] / table[:, 0].mean()
        return cls(arrivals=arrivals * (own / (rate or own)), prompts=prompts, outputs=table[:, 1]), rate or own

    def at(self, which: Any) -> Requests:
        """Some of them."""
        return Requests(arrivals=self.arrivals[which], prompts=self.prompts[which], outputs=self.outputs[which])


@frozen(kw_only=True, eq=False)
class Replayed:
    """The times of some requests; arrays of shape (n,).

    Attributes:
        ttft: Time to first token [s].
        tpot: Time per output token after the first [s]; of requests with one output token 0.
    """

    ttft: Any = field(repr=False)
    tpot: Any = field(repr=False)

    def percentiles(self, which: float, *, warm: float = 0.0) -> tuple[float, float]:
        """A percentile of TTFT and of TPOT [s].

        Args:
            which: From 0 to 100.
            warm: Share of the first requests that do not count.
        """
        begin = int(warm * len(self.ttft))
        return float(np.percentile(self.ttft[begin:], which)), float(np.percentile(self.tpot[begin:], which))


def poisson(rate: float, requests: int, *, output: float, prompts: Any = None, seed: int = 0) -> Requests:
    """Requests that arrive as a Poisson process.

    Args:
        rate: Requests per second.
        requests: How many.
        output: Output length of each [tokens].
        prompts: Prompt lengths over their mean, which are equally likely; all the mean if left out.
        seed: Of the random numbers.
    """
    random = np.random.default_rng(seed)
    arrivals = np.cumsum(random.exponential(1.0 / rate, requests))
    lengths = np.ones(requests) if prompts is None else random.choice(np.asarray(prompts, dtype=np.float64), requests)
    return Requests(arrivals=arrivals, prompts=lengths, outputs=np.full(requests, output))


def replay(fleet: Fleet, requests: Requests, *, most: int) -> Replayed:
    """Serve requests with a fleet, whose replicas take turns.

    Args:
        fleet: The fleet.
        requests: The requests.
        most: Replicas to simulate at most, with their share of the requests.
    """
    replicas = np.arange(len(requests)) % fleet.replicas
    chosen = np.flatnonzero(replicas < most)
    if fleet.prefill is None:
        ready = requests.arrivals
        before = np.zeros(len(requests))
    else:
        ready = _finished(fleet.prefill, fleet.prefills, requests) + fleet.transfer
        before = ready - requests.arrivals + fleet.prefill.first
    ttft, tpot = np.zeros(len(requests)), np.zeros(len(requests))
    for number in range(min(most, fleet.replicas)):
        own = np.flatnonzero(replicas == number)
        own = own[np.argsort(ready[own], kind="stable")]
        one = serve_all(fleet.replica, requests.at(own), ready[own])
        ttft[own], tpot[own] = one.ttft + before[own], one.tpot
    return Replayed(ttft=ttft[chosen], tpot=tpot[chosen])


def _finished(replica: Replica, servers: int, requests: Requests) -> Any:
    """Times at which prompts are finished that several servers compute in the order of their arrival [s]."""
    if replica.packed == 1 and np.ptp(requests.prompts) == 0.0:
        # With equal times the prompt that begins is the one after that which the same server has ended.
        rows = -(-len(requests) // servers)
        arrived = np.append(requests.arrivals, np.full(rows * servers - len(requests), np.inf)).reshape(rows, servers)
        time = replica.prompt * requests.prompts[0] + replica.fixed
        before = time * np.arange(rows)[:, None]
        begun = np.maximum.accumulate(arrived - before, axis=0) + before
        return begun.ravel()[: len(requests)] + time
    free = [0.0] * servers
    arrivals, lengths = requests.arrivals.tolist(), requests.prompts.tolist()
    finished: list[float] = []
    while (number := len(finished)) < len(arrivals):
        begin = max(arrivals[number], heapq.heappop(free))
        # The prompts that wait share a pass.
        last = min(bisect_right(arrivals, begin), number + replica.packed)
        end = begin + replica.fixed + replica.prompt * sum(lengths[number:last])
        heapq.heappush(free, end)
        finished += [end] * (last - number)
    return np.array(finished)


def serve_all(replica: Replica, requests: Requests, arrivals: Any) -> Replayed:
    """Serve requests with one replica, in the order of their arrival.

    Args:
        replica: The replica; one without a prompt time decodes only.
        requests: The requests.
        arrivals: When each is there [s].
    """
    # After the last request none arrives; no step is without requests.
    times, lengths = [*arrivals.tolist(), math.inf], requests.prompts.tolist()
    steps = [0.0, *replica.steps.tolist()]
    outputs = np.maximum(np.ceil(requests.outputs) - 1.0, 0.0).astype(int).tolist()
    prompt, fixed, chunks, packed, most = replica.prompt, replica.fixed, replica.shared, replica.packed, replica.most
    first, last = [0.0] * len(lengths), [0.0] * len(lengths)
    clock, decoded, following = 0.0, 0, 0
    # Running requests by the number of decode steps at which they end; the next prompt, by what is left of it.
    running: list[tuple[int, int]] = []
    left = 1.0
    while following < len(lengths) or running:
        number, arrival = len(running), times[following]
        if arrival <= clock and number < most:
            length, end = lengths[following], following + 1
            shared = chunks * length if running else 0.0
            if packed > 1:
                # The prompts that wait share a pass as far as they have a place in it.
                end = min(bisect_right(times, clock), following + min(packed, most - number))
                length = sum(lengths[following:end])
            ended = left <= 0.0
            if not ended and shared > 0.0:
                # Steps that the prompt shares, until it ends or a running request does.
                needed = max(1, round(left * shared + 0.4999))
                count = min(needed, running[0][0] - decoded)
                clock += count * steps[number] + prompt * length * min(left, count / shared)
                left, decoded = left - count / shared, decoded + count
                ended = count == needed
            elif not ended:
                clock += prompt * length * left
                ended = True
            if ended:
                clock, left = clock + fixed, 1.0
                for one in range(following, end):
                    first[one] = last[one] = clock
                    if outputs[one]:
                        heapq.heappush(running, (decoded + outputs[one], one))
                following = end
        elif running:
            step, count = steps[number], running[0][0] - decoded
            if number < most and arrival - clock < count * step:
                # The next request is noticed at the end of the step in which it arrives.
                count = min(count, max(1, -int(-(arrival - clock) // step)))
            clock, decoded = clock + count * step, decoded + count
        else:
            clock = max(clock, arrival)
        while running and running[0][0] <= decoded:
            last[heapq.heappop(running)[1]] = clock
    begins, ends = np.array(first), np.array(last)
    return Replayed(ttft=begins + replica.first - arrivals, tpot=(ends - begins) / np.maximum(np.array(outputs), 1))
