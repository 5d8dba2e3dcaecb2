"""Energy is power times time; what it takes is to know both, and to say on whose word."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from trnspec import Answer, Assumption, Dimension, Evaluation, Part, QuantityError, RefusalError, UsageError, UsedFigure
from trnspec.quantities.quantity import parse

if TYPE_CHECKING:
    from trnspec import Catalog, DocumentView, Interval

_ON = re.compile(r"(?P<name>[^*\s]+)\s*(?:\*\s*(?P<count>[1-9]\d{0,8}))?")
_HOUR = 3600.0


def energy(  # noqa: PLR0913  # each input is independent of the others
    catalog: Catalog,
    *,
    on: str,
    hours: float | None = None,
    chip_hours: float | None = None,
    step_time: float | None = None,
    steps: int | None = None,
    power: str | None = None,
    share: float = 1.0,
    pue: float | None = None,
) -> Evaluation:
    """The energy that the chips of a system take in a run.

    The power of a chip is what its package may draw at most, so the energy is a bound from above unless --share tells
    how much of it is drawn. Hosts, network and cooling are not in it; --pue adds what the building takes, as a factor.

    Args:
        catalog: Where the system and its chip are looked up.
        on: The system, and how many of it: ``trn2.48xlarge*4``.
        hours: How long the run lasts; this, or chip-hours, or step time and steps.
        chip_hours: Hours of all chips together.
        step_time: Seconds of one step.
        steps: How many steps the run has.
        power: The power of one chip, instead of that of the catalog: ``500 W``.
        share: The mean power as a share of that, above 0 and up to 1.
        pue: Power usage effectiveness: the energy of the building over that of its machines, 1 or more.

    Raises:
        UsageError: The time is not told, or told twice; or an input is out of its range.
        RefusalError: ``unknown-figure``: the catalog has no power of the chip, and none is given.

    Source:
        Energy = power x time. PUE: ISO/IEC 30134-2.
    """
    chip, chips = _system(catalog, on)
    seconds, told = _time(chips, hours, chip_hours, step_time, steps)
    if not 0 < share <= 1:
        raise UsageError(f"share: a number above 0 and up to 1 is expected, not {share:g}")
    if pue is not None and pue < 1:
        raise UsageError(f"pue: 1 or more is expected, not {pue:g}: a building takes no less than what is in it")
    value, interval, figures_used, assumed = _power(chip, power)
    watts = chips * share
    work = watts * seconds
    note = "the digits of the power" if power is None else "the digits of the power that was given"
    answers = [
        _answer("energy", value * work, interval, work, "J", f"chips alone; {note}"),
        _answer("mean_power", value * watts, interval, watts, "W", "chips alone"),
        Answer("chip_hours", chips * seconds / _HOUR, "h"),
    ]
    parts: list[Part] = []
    assumptions = [told, assumed, Assumption("share", f"{share:g} of the power", _share(share))]
    if pue is None:
        assumptions.append(Assumption("rest", "not counted", "hosts, network and cooling; --pue adds the building"))
    else:
        answers.append(_answer("facility_energy", value * work * pue, interval, work * pue, "J", "the whole building"))
        parts = [
            Part("facility_energy", "chips", value * work),
            Part("facility_energy", "the rest", value * work * (pue - 1), "(PUE - 1) times the chips"),
        ]
        assumptions.append(Assumption("pue", f"{pue:g}", "the caller; hosts count as part of the building"))
    return Evaluation(
        evaluator="energy",
        title=f"{chips:,} x {chip.name} for {seconds / _HOUR:,.6g} h",
        inputs={
            "on": on, "hours": hours, "chip_hours": chip_hours, "step_time": step_time, "steps": steps,
            "power": power, "share": share, "pue": pue,
        },
        answers=tuple(answers),
        parts=tuple(parts),
        assumptions=tuple(a for a in assumptions if a is not None),
        figures_used=figures_used,
    )  # fmt: skip


def _system(catalog: Catalog, on: str) -> tuple[DocumentView, int]:
    """The chip of a system, and how many there are."""
    found = _ON.fullmatch(on.strip())
    if found is None:
        raise UsageError(f"on: a system and how many of it is expected, such as trn2.48xlarge*4, not {on!r}")
    system: DocumentView = catalog[found["name"]]
    chips = system.chip_count
    if not isinstance(chips, int):
        raise UsageError(f"on: {system.name} has {chips} chips, which is a bound; name a server, and how many of it")
    return system.chip_view, chips * int(found["count"] or 1)


def _time(
    chips: int, hours: float | None, chip_hours: float | None, step_time: float | None, steps: int | None
) -> tuple[float, Assumption | None]:
    """The seconds of the run, and what is taken for granted for that."""
    given = [n for n, v in (("hours", hours), ("chip_hours", chip_hours), ("step_time", step_time)) if v is not None]
    if len(given) != 1:
        what = " and ".join(given) or "none of them"
        raise UsageError(f"one of hours, chip_hours, or step_time with steps is expected; {what} was given")
    if (step_time is None) != (steps is None):
        raise UsageError("step_time and steps belong together: the run lasts as long as both multiplied")
    number = next(v for v in (hours, chip_hours, step_time) if v is not None)
    if number <= 0 or (steps is not None and steps <= 0):
        raise UsageError(f"{given[0]} and steps are above 0, not {number:g}" + (f" and {steps}" if steps else ""))
    if hours is not None:
        return hours * _HOUR, None
    if chip_hours is not None:
        return chip_hours * _HOUR / chips, Assumption(
            "time", f"{chip_hours / chips:,.6g} h", "all chips run all the time"
        )
    assert step_time is not None
    assert steps is not None
    seconds = step_time * steps
    if not math.isfinite(seconds):
        raise UsageError("step_time times steps is more than a number can hold")
    return seconds, Assumption("time", f"{steps:,} steps of {step_time:g} s", "nothing between the steps")


def _power(chip: DocumentView, given: str | None) -> tuple[float, Interval, tuple[UsedFigure, ...], Assumption | None]:
    """The power of one chip in watts, what its digits leave open, and on whose word."""
    if given is not None:
        try:
            quantity = parse(given, Dimension.POWER)
        except QuantityError as error:
            raise UsageError(f"power: {error}" + (f"; {error.hint}" if error.hint else "")) from error
        if quantity.value == 0:
            raise UsageError("power: more than 0 W is expected")
        return float(quantity), quantity.interval, (), Assumption("power", f"{given} a chip", "the caller")
    figure = chip.figures.get("power")
    if figure is None:
        raise RefusalError(
            "unknown-figure",
            f"the catalog has no power of {chip.name}, so its energy is not known",
            place=f"{chip.name} spec.power",
            hint='give it, such as --power "500 W", or lay it over the catalog with --overlay',
        )
    conflicting = tuple(f"{r.says}, {r.verdict} ({r.source}, {r.as_of})" for r in figure.conflicting)
    source = figure.source_name or f"derived: {figure.derived}"
    figures_used = UsedFigure(chip.name, "power", figure.value.text, source, figure.as_of, conflicting)
    return float(figure.value), figure.interval, (figures_used,), None


def _share(share: float) -> str:
    return "the caller" if share != 1 else "a default: the most that the package may draw, all the time"


def _answer(name: str, value: float, power: Interval, factor: float, unit: str, note: str) -> Answer:
    """An answer that is the power times an exact factor; so is its interval."""
    high = None if power.high is None else float(power.high) * factor
    return Answer(name, value, unit, float(power.low) * factor, high, note)
