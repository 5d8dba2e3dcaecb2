"""The measures of a search: what constraints compare, and what objectives and Pareto fronts make small or large."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.perf.sweep.reductions import Goal
from trnspec.quantities.units import Dimension

if TYPE_CHECKING:
    from trnspec.evaluators.searching.question import Mode


@frozen
class Kind:
    """The kind of a measure.

    Attributes:
        unit: The base unit; empty for a count.
        sign: 1.0 where less is better, -1.0 where more is; 0.0 where it is not a goal.
        dimension: What constraints compare it with: a quantity, or a number for ``None``.
        text: Whether it is a text.
        flag: Whether it is true or false.
    """

    unit: str = ""
    sign: float = 0.0
    dimension: Dimension | None = None
    text: bool = False
    flag: bool = False


_COUNT, _TEXT = Kind(), Kind(text=True)
_TIME = Kind("s", 1.0, Dimension.TIME)
_BOTH = {
    "memory": Kind("B", 1.0, Dimension.INFORMATION),
    "capacity": Kind("B", 0.0, Dimension.INFORMATION),
    "fits": Kind(flag=True),
    "tokens_per_s": Kind("tokens/s", -1.0),
    "tokens_per_s_per_chip": Kind("tokens/s", -1.0),
    "usd": Kind("USD", 1.0),
    "energy": Kind("J", 1.0, Dimension.ENERGY),
    "chips": Kind("", 1.0),
    "system": _TEXT,
    "dtype": _TEXT,
    "tp": _COUNT,
    "pp": _COUNT,
    "dp": _COUNT,
    "ep": _COUNT,
}
MEASURES: dict[Mode, dict[str, Kind]] = {
    "training": {
        "step_time": _TIME,
        "mfu": Kind("%", -1.0, Dimension.RATIO),
        **_BOTH,
        "cp": _COUNT,
        "expert_tp": _COUNT,
        "microbatch": _COUNT,
        "zero": _COUNT,
        "interleave": _COUNT,
        "schedule": _TEXT,
        "recompute": _TEXT,
        "offload": _TEXT,
        "overlap": Kind(flag=True),
        "sequence_parallel": Kind(flag=True),
    },
    "inference": {
        "ttft": _TIME,
        "tpot": _TIME,
        "latency": _TIME,
        **_BOTH,
        "batch": _COUNT,
        "chunk": _COUNT,
        "weight_dtype": _TEXT,
        "kv_dtype": _TEXT,
    },
}
"""The measures of each mode, by name."""

SHORT = {
    "cost": "usd",
    "throughput": "tokens_per_s_per_chip",
    "memory.total": "memory",
    "memory.fits": "fits",
    "time_to_first_token": "ttft",
    "time_per_output_token": "tpot",
}
"""Other names of measures."""


def resolved(name: str, mode: Mode) -> str:
    """The measure of a name; ``time`` is that of a step, or per output token.

    Raises:
        UsageError: There is none.
    """
    name = name.strip()
    meant = {"time": "step_time" if mode == "training" else "tpot", **SHORT}.get(name, name)
    known = MEASURES[mode]
    if meant not in known:
        hint = did_you_mean(name, [*known, *SHORT]) or f"known: {', '.join(known)}"
        raise UsageError(f"{name!r} is not a measure of a search for {mode}; {hint}")
    return meant


def goal(name: str, mode: Mode, place: str) -> Goal:
    """The goal of a measure.

    Args:
        name: Its name.
        mode: Training or inference.
        place: The input, for messages.

    Raises:
        UsageError: It is not a measure, or not one that is to be small or large.
    """
    try:
        meant = resolved(name, mode)
    except UsageError as error:
        raise UsageError(f"{place}: {error}") from None
    sign = MEASURES[mode][meant].sign
    if not sign:
        goals = ", ".join(n for n, kind in MEASURES[mode].items() if kind.sign)
        raise UsageError(f"{place}: {name} is not a goal; expected one of {goals}")
    return Goal(meant, sign)
