"""Entry points for many configurations: sweeps over every combination of values, and batches of unrelated rows.

Times, codes and memory are bit for bit those of a single call of :meth:`trnspec.perf.training.estimator.Estimator.step`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, overload

from trnspec.perf.sweep import grid
from trnspec.perf.sweep.grid import SweepResult
from trnspec.perf.sweep.layouts import OPTIMIZER_NAMES, RECOMPUTES, SCHEDULES, LayoutFormulas
from trnspec.perf.sweep.reductions import Best, Block, Each, Everything, Kept, Pareto, Reduction, Top, reduced
from trnspec.perf.sweep.rows import rows
from trnspec.perf.training.estimator import Estimator, prepare
from trnspec.perf.work.layout import DISPATCHES
from trnspec.perf.work.validity import REASONS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trnspec.graph.graph import Graph

R = TypeVar("R")

__all__ = [
    "DISPATCHES",
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


def estimators(  # noqa: PLR0913  # the inputs of an estimator
    graph: Graph,
    models: Sequence[str],
    systems: Sequence[str],
    *,
    dtypes: Sequence[str] = ("bf16",),
    calibration: str = "auto",
    lnc: int | None = None,
    framework: str | None = None,
    era: str | None = None,
    reserve: str | None = None,
) -> tuple[Estimator, ...]:
    """One estimator for every model, system and dtype; dtypes vary fastest, then systems.

    Args:
        graph: The catalog.
        models: Names of models.
        systems: Systems, such as ``trn1.32xlarge*32``.
        dtypes: Compute dtypes of matrix multiplications.
        calibration: As in :func:`~trnspec.perf.training.estimator.prepare`.
        lnc: Physical cores per logical core.
        framework: Training framework, as in :func:`~trnspec.perf.training.estimator.prepare`; it sets the defaults of
            :func:`sweep` and :func:`rows`.
        era: Era of the software's release, as in :func:`~trnspec.perf.training.estimator.prepare`.
        reserve: Memory of a rank that the model cannot use, such as ``4 GiB`` or ``5%``; included in all memory.

    Raises:
        UsageError: A name is that of a document of another kind.
        UnknownNameError: No document of that name.
        RefusalError: A figure is not published.
    """
    return tuple(
        prepare(
            graph, model, system,
            dtype=dtype, calibration=calibration, lnc=lnc, framework=framework, era=era, reserve=reserve,
        )
        for model in models
        for system in systems
        for dtype in dtypes
    )  # fmt: skip


@overload
def sweep(
    prepared: Estimator | Sequence[Estimator],
    *,
    keep: None = None,
    parts: Sequence[str] = (),
    memory: bool = True,
    block: int = grid.BLOCK,
    numbers: tuple[int, int] | None = None,
    **axes: Any,
) -> SweepResult[Block]: ...
@overload
def sweep(
    prepared: Estimator | Sequence[Estimator],
    *,
    keep: Reduction[R],
    parts: Sequence[str] = (),
    memory: bool = True,
    block: int = grid.BLOCK,
    numbers: tuple[int, int] | None = None,
    **axes: Any,
) -> SweepResult[R]: ...
@overload
def sweep(
    prepared: Estimator | Sequence[Estimator],
    *,
    keep: Callable[[Block], R],
    parts: Sequence[str] = (),
    memory: bool = True,
    block: int = grid.BLOCK,
    numbers: tuple[int, int] | None = None,
    **axes: Any,
) -> SweepResult[list[R]]: ...
def sweep(  # the inputs of a sweep
    prepared: Estimator | Sequence[Estimator],
    *,
    keep: Reduction[Any] | Callable[[Block], Any] | None = None,
    parts: Sequence[str] = (),
    memory: bool = True,
    block: int = grid.BLOCK,
    numbers: tuple[int, int] | None = None,
    **axes: Any,
) -> SweepResult[Any]:
    """Evaluate every combination of some values; dp follows from the ranks of a system and the other degrees.

    Axes are those of :data:`trnspec.perf.sweep.grid.AXES`, each one value or a list: ``tp``, ``pp``, ``cp``, ``ep``, ``seq``,
    ``microbatch``, ``schedule`` (a name, or a name and chunks per stage: ``("interleaved", 2)``),
    ``uneven``, ``sequence_parallel``, ``flash``, ``fused_loss``, ``recompute``, ``overlap``, ``optimizer``, ``zero``,
    ``global_batch``, and of models with experts ``expert_tp`` (``None`` for tp), ``dispatch``, ``dispatch_dtype``,
    ``node_limit`` (0 without a limit), ``expert_overlap``, ``imbalance`` and ``capacity_factor`` (``None`` without a limit).

    Args:
        prepared: One estimator or several; see :func:`estimators`.
        keep: A reduction such as :class:`Top`, :class:`Best` or :class:`Pareto`, a function that is called with each
            :class:`Block`, or ``None`` to keep everything. What a reduction does not keep takes no memory.
        parts: Parts of the step that blocks contain, of :data:`trnspec.perf.training.step.PARTS`.
        memory: Whether to compute memory, and reject what does not fit.
        block: Configurations per block.
        numbers: The first and the number after the last of the combinations to evaluate; all of them by default.
        axes: The values of each axis.

    Raises:
        UsageError: Unknown axis or part, or a value that it does not accept.
    """
    all_prepared = (prepared,) if isinstance(prepared, Estimator) else tuple(prepared)
    axes_ = grid.grid(grid.framework_defaults(all_prepared), **axes)
    grid.check_parts(parts, block)
    reduction: Any = Everything() if keep is None else keep if hasattr(keep, "take") else Each(keep)
    blocks = (
        each
        for which, one in enumerate(all_prepared)
        for each in grid.layout_blocks(
            LayoutFormulas(one, memory), axes_, which=which, parts=parts, block=block, numbers=numbers
        )
    )
    return SweepResult(all_prepared, axes_, *reduced(blocks, reduction))
