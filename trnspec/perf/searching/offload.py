"""Layouts of training steps that keep something in host memory, as configurations of a search."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from attrs import evolve, fields, frozen

from trnspec.perf.ops import Number, larger, smaller, where
from trnspec.perf.searching.training import TrainingPiece
from trnspec.perf.sweep.columns import REASONS, SCHEDULES, WORDS
from trnspec.perf.sweep.formulas import replicated
from trnspec.perf.sweep.grid import AXES, over
from trnspec.perf.sweep.reductions import EXCESS, UNFIT, Candidates
from trnspec.perf.work.activations import layer_activations
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.memory import Memory, training_memory
from trnspec.perf.work.stages import in_flight, peak_stages

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from trnspec.perf.sweep.reductions import Block
    from trnspec.perf.training.estimator import Estimator


def moved(what: str, memory: Memory, layout: Layout) -> Number:
    """Bytes that a rank sends to its host and receives in a step; see :func:`trnspec.evaluators.training.offload_time`.

    Args:
        what: ``optimizer``, ``activations`` or ``weights``.
        memory: The memory of the rank without offloading.
        layout: The layout.
    """
    if what == "optimizer":
        return memory.optimizer / layout.state_bytes * (layout.grad_bytes + layout.weight_bytes)
    if what == "activations":
        return 2.0 * memory.activations / in_flight(layout) * layout.microbatches
    return layout.microbatches * (2.0 * memory.weights + memory.gradients)


@frozen
class OffloadPiece:
    """Layouts that keep something in host memory.

    Attributes:
        plain: The same layouts without it.
        what: What is kept in host memory.
        rate: Rate of a rank's link to the host, per direction [B/s].
    """

    plain: TrainingPiece
    what: Any
    rate: float

    @property
    def offset(self) -> int:
        """The number of the first layout in the search."""
        return self.plain.offset

    @property
    def size(self) -> int:
        """Number of layouts."""
        return self.plain.size

    @property
    def estimator(self) -> Estimator:
        """The model on the system."""
        return self.plain.estimator

    def layout(self, number: int) -> Layout:
        """The layout of a number of the search."""
        return evolve(self.plain.layout(number), offload=self.what)

    def search(self, first: int, last: int, take: Callable[[Candidates], None]) -> None:
        """Evaluate the layouts with some numbers of the search."""
        numbers = first - self.offset, last - self.offset
        parts = ("compute", "recompute")
        over(
            (self.estimator,), self.plain.grid, keep=lambda block: take(self._candidates(block)), parts=parts,
            memory=False, numbers=numbers,
        )  # fmt: skip

    def _candidates(self, block: Block) -> Candidates:
        """The layouts of a block, with the time of transfers and without the memory of what is on the host."""
        code, time, needs = block.code.copy(), block.time.copy(), np.zeros(len(block.code))
        places = np.flatnonzero(code == 0)
        if len(places):
            layout = self._layouts(block.start + places)
            computed = block.parts["compute"][places] + block.parts["recompute"][places]
            time[places] = time[places] + self._exposed(layout, computed)
            needs[places] = total = self._peak(layout)
            code[places[total > self.estimator.system.capacity]] = REASONS.index(UNFIT)
        offloaded = evolve(block, code=code, time=time, memory=needs)
        return Candidates(
            self.offset + block.start,
            REASONS,
            code,
            lambda name, at: self._measure(name, offloaded, at),
            lambda at: self.plain.first_of_equal(block.start + at),
        )

    def _measure(self, name: str, block: Block, places: NDArray[np.int64]) -> Any:
        if name == "offload":
            return self.what
        if name == EXCESS:
            return block.memory[places] / self.estimator.system.capacity
        return self.plain.measure(name, block, places)

    def _layouts(self, numbers: NDArray[np.int64]) -> Layout:
        """Some layouts, by their numbers in the grid."""
        columns: dict[str, Any] = {}
        for name in AXES:
            values: list[Any] = list(self.plain.grid.axes[name])
            positions = self.plain.positions(name, numbers)
            if name == "schedule":
                columns["interleave"] = np.array([chunks for _, chunks in values])[positions]
                values = [SCHEDULES.index(schedule) for schedule, _ in values]
            elif name in WORDS:
                values = [WORDS[name].index(value) for value in values]
            columns[name] = np.array([0 if value is None else value + 0 for value in values])[positions]
        return replicated(columns, self.estimator.machine.ranks)

    def _memory(self, layout: Layout, stage: Number) -> Memory:
        return training_memory(self.estimator.dims, layout, stage=stage, runtime=self.estimator.runtime)

    def _exposed(self, layout: Layout, computed: Number) -> Number:
        """The time of transfers that computation does not hide [s]."""
        stages = peak_stages(self.estimator.dims, layout)
        memory = self._memory(layout, stages[0])
        for stage in stages[1:]:
            other = self._memory(layout, stage)
            more = other.total > memory.total
            memory = Memory(
                **{f.name: where(more, getattr(other, f.name), getattr(memory, f.name)) for f in fields(Memory)}
            )
        return larger(0.0, moved(self.what, memory, layout) / self.rate - self.estimator.machine.overlap * computed)

    def _peak(self, layout: Layout) -> NDArray[np.float64]:
        """Memory on the device of the rank that needs the most [B], over all stages."""
        peak = np.zeros(len(layout.pp))
        for pp in np.unique(layout.pp).tolist():
            at = np.flatnonzero(layout.pp == pp)
            some = Layout(**{f.name: _at(getattr(layout, f.name), at) for f in fields(Layout)})
            for stage in range(int(pp)):
                peak[at] = np.maximum(peak[at], self._on_device(some, float(stage)))
        return peak

    def _on_device(self, layout: Layout, stage: float) -> Number:
        """Of weights and activations two layers stay, the current and the next."""
        d, memory = self.estimator.dims, self._memory(layout, stage)
        size, stays = getattr(memory, self.what), 0.0 * memory.total
        if self.what == "weights":
            stays = smaller(size, 2.0 * size / (d.layers / layout.pp))
        elif self.what == "activations":
            kinds = [k for k, n in ((0.0, d.layers - d.expert_layers), (1.0, d.expert_layers)) if n]
            layers = [layer_activations(d, layout, kind) for kind in kinds]
            stays = smaller(size, 2.0 * (larger(*layers) if len(layers) > 1 else layers[0]))
        return evolve(memory, **{self.what: stays}).total


def _at(column: Any, places: NDArray[np.int64]) -> Any:
    return column[places] if isinstance(column, np.ndarray) else column
