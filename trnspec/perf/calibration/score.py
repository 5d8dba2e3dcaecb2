"""Scores of measured rows: measured values next to ideal, calibrated and held-out computed ones.

Each kind of rows has one way to read a table, to compute cases with a calibration, and to compute them with a fit to other rows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from attrs import asdict, evolve, fields, frozen

from trnspec.errors import UsageError
from trnspec.evidence import Kind as Evidence
from trnspec.graph.graph import Graph
from trnspec.model.calibration import Calibration, KernelRoof
from trnspec.perf.calibration.fit_range import ranges
from trnspec.perf.calibration.fits import inference, kernels, serving
from trnspec.perf.calibration.fits.collectives import BASE, CollectiveRuns, fit_collectives
from trnspec.perf.calibration.fits.fit import INPUTS, FitModel, Holdout, splits
from trnspec.perf.calibration.fits.inference import runs
from trnspec.perf.calibration.fits.prior import TYPICAL
from trnspec.perf.calibration.fits.training import batch, training
from trnspec.perf.calibration.measured.case import Case, ModelCase, Part, Skipped
from trnspec.perf.calibration.measured.cells import Record, fitted_hashes
from trnspec.perf.calibration.measured.collectives import CollectiveCase, collective_cases
from trnspec.perf.calibration.measured.inference import InferenceCase, inference_cases
from trnspec.perf.calibration.measured.kernels import KernelCase, KernelRuns, kernel_cases
from trnspec.perf.calibration.measured.neuron_kernels import OpCase, op_cases, profile_cases
from trnspec.perf.calibration.measured.serving import ServingCase, ServingRuns, on_gpu, serving_cases
from trnspec.perf.calibration.measured.training import TrainingCase, training_cases
from trnspec.perf.kernels.times import Roof
from trnspec.perf.lowering.calibrated import Calibrated, calibrated, nearest, serving_of, stated
from trnspec.perf.lowering.machine import LoweredSystem
from trnspec.perf.training.estimator import extremes
from trnspec.perf.work.memory import peak

Times = Mapping[Part, Any]
"""Values of cases by part, NaN where there is none."""

HeldOut = dict[tuple[str, Part], tuple[float, Calibrated]]
"""Values by fits to other rows, with the calibration, by the name of the row and the part."""

COST = 8
"""Time to compute the rows of a fit by fits to other models, over that to score them."""

LEAST = 5
"""Least number of rows of a fit to steps from which rows are held out."""


@frozen(kw_only=True)
class AccuracyRow:
    """One row of measurements; ``--format json`` lists them under ``rows``.  A stable interface: fields are only added.

    Attributes:
        id: The name of the row, as in its table; its line where it has none.
        set: The table: the name of its file without ``.csv``.
        part: What was measured: ``step``, ``memory``, ``tpot``, ``ttft``, ``encoder``, ``collective``, ``gemm``, ``attention_prefill``,
            ``attention_decode``, ``moe`` or ``op``; ``null`` where the row was skipped.
        unit: ``s``, or ``B`` for memory; empty where the row was skipped.
        measured: The measured value.
        computed: The computed value: with the calibration, or ideal without one.
        ideal: Computed from published figures only: a lower bound of a time.
        low: The lower end of the interval; ``null`` without a calibration.
        high: Its upper end.
        kind: The kind of evidence: ``ideal``, ``estimate``, ``extrapolated`` or ``transferred``; empty where skipped. Of a row held out with its
            chip or framework it is ``transferred``, with that interval.
        calibration: The name of the calibration; empty without one.
        seen: Whether the calibration was fitted to a row with the same content; ``null`` where the row was skipped.
        held_out: With ``--refit`` the value by a fit to rows of other models or chips, of a row that was seen; else ``null``.
        chip: The chip.
        framework: The framework, as ``--framework`` names it; empty if unknown.
        models: ``dense`` or ``experts``; empty where the row runs no model.
        scale: ``server`` (chips connected without the network), ``cluster`` (up to 512) or ``large``; empty for a kernel.
        skipped: Why the row has no computed value; empty where it has one.
    """

    id: str
    set: str
    part: Part | None = None
    unit: str = ""
    measured: float | None = None
    computed: float | None = None
    ideal: float | None = None
    low: float | None = None
    high: float | None = None
    kind: Evidence = ""
    calibration: str = ""
    seen: bool | None = None
    held_out: float | None = None
    chip: str = ""
    framework: str = ""
    models: str = ""
    scale: str = ""
    skipped: str = ""

    @property
    def calibrated(self) -> float | None:
        """The value computed with a calibration; ``None`` without one."""
        return self.computed if self.calibration else None

    @property
    def unseen(self) -> float | None:
        """The value that no fit to this row computed: by a calibration of other rows, or held out; ``None`` if none was."""
        return self.held_out if self.seen else self.calibrated

    def error(self, value: float | None) -> float:
        """Error of a computed value: over the measured one, minus 1."""
        assert value is not None
        assert self.measured is not None
        return value / self.measured - 1.0

    @property
    def inside(self) -> bool | None:
        """Whether the measured value is in the interval; ``None`` without one.

        Of a held-out value it is as wide about that as about the calibrated one: intervals are for rows that no fit has seen.
        """
        if self.low is None or self.high is None or self.computed is None or self.measured is None:
            return None
        moved = 1.0 if self.held_out is None else self.held_out / self.computed
        return self.low * moved <= self.measured <= self.high * moved


@frozen(kw_only=True)
class RowKind:
    """Scoring of rows of one kind.

    Attributes:
        of: What its calibrations are of.
        read: Function from the catalog and the rows of a table to cases.
        times: Function from the catalog, cases with the same :attr:`together`, and their calibration, to values by part.
        ideal: Function from the catalog and cases to values by published figures only; those without a calibration when left out.
        variants: Function from a case and its calibration to what figures and rows leave open, over which the value spreads.
        interval: Function from the catalog, a case, a part and a calibration to measured over computed values, low and high,
            and the kind of evidence.
        together: Function from a case to what is the same in all cases that are predicted together.
        refit: Function from the catalog, cases with their calibrations and what is held out to values by fits to other rows;
            ``None`` for rows that no calibration is fitted to.
    """

    of: str
    read: Callable[[Graph, Sequence[Record]], Iterable[Any]]
    times: Callable[[Graph, Sequence[Any], Calibrated], Times]
    interval: Callable[[Graph, Any, Part, Calibrated], tuple[float, float, Evidence]]
    ideal: Callable[[Graph, Sequence[Any]], Times] | None = None
    variants: Callable[[Any, Calibrated], Iterable[Any]] = lambda _case, _applied: ()
    together: Callable[[Any], object] = lambda _: ()
    refit: Callable[[Graph, Sequence[tuple[Any, Calibrated]], Collection[Holdout]], HeldOut] | None = None

    def scores(
        self, graph: Graph, rows: Sequence[Record], dataset: str, calibration: str
    ) -> Iterator[tuple[AccuracyRow, tuple[Case, Calibrated, float, float] | None]]:
        """The scores of rows, first of those that are skipped; of others with the case, its calibration, least and largest value."""
        fitted = fitted_hashes(graph)
        chosen: dict[tuple[Any, ...], Calibrated] = {}
        groups: dict[tuple[object, ...], tuple[Calibrated, list[Case]]] = {}
        for case in self.read(graph, rows):
            if isinstance(case, Skipped):
                yield AccuracyRow(id=case.id, set=dataset, skipped=case.reason), None
                continue
            key = case.chosen_by
            if key not in chosen:
                chip, framework, era, experts = key
                chosen[key] = calibrated(graph, chip, self.of, calibration, framework, era, experts=experts)
            known = chosen[key]
            groups.setdefault((self.together(case), known.name), (known, []))[1].append(case)
        for known, cases in groups.values():
            predicted = self._predicted(graph, cases, known)
            for i, case in enumerate(cases):
                own = chosen[case.chosen_by]
                for part in (part for part in predicted if case.measured(part)):
                    ideal, value, least, largest = (float(each[i]) for each in predicted[part])
                    row = AccuracyRow(
                        id=case.id, set=dataset, part=part, unit="B" if part == "memory" else "s", measured=case.measured(part),
                        computed=ideal, ideal=ideal, kind="ideal", seen=False, chip=case.chip, framework=case.software,
                        models=getattr(case, "models", ""), scale=getattr(case, "scale", ""),
                    )  # fmt: skip
                    if not known.name or np.isnan(value):
                        yield row, None
                        continue
                    low, high, kind = self.interval(graph, case, part, own)
                    row = evolve(
                        row, computed=value, low=least * low, high=largest * high, kind=kind, calibration=known.name,
                        seen=not fitted[known.name].isdisjoint(case.hashes),
                    )  # fmt: skip
                    yield row, (case, own, least, largest)

    def _predicted(
        self, graph: Graph, cases: Sequence[Any], known: Calibrated
    ) -> dict[Part, tuple[Any, Any, Any, Any]]:
        """By part the ideal, the calibrated, the least and the largest value of each row; NaN without a calibrated one."""
        ideal = self.ideal(graph, cases) if self.ideal else self.times(graph, cases, Calibrated())
        every = [[case, *(self.variants(case, known) if known.name else ())] for case in cases]
        starts = np.cumsum([0, *map(len, every[:-1])])
        times = self.times(graph, [each for some in every for each in some], known) if known.name else {}
        result = {}
        for part, bound in ideal.items():
            found = times.get(part, np.full(sum(map(len, every)), np.nan))
            result[part] = bound, found[starts], np.minimum.reduceat(found, starts), np.maximum.reduceat(found, starts)
        return result


def _of_model(_graph: Graph, case: ModelCase, part: Part, known: Calibrated) -> tuple[float, float, Evidence]:
    at = known.at(case.inputs, case.dtype, scale=case.scale, experts=case.models == "experts")
    low, high = (None if part in {"step", "tpot"} else at.ttft_interval) or (at.low, at.high)
    return low, high, "transferred" if part == "encoder" else at.evidence.kind


def _at(case: Any, ends: Iterable[LoweredSystem]) -> list[Any]:
    """A case on systems with the figures of either end of their intervals; arrays distinguish systems by their names."""
    return [evolve(case, system=evolve(system, name=f"{system.name} {end}")) for end, system in enumerate(ends)]


def _at_ends(case: Any, _applied: Calibrated) -> list[Any]:
    """A case at the slow and at the fast end of its system's figures."""
    return _at(case, case.system.ends or (case.system,) * 2)


