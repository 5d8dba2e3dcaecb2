"""Fits of the protocols of a collective library to measured collectives, pooled over chips, and their held-out errors.

A first fit has the rows of all chips with one set of parameters: shares of the rates of each chip, and times.  Each chip
then has parameters of its own that are kept near the pooled ones, so that a chip with few rows, or a protocol that they do
not use, borrows from the others.  Errors are held out by size, by collective and number of ranks, and by chip.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import attrs
import numpy as np
from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.perf.calibration.fit_range import EXPONENT, collective_inputs
from trnspec.perf.calibration.fits.limits import COLLECTIVE
from trnspec.perf.calibration.fits.prior import TYPICAL, Learned, Prior, posterior
from trnspec.perf.calibration.fits.solver import combined, minimize, selected
from trnspec.perf.calibration.fits.training import Fitted
from trnspec.perf.calibration.groups import GroupErrors, interval
from trnspec.perf.calibration.measured.collectives import CollectiveCase
from trnspec.perf.calibration.transfer import Beyond, Elsewhere
from trnspec.perf.collectives.library import Library, Protocol, launched, shape, time_of
from trnspec.perf.lowering.system import IDEAL

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from trnspec.perf.collectives.closed_forms import Kind
    from trnspec.perf.collectives.library import Algorithm

_RINGS: tuple[Kind, ...] = ("all-reduce", "all-gather", "reduce-scatter", "broadcast")
_REDUCE: tuple[Kind, ...] = ("all-reduce",)
_PAIRS: tuple[Kind, ...] = ("all-to-all", "send")


def _typical(  # noqa: PLR0913, PLR0917  # a row of a table
    name: str, algorithm: Algorithm, kinds: tuple[Kind, ...], call: float, hop: float, far: float, link: float,
    network: float, own: float = 0.0,
) -> Protocol:  # fmt: skip
    """A protocol with times in us."""
    return Protocol(
        name=name, algorithm=algorithm, kinds=kinds, call=1e-6 * call, hop=1e-6 * hop, network_hop=1e-6 * far, link=link,
        network=network, own=own,
    )  # fmt: skip


_NCCL = (
    # 8-byte stores with a flag in each, 128-byte stores, and whole chunks with a fence (NVIDIA/nccl, src/device/prims_*.h).
    _typical("LL", "ring", _RINGS, 6.0, 1.0, 40.0, 0.25, 0.005),
    _typical("LL128", "ring", _RINGS, 10.0, 0.8, 60.0, 0.35, 0.2),
    _typical("Simple", "ring", _RINGS, 20.0, 1.5, 150.0, 0.8, 0.65, 0.5),
    _typical("NVLS", "in-network", _REDUCE, 60.0, 4.0, 120.0, 0.6, 0.65),
    _typical("P2P LL", "direct", _PAIRS, 7.0, 0.4, 25.0, 0.02, 0.1),
    _typical("P2P", "direct", _PAIRS, 14.0, 0.4, 30.0, 0.6, 0.6),
)
_ONE_SHOT = _typical("one-shot", "one-shot", _REDUCE, 3.5, 0.12, 25.0, 0.6, 0.5)
_TWO_SHOT = _typical("two-shot", "direct", _REDUCE, 4.5, 1.1, 25.0, 0.6, 0.5)

LIBRARIES: Mapping[str, Library] = {
    name: Library(protocols=protocols, host=3e-5, wait=2e-5, copies=2.5)
    for name, protocols in {
        "nccl": _NCCL,
        # Their own kernels reduce buffers up to some MiB, NCCL larger ones and other collectives.
        "vllm": (_ONE_SHOT, _TWO_SHOT, *_NCCL),
        "sglang": (_ONE_SHOT, _TWO_SHOT, *_NCCL),
        "trtllm": (_ONE_SHOT, *_NCCL),
        # AWS Neuron documentation: mesh for small, RDH for medium, KangaRing for large buffers within a server.
        "nccom": (
            _typical("mesh", "direct", _RINGS, 15.0, 2.0, 20.0, 0.15, 0.3),
            _typical("RDH", "recursive", _RINGS, 15.0, 2.0, 20.0, 0.35, 0.4),
            _typical("KangaRing", "ring", _RINGS, 20.0, 1.5, 20.0, 0.7, 0.6),
            _typical("P2P", "direct", _PAIRS, 15.0, 2.0, 20.0, 0.5, 0.5),
        ),
    }.items()
}
"""The protocols of each library with typical parameters, where the search begins."""

BASE = {"vllm": "nccl", "sglang": "nccl", "trtllm": "nccl"}
"""The library that another one uses where its own kernels do not apply."""

POOLED, OWN = 0.03, 0.1
"""Residual of a parameter that is off its typical value, or the pooled one, by a factor of e."""

FOLDS = 5
"""Groups of sizes that are held out in turn."""

LEAST = 8
"""Least number of rows of a chip."""

GROUP = 20
"""Least number of rows of a group of sizes with an interval of its own."""

SIZES = (2.0**16, 2.0**22)
"""Largest buffers [B] of the groups of sizes with intervals of their own, without the last."""

_PROTOCOL = ("call", "hop", "network_hop", "link", "network", "own")
_LIBRARY = ("host", "wait", "copies")
_TOLERANCE = 1e-4
"""Relative change of the cost at which a fit ends: the fastest protocol changes with the parameters, in steps."""


@frozen
class Rows:
    """Cases as arrays, one row each; those of protocols have one column for each.

    Attributes:
        usable: Whether a row can use a protocol.
        coefficients: Steps, steps over the network, and loads, as in :class:`~trnspec.perf.collectives.library.Shape`.
        size: Buffers [B].
        seconds: Measured times [s].
        launch: How each is launched.
        byte: Time of a byte of device memory [s].
    """

    usable: Any
    coefficients: Any
    size: Any
    seconds: Any
    launch: Any
    byte: Any


def arrays(cases: Sequence[CollectiveCase], library: Library) -> Rows:
    """Cases as arrays for the protocols of a library."""
    protocols = library.protocols
    shapes = {}
    for case in cases:
        for p in protocols:
            key = (case.system.name, case.system.lnc, case.kind, p.algorithm, case.ranks)
            if key not in shapes:
                shapes[key] = shape(case.machine, case.kind, p.algorithm, case.ranks, 1.0)
    table = [[shapes[c.system.name, c.system.lnc, c.kind, p.algorithm, c.ranks] for p in protocols] for c in cases]
    kind = type(table[0][0])
    return Rows(
        np.array([[case.can_use(p) for p in protocols] for case in cases]),
        kind(*(np.array([[float(getattr(s, f.name)) for s in row] for row in table]) for f in attrs.fields(kind))),
        np.array([c.size for c in cases]),
        np.array([c.seconds for c in cases]),
        np.array([c.launch for c in cases]),
        np.array([float(c.machine.seconds_per_byte) for c in cases]),
    )  # fmt: skip


def _each(library: Library, rows: Rows) -> Any:
    """The computed times of rows by each protocol [s]; infinite where a row cannot use it."""
    numbers: dict[str, Any] = {name: np.array([getattr(p, name) for p in library.protocols]) for name in _PROTOCOL}
    columns = Protocol(name="", algorithm="ring", **numbers)
    return np.where(rows.usable, time_of(columns, rows.coefficients, rows.size[:, None]), np.inf)


def used_protocols(library: Library, rows: Rows) -> set[int]:
    """The places of the protocols that are the fastest of a row."""
    return {int(i) for i in _each(library, rows).argmin(axis=1)}


def times(library: Library, rows: Rows) -> Any:
    """The computed times of rows [s]."""
    time = _each(library, rows).min(axis=1)
    for launch in ("eager", "synchronous"):
        time = np.where(rows.launch == launch, launched(library, launch, time, rows.size, rows.byte), time)
    return time


def _vector(library: Library) -> Any:
    """The parameters of a library, as logarithms; those that are 0 are not fitted."""
    return np.log([getattr(owner, name) for owner, name in _parameters(library)])


def _parameters(library: Library) -> list[tuple[Any, str]]:
    owned = [(p, name) for p in library.protocols for name in _PROTOCOL if getattr(p, name)]
    return owned + [(library, name) for name in _LIBRARY if getattr(library, name)]


def _with(library: Library, vector: Any) -> Library:
    values = iter(np.exp(vector))
    protocols = []
    for p in library.protocols:
        changed: dict[str, Any] = {name: float(next(values)) for name in _PROTOCOL if getattr(p, name)}
        protocols.append(attrs.evolve(p, **changed))
    own = {name: float(next(values)) for name in _LIBRARY if getattr(library, name)}
    return attrs.evolve(library, protocols=tuple(protocols), **own)


def solved(rows: Rows, prior: Library, weight: float) -> Library:
    """The library that minimizes errors of the logarithm of times and the distance from a prior.

    Raises:
        UsageError: scipy is not installed.
    """
    return _with(prior, _minimum(rows, prior, weight).x)


def learned(rows: Rows, prior: Library, weight: float) -> tuple[Library, tuple[Learned, ...]]:
    """The same, and what the rows add to each parameter."""
    result = _minimum(rows, prior, weight)
    library = _with(prior, result.x)
    names = [f"{owner.name} {name}" if isinstance(owner, Protocol) else name for owner, name in _parameters(prior)]
    before, after = (dict(zip(names, np.exp(at), strict=True)) for at in (_vector(prior), result.x))
    known = posterior(names, result.jac, before, [weight] * len(names))
    return library, tuple(known.learned(after))


def _minimum(rows: Rows, prior: Library, weight: float) -> Any:
    begin = _vector(prior)
    limits = [COLLECTIVE[name] for _, name in _parameters(prior)]
    low, high = (np.log([getattr(limit, end) for limit in limits]) for end in ("low", "high"))

    def residuals(at: Any) -> Any:
        return np.concatenate([np.log(times(_with(prior, at), rows) / rows.seconds), weight * (at - begin)])

    return minimize(residuals, begin, (low, high), _TOLERANCE)


@frozen(kw_only=True)
class FittedLibrary(Fitted):
    """The result of a fit for one chip; ``held_out`` has the errors of fits that held out the size of a row.

    Attributes:
        library: The protocols.
        cases: The rows of the chip.
        beyond: Errors of rows whose chip was held out, by the fit of the nearest chip, or whose collective and number of ranks.
        elsewhere_errors: Those of its rows by the fit of the nearest chip; empty where all rows are of one chip.
    """

    library: Library
    cases: tuple[CollectiveCase, ...] = field(repr=False)
    beyond: Any = field(repr=False)
    elsewhere_errors: Any = field(factory=list, repr=False)

    @property
    def low(self) -> float:
        """Measured over computed time of held-out rows at the lower end of the interval."""
        return self._drawn()[0]

    @property
    def high(self) -> float:
        """The same, at the upper end."""
        return self._drawn()[1]

    def _drawn(self) -> tuple[float, float]:
        """The ends of the interval, drawn towards those of the prior where there are few rows."""
        rows = len(self.held_out)
        both = GroupErrors("collective", "", "", rows, rows, 0.0, 0.0, *_ends(self.held_out))
        drawn = self.prior.drawn(both, GROUP)
        return drawn.low, drawn.high

    def groups(self) -> list[GroupErrors]:
        """The errors of held-out rows over the network; within servers by size: latency, switch of protocols, and rate."""
        sizes = np.array([c.size for c in self.cases])
        servers = np.array([collective_inputs(c.system, c.size, c.ranks)["servers"] for c in self.cases])
        spans = [("cluster", 0.0, np.inf), *(("server", *ends) for ends in itertools.pairwise((0.0, *SIZES, np.inf)))]
        found = []
        for scale, low, high in spans:
            mask = (sizes > low) & (sizes <= high) & ((servers > 1.0) == (scale == "cluster"))
            if (rows := int(mask.sum())) >= GROUP:
                off = np.abs(self.held_out[mask])
                span = (float(sizes[mask].min()), float(sizes[mask].max()))
                means = float(off.mean()), float(np.median(off))
                found.append(
                    GroupErrors("collective", scale, "", rows, rows, *means, *_ends(self.held_out[mask]), size=span)
                )
        return found

    def elsewhere(self) -> Beyond:
        """The interval of rows of held-out chips, and of held-out collectives and numbers of ranks."""
        if not len(self.beyond):
            return Beyond(EXPONENT, None)
        low, high = _ends(self.beyond)
        return Beyond(EXPONENT, Elsewhere(len(self.beyond), len({(c.kind, c.ranks) for c in self.cases}), low, high))

    def note(self) -> str:
        """What no row of the chip determines, so that it is that of the pooled fit, or typical; empty if there is nothing."""
        used = used_protocols(self.library, arrays(self.cases, self.library))
        unused = [p.name for i, p in enumerate(self.library.protocols) if i not in used]
        unused += [word for word in ("eager", "synchronous") if all(c.launch != word for c in self.cases)]
        if all(collective_inputs(c.system, c.size, c.ranks)["servers"] == 1.0 for c in self.cases):
            unused.append("the network")
        return f"Pooled or typical, without rows of this chip: {', '.join(unused)}." if unused else ""

    def fitted_on(self) -> dict[str, str]:
        """The object ``fitted_on`` of the calibration, each value as YAML."""
        texts = {"chips": f"[{self.cases[0].system.chip}]"}
        versions = sorted({text for c in self.cases if (text := c.row.get("framework_version"))})
        if versions:
            texts["versions"] = "[" + ", ".join(f'"{v}"' for v in versions) + "]"
        inputs = [collective_inputs(c.system, c.size, c.ranks) for c in self.cases]
        texts["ranks"] = _range([i["ranks"] for i in inputs])
        texts["collectives"] = f"[{', '.join(sorted({c.kind for c in self.cases}))}]"
        return texts | {name: _range([i[name] for i in inputs]) for name in ("size", "servers")}


def _ends(errors: Any) -> tuple[float, float]:
    """The interval of measured over computed time that contains a share of the next rows."""
    return interval(1.0 / (1.0 + errors), np.arange(len(errors)))


def _range(values: Sequence[float]) -> str:
    return f"{{low: {min(values):.0f}, high: {max(values):.0f}}}"


def fit_collectives(
    cases: Sequence[CollectiveCase],
    framework: str,
    nearest: Callable[[str, Collection[str]], Sequence[str]] = lambda _, among: sorted(among),
    priors: Mapping[str, tuple[Prior, Library]] = {},
) -> dict[str, FittedLibrary]:
    """Fits the library of a framework, one fit for each chip that has enough rows.

    Args:
        cases: The measurements of that library and of those that it uses, on all chips.  Where that library was measured
            on one chip only, those of others show how libraries transfer.
        framework: A name in :data:`LIBRARIES`.
        nearest: Function from a chip and others to those whose calibration it would get, the first first.
        priors: By chip the calibration from which its fit starts, in place of the pooled fit, and its protocols.

    Raises:
        UsageError: Unknown framework, too few rows, or scipy is not installed.
    """
    if framework not in LIBRARIES:
        raise UsageError(f"no collective library is named {framework!r}; expected one of {', '.join(LIBRARIES)}")
    by_chip: dict[str, list[CollectiveCase]] = {}
    for case in cases:
        if case.framework == framework:
            by_chip.setdefault(case.system.chip, []).append(case)
    by_chip = {chip: some for chip, some in by_chip.items() if len(some) >= LEAST or chip in priors}
    if not by_chip:
        raise UsageError(f"too few rows of {framework}; expected at least {LEAST} of a chip")
    bases = _bases(cases, framework)
    data = {chip: arrays(some, LIBRARIES[framework]) for chip, some in by_chip.items()}
    pooled = _pooled(data, framework, bases)
    results = {}
    for chip, some in by_chip.items():
        before, start = priors.get(chip, (TYPICAL, bases.get(chip)))
        rows, prior = data[chip], _prior(pooled, start)
        library, added = learned(rows, prior, OWN)
        # Rows of one size cannot be held out by size; what is known without them is the prior.
        held_out = times(prior, rows) / rows.seconds - 1.0
        for mask in _folds([c.size for c in some]):
            held_out[mask] = (
                times(solved(selected(rows, ~mask), prior, OWN), selected(rows, mask)) / rows.seconds[mask] - 1.0
            )
        beyond = []
        cells = np.array([f"{c.kind} {c.ranks}" for c in some])
        for cell in sorted(set(cells)):
            mask = cells == cell
            if 0 < mask.sum() < len(some):
                beyond.append(
                    times(solved(selected(rows, ~mask), prior, OWN), selected(rows, mask)) / rows.seconds[mask] - 1.0
                )
        others = {name: each for name, each in data.items() if name != chip}
        elsewhere_errors: Any = []
        if others:
            near = nearest(chip, others)[0]
            without = _pooled(others, framework, {k: v for k, v in bases.items() if k != chip})
            library_there = solved(others[near], _prior(without, bases.get(near)), OWN)
            elsewhere_errors = times(library_there, rows) / rows.seconds - 1.0
            beyond.append(elsewhere_errors)
        else:
            beyond += _left_out([c for c in cases if c.framework != framework])
        results[chip] = FittedLibrary(
            IDEAL,
            times(library, rows) / rows.seconds - 1.0,
            held_out,
            _LIBRARY,
            scales=np.array([c.ranks for c in some]),
            library=library,
            prior=before,
            learned=added,
            cases=tuple(some),
            beyond=np.concatenate(beyond) if beyond else np.empty(0),
            elsewhere_errors=elsewhere_errors,
        )
    return results


def _left_out(cases: Sequence[CollectiveCase]) -> list[Any]:
    """Errors of the chips of other libraries, each with a fit to the other chips: how a library transfers to a chip."""
    errors = []
    for framework in sorted({c.framework for c in cases} - BASE.keys()):
        by_chip: dict[str, list[CollectiveCase]] = {}
        for case in cases:
            if case.framework == framework:
                by_chip.setdefault(case.system.chip, []).append(case)
        data = {chip: arrays(some, LIBRARIES[framework]) for chip, some in by_chip.items() if len(some) >= LEAST}
        for chip, rows in data.items():
            others = {name: each for name, each in data.items() if name != chip}
            if others:
                errors.append(times(_pooled(others, framework, {}), rows) / rows.seconds - 1.0)
    return errors


def _bases(cases: Sequence[CollectiveCase], framework: str) -> dict[str, Library]:
    """For each chip the fit of the library that a framework uses where its own kernels do not apply."""
    base = BASE.get(framework)
    if base is None or not any(c.framework == base for c in cases):
        return {}
    by_chip: dict[str, list[CollectiveCase]] = {}
    for case in cases:
        if case.framework == base:
            by_chip.setdefault(case.system.chip, []).append(case)
    data = {chip: arrays(some, LIBRARIES[base]) for chip, some in by_chip.items()}
    pooled = solved(combined([*data.values()], np.concatenate), LIBRARIES[base], POOLED)
    return {chip: solved(rows, pooled, OWN) for chip, rows in data.items()}


def _pooled(data: Mapping[str, Rows], framework: str, bases: Mapping[str, Library]) -> Library:
    """One library for the rows of all chips."""
    mean = None
    if bases:
        vectors = [_vector(b) for b in bases.values()]
        mean = _with(next(iter(bases.values())), np.mean(vectors, axis=0))
    return solved(combined([*data.values()], np.concatenate), _prior(LIBRARIES[framework], mean), POOLED)


def _prior(library: Library, base: Library | None) -> Library:
    """A library whose protocols are those of another one where that has them."""
    known = {} if base is None else {p.name: p for p in base.protocols}
    return attrs.evolve(library, protocols=tuple(known.get(p.name, p) for p in library.protocols))


def _folds(sizes: Sequence[float]) -> list[Any]:
    """Masks of rows that are held out together: sizes in turn."""
    distinct = sorted(set(sizes))
    number = np.array([distinct.index(s) % FOLDS for s in sizes])
    masks = [number == i for i in range(FOLDS)]
    return [mask for mask in masks if 0 < mask.sum() < len(sizes)]
