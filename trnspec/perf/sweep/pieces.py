"""Layouts of training steps as configurations of a search."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from attrs import evolve, field, frozen
from numpy.typing import NDArray

from trnspec.evidence import rank_class
from trnspec.perf.sweep.blocks import AxisValues, blocks, columns_at
from trnspec.perf.sweep.grid import Grid, layout_blocks
from trnspec.perf.sweep.layouts import WORDS, LayoutFormulas, layout_axes
from trnspec.perf.sweep.reductions import BOUND, EXCESS, Block, Candidates, TimeLimit
from trnspec.perf.training.estimator import Estimator
from trnspec.perf.work.layout import SCHEDULES, Layout

HOUR = 3600.0


@frozen(slots=False)
class TrainingPiece:
    """The layouts of one grid, on one system.

    Attributes:
        estimator: The model on the system.
        grid: The layouts.
        work: Model FLOP of a token, for MFU.
        hourly: Price of the system per hour [USD]; ``None`` if unknown.
        watts: Power of its chips [W]; ``None`` if unknown.
        on: The system as it is given.
        offset: The number of the first layout in the search.
        offload: What is kept in host memory.
        rate: Rate of a rank's link to the host, per direction [B/s].
    """

    estimator: Estimator
    grid: Grid = field(repr=False)
    work: float = 0.0
    hourly: float | None = None
    watts: float | None = None
    on: str = ""
    offset: int = 0
    offload: str = "none"
    rate: float = 0.0

    @property
    def size(self) -> int:
        """Number of layouts."""
        return self.grid.size

    @property
    def bound(self) -> float:
        """1.0 if times are bounds; see :func:`trnspec.evidence.rank_class`."""
        return float(rank_class(self.estimator.calibration.evidence.kind))

    @cached_property
    def _axes(self) -> tuple[AxisValues, ...]:
        return layout_axes(self.grid.axes)

    def layout(self, number: int) -> Layout:
        """The layout of a number of the search; stages differ in length only where they must."""
        layout = self.grid.layout(number - self.offset, int(self.estimator.system.ranks))
        return evolve(layout, uneven=uneven(layout, int(self.estimator.dims.layers)), offload=self.offload)

    def search(
        self,
        first: int,
        last: int,
        take: Callable[[Candidates], None],
        limit: TimeLimit | None = None,
        *,
        only_best: bool = False,
    ) -> None:
        """Evaluate the layouts with some numbers of the search, from ``first`` to before ``last``.

        Args:
            first: The first number.
            last: The number after the last.
            take: Called with evaluated layouts.
            limit: Where only the fastest are kept, the longest time that is needed; longer ones may be infinite.
            only_best: Whether layouts that are certainly slower than the limit need no other reason for their rejection.
        """
        formulas = LayoutFormulas(
            self.estimator, limit=limit, only_best=only_best, offload=self.offload, rate=self.rate
        )
        numbers = first - self.offset, last - self.offset
        if limit is not None and any(SCHEDULES[name].bubble < 1.0 for name, _ in self.grid.axes["schedule"]):
            # Times with a closed form come first: few schedules are then executed.
            for _ in blocks(evolve(formulas, closed=True), self._axes, *numbers, ()):
                pass
        for block in layout_blocks(formulas, self._axes, numbers=numbers):
            take(self._candidates(block))

    def _candidates(self, block: Block) -> Candidates:
        def measure(name: str, places: NDArray[np.int64]) -> Any:
            return self.measure(name, block, places)

        def listed(places: NDArray[np.int64]) -> NDArray[np.bool_]:
            return self.first_of_equal(block.start + places)

        return Candidates(self.offset + block.start, block.reasons, block.code, measure, listed)

    def measure(self, name: str, block: Block, places: NDArray[np.int64]) -> Any:
        """A measure of some layouts; ``None`` if it is unknown."""
        system = self.estimator.system
        if name == "memory":
            return block.memory[places]
        if name == EXCESS:
            return block.memory[places] / system.capacity
        if name in TIMED:
            return self.timed(name, block.time[places])
        constants = {
            BOUND: self.bound, "fits": True, "chips": float(system.chips), "system": self.on, "capacity": system.capacity,
            "model": self.estimator.name, "dtype": self.estimator.dtype, "offload": self.offload,
        }  # fmt: skip
        return constants[name] if name in constants else self.degree(name, block.start + places)

    def timed(self, name: str, time: Any) -> Any:
        """A measure of :data:`TIMED` from the time of a step [s]; ``None`` if it is unknown.

        It is ``step_time`` [s], ``mfu`` [%], ``tokens_per_s``, ``tokens_per_s_per_chip``, or ``usd`` and ``energy`` [J] of a
        million tokens.
        """
        system = self.estimator.system
        if name == "step_time":
            return time
        if name == "mfu":
            return 100.0 * (self.work * self.tokens) / (time * system.peak(self.estimator.dtype))
        if name == "tokens_per_s":
            return self.tokens / time
        if name == "tokens_per_s_per_chip":
            return self.tokens / time / system.chips
        rate = self.hourly if name == "usd" else self.watts
        if rate is None:
            return None
        return time * (rate / HOUR if name == "usd" else rate) / self.tokens * 1e6

    @property
    def tokens(self) -> float:
        """Tokens of a step."""
        (seq,), (batch,) = self.grid.axes["seq"], self.grid.axes["global_batch"]
        return float(seq * batch)

    def degree(self, name: str, numbers: NDArray[np.int64]) -> Any:
        """A degree or a choice of some layouts, by their numbers in the grid."""
        columns = columns_at(self._axes, numbers)
        if name == "dp":
            others = math.prod(columns[n] for n in ("tp", "pp", "cp"))
            return np.maximum(1.0, self.estimator.system.ranks // others)
        if name == "expert_tp":
            return np.where(columns[name] == 0, columns["tp"], columns[name])
        return np.array(WORDS[name])[columns[name]] if name in WORDS else columns[name]

    def first_of_equal(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """With a single replica of each parameter all ZeRO stages are the same layout; the first is listed."""
        ranks, zero = self.estimator.system.ranks, self.grid.axes["zero"]
        of = columns_at(self._axes, numbers)
        # Ranks of one tensor-parallel group may hold the same whole experts.
        whole = (of["expert_tp"] == 0) | (of["expert_tp"] == of["tp"])
        first: NDArray[np.bool_] = ~((of["tp"] * of["pp"] == ranks) & whole & (of["zero"] != zero[0]))
        return first


def uneven(layout: Layout, layers: int) -> bool:
    """Whether the stages of a layout have different numbers of layers; embedding and output may count as one each."""
    chunks = layout.pp * layout.interleave * (2 if layout.pipeline.v_shape else 1)
    return bool(layout.pp > 1 and layers % chunks > 0 and (layers + 2) % chunks > 0)


TIMED = ("step_time", "mfu", "tokens_per_s", "tokens_per_s_per_chip", "usd", "energy")
"""Measures that are the better, the shorter a step of a system is."""
