"""All formulas of a batch or a sweep in one call: times, and the codes of layouts that are invalid.

Columns are floats, arrays that broadcast, or expressions; see :mod:`trnspec.perf.sweep.expressions`.
"""

from __future__ import annotations

from functools import reduce
from itertools import chain
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np

from trnspec.perf.ops import Number, floor, larger
from trnspec.perf.sweep.columns import (
    COUNTS,
    FLAGS,
    LEVELS,
    RATIOS,
    WORDS,
    Choices,
    as_float,
    invalid_batch,
    invalid_degrees,
    invalid_positions,
    invalid_sequence,
    invalid_stages,
    optimized,
    recomputed,
    scheduled,
    sent,
    split_of,
    turns,
)
from trnspec.perf.training.communication import links
from trnspec.perf.training.costs import costs
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.legality import either
from trnspec.perf.work.terms import terms

if TYPE_CHECKING:
    from trnspec.perf.lowering.machine import Machine
    from trnspec.perf.training.costs import Costs
    from trnspec.perf.work.terms import Terms
    from trnspec.perf.work.transformer import Transformer

LIMITS = {name: len(words) - 1 for name, words in WORDS.items()} | LEVELS | dict.fromkeys(FLAGS, 1)
"""The highest value of columns that count from 0."""
COLUMNS = (*LIMITS, "load", *(name for name in reversed(COUNTS) if name != "dp"))
"""The columns on which formulas depend; dp follows from the others, and the load of experts from the columns of ratios."""
DEFAULTS: dict[str, Any] = {
    f.name: f.default
    for f in attrs.fields(Layout)
    if f.name in {*LIMITS, *COUNTS, *RATIOS} and f.default is not attrs.NOTHING
}
"""The value of a column or an axis that is not given."""


def formulas(
    choices: Choices, model: Transformer, machine: Machine, heads: Number, experts: Number, longest: Number
) -> tuple[Choices, Costs, Number, Number]:
    """The coefficients of the times of layouts, and why some of them have none.

    Args:
        choices: The layouts; their dp follows from the ranks of the system and the other degrees.
        model: The transformer.
        machine: Compute and communication of a rank.
        heads: Query heads of the model.
        experts: Its experts, 1 for none.
        longest: The longest sequence, see :func:`trnspec.perf.work.layout.longest`.

    Returns:
        The layouts with their dp, the coefficients and the number of microbatches that
        :func:`~trnspec.perf.training.step.step_from_costs` takes, and the causes; see
        :func:`trnspec.perf.sweep.columns.reason_codes`.
    """
    choices = replicated(choices, machine.ranks)
    microbatches = choices.replicas()
    costs_ = coefficients(choices, terms(model, machine), machine, microbatches)
    causes_ = causes(choices, microbatches, model, machine, heads, experts, longest, costs_.unknown)
    return choices, costs_, microbatches, causes_


def coefficients(choices: Choices, products: Terms, machine: Machine, microbatches: Number) -> Costs:
    """The coefficients of the times of layouts, given the products of the model and the machine; see :func:`formulas`."""
    plan = choices.plan(microbatches)
    replicas = larger(1.0, floor(machine.ranks / (choices.tp * choices.pp)))
    return costs(products, plan, links(plan, machine, replicas))


def causes(  # noqa: PLR0917  # those of formulas
    choices: Choices,
    microbatches: Number,
    model: Transformer,
    machine: Machine,
    heads: Number,
    experts: Number,
    longest: Number,
    unknown: Number = 0.0,
) -> Number:
    """Why some layouts have no time; see :func:`formulas`.

    Args:
        choices: The layouts with their dp.
        microbatches: Microbatches per replica, not rounded.
        model: The transformer.
        machine: Compute and communication of a rank.
        heads: Query heads of the model.
        experts: Its experts, 1 for none.
        longest: The longest sequence.
        unknown: Above 0 where a link is used whose rate is not published.
    """
    of_layouts = (
        invalid_degrees(choices, machine.ranks, heads, experts, unknown),
        invalid_stages(choices, model.layers),
        invalid_sequence(choices),
        invalid_positions(choices, longest),
        invalid_batch(microbatches, turns(choices)),
    )
    return reduce(np.maximum, of_layouts)


FEATURES: dict[str, tuple[str, ...]] = {
    "stages": ("fill", "bubble_microbatches", "send_each", "send_token"),
    "split": ("fill", "deferred"),
    "v_shaped": ("v_shape",),
    "unequal": ("unequal", "shorter", "missing_layers", "mtp"),
    "experts": ("expert_each", "expert_token"),
    "scattered": ("scattered", "gathered"),
}
"""Coefficients that are all 0 where a layout does not have a feature; formulas omit what such a coefficient multiplies."""


def features(costs: Costs) -> Number:
    """The features of layouts as the bits of a number, in the order of :data:`FEATURES`."""
    bits: Number = np.uint8(0)
    for position, names in enumerate(FEATURES.values()):
        present = reduce(either, ((getattr(costs, name) != 0.0) for name in names))
        bits = bits + present * np.uint8(1 << position)
    return bits


def without_features(costs: Costs, bits: int) -> Costs:
    """The coefficients with 0.0 for those of the features whose bits are not set."""
    absent = (names for position, names in enumerate(FEATURES.values()) if not bits >> position & 1)
    return attrs.evolve(costs, **dict.fromkeys(chain.from_iterable(absent), 0.0))


def replicated(choices: Choices, ranks: Number) -> Choices:
    """Layouts with the dp that follows from the ranks of the system."""
    dp = larger(1.0, floor(ranks / (choices.tp * choices.pp) / choices.cp))
    return attrs.evolve(choices, dp=dp)


def columns_as_choices(columns: dict[str, Any]) -> Choices:
    """Columns as floats, and positions of names as what formulas take."""
    names = (*COUNTS, *FLAGS, *LEVELS, "load", "dispatch")
    floats = {n: as_float(columns[n]) for n in names if n != "interleave"}
    floats["expert_split"] = split_of(floats.pop("expert_tp"), floats["tp"])
    floats["sequence"] = floats.pop("sequence_parallel")
    floats["sent"] = sent(columns["dispatch_dtype"])
    floats["recompute"] = recomputed(columns["recompute"])
    schedule, interleave = columns["schedule"], columns["interleave"]
    return Choices(**floats, **scheduled(schedule, interleave), **optimized(columns["optimizer"]))
