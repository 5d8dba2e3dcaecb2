"""The requests of a serving fleet: mean lengths, or a trace of lengths and arrivals."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from typing import Any

from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.perf.serving.replay import Requests, poisson

MOST_LINES = 100_000
"""The most requests of a file."""
SAMPLES = 16
"""Prompt lengths that represent those of a file, each for an equal share of the requests."""
_SIMULATED, _TURNOVERS = 2000, 10
"""Least random requests for each replica of a simulation, and how often they replace those that run: the first time is warm-up."""
_MOST_SIMULATED = 100_000
"""The most random requests of a simulation."""


@frozen
class Lengths:
    """Prompt and output lengths of requests, and their arrivals if a trace has them.

    Attributes:
        isl: Mean prompt length [tokens].
        osl: Mean output length [tokens].
        prompts: Prompt lengths, each that of an equal share of the requests [tokens].
        longest: The longest prompt with its output [tokens].
        rate: Requests per second.
        trace: The requests of a trace with arrivals, in their order; ``None`` for random arrivals.
    """

    isl: int
    osl: int
    prompts: tuple[int, ...]
    longest: int
    rate: float
    trace: Requests | None = field(default=None, repr=False)

    def requests(self, replicas: int, rate: float, running: float) -> Requests:
        """The requests to simulate some replicas with: those of the trace, else random ones.

        Args:
            replicas: How many replicas.
            rate: Requests per second of all of them.
            running: Mean number of running requests of each.
        """
        if self.trace is not None:
            return self.trace
        mean = sum(self.prompts) / len(self.prompts)
        shares = [prompt / mean for prompt in self.prompts]
        number = replicas * max(_SIMULATED, math.ceil(_TURNOVERS * running))
        return poisson(rate, min(number, _MOST_SIMULATED), output=float(self.osl), prompts=shares)


def equal_lengths(isl: int, osl: int, rate: float) -> Lengths:
    """Requests of one length."""
    return Lengths(isl, osl, (isl,), isl + osl, rate)


def lengths_of(file: str, rate: float | None) -> Lengths:
    """The lengths of a file, and its arrivals.

    Args:
        file: A CSV file with the columns ``isl`` and ``osl``, and ``arrival`` [s] of a trace.
        rate: Requests per second, to which arrivals are scaled; that of the trace if left out.

    Raises:
        UsageError: The file cannot be read or has a line without lengths; or neither it nor ``rate`` has a rate.
    """
    rows = list(_rows(file))
    if not rows:
        raise UsageError(f"lengths: {file} has no requests; a line isl,osl and one line for each request are expected")
    stated = [arrival is not None for *_, arrival in rows]
    if any(stated) and not all(stated):
        raise UsageError(f"lengths: {file}:{stated.index(False) + 2}: an arrival is expected, as in other lines")
    ordered = sorted(isl for isl, *_ in rows)
    isl = sum(ordered) / len(rows)
    osl = sum(osl for _, osl, _ in rows) / len(rows)
    trace, own = None, rate
    if all(stated):
        lines = [(isl, osl, arrival) for isl, osl, arrival in rows if arrival is not None]
        if len({arrival for *_, arrival in lines}) < 2:
            raise UsageError(f"lengths: {file}: arrivals of at least two times are expected")
        trace, own = Requests.of(lines, rate)
    if own is None:
        raise UsageError(f"rate: requests per second are expected, since {file} has no column arrival")
    return Lengths(
        isl=round(isl),
        osl=max(2, round(osl)),
        prompts=tuple(ordered[int((i + 0.5) / SAMPLES * len(ordered))] for i in range(SAMPLES)),
        longest=max(isl + osl for isl, osl, _ in rows),
        rate=own,
        trace=trace,
    )


def _rows(file: str) -> Iterator[tuple[int, int, float | None]]:
    """Prompt length, output length and arrival of each line."""
    try:
        with open(file, encoding="utf-8-sig", newline="") as lines:  # noqa: PTH123  # a path given by the user
            reader = csv.DictReader(lines)
            if missing := [name for name in ("isl", "osl") if name not in (reader.fieldnames or (name,))]:
                there = ", ".join(reader.fieldnames or ())
                raise UsageError(f"lengths: {file} has no column {missing[0]}; its first line names {there}")
            for number, row in enumerate(reader, 2):
                if number > MOST_LINES + 1:
                    raise UsageError(f"lengths: {file} has more than {MOST_LINES:,} lines")
                yield _row(f"lengths: {file}:{number}", row)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"lengths: {file} cannot be read: {getattr(error, 'strerror', None) or error}") from None


def _row(where: str, row: dict[str, Any]) -> tuple[int, int, float | None]:
    try:
        isl, osl = int(row["isl"]), int(row["osl"])
    except (TypeError, ValueError):
        raise UsageError(f"{where}: whole numbers isl and osl are expected") from None
    if isl < 1 or osl < 1:
        raise UsageError(f"{where}: lengths of at least 1 are expected")
    text = (row.get("arrival") or "").strip()
    if not text:
        return isl, osl, None
    try:
        arrival = float(text)
    except ValueError:
        arrival = float("nan")
    if not abs(arrival) < _LATEST:
        raise UsageError(f"{where}: an arrival in seconds is expected, not {text!r}")
    return isl, osl, arrival


_LATEST = 1e12
