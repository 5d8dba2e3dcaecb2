"""Training steps by the million: every combination of some choices, or a batch in which each row is another.

Times, codes and memory are bit for bit those of the single call, :meth:`trnspec.perf.training.estimator.Estimator.step`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.perf.sweep import grid
from trnspec.perf.sweep import rows as rows_
from trnspec.perf.sweep.columns import OPTIMIZER_NAMES, REASONS, RECOMPUTES, SCHEDULES
from trnspec.perf.sweep.grid import SweepResult
from trnspec.perf.sweep.reductions import Best, Block, Each, Everything, Kept, Pareto, Reduction, Top
from trnspec.perf.training.estimator import Estimator, prepare

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trnspec.graph.graph import Graph

__all__ = [
    "OPTIMIZER_NAMES",
    "REASONS",
    "RECOMPUTES",
    "SCHEDULES",
    "Best",
    "Block",
    "Each",
    "Everything",
    "Kept",
    "Pareto",
    "Reduction",
    "SweepResult",
    "Top",
    "estimators",
    "rows",
    "sweep",
]  # fmt: skip


def estimators(  # what an estimator is made of
    graph: Graph,
    models: Sequence[str],
    systems: Sequence[str],
    *,
    dtypes: Sequence[str] = ("bf16",),
    calibration: str = "auto",
    lnc: int | None = None,
) -> tuple[Estimator, ...]:
    """Every model on every system with every type, the type fastest, then the system.

    Args:
        graph: The catalog's graph.
        models: Names of models.
        systems: Systems, such as ``trn1.32xlarge*32``.
        dtypes: What matrices are multiplied in.
        calibration: As in :func:`~trnspec.perf.training.estimator.prepare`.
        lnc: Physical cores of a logical core.

    Raises:
        UsageError: A name is of the wrong kind.
        UnknownNameError: There is no document of a name.
        RefusalError: A figure is not published.
    """
    return tuple(
        prepare(graph, model, system, dtype=dtype, calibration=calibration, lnc=lnc)
        for model in models
        for system in systems
        for dtype in dtypes
    )


def sweep(  # what is computed, and how
    prepared: Estimator | Sequence[Estimator],
    *,
    keep: Reduction | Callable[[Block], Any] | None = None,
    parts: Sequence[str] = (),
    memory: bool = True,
    block: int = grid.BLOCK,
    **axes: Any,
) -> SweepResult:
    """Try every combination of some choices; dp is what the other degrees leave of a system's ranks.

    Axes are those of :data:`trnspec.perf.sweep.grid.AXES`, each one value or a list: ``tp``, ``pp``, ``cp``, ``ep``, ``seq``,
    ``microbatch``, ``schedule`` (a word, or a word and the chunks of a stage: ``("interleaved", 2)``),
    ``sequence_parallel``, ``flash``, ``fused_loss``, ``recompute``, ``overlap``, ``optimizer``, ``zero``, ``global_batch``.

    Args:
        prepared: One estimator or several; see :func:`estimators`.
        keep: What is kept: a reduction such as :class:`Top`, :class:`Best` or :class:`Pareto`, a function that is asked
            about each :class:`Block`, or all of it when left out. What a reduction does not keep takes no memory.
        parts: Parts of the step that blocks are to have, of :data:`trnspec.perf.training.step.PARTS`.
        memory: Whether memory is computed, and what does not fit refused.
        block: Configurations computed at once.
        axes: The choices.

    Raises:
        UsageError: There is no such axis or part, or it does not take a value.
    """
    given = (prepared,) if isinstance(prepared, Estimator) else tuple(prepared)
    return grid.over(given, grid.grid(**axes), keep=keep, parts=parts, memory=memory, block=block)


def rows(  # what is computed, and how
    prepared: Sequence[Estimator],
    which: Any,
    *,
    parts: Sequence[str] = (),
    memory: bool = False,
    block: int = rows_.BLOCK,
    **columns: Any,
) -> Block:
    """A batch of configurations that have nothing in common.

    A column is an array of length n, or one value for all rows: ``seq``, ``global_batch``, ``tp``, ``pp``, ``dp``, ``cp``,
    ``ep``, ``microbatch``, ``interleave``, ``zero``; ``sequence_parallel``, ``overlap``, ``flash``, ``fused_loss`` (0 or
    1); and ``schedule``, ``recompute``, ``optimizer``: words, or their places in :data:`SCHEDULES`, :data:`RECOMPUTES` and
    :data:`OPTIMIZER_NAMES`.  What is not given is as in :class:`~trnspec.perf.work.layout.Layout`.

    Args:
        prepared: Estimators.
        which: For each row the place of its estimator: an array of length n, or one number.
        parts: Parts of the step that are wanted beside its time, of :data:`trnspec.perf.training.step.PARTS`.
        memory: Whether memory is computed, and what does not fit refused.
        block: Rows computed at once; it changes nothing but the speed.
        columns: The layouts.

    Returns:
        Arrays of length n: times in s, codes of :data:`REASONS`, bytes (length 0 without ``memory``), and parts.

    Raises:
        UsageError: There is no such column or part, lengths differ, or a number is not whole or names nothing.
    """
    return rows_.compute(prepared, which, columns, parts=parts, memory=memory, block=block)