def _training_cases(graph: Graph, rows: Sequence[Record]) -> Iterator[TrainingCase | Skipped]:
    for case in training_cases(graph, rows):
        if not isinstance(case, Skipped) and case.memory and not case.microbatch_stated:
            yield Skipped(case.id, "its memory: the row does not state the microbatch")
            case = evolve(case, memory=0.0)  # noqa: PLW2901  # of the same row
        yield case


def _ideal_steps(_graph: Graph, cases: Sequence[TrainingCase]) -> Times:
    """Times of a step, and memory, which is not fitted."""
    memory = [float(peak(c.dims, c.layout, c.runtime).total) if c.memory else np.nan for c in cases]
    return {**batch(cases).times({}), "memory": np.array(memory)}


def _layouts(case: TrainingCase, applied: Calibrated) -> Iterator[TrainingCase]:
    """A row that leaves a setting open with each of its values, at either end of the figures."""
    for one in _at(case, extremes(case.system, applied)):
        yield from (evolve(one, layout=layout) for layout in (case.layout, *case.alternatives))


Fits = Iterable[tuple["FitModel", Sequence[Any]]]
"""Fits, each with its rows."""


def _refit(
    fits: Callable[[Graph, Any], Fits],
    graph: Graph,
    rows: Sequence[tuple[Any, Calibrated]],
    holdout: Collection[Holdout],
) -> HeldOut:
    """Values by fits to other models, chips or frameworks, or to less of an input; none where all rows of a fit are of one."""
    values: HeldOut = {}
    known = {case.id: calibration for case, calibration in rows}
    inputs = not {*INPUTS}.isdisjoint(holdout)
    for model, some in fits(graph, [case for case, _ in rows]):
        whole, parts = model.solve(some), model.timed(some, TYPICAL)
        for kept, out in splits(model, some, holdout):
            rest, unseen = ([c for c, chosen in zip(some, mask, strict=True) if chosen] for mask in (kept, out))
            # Documents of one fit state one range.
            inner: dict[tuple[Any, ...], list[Mapping[str, float]]] = {}
            for case in rest if inputs else ():
                inner.setdefault((*known[case.id].ranges.items(),), []).append(case.inputs)
            left = {stated: ranges(each) for stated, each in inner.items()}
            for part, times in model.times(unseen, model.solve(rest, start=whole)).items():
                for case, time in zip(unseen, times, strict=True) if part in parts else ():
                    if case.measured(part):
                        own = known[case.id]
                        values[case.id, part] = float(time), _without(own, holdout, left.get((*own.ranges.items(),)))
    return values


