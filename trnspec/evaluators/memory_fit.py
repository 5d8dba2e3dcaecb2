"""What would make it fit: the neighbourhood of a layout, and the fewest changes that need little enough memory."""

from __future__ import annotations

from itertools import combinations, product
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from trnspec.errors import TrnspecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trnspec.evaluators.memory_demand import Demand
    from trnspec.model.transformers.dimensions import Dimensions

DEEPEST = 3
"""So many settings are changed at once at the most."""

SHOWN = 12
"""So many ways to fit are told at the most."""

_TRAINING = ("tp", "pp", "cp", "ep", "zero", "recompute", "sequence_parallel", "fused_loss", "microbatch", "offload")
_INFERENCE = ("tp", "pp", "ep", "batch", "prefill")
_RECOMPUTE = ("none", "selective", "operators", "full")


@frozen
class Way:
    """One way to lay it out.

    Attributes:
        changes: What is changed: ``zero 0 -> 1``.
        total: What the rank with the most then needs, in B.
        fits: Whether that is little enough, on the device and on the host.
        steps: How many steps the settings are changed, all together: from tp 4 to 16 are two.
    """

    changes: tuple[str, ...]
    total: float
    fits: bool
    steps: int


@frozen
class Room:
    """What there is room for.

    Attributes:
        ranks: Ranks of the system.
        device: Memory of a rank, in B.
        host: Memory of the host for a rank, in B; 0.0 where it is not known.
    """

    ranks: int
    device: float
    host: float


def neighbours(d: Dimensions, demand: Demand, room: Room) -> tuple[Way, ...]:
    """What each setting alone would do, changed by one step, in the order of the settings."""
    each = (options[:1] for options in _options(demand).values())
    return tuple(way for options in each for option in options if (way := _way(d, demand, room, (option,), 1)))


def nearest(d: Dimensions, demand: Demand, room: Room) -> tuple[Way, ...]:
    """The ways to fit with the fewest changed settings, the nearest first.

    A setting counts once however far it is changed; of the ways that change the same settings the nearest is told. Of two
    as near, the one that leaves less memory free goes first.
    """
    options = _options(demand)
    for count in range(1, DEEPEST + 1):
        found: dict[tuple[str, ...], Way] = {}
        for names in combinations(options, count):
            for chosen in sorted(product(*(enumerate(options[n], 1) for n in names)), key=_steps):
                way = _way(d, demand, room, tuple(option for _, option in chosen), _steps(chosen))
                if way is not None and way.fits:
                    found[names] = way
                    break
        if found:
            return tuple(sorted(found.values(), key=lambda w: (w.steps, -w.total))[:SHOWN])
    return ()


def _steps(chosen: tuple[tuple[int, Option], ...]) -> int:
    return sum(steps for steps, _ in chosen)


Option = tuple[str, Any, Any]
"""A setting, its value, and another."""


def _options(demand: Demand) -> Mapping[str, list[Option]]:
    """For each setting the values beyond its own that need less memory, the nearest first.

    Where many ranks of tensor parallelism split the sequence, ``operators`` may need more than ``selective``; what needs too
    much is not told as a way to fit.
    """
    layout = demand.layout
    found: dict[str, list[Option]] = {}
    for name in _TRAINING if demand.mode == "training" else _INFERENCE:
        now = getattr(demand if name in ("batch", "prefill") else layout, name)
        values: list[Any] = []
        if name in ("tp", "pp", "cp", "ep"):
            values = [now * 2**i for i in range(1, 7)]
        elif name in ("microbatch", "batch", "prefill"):
            values = list(_halved(now))
        elif name == "zero":
            values = list(range(now + 1, 4))
        elif name == "recompute":
            values = list(_RECOMPUTE[_RECOMPUTE.index(now) + 1 :])
        elif name in ("sequence_parallel", "fused_loss"):
            values = [] if now else [True]
        elif name == "offload":
            values = ["optimizer"] if now == "none" else []
        if values:
            found[name] = [(name, now, value) for value in values]
    return found


def _halved(value: int) -> Iterator[int]:
    while value > 1 and value % 2 == 0:
        value //= 2
        yield value


def _way(d: Dimensions, demand: Demand, room: Room, options: tuple[Option, ...], steps: int) -> Way | None:
    """A layout so changed; ``None`` where it cannot be. What dp has too many, the other degrees take."""
    changes = {name: value for name, _, value in options}
    if changes.get("sequence_parallel") and changes.get("tp", demand.layout.tp) == 1:
        return None
    own = {n: v for n, v in changes.items() if n in ("batch", "prefill")}
    layout = evolve(demand.layout, **{n: v for n, v in changes.items() if n not in own})
    others = layout.tp * layout.pp * layout.cp
    if room.ranks % others:
        return None
    layout = evolve(layout, dp=room.ranks // others)
    microbatches = demand.microbatches
    if demand.mode == "training":
        # A step keeps its tokens: fewer replicas or smaller microbatches are more microbatches.
        sequences = microbatches * demand.layout.microbatch * demand.layout.dp
        if sequences % (layout.microbatch * layout.dp):
            return None
        microbatches = sequences // (layout.microbatch * layout.dp)
    changed = evolve(demand, layout=layout, microbatches=microbatches, **own)
    try:
        changed.check(d, room.ranks)
    except TrnspecError:
        return None
    _, needed, host = changed.worst(d)
    told = tuple(f"{n} {_said(a)} -> {_said(b)}" for n, a, b in options)
    fits = float(needed.total) <= room.device and host <= room.host
    return Way(told, float(needed.total), fits, steps)


def _said(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
