"""Deployments of a model on one system: every combination of some values, evaluated together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, TypeVar

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation.inputs import bound, fields_of
from trnspec.evaluators.deployment import (
    InferenceQuestion,
    Setup,
    calibration_of,
    check,
    default_degrees,
    memory,
    prepare,
)
from trnspec.evaluators.inference import case_of
from trnspec.evidence import rank_class
from trnspec.graph.graph import Graph
from trnspec.model.transformers.counting import dimensions
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.lowering.calibrated import Calibrated, serving_of
from trnspec.perf.lowering.lower import lower, model_named
from trnspec.perf.lowering.machine import LoweredSystem
from trnspec.perf.ops import Number, floor, larger, where
from trnspec.perf.roofline import ELEMENT_BYTES
from trnspec.perf.serving.memory import invalid_layouts
from trnspec.perf.serving.static_graphs import powers_of_two
from trnspec.perf.sweep.blocks import AxisValues, axes_of, blocks, combination
from trnspec.perf.sweep.grid import SweepResult
from trnspec.perf.sweep.pieces import HOUR
from trnspec.perf.sweep.reductions import BOUND, EXCESS, UNFIT, Block, Candidates, Reduction, reduced
from trnspec.perf.training.step import UNUSED

R = TypeVar("R")

_PER_TOKEN = ("usd", "energy")
"""Measures of a million output tokens."""
AXES = ("prompt", "output", "weight_dtype", "kv_dtype", "chunk", "tp", "pp", "ep", "dp", "batch")
"""The axes in the order in which deployments are numbered, the last one fastest."""


_VALID = np.uint8(0)
"""The code of a deployment without a reason."""


@frozen(kw_only=True)
class DeploymentGrid:
    """Every combination of some values, for a model on one system with one compute dtype, and its formulas.

    Attributes:
        degrees: The axes whose combinations are rows.
        graph: The documents from which deployments are computed.
        base: The inputs that all have.
        axes: The values of the axes, each with at least one; ``None`` for the default of an input.
        system: The system.
        dims: The model.
        known: The calibration.
        elsewhere: The calibration of the system that prefills, if it is another.
        hourly: Price of the system per hour [USD]; ``None`` if unknown.
        watts: Power of its chips [W]; ``None`` if unknown.
        offset: The number of the first deployment, in a search of several grids.
        measures: The measures that a search computes.
        reasons: The reason of each code; of 0 an empty text.
    """

    degrees: ClassVar = ("tp", "pp", "ep", "dp")

    graph: Graph = field(repr=False, eq=False)
    base: InferenceQuestion
    axes: dict[str, tuple[Any, ...]]
    system: LoweredSystem = field(repr=False)
    dims: Dimensions = field(repr=False)
    known: Calibrated
    elsewhere: Calibrated | None
    hourly: float | None = None
    watts: float | None = None
    offset: int = 0
    measures: tuple[str, ...] = field(default=(), eq=False)
    reasons: list[str] = field(factory=lambda: [""], init=False, repr=False, eq=False)

    @property
    def size(self) -> int:
        """Number of deployments."""
        return math.prod(map(len, self.axes.values()))

    def inputs(self, number: int) -> dict[str, Any]:
        """The inputs of the evaluator inference that a deployment has of its own."""
        return combination(self.axes, number - self.offset)

    def question(self, number: int) -> InferenceQuestion:
        """The question of the evaluator inference about a deployment."""
        return evolve(self.base, **self.inputs(number))

    def values(self, axis: str, numbers: Any) -> Any:
        """The values of an axis of data types, by the numbers of deployments."""
        after = AXES[AXES.index(axis) + 1 :]
        positions = numbers // math.prod(len(self.axes[name]) for name in after) % len(self.axes[axis])
        return np.array([value or self.base.dtype for value in self.axes[axis]])[positions]

    @property
    def setup(self) -> Setup | None:
        """One of the deployments; ``None`` if none is valid."""
        return self._prepared[0]

    @cached_property
    def columns(self) -> tuple[AxisValues, ...]:
        """The axes as columns of numbers."""
        return axes_of({name: self._columns(name) for name in AXES})

    def code(self, reason: str) -> int:
        """The code of a reason."""
        if reason not in self.reasons:
            self.reasons.append(reason)
        return self.reasons.index(reason)

    def _numbers(self, columns: Mapping[str, Number]) -> dict[str, Number]:
        """The columns, with the data-parallel degree that follows from the others where none is given."""
        rest = larger(1.0, floor(float(self.system.ranks) / (columns["tp"] * columns["pp"])))
        return {**columns, "dp": where(columns["dp"] > 0.0, columns["dp"], rest)}

    def invalid_degrees(self, columns: Mapping[str, Number]) -> Number:
        """Codes of deployments whose degrees are invalid."""
        numbers = self._numbers(columns)
        degrees = (numbers[name] for name in ("tp", "pp", "dp", "ep"))
        reasons = invalid_layouts(self.dims, float(self.system.ranks), *degrees)
        found = self._codes((reason, condition) for reason, _, condition in reasons)
        return where(found == 0, numbers["before_refused"], found)

    @property
    def conditions(self) -> Sequence[Callable[[Mapping[str, Number]], Number]]:
        """Codes of deployments that are invalid whatever their memory is."""
        return (lambda columns: self._codes(self._invalid(columns)),)

    def _codes(self, cases: Iterable[tuple[str, Number]], found: Number = _VALID) -> Number:
        """Codes of the first reasons that apply, where there is none yet."""
        for reason, condition in cases:
            found = np.where((found == 0) & condition, np.uint8(self.code(reason)), found)
        return found

    def _invalid(self, columns: Mapping[str, Number]) -> Iterator[tuple[str, Number]]:
        """Reasons for which deployments are invalid: unknown types, and lengths that no bucket holds or without a position."""
        for name in ("weight_bytes", "cache_bytes"):
            yield "unknown-type", columns[name] == 0.0
        setup, reason = self._prepared
        if setup is None:
            yield reason, True
            return
        total = columns["prompt"] + columns["output"]
        if buckets := setup.question.context_buckets:
            yield "no-bucket", total > float(buckets[-1])
        for dims in filter(None, (setup.dims, setup.draft)):
            yield "context", (dims.positions > 0.0) & (total > dims.context)
        if batches := setup.software.batches:
            yield "no-bucket", columns["batch"] > float(batches[-1])

    def evaluate(
        self, columns: Mapping[str, Number], code: NDArray[np.uint8], names: Sequence[str]
    ) -> tuple[Number, dict[str, Number]]:
        """Codes and measures; ``excess`` is also that of deployments that do not fit.

        Measures are ``ttft``, ``tpot``, ``latency``, ``tokens_per_s``, ``tokens_per_s_per_chip``, ``chips``, ``memory``,
        ``capacity``, ``excess`` (of memory over capacity), the degrees, and lengths.
        """
        del names
        assert self.setup is not None
        numbers = self._numbers(columns)
        one = self.setup.of(numbers)
        cases: list[tuple[str, Number]] = []
        needs, excess = memory(one, one.pool).total, 0.0
        for pool in filter(None, (one.pool, one.before)):
            held = needs if pool is one.pool else memory(one, pool).total
            cases.append((UNFIT, held > pool.capacity))
            excess = larger(excess, held / pool.capacity)
        case = case_of(one, serving_of(one.pool.known))
        values, unknown = case.values, sum((each for each, _ in case.unknown), 0.0)
        cases.append(("unknown-figure", unknown > UNUSED))
        measures: dict[str, Number] = {
            **{name: numbers[name] for name in (*self.degrees, "batch", "prompt", "output")},
            "chunk": where(numbers["chunk"] > 0.0, numbers["chunk"], numbers["prompt"]),
            "ttft": values["time_to_first_token"],
            "tpot": values["time_per_output_token"],
            "latency": values["latency"],
            "tokens_per_s": values["throughput"],
            "tokens_per_s_per_chip": values["throughput_per_chip"],
            "memory": needs,
            "capacity": one.pool.capacity,
            "chips": one.pool.chips if one.before is None else one.pool.chips + one.before.chips,
            "excess": excess,
        }
        return self._codes(cases, code), measures

    def search(self, first: int, last: int, take: Callable[[Candidates], None]) -> None:
        """Evaluate the deployments with some numbers, from ``first`` to before ``last``."""
        setup = self.setup
        pools = () if setup is None else (setup.pool, *(() if setup.before is None else (setup.before,)))
        constants = {
            BOUND: float(max((rank_class(p.known.evidence.kind) for p in pools), default=0)),
            "fits": True, "system": self.base.on, "dtype": self.base.dtype,
        }  # fmt: skip
        names = {"tokens_per_s" if name in _PER_TOKEN else name for name in self.measures}
        computed = sorted((names | {EXCESS}) - {*constants, "weight_dtype", "kv_dtype"})
        for start, code, columns in blocks(self, self.columns, first - self.offset, last - self.offset, computed):

            def measure(name: str, places: Any, start: int = start, columns: Mapping[str, Any] = columns) -> Any:
                if name in _PER_TOKEN:
                    return self.per_tokens(name, columns["tokens_per_s"][places])
                if name in constants:
                    return constants[name]
                return columns[name][places] if name in columns else self.values(name, start + places)

            take(Candidates(self.offset + start, self.reasons, code, measure))

    def per_tokens(self, name: str, rate: Any) -> Any:
        """``usd`` or ``energy`` [J] of a million tokens at some tokens per second; ``None`` if it is unknown."""
        each_second = self.watts if name == "energy" else None if self.hourly is None else self.hourly / HOUR
        # A plan with two systems has no one price and power.
        return None if each_second is None or self.base.prefill_on is not None else each_second * (1e6 / rate)

    @cached_property
    def _prepared(self) -> tuple[Setup | None, str]:
        """A deployment whose layout is valid, or the reason why none is."""
        least: dict[str, Any] = {"tp": 1, "pp": 1, "ep": 1, "dp": 1} | {
            name: min(v for v in self.axes[name] if v is not None) for name in ("prompt", "output", "batch")
        }
        sizes: dict[str, Any] = {
            name: next((v for v in self.axes[name] if v is None or v in ELEMENT_BYTES), None)
            for name in ("weight_dtype", "kv_dtype")
        }
        question = evolve(self.base, **least, **sizes, chunk=self.axes["chunk"][0])
        try:
            setup = prepare(self.graph, question, self.known, self.elsewhere)
        except RefusalError as refusal:
            return None, refusal.reason
        if "context_buckets" in setup.software.settings:
            # A longer request has more buckets, of which a shorter one uses none.
            total = max(self.axes["prompt"]) + max(self.axes["output"])
            buckets = powers_of_two(int(setup.software.settings["context_buckets"].value), total)
            setup = evolve(setup, question=evolve(setup.question, context_buckets=buckets))
        return setup, ""

    def _columns(self, name: str) -> dict[str, list[float]]:
        """The columns of an axis."""
        values, dtype = self.axes[name], self.base.dtype
        if name == "weight_dtype":
            return {"weight_bytes": [ELEMENT_BYTES.get(value or dtype, 0.0) for value in values]}
        if name == "kv_dtype":
            return {"cache_bytes": [ELEMENT_BYTES.get(value or dtype, 0.0) for value in values]}
        columns = {name: [float(value or 0) for value in values]}
        return columns | self._before(values) if name == "pp" else columns

    def _before(self, stages: tuple[int, ...]) -> dict[str, list[float]]:
        """The degrees of the pool that prefills, by pipeline stages, and codes of reasons."""
        columns: dict[str, list[float]] = {"before_tp": [], "before_dp": [], "before_refused": []}
        setup = self.setup
        for pp in stages:
            tp, dp, code = 1, 1, 0
            if setup is not None and setup.before is not None:
                other = setup.before.system
                try:
                    tp, dp = default_degrees(self.dims, other, pp)
                    check(evolve(setup.question, tp=tp, pp=pp, dp=dp, ep=1), self.dims, int(other.ranks), "prefill_on")
                except RefusalError as refusal:
                    code = self.code(refusal.reason)
            for column, value in zip(columns.values(), (tp, dp, code), strict=True):
                column.append(float(value))
        return columns


def grids(catalog: Catalog, **inputs: Any) -> tuple[DeploymentGrid, ...]:
    """Every combination of some inputs of the evaluator inference: a grid for each model, system and compute dtype, in this order.

    Args:
        catalog: The catalog.
        inputs: Inputs by name; ``model``, ``on``, ``dtype`` and those of :data:`AXES` have one value or several. ``dp`` is by
            default what the other degrees leave.

    Raises:
        UsageError: An input is unknown or wrong, or an axis has no values.
        RefusalError: A figure is not published.
    """
    known = fields_of(InferenceQuestion)
    given = {name: inputs.pop(name) for name in (*_SEVERAL, *AXES) if name in inputs}
    several = {
        name: tuple(dict.fromkeys(value if isinstance(value, (list, range, tuple)) else (value,)))
        for name, value in given.items()
    }
    if empty := [name for name, values in several.items() if not values]:
        raise UsageError(f"{empty[0]} has no values")
    axes = {o.name: tuple(map(o.check, several.pop(o.name, (o.default,)))) for o in known if o.name in AXES}
    bases = (inputs | dict(zip(several, values, strict=True)) for values in itertools.product(*several.values()))
    return tuple(grid_of(catalog.graph, InferenceQuestion(**bound(known, base, "inference")), axes) for base in bases)


_SEVERAL = ("model", "on", "dtype")


def grid_of(graph: Graph, base: InferenceQuestion, axes: Mapping[str, tuple[Any, ...]]) -> DeploymentGrid:
    """The grid of some axes.

    Args:
        graph: The catalog.
        base: The inputs that all deployments have.
        axes: The values of each of :data:`AXES`.

    Raises:
        RefusalError: A figure is not published.
    """
    system = lower(graph, base.on, lnc=base.lnc, chips=base.chips)
    before = None if base.prefill_on is None else lower(graph, base.prefill_on)
    return DeploymentGrid(
        graph=graph, base=base, axes={name: axes[name] for name in AXES}, system=system,
        dims=dimensions(model_named(graph, base.model).spec), known=calibration_of(graph, base, system.chip),
        elsewhere=None if before is None else calibration_of(graph, base, before.chip),
    )  # fmt: skip


GOALS = {
    name: -1.0 if name.startswith("tokens") else 1.0
    for name in ("ttft", "tpot", "latency", "tokens_per_s", "tokens_per_s_per_chip", "memory", "chips")
}
"""Goals with their sign: 1.0 for the smallest, -1.0 for the largest."""


def sweep(
    grids: Sequence[DeploymentGrid],
    *,
    keep: Reduction[R],
    goal: str = "tokens_per_s_per_chip",
    memory: bool = True,
    numbers: tuple[int, int] | None = None,
) -> SweepResult[R]:
    """Evaluate every deployment of some grids; each has the numbers of the evaluator of one, bit for bit.

    Args:
        grids: The grids.
        keep: What is kept: ``Top``, ``Best`` or ``Pareto`` of :mod:`trnspec.perf.sweep.batch`.
        goal: One of :data:`GOALS`.
        memory: Whether memory is kept as well.
        numbers: The first number, and that after the last, of each grid; by default all.

    Raises:
        UsageError: There is no such goal.
    """
    if goal not in GOALS:
        raise UsageError(f"{goal!r} is not a goal; expected one of {', '.join(GOALS)}")

    def every() -> Iterator[Block]:
        for which, grid in enumerate(grids):
            names = (goal, *(("memory",) if memory else ()))
            for start, code, columns in blocks(grid, grid.columns, *(numbers or (0, grid.size)), names):
                needs = columns.get("memory", np.zeros(0))
                yield Block(which, start, GOALS[goal] * columns[goal], code, needs, reasons=grid.reasons)

    def record(grid: DeploymentGrid, own: dict[str, Any], cost: float, memory: float) -> dict[str, Any]:
        names = {name: getattr(grid.base, name) for name in _SEVERAL}
        return {**names, **own, "memory": memory, goal: GOALS[goal] * cost}

    return SweepResult(tuple(grids), DeploymentGrid.inputs, record, *reduced(every(), keep))