def _without(
    known: Calibrated, holdout: Collection[Holdout], left: Mapping[str, tuple[float, float]] | None = None
) -> Calibrated:
    """A calibration without what is held out: with the range that is left of its inputs; else transferred, but without a model."""
    if left:
        return evolve(known, ranges=left)
    if {*holdout} == {"model"}:
        return known
    moved = known if "framework" in holdout else known.on_another_chip()
    return evolve(moved, evidence=evolve(known.evidence, kind="transferred")).at({})


def _fits_of_steps(graph: Graph, cases: Sequence[TrainingCase]) -> Fits:
    return [(training(_eras(graph, cases)), cases)] if len(cases) >= LEAST else []


def _eras(graph: Graph, cases: Sequence[TrainingCase]) -> tuple[str, ...]:
    """The eras of the calibrations that were fitted to some rows, where there are several."""
    hashes = {each for case in cases for each in case.hashes}
    fitted = fitted_hashes(graph)
    eras = sorted({n.spec.era for n in graph.of(Calibration) if n.spec.era and not hashes.isdisjoint(fitted[n.name])})
    return tuple(eras) if len(eras) > 1 else ()


def _tokens(_graph: Graph, cases: Sequence[InferenceCase], applied: Calibrated) -> Times:
    """Times per output token and to first token; or of a pass of encoders."""
    encoders = bool(cases[0].encoded)
    applied = _alone(applied) if encoders else applied
    times = runs(cases, applied.efficiency).times(asdict(serving_of(applied)))
    return {"encoder": times["ttft"]} if encoders else times


