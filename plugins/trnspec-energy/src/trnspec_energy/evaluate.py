"""The evaluator energy: power x time; the power is a catalog figure with a source, or is given."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec import Answer, Assumption, Dimension, Evaluation, Part, QuantityError, RefusalError, UsageError, UsedFigure
from trnspec.evaluation.questions import Question, System, axis, like, system_and_count
from trnspec.graph.quotes import power_documents, upper_power
from trnspec.quantities.quantity import parse

if TYPE_CHECKING:
    from trnspec import Catalog, DocumentView, Interval

_HOUR = 3600.0


@frozen(kw_only=True, slots=False)
class EnergyQuestion(Question):
    """The inputs of the evaluator."""

    on: str = like(System, "on")
    hours: float | None = axis(
        "Duration of the run; or chip-hours, or step time and steps.", "HOURS", group="Workload", default=None
    )
    chip_hours: float | None = axis("Hours of all chips together.", "HOURS", group="Workload", default=None)
    step_time: float | None = axis("Time per step.", "SECONDS", group="Workload", default=None)
    steps: int | None = axis("Number of steps.", "STEPS", group="Workload", default=None)
    power: str | None = axis('Power of one chip, such as "500 W".', "W", group="Power", unset="that of the catalog")
    share: float = axis(
        "Mean power as a share of the chip power, above 0 and up to 1.",
        "SHARE",
        group="Power",
        maximum=1,
        minimum=0,
        default=1.0,
    )
    pue: float | None = axis("Power usage effectiveness (PUE): energy of the facility over that of its machines.", "RATIO", group="Power", minimum=1, default=None)  # fmt: skip


def energy(catalog: Catalog, question: EnergyQuestion) -> Evaluation:
    """Compute the energy that the chips of a system use in a run.

    The power of a chip is the maximum of its package, so the energy is an upper bound unless the share is given. Hosts,
    network and cooling are not included; the PUE adds the facility as a factor.

    Args:
        catalog: The catalog.
        question: The inputs.

    Raises:
        UsageError: The time is missing or given twice, or an input is out of range.
        RefusalError: ``unknown-figure``: the power of the chip is neither in the catalog nor given.

    Examples:
        One Trn2 server for a day, with the facility:

            trnspec eval energy --on trn2.48xlarge --hours 24 --power '500 W' --pue 1.1

    Source:
        Energy = power x time. PUE: ISO/IEC 30134-2.
    """
    q = question
    on, hours, chip_hours, step_time, steps = q.on, q.hours, q.chip_hours, q.step_time, q.steps
    power, share, pue = q.power, q.share, q.pue
    chip, chips = _system(catalog, on)
    seconds, assumed_time = _time(chips, hours, chip_hours, step_time, steps)
    if not share:
        raise UsageError("share: a number above 0 and up to 1 is expected, not 0")
    value, interval, figures_used, assumed = _power(chip, power)
    watts = chips * share
    work = watts * seconds
    note = "interval: rounding of the power"
    answers = [
        _answer("energy", value * work, interval, work, "J", f"chips only; {note}"),
        _answer("mean_power", value * watts, interval, watts, "W", "chips only"),
        Answer("chip_hours", chips * seconds / _HOUR, "h"),
    ]
    parts: list[Part] = []
    assumptions = [assumed_time, assumed, Assumption("share", f"{share:g} of the chip power", _share(share))]
    if pue is None:
        assumptions.append(Assumption("facility", "not counted", "hosts, network and cooling; the input pue adds them"))
    else:
        answers.append(_answer("facility_energy", value * work * pue, interval, work * pue, "J", "chips and facility"))
        parts = [
            Part("facility_energy", "chips", value * work),
            Part("facility_energy", "facility", value * work * (pue - 1), "(PUE - 1) x chips"),
        ]
        assumptions.append(Assumption("pue", f"{pue:g}", "the caller; hosts are part of the facility"))
    return Evaluation(
        evaluator="energy",
        title=f"{chips:,} x {chip.name} for {seconds / _HOUR:,.6g} h",
        inputs=q.values(),
        answers=tuple(answers),
        parts=tuple(parts),
        assumptions=tuple(a for a in assumptions if a is not None),
        figures_used=figures_used,
    )


def _system(catalog: Catalog, on: str) -> tuple[DocumentView, int]:
    """The chip of a system, and the number of chips."""
    name, count = system_and_count(on)
    system: DocumentView = catalog[name]
    chips = system.chip_count
    if not isinstance(chips, int):
        raise UsageError(f"on: {system.name} has {chips} chips, which is a bound; give a server and a count")
    return system.chip_view, chips * count


def _time(
    chips: int, hours: float | None, chip_hours: float | None, step_time: float | None, steps: int | None
) -> tuple[float, Assumption | None]:
    """The seconds of the run, and the assumption made."""
    given = [n for n, v in (("hours", hours), ("chip_hours", chip_hours), ("step_time", step_time)) if v is not None]
    if len(given) != 1:
        names = f", not {' and '.join(given)}" if given else ""
        raise UsageError(f"give one of hours, chip_hours, or step_time and steps{names}")
    if (step_time is None) != (steps is None):
        raise UsageError("step_time and steps must be given together: their product is the time of the run")
    number = next(v for v in (hours, chip_hours, step_time) if v is not None)
    if number <= 0 or (steps is not None and steps <= 0):
        raise UsageError(f"{given[0]} and steps must be above 0, not {number:g}" + (f" and {steps}" if steps else ""))
    if hours is not None:
        return hours * _HOUR, None
    if chip_hours is not None:
        return chip_hours * _HOUR / chips, Assumption(
            "time", f"{chip_hours / chips:,.6g} h", "all chips run for the whole time"
        )
    assert step_time is not None
    assert steps is not None
    seconds = step_time * steps
    if not math.isfinite(seconds):
        raise UsageError("step_time x steps is out of range")
    return seconds, Assumption("time", f"{steps:,} steps of {step_time:g} s", "no time between steps")


def _power(chip: DocumentView, given: str | None) -> tuple[float, Interval, tuple[UsedFigure, ...], Assumption | None]:
    """The power of one chip in W, its interval, the figure used, and the assumption made."""
    if given is not None:
        try:
            quantity = parse(given, Dimension.POWER)
        except QuantityError as error:
            raise UsageError(f"power: {error}" + (f"; {error.hint}" if error.hint else "")) from error
        if quantity.value == 0:
            raise UsageError("power: more than 0 W is expected")
        return float(quantity), quantity.interval, (), Assumption("power", f"{given} per chip", "the caller")
    draw = upper_power(chip.catalog.graph, chip.node)
    if draw is None:
        views = [chip, *(chip.catalog[n.name] for n in power_documents(chip.catalog.graph, chip.node))]
        claims = [f"{c.says}, {c.verdict} ({c.source}, {c.as_of})" for v in views for c in v.claims.get("power", ())]
        raise RefusalError(
            "unknown-figure",
            f"the catalog has no power of {chip.name}" + (f"; claims: {'; '.join(claims)}" if claims else ""),
            place=f"{chip.name} spec.power",
            hint='give power, such as "500 W", or add a document of the kind Power with its source',
        )
    figure = draw.figure
    return float(figure.value), figure.interval, (figure.used,), None


def _share(share: float) -> str:
    return "the caller" if share != 1 else "default: the maximum power of the package, all the time"


def _answer(name: str, value: float, power: Interval, factor: float, unit: str, note: str) -> Answer:
    """An answer: the power times an exact factor; the interval is scaled by the same factor."""
    high = None if power.high is None else float(power.high) * factor
    return Answer(name, value, unit, float(power.low) * factor, high, note)
