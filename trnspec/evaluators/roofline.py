"""What a kernel, or every part of a model, can reach on a chip: computation or memory, whichever binds."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Literal

from attrs import frozen

from trnspec.errors import UsageError
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, RefusalError, Table, UsedFigure
from trnspec.graph.provenance import figures
from trnspec.model.transformers.counting import dimensions
from trnspec.perf.lowering.lower import lower
from trnspec.perf.roofline import ELEMENT_BYTES, Piece, attainable, least_time, pieces, ridge
from trnspec.perf.work.flops import matmul_flops, matmul_traffic

if TYPE_CHECKING:
    from trnspec.catalog.catalog import Catalog
    from trnspec.graph.provenance import Stated
    from trnspec.perf.lowering.system import System

_MATMUL = re.compile(r"([1-9][0-9]{0,11})x([1-9][0-9]{0,11})x([1-9][0-9]{0,11})", re.ASCII)


@frozen
class _Roof:
    """Rate and bandwidth of one chip: slow end, as published, fast end."""

    rates: tuple[float, float, float]
    bandwidths: tuple[float, float, float]

    def time(self, flops: float, traffic: float) -> tuple[float, float, float]:
        """The least time: as published, low, high."""
        slow, value, fast = (least_time(flops, traffic, r, b) for r, b in zip(self.rates, self.bandwidths, strict=True))
        return value, fast, slow

    def rate(self, intensity: float) -> tuple[float, float, float]:
        """The attainable rate: as published, low, high."""
        slow, value, fast = (attainable(intensity, r, b) for r, b in zip(self.rates, self.bandwidths, strict=True))
        return value, slow, fast

    @property
    def ridge(self) -> float:
        """The ridge point in FLOP/B."""
        return float(ridge(self.rates[1], self.bandwidths[1]))

    def bottleneck(self, intensity: float) -> str:
        """``compute`` or ``memory``."""
        return "compute" if intensity >= self.ridge else "memory"


def run(  # noqa: PLR0913  # each is an axis of the question
    catalog: Catalog,
    *,
    on: str,
    dtype: str = "bf16",
    matmul: str | None = None,
    intensity: float | None = None,
    model: str | None = None,
    seq: int = 4096,
    batch: int = 1,
    phase: Literal["prefill", "decode"] = "prefill",
    attention: Literal["full", "causal"] = "causal",
    sparse: bool = False,
) -> Evaluation:
    """The rate that a kernel, or each part of a model forward, can reach on one chip, and what binds it.

    Without matmul, intensity and model: the ridge point of every data type.

    Args:
        catalog: The catalog.
        on: A chip, or a server or UltraServer whose chip is meant: trainium2.
        dtype: The data type that is multiplied: bf16.
        matmul: A matrix multiplication (m, k) x (k, n) as m x k x n: 4096x4096x4096.
        intensity: The arithmetic intensity of a kernel in FLOP/B.
        model: The name of a model: llama-3.1-8b.
        seq: Tokens of a sequence; when decoding, those in its cache.
        batch: Sequences.
        phase: Whether whole sequences are computed, or one token of each.
        attention: Whether a token is counted to meet all of its sequence, or only what comes before it.
        sparse: Use the rate for sparse operands.

    Raises:
        UsageError: More than one kernel is asked for, or one that is none.
        RefusalError: A rate that is needed is not published.
    """
    asked = [n for n, v in (("matmul", matmul), ("intensity", intensity), ("model", model)) if v is not None]
    if len(asked) > 1:
        raise UsageError(f"{' and '.join(asked)} exclude each other; ask for one kernel, or for a model")
    system = lower(catalog.graph, on)
    if system.bandwidth <= 0.0:
        place = f"{system.chip} spec.memory.bandwidth"
        raise RefusalError("unknown-figure", f"{system.chip} has no published memory bandwidth", place=place)
    roof = _roof(catalog, system, dtype, sparse=sparse)
    kernel = f"{dtype}, {'sparse' if sparse else 'dense'}"
    answers: tuple[Answer, ...] = _ridge_answers(roof)
    parts: tuple[Part, ...] = ()
    tables: tuple[Table, ...] = (_ridges(catalog, system),)
    binds, title = "", f"ridge points of {system.chip}"
    assumptions: tuple[Assumption, ...] = (
        Assumption("efficiency", "1", "the roofline is a bound; nothing is calibrated"),
        Assumption("rank", "1 chip", "all its cores together"),
    )
    if matmul is not None:
        found = _matmul(matmul, dtype, roof)
        answers, binds, title = (*found, *answers), _binds(roof, found), f"{matmul} in {kernel} on {system.chip}"
        assumptions += _sizes(dtype)
    elif intensity is not None:
        if intensity <= 0.0:
            raise UsageError(f"intensity: a positive number of FLOP/B is expected, not {intensity}")
        value, low, high = roof.rate(intensity)
        rate = Answer("attainable_rate", value, "FLOP/s", low, high)
        found = (rate, Answer("intensity", intensity, "FLOP/B"))
        answers, binds, title = (
            (*found, *answers),
            _binds(roof, found),
            f"{intensity:g} FLOP/B in {kernel} on {system.chip}",
        )
    elif model is not None:
        each = _model(catalog, model, dtype, seq, batch, phase, attention)
        answers, parts, table = _of_model(each, roof)
        answers += _ridge_answers(roof)
        tables = (table, *tables)
        binds = _longest(each, roof)
        title = f"{model} forward in {kernel} on one {system.chip}: {phase}, {batch:,} x {seq:,} tokens"
        assumptions += (
            *_sizes(dtype),
            Assumption(
                "attention_flops", "full" if phase == "decode" else attention, "how scores and values are counted"
            ),
            Assumption("logits", "one token a sequence", "of every token where the model sees all of its input"),
            Assumption("capacity", "not checked", "whether the model fits is the question of the evaluator memory"),
        )
    return Evaluation(
        evaluator="roofline",
        title=title,
        answers=answers,
        parts=parts,
        bottleneck=binds,
        assumptions=assumptions,
        figures_used=_basis(catalog, system, dtype, sparse=sparse),
        tables=tables,
        edition=catalog.edition or "",
    )


def _roof(catalog: Catalog, system: System, dtype: str, *, sparse: bool) -> _Roof:
    assert system.ends is not None
    slow, fast = system.ends
    chip = system.ranks_per_chip
    bandwidths = (slow.bandwidth * chip, system.bandwidth * chip, fast.bandwidth * chip)
    if not sparse:
        rates = tuple(s.rate(dtype) * chip for s in (slow, system, fast))
        return _Roof((rates[0], rates[1], rates[2]), bandwidths)
    figure = _sparse(catalog, system).get(dtype)
    if figure is None:
        known = ", ".join(_sparse(catalog, system))
        raise RefusalError(
            "unknown-figure",
            f"{system.chip} has no published sparse rate for {dtype}",
            place=f"{system.chip} spec.peak.sparse.{dtype}",
            hint=f"types with a sparse rate: {known}" if known else "leave sparse out",
        )
    ends = figure.interval
    high = float(ends.high) if ends.high is not None else float(figure.value)
    return _Roof((float(ends.low), float(figure.value), high), bandwidths)


def _sparse(catalog: Catalog, system: System) -> dict[str, Stated]:
    """Rates for sparse operands by data type; what a tensor engine reaches goes before what all engines do."""
    found: dict[str, Stated] = {}
    for group in ("peak", "tensor_peak"):
        for at, figure in figures(catalog.graph, catalog.graph.named(system.chip)).items():
            if at.startswith(f"{group}.sparse."):
                found[at.rsplit(".", 1)[-1]] = figure
    return found


def _ridge_answers(roof: _Roof) -> tuple[Answer, ...]:
    low, high = roof.rates[0] / roof.bandwidths[2], roof.rates[2] / roof.bandwidths[0]
    note = "peak rate of matrix multiplication over bandwidth"
    return (Answer("ridge_point", roof.ridge, "FLOP/B", low, high, note),)


def _matmul(text: str, dtype: str, roof: _Roof) -> tuple[Answer, ...]:
    shape = _MATMUL.fullmatch(text.replace(" ", ""))
    if shape is None:
        raise UsageError(f"matmul: {text!r} is none; write m, k and n of (m, k) x (k, n): 4096x4096x4096")
    m, k, n = (float(g) for g in shape.groups())
    flops = matmul_flops(m, k, n)
    traffic = matmul_traffic(m, k, n, _bytes(dtype), _result_bytes(dtype))
    rate, slow, fast = roof.rate(flops / traffic)
    time, low, high = roof.time(flops, traffic)
    return (
        Answer("attainable_rate", rate, "FLOP/s", slow, fast),
        Answer("time", time, "s", low, high),
        Answer("flops", flops, "FLOP"),
        Answer("traffic", traffic, "B", note="every operand moves once"),
        Answer("intensity", flops / traffic, "FLOP/B"),
    )


def _bytes(dtype: str) -> float:
    if dtype not in ELEMENT_BYTES:
        raise RefusalError(
            "unknown-figure",
            f"how many bytes an element of {dtype} has is not known",
            place="dtype",
            hint=f"known: {', '.join(ELEMENT_BYTES)}",
        )
    return ELEMENT_BYTES[dtype]


def _result_bytes(dtype: str) -> float:
    """Products of narrow types are written in 16 bit."""
    return max(2.0, _bytes(dtype))


def _sizes(dtype: str) -> tuple[Assumption, ...]:
    size = _bytes(dtype)
    return (
        Assumption("element_bytes", f"{size:g} B", f"an element of {dtype} in memory"),
        Assumption("traffic", "every operand once", "re-reading because of small on-chip memory is not counted"),
    )


def _binds(roof: _Roof, found: tuple[Answer, ...]) -> str:
    intensity = next(float(a.value) for a in found if a.name == "intensity")
    if roof.bottleneck(intensity) == "compute":
        return f"computation: {intensity:,.4g} FLOP/B is not below the ridge point of {roof.ridge:,.4g} FLOP/B"
    return f"memory bandwidth: {intensity:,.4g} FLOP/B is below the ridge point of {roof.ridge:,.4g} FLOP/B"


def _longest(each: list[Piece], roof: _Roof) -> str:
    """What binds the part of a model that takes the most time."""
    times = [p.count * roof.time(p.flops, p.traffic)[0] for p in each]
    time, part = max(zip(times, each, strict=True), key=lambda pair: pair[0])
    what = "computation" if roof.bottleneck(part.flops / part.traffic) == "compute" else "memory bandwidth"
    return f"{what}, of the part that takes longest: {part.name}, {time / math.fsum(times):.0%} of the time"


def _model(  # noqa: PLR0917  # each is an axis of the question
    catalog: Catalog,
    name: str,
    dtype: str,
    seq: int,
    batch: int,
    phase: str,
    attention: Literal["full", "causal"],
) -> list[Piece]:
    for what, value in (("seq", seq), ("batch", batch)):
        if value < 1:
            raise UsageError(f"{what}: a positive number is expected, not {value}")
    d = dimensions(catalog.models[name].node.spec)
    decode = phase == "decode"
    return list(
        pieces(
            d,
            tokens=float(batch if decode else batch * seq),
            sequences=float(batch),
            seq=float(seq),
            convention="full" if decode else attention,
            element_bytes=_bytes(dtype),
            kv_bytes=_bytes(dtype),
            logits=float(batch if d.causal else batch * seq),
        )
    )


def _of_model(each: list[Piece], roof: _Roof) -> tuple[tuple[Answer, ...], tuple[Part, ...], Table]:
    times = [[p.count * t for t in roof.time(p.flops, p.traffic)] for p in each]
    time, low, high = (math.fsum(t[i] for t in times) for i in range(3))
    flops, traffic = (math.fsum(p.count * v for p, v in zip(each, w, strict=True)) for w in (
        [p.flops for p in each], [p.traffic for p in each],
    ))  # fmt: skip
    answers = (
        Answer("time", time, "s", low, high, "each part at its roof, one after another"),
        Answer("attainable_rate", flops / time, "FLOP/s", flops / high, flops / low),
        Answer("flops", flops, "FLOP"),
        Answer("traffic", traffic, "B"),
    )
    names = dict.fromkeys(p.name for p in each)
    parts = tuple(
        Part("time", name, math.fsum(t[0] for p, t in zip(each, times, strict=True) if p.name == name))
        for name in names
    )
    rows = tuple(
        (
            p.name,
            p.layers or None,
            int(p.count),
            float(p.flops),
            float(p.traffic),
            float(p.flops / p.traffic),
            float(t[0]),
            float(p.count * p.flops / t[0]),
            roof.bottleneck(p.flops / p.traffic),
        )
        for p, t in zip(each, times, strict=True)
    )
    columns = ("part", "layers", "count", "flops", "traffic", "intensity", "time", "attainable_rate", "bound_by")
    units = ("", "", "", "FLOP", "B", "FLOP/B", "s", "FLOP/s", "")
    return answers, parts, Table("parts of the model: work of one, time of all", columns, rows, units)


def _ridges(catalog: Catalog, system: System) -> Table:
    """Ridge points of all data types: by the published rate, by that of matrix multiplication, by the sparse one."""
    chip = system.ranks_per_chip
    bandwidth = system.bandwidth * chip
    sparse = {at: float(figure.value) for at, figure in _sparse(catalog, system).items()}
    rows = []
    for dtype in dict.fromkeys((*system.rates, *sparse)):
        rates = (
            system.published.get(dtype, 0.0) * chip,
            system.rates.get(dtype, 0.0) * chip,
            sparse.get(dtype, 0.0),
        )
        cells = (cell for rate in rates for cell in ((rate, rate / bandwidth) if rate else (None, None)))
        rows.append((dtype, *cells))
    columns = ("dtype", "peak", "peak_ridge", "matmul", "matmul_ridge", "sparse", "sparse_ridge")
    return Table(f"ridge points of {system.chip}", columns, tuple(rows), ("", *("FLOP/s", "FLOP/B") * 3))


def _basis(catalog: Catalog, system: System, dtype: str, *, sparse: bool) -> tuple[UsedFigure, ...]:
    figures_used = tuple(b for b in system.figures_used_for(dtype, "bandwidth") if b.of == system.chip)
    if not sparse:
        return figures_used
    figure = _sparse(catalog, system)[dtype]
    source = figure.source_name or f"derived: {figure.derived}"
    memory = tuple(b for b in figures_used if b.at == "memory.bandwidth")
    return (UsedFigure(system.chip, figure.at, figure.value.text, source, figure.as_of), *memory)