def _servers(case: InferenceCase, applied: Calibrated) -> list[InferenceCase]:
    """The ends of the figures; of encoders the slow one with weights of 4 bytes."""
    slow, fast = _at_ends(case, applied)
    return [evolve(slow, plan=evolve(slow.plan, weight_bytes=4.0)) if case.encoded else slow, fast]


def _alone(applied: Calibrated) -> Calibrated:
    """A calibration of a server for a model without one: shares of rates, and none of the fixed times."""
    fixed = dict.fromkeys(("launch", "sample", "request", "queue", "response"), 0.0)
    efficiency = evolve(applied.efficiency, call=0.0, step=0.0)
    return evolve(applied, efficiency=efficiency, serving=evolve(applied.serving, **fixed))


def _fits_of_tokens(_graph: Graph, cases: Sequence[InferenceCase]) -> Fits:
    some = [case for case in cases if case.tpot]
    return [(inference.MODEL, some)] if len(some) >= inference.LEAST else []


def _requests(_graph: Graph, cases: Sequence[ServingCase], applied: Calibrated) -> Times:
    return ServingRuns.of(cases, applied.efficiency).times(asdict(serving_of(applied)))


def _ideal_requests(_graph: Graph, cases: Sequence[ServingCase]) -> Times:
    """A decoding step with as many requests as fit, without prompts, and a prompt that is served alone."""
    bounds = ServingRuns.of(cases)
    return {"tpot": bounds.run({}).step, "ttft": evolve(bounds, requests=np.ones(len(cases))).run({}).ttft}


def _caches(case: ServingCase, applied: Calibrated) -> list[ServingCase]:
    """The ends of the figures, and where a row does not state the dtype of the KV cache the other width, 8 or 16 bit."""
    other = evolve(case.plan, cache_bytes=1.0 if case.plan.cache_bytes > 1.0 else 2.0)
    return _at_ends(case, applied) + ([] if case.cache_known else [evolve(case, plan=other)])


def _collectives(_graph: Graph, cases: Sequence[CollectiveCase], applied: Calibrated) -> Times:
    """Times of collectives; NaN where the calibration has no protocol for one."""
    if applied.library is None:
        return {}
    value = CollectiveRuns.of(cases, applied.library).times({})["collective"]
    return {"collective": np.where(np.isfinite(value), value, np.nan)}


def _of_collective(
    _graph: Graph, case: CollectiveCase, _part: Part, known: Calibrated
) -> tuple[float, float, Evidence]:
    at = known.at(case.inputs, collective=case.kind)
    return at.low, at.high, at.evidence.kind


