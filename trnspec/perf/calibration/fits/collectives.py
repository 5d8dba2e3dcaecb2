"""Fits of the protocols of a collective library to measured collectives, pooled over chips, and their held-out errors.

A first fit has the rows of all chips with one set of parameters: shares of the rates of each chip, and times.  Each chip
then has parameters of its own that are kept near the pooled ones, so that a chip with few rows, or a protocol that they do
not use, borrows from the others.  Errors are held out by size, by collective and number of ranks, and by chip.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from attrs import frozen

from trnspec.errors import UsageError
from trnspec.perf.calibration.fit_range import ranges
from trnspec.perf.calibration.fits.fit import Errors, FitModel, Fitted, held_out, of_groups
from trnspec.perf.calibration.fits.limits import COLLECTIVE
from trnspec.perf.calibration.fits.prior import TYPICAL, FitPrior
from trnspec.perf.calibration.fits.search import Space, combined
from trnspec.perf.calibration.groups import GroupErrors, interval, of_rows
from trnspec.perf.calibration.measured.case import Part
from trnspec.perf.calibration.measured.collectives import CollectiveCase
from trnspec.perf.calibration.transfer import left_out
from trnspec.perf.collectives.library import Algorithm, Library, LibraryProtocol, launched, shape, time_of
from trnspec.perf.collectives.schedules import Kind

_RINGS: tuple[Kind, ...] = ("all-reduce", "all-gather", "reduce-scatter", "broadcast")
_REDUCE: tuple[Kind, ...] = ("all-reduce",)
_PAIRS: tuple[Kind, ...] = ("all-to-all", "send")


def _typical(  # noqa: PLR0913, PLR0917  # a row of a table
    name: str, algorithm: Algorithm, kinds: tuple[Kind, ...], call: float, hop: float, far: float, link: float,
    network: float, own: float = 0.0,
) -> LibraryProtocol:  # fmt: skip
    """A protocol with times in us."""
    return LibraryProtocol(
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
class CollectiveRuns:
    """Cases as arrays, one row each; those of protocols have one column for each.

    Attributes:
        library: The protocols.
        usable: Whether a row can use a protocol.
        coefficients: Steps, steps over the network, and loads, as in :class:`~trnspec.perf.collectives.library.CollectiveShape`.
        size: Buffers [B].
        launch: How each is launched.
        byte: Time of a byte of device memory [s].
    """

    library: Library
    usable: Any
    coefficients: Any
    size: Any
    launch: Any
    byte: Any

    @classmethod
    def of(cls, cases: Sequence[CollectiveCase], library: Library) -> CollectiveRuns:
        """Cases as arrays for the protocols of a library."""
        shapes: dict[tuple[Any, ...], Any] = {}
        for case, protocol in itertools.product(cases, library.protocols):
            key = (case.system.name, case.system.lnc, case.kind, protocol.algorithm, case.ranks)
            if key not in shapes:
                shapes[key] = shape(case.machine, case.kind, protocol.algorithm, case.ranks, 1.0)
        algorithms = [p.algorithm for p in library.protocols]
        table = [[shapes[c.system.name, c.system.lnc, c.kind, a, c.ranks] for a in algorithms] for c in cases]
        columns = [combined(column, lambda numbers: np.array(numbers, float)) for column in table]
        return cls(
            library,
            np.array([[case.can_use(p) for p in library.protocols] for case in cases]),
            combined(columns, np.array),
            np.array([c.size for c in cases]),
            np.array([c.launch for c in cases]),
            np.array([float(c.machine.seconds_per_byte) for c in cases]),
        )

    def by_protocol(self, library: Library) -> Any:
        """The computed times of rows by each protocol [s]; infinite where a row cannot use it."""
        numbers: dict[str, Any] = {name: np.array([getattr(p, name) for p in library.protocols]) for name in _PROTOCOL}
        columns = LibraryProtocol(name="", algorithm="ring", **numbers)
        return np.where(self.usable, time_of(columns, self.coefficients, self.size[:, None]), np.inf)

    def times(self, values: Mapping[str, Any]) -> dict[Part, Any]:
        """The computed times of rows [s] with other values of some parameters of the library: one set for all rows."""
        one = {name: value if np.ndim(value) == 0 else value[0] for name, value in values.items()}
        library = _with(self.library, one)
        time = self.by_protocol(library).min(axis=1)
        for launch in ("eager", "synchronous"):
            time = np.where(self.launch == launch, launched(library, launch, time, self.size, self.byte), time)
        return {"collective": time}


def _parameters(library: Library) -> dict[str, float]:
    """The parameters of a library; names of those of a protocol begin with its name, and those that are 0 are not fitted."""
    owned = {f"{p.name} {name}": getattr(p, name) for p in library.protocols for name in _PROTOCOL}
    owned |= {name: getattr(library, name) for name in _LIBRARY}
    return {name: value for name, value in owned.items() if value}


def _with(library: Library, values: Mapping[str, float]) -> Library:
    """A library with other values of its parameters."""
    protocols = []
    for p in library.protocols:
        own: dict[str, Any] = {name: values[f"{p.name} {name}"] for name in _PROTOCOL if f"{p.name} {name}" in values}
        protocols.append(attrs.evolve(p, **own))
    return attrs.evolve(library, protocols=tuple(protocols), **{n: values[n] for n in _LIBRARY if n in values})


def model(prior: Library, weight: float = OWN) -> FitModel:
    """The fit of the parameters of a library, held out by size.

    Args:
        prior: The library where the search begins.
        weight: Residual of a parameter that is off by a factor of e.
    """
    typical = _parameters(prior)
    limits = {name: COLLECTIVE[name.split()[-1]] for name in typical}
    space = Space(
        typical=typical, pulls=dict.fromkeys(typical, weight), limits={n: (end.low, end.high) for n, end in limits.items()},
        tolerance=_TOLERANCE, step=0.0,
    )  # fmt: skip
    return FitModel(
        parts=("collective",), least=1, columns=lambda cases: CollectiveRuns.of(cases, prior),
        space=lambda _cases, _prior: space, groups=lambda _: {}, folds=_sizes, whole=True, warm=False,
    )  # fmt: skip


def _sizes(cases: Sequence[CollectiveCase]) -> list[str]:
    """The fold of each row: rows of one size are in one."""
    sizes = sorted({c.size for c in cases})
    return [str(sizes.index(c.size) % FOLDS) for c in cases]


def solved(cases: Sequence[CollectiveCase], prior: Library, weight: float = OWN) -> Library:
    """The library that a fit finds."""
    return _with(prior, model(prior, weight).solve(cases).values())


def errors_of(library: Library, cases: Sequence[CollectiveCase]) -> Any:
    """Computed over measured time minus 1 of each row."""
    return CollectiveRuns.of(cases, library).times({})["collective"] / np.array([c.seconds for c in cases]) - 1.0


def fit_collectives(
    cases: Sequence[CollectiveCase],
    framework: str,
    nearest: Callable[[str, Collection[str]], Sequence[str]] = lambda _, among: sorted(among),
    priors: Mapping[str, tuple[FitPrior, Library]] = {},
) -> list[Fitted]:
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
    by_chip = _by_chip(cases, framework, priors)
    if not by_chip:
        raise UsageError(f"too few rows of {framework}; expected at least {LEAST} of a chip")
    # For each chip the fit of the library that a framework uses where its own kernels do not apply.
    base = BASE.get(framework, "")
    of_base = _by_chip(cases, base, least=1)
    pooled = _pooled(of_base, base, {}) if of_base else None
    bases = {chip: solved(some, pooled) for chip, some in of_base.items() if pooled}
    pooled = _pooled(by_chip, framework, bases)
    results = []
    for chip, some in by_chip.items():
        before, start = priors.get(chip, (TYPICAL, bases.get(chip)))
        prior = _prior(pooled, start)
        of = model(prior)
        found = of.solve(some)
        values = found.values()
        library = _with(prior, values)
        # Rows of one size cannot be held out by size; what is known without them is the prior.
        by_size = _held_out(of, some, _sizes(some))
        by_size = errors_of(prior, some) if by_size is None else by_size
        others = {name: each for name, each in by_chip.items() if name != chip}
        elsewhere = None
        if others:
            near = nearest(chip, others)[0]
            without = _pooled(others, framework, {k: v for k, v in bases.items() if k != chip})
            elsewhere = errors_of(solved(others[near], _prior(without, bases.get(near))), some)
        far = [_held_out(of, some, [f"{c.kind} {c.ranks}" for c in some]), elsewhere]
        far += [] if others else _of_other_libraries(cases, framework)
        beyond = np.concatenate([[], *(each for each in far if each is not None)])
        # The interval is drawn towards that of the prior where there are few rows.
        drawn = before.drawn(_group(by_size), GROUP)
        errors = Errors(
            cases=tuple(some), fit=errors_of(library, some), held_out=by_size, elsewhere=elsewhere, ends=(drawn.low, drawn.high)
        )  # fmt: skip
        results.append(
            Fitted(
                cases=tuple(some), values={n: getattr(library, n) for n in _LIBRARY}, errors={"collective": errors}, chip=chip,
                framework=framework, found=found, prior=before, library=library, note=_note(library, some),
                learned=() if found.posterior is None else tuple(found.posterior.learned(values)), groups=tuple(_groups(errors)),
                beyond=(left_out(beyond, np.arange(len(beyond)), {(c.kind, c.ranks) for c in some}),), fitted_on=_fitted_on(some),
            )
        )  # fmt: skip
    return results


def _held_out(of: FitModel, cases: Sequence[CollectiveCase], labels: Sequence[str]) -> Any:
    """Errors of each row by a fit to the rows with other labels; ``None`` where all have one."""
    times = held_out(cases, of_groups(labels), of.solve, of.times)
    return times["collective"] / np.array([c.seconds for c in cases]) - 1.0 if times else None


def _by_chip(
    cases: Sequence[CollectiveCase], framework: str, priors: Collection[str] = (), least: int = LEAST
) -> dict[str, list[CollectiveCase]]:
    """The rows of a library on each chip that has enough of them, or a prior."""
    own = [case for case in cases if case.framework == framework]
    each = {chip: [c for c in own if c.chip == chip] for chip in dict.fromkeys(c.chip for c in own)}
    return {chip: some for chip, some in each.items() if len(some) >= least or chip in priors}


def _of_other_libraries(cases: Sequence[CollectiveCase], framework: str) -> list[Any]:
    """Errors of the chips of other libraries, each with a fit to the other chips: how a library transfers to a chip."""
    errors = []
    for other in sorted({c.framework for c in cases} - BASE.keys() - {framework}):
        by_chip = _by_chip(cases, other)
        for chip, some in by_chip.items() if len(by_chip) > 1 else ():
            rest = {name: each for name, each in by_chip.items() if name != chip}
            errors.append(errors_of(_pooled(rest, other, {}), some))
    return errors


def _pooled(by_chip: Mapping[str, Sequence[CollectiveCase]], framework: str, bases: Mapping[str, Library]) -> Library:
    """One library for the rows of all chips."""
    mean = None
    if bases:
        each = [_parameters(b) for b in bases.values()]
        logs = {name: np.mean([np.log(of[name]) for of in each]) for name in each[0]}
        mean = _with(next(iter(bases.values())), {name: float(np.exp(log)) for name, log in logs.items()})
    return solved([*itertools.chain(*by_chip.values())], _prior(LIBRARIES[framework], mean), POOLED)


def _prior(library: Library, base: Library | None) -> Library:
    """A library whose protocols are those of another one where that has them."""
    known = {} if base is None else {p.name: p for p in base.protocols}
    return attrs.evolve(library, protocols=tuple(known.get(p.name, p) for p in library.protocols))


def _group(errors: Any, **more: Any) -> GroupErrors:
    """A group of rows with these errors, each of which counts as a cluster."""
    rows = np.arange(len(errors))
    return of_rows("collective", errors, len(rows), interval(1.0 / (1.0 + errors), rows), **more)


def _groups(errors: Errors) -> list[GroupErrors]:
    """The errors of held-out rows over the network; within servers by size: latency, switch of protocols, and rate."""
    sizes = np.array([c.size for c in errors.cases])
    servers = np.array([c.inputs["servers"] for c in errors.cases])
    spans = [("cluster", 0.0, np.inf), *(("server", *ends) for ends in itertools.pairwise((0.0, *SIZES, np.inf)))]
    found = []
    for scale, low, high in spans:
        mask = (sizes > low) & (sizes <= high) & ((servers > 1.0) == (scale == "cluster"))
        if mask.sum() >= GROUP:
            span = (float(sizes[mask].min()), float(sizes[mask].max()))
            found.append(_group(errors.held_out[mask], scale=scale, size=span))
    return found


def _note(library: Library, cases: Sequence[CollectiveCase]) -> str:
    """Note on parameters that no row of the chip determines: those of the pooled fit, or typical ones; may be empty."""
    used = {int(i) for i in CollectiveRuns.of(cases, library).by_protocol(library).argmin(axis=1)}
    unused = [p.name for i, p in enumerate(library.protocols) if i not in used]
    unused += [word for word in ("eager", "synchronous") if all(c.launch != word for c in cases)]
    if all(c.inputs["servers"] == 1.0 for c in cases):
        unused.append("the network")
    return f"Pooled or typical, without rows of this chip: {', '.join(unused)}." if unused else ""


def _fitted_on(cases: Sequence[CollectiveCase]) -> dict[str, Any]:
    """The object ``fitted_on`` of the calibration."""
    versions = sorted({text for c in cases if (text := c.row.get("framework_version"))})
    spans = {n: {"low": round(a), "high": round(b)} for n, (a, b) in ranges([c.inputs for c in cases]).items()}
    return {
        "chips": [cases[0].chip], **({"versions": versions} if versions else {}), "ranks": spans["ranks"],
        "collectives": sorted({c.kind for c in cases}), "size": spans["size"], "servers": spans["servers"],
    }  # fmt: skip