def _refit_collectives(
    graph: Graph, rows: Sequence[tuple[CollectiveCase, Calibrated]], holdout: Collection[Holdout]
) -> HeldOut:
    """By a fit without the rows of a size, or by that of the nearest other chip."""
    values: HeldOut = {}
    # Each library has a fit of its own, so that none can be left out; and no row is above the range of an input.
    known = {case.id: calibration for case, calibration in rows}
    for framework in sorted({c.framework for c, _ in rows}) if {*INPUTS, "framework"}.isdisjoint(holdout) else ():
        used = [c for c, _ in rows if c.framework in {framework, BASE.get(framework)}]
        try:
            fits = fit_collectives(used, framework, partial(nearest, graph))
        except UsageError:
            continue
        for fitted in fits:
            errors = fitted.main.elsewhere if "chip" in holdout else fitted.main.held_out
            for case, off in zip(fitted.cases, errors, strict=True) if errors is not None else ():
                values[case.id, "collective"] = case.seconds * (1.0 + float(off)), _without(known[case.id], holdout)
    return values


def _kernels(graph: Graph, cases: Sequence[KernelCase], applied: Calibrated) -> Times:
    """Times of one kernel in one precision."""
    roof = _roof(graph, cases[0], applied)
    if applied.name and roof is None:
        return {}
    return KernelRuns.of(cases[0].part, cases).times(stated(roof, (each.name for each in fields(Roof))) if roof else {})


def _roof(graph: Graph, case: KernelCase, known: Calibrated) -> KernelRoof | None:
    """The roof of a kernel in a precision; without one, that of the precision with the longest common beginning."""
    if not known.name:
        return None
    own = [r for r in _spec(graph, known).roofs if r.kernel == case.part]

    def common(text: str) -> int:
        return sum(case.precision.startswith(text[: n + 1]) for n in range(len(text)))

    return max(own, key=lambda r: (r.precision == case.precision, common(r.precision), int(r.rows)), default=None)


def _spec(graph: Graph, known: Calibrated) -> Calibration:
    return next(n.spec for n in graph.of(Calibration) if n.name == known.name)


def _of_kernel(graph: Graph, case: KernelCase, part: Part, known: Calibrated) -> tuple[float, float, Evidence]:
    """The interval of a kernel; elsewhere than on the chip and framework of the rows also that of other chips."""
    group = next((g for g in _spec(graph, known).groups if g.phase == part), None)
    low, high = (known.low, known.high) if group is None else (float(group.low), float(group.high))
    kind = known.evidence.kind
    if kind == "transferred":
        low, high = min(low, known.low), max(high, known.high)
    roof = _roof(graph, case, known)
    return low, high, kind if roof is None or roof.precision == case.precision else "transferred"


def _fits_of_kernels(_graph: Graph, cases: Sequence[KernelCase]) -> Fits:
    return [
        (kernels.model(part), [c for c in cases if c.part == part]) for part in dict.fromkeys(c.part for c in cases)
    ]


def _ops(_graph: Graph, cases: Sequence[OpCase], applied: Calibrated) -> Times:
    """Kernels on Neuron; the share of a calibration is that of whole layers, not of a multiplication alone."""
    shares = applied.efficiency.matmul, float(applied.serving.weights), applied.efficiency.step
    return {"op": np.array([np.nan if c.alone else c.achieved(*shares) for c in cases])}


def _ideal_ops(_graph: Graph, cases: Sequence[OpCase]) -> Times:
    return {"op": np.array([c.time() for c in cases])}


def _of_op(_graph: Graph, case: OpCase, _part: Part, known: Calibrated) -> tuple[float, float, Evidence]:
    low, high = (known.ttft_interval if case.first else None) or (known.low, known.high)
    return low, high, "transferred"


KINDS: Mapping[str, tuple[RowKind, ...]] = {
    "train": (
        RowKind(
            of="training",
            read=_training_cases,
            times=lambda _, cases, applied: batch(cases).times(asdict(applied.efficiency)),
            interval=_of_model,
            ideal=_ideal_steps,
            variants=_layouts,
            refit=partial(_refit, _fits_of_steps),
        ),
    ),
    "infer": (
        RowKind(
            of="inference",
            read=lambda graph, rows: inference_cases(graph, [r | {"kind": ""} if on_gpu(r) else r for r in rows]),
            times=_tokens,
            interval=_of_model,
            variants=_servers,
            together=lambda c: c.encoded > 0.0,
            refit=partial(_refit, _fits_of_tokens),
        ),
        RowKind(
            of="inference",
            read=serving_cases,
            times=_requests,
            interval=_of_model,
            ideal=_ideal_requests,
            variants=_caches,
            refit=partial(_refit, lambda _, cases: [(serving.MODEL, cases)]),
        ),
    ),
    "collective": (
        RowKind(
            of="collectives",
            read=collective_cases,
            times=_collectives,
            interval=_of_collective,
            refit=_refit_collectives,
            ideal=lambda _, cases: {"collective": np.array([c.ideal for c in cases])},
        ),
    ),
    **{
        kind: (
            RowKind(
                of="kernels",
                read=partial(kernel_cases, kind=kind),
                times=_kernels,
                interval=_of_kernel,
                together=lambda c: (c.part, c.precision),
                refit=partial(_refit, _fits_of_kernels),
            ),
        )
        for kind in ("matmul", "attention", "moe")
    },
    "device_profile": (RowKind(of="inference", read=profile_cases, times=_ops, interval=_of_op, ideal=_ideal_ops),),
    "op": (RowKind(of="inference", read=op_cases, times=_ops, interval=_of_op, ideal=_ideal_ops),),
}
"""Scoring of rows, by the value of the column ``kind``."""


def score(
    graph: Graph,
    tables: Mapping[str, list[Record]],
    *,
    calibration: str = "auto",
    refit: bool = False,
    holdout: Sequence[Holdout] = ("model",),
    progress: Callable[[int, int], None] | None = None,
) -> list[AccuracyRow]:
    """The score of every row.

    A row counts as seen where its calibration was fitted to a row with the same content, whatever the names of row and file.

    Args:
        graph: The catalog.
        tables: The rows of each table.
        calibration: Name of a calibration for all rows, ``none``, or ``auto``.
        refit: Also compute each row that was seen with a fit to the models, chips or frameworks other than its own.
        holdout: What is left out of a fit; of several all are new to it.
        progress: Called with the work done and the work in all.

    Raises:
        UsageError: The calibration is of another kind than the rows.
        UnknownNameError: No calibration of that name.
    """
    total = sum(map(len, tables.values())) * (1 + COST * refit)
    done = 0
    advance = progress or (lambda _done, _total: None)
    scores: list[tuple[RowKind | None, AccuracyRow, tuple[Case, Calibrated, float, float] | None]] = []
    # Calibrations of several chips are of one fit if their rows are the same; collectives of all chips are one fit.
    fits = fitted_hashes(graph)
    groups: dict[tuple[RowKind, frozenset[str]], dict[str, tuple[Case, Calibrated]]] = {}
    for name, rows in tables.items():
        for kind in dict.fromkeys(row["kind"] for row in rows):
            for of in KINDS.get(kind, ()):
                found = [*of.scores(graph, rows, name, calibration)]
                scores += sorted([(of, *one) for one in found], key=lambda one: not one[1].skipped)
                for row, about in found:
                    if about and row.seen and of.refit:
                        fit_of = frozenset() if of.of == "collectives" else fits[row.calibration]
                        groups.setdefault((of, fit_of), {})[row.id] = about[:2]
            if kind not in KINDS:
                reason = f"no evaluator for {f'the kind {kind}' if kind else 'rows without a kind'}"
                lines = [row.get("id") or f"line {line}" for line, row in enumerate(rows, 2) if row["kind"] == kind]
                scores += [(None, AccuracyRow(id=line, set=name, skipped=reason), None) for line in lines]
        done += len(rows)
        advance(done, total)
    values: HeldOut = {}
    for (of, _), cases in groups.items() if refit else ():
        values |= of.refit(graph, [*cases.values()], holdout) if of.refit else {}
        done += COST * len(cases)
        advance(done, total)
    advance(total, total)
    result = []
    for row_kind, row, about in scores:
        if row_kind and about and row.part and row.seen and (row.id, row.part) in values:
            (value, known), (case, _, least, largest) = values[row.id, row.part], about
            low, high, kind = row_kind.interval(graph, case, row.part, known)
            result.append(evolve(row, held_out=value, low=least * low, high=largest * high, kind=kind))
        else:
            result.append(row)
    return result
