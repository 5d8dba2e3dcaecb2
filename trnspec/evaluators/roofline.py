"""The roofline of a chip: the attainable rate of a kernel or of each part of a model, and its bottleneck."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Literal

from attrs import evolve, frozen

from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation import questions
from trnspec.evaluation.questions import axis, like
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, Table, marked
from trnspec.evidence import IDEAL as NO_LOSSES
from trnspec.evidence import UsedFigure
from trnspec.graph.provenance import Stated, figures
from trnspec.model.transformers.counting import dimensions
from trnspec.perf.lowering.lower import lower, model_named
from trnspec.perf.lowering.machine import LoweredSystem as Hardware
from trnspec.perf.roofline import Piece, attainable, element_bytes, least_time, pieces, ridge
from trnspec.perf.work.transformer import matmul_flops, matmul_traffic

_PRODUCTS = 3
"""Products of a training step for each product of a forward pass: itself, and the gradients of its two operands."""
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

    def bottleneck(self, intensity: float, compute: str = "compute-bound", memory: str = "HBM-bound") -> str:
        """The name of the limit at an arithmetic intensity."""
        return compute if intensity >= self.ridge else memory


@frozen(kw_only=True, slots=False)
class RooflineQuestion(questions.Precision):
    """The inputs of the evaluator; see :mod:`trnspec.evaluation.questions`."""

    on: str = like(questions.System, "on")
    matmul: str | None = axis(
        "Matrix multiplication (m, k) x (k, n), such as 4096x4096x4096.", "MxKxN", group="Workload", default=None
    )
    intensity: float | None = axis("Arithmetic intensity of a kernel.", "FLOP/B", group="Workload", default=None)
    model: str | None = like(questions.Workload, "model", default=None)
    seq: int = like(questions.Workload, "seq", default=4096)
    batch: int = like(questions.ServingWorkload, "batch")
    phase: Literal["prefill", "decode", "train"] = axis(
        "Whole sequences (prefill), one token of each (decode), or forward and backward of whole sequences (train).",
        group="Workload",
        default="prefill",
    )
    attention: questions.Attention = like(questions.TrainingWorkload, "attention")
    sparse: bool = axis("Use the peak rate for sparse operands.", group="Precision", default=False)


def run(catalog: Catalog, question: RooflineQuestion) -> Evaluation:
    """Compute the attainable rate of a kernel, or of each part of a model's forward pass, on one chip.

    Without matmul, intensity and model: the ridge point of every data type.

    Raises:
        UsageError: More than one kernel is given, or an invalid one.
        RefusalError: A rate that is needed is not published.

    Examples:
        Ridge points of a chip:

            trnspec eval roofline --on trainium2

        A matrix multiplication in FP8:

            trnspec eval roofline --on trainium2 --dtype fp8 --matmul 4096x4096x4096

        One decode step of a model on one chip:

            trnspec eval roofline --on trn2.48xlarge --model llama-3.1-8b --phase decode --batch 16

        A kernel of known arithmetic intensity on three chips:

            trnspec eval roofline --on trainium1,trainium2,trainium3 --intensity 100
    """
    q = question
    kernels = [n for n, v in (("matmul", q.matmul), ("intensity", q.intensity), ("model", q.model)) if v is not None]
    if len(kernels) > 1:
        raise UsageError(f"{' and '.join(kernels)} exclude each other; give one kernel, or a model")
    system = lower(catalog.graph, q.on)
    if system.bandwidth <= 0.0:
        place = f"{system.chip} spec.memory.bandwidth"
        raise RefusalError("unknown-figure", f"{system.chip} has no published memory bandwidth", place=place)
    sparse = _sparse(catalog, system)
    roof = _roof(system, q, sparse)
    kernel = f"{q.dtype}, {'sparse' if q.sparse else 'dense'}"
    low, high = roof.rates[0] / roof.bandwidths[2], roof.rates[2] / roof.bandwidths[0]
    answers: tuple[Answer, ...] = (
        Answer("ridge_point", roof.ridge, "FLOP/B", low, high, "peak rate over memory bandwidth"),
    )
    parts: tuple[Part, ...] = ()
    tables: tuple[Table, ...] = (_ridges(system, sparse),)
    bottleneck, title = "", f"ridge points of {system.chip}"
    assumptions = [
        Assumption("efficiency", "1", "a roofline is an upper bound; it is not calibrated"),
        Assumption("rank", "1 chip", "all its cores"),
    ]
    if q.matmul is not None or q.model is not None:
        assumptions += [
            Assumption("element_bytes", f"{element_bytes(q.dtype, 'dtype'):g} B", f"an element of {q.dtype} in memory"),
            Assumption("traffic", "each operand once", "re-reading because of small on-chip memory is not counted"),
        ]
    if q.model is not None:
        pieces_ = _pieces(catalog, q.model, q)
        reached, parts, table = _of_model(pieces_, roof)
        answers, tables = (*reached, *answers), (table, *tables)
        bottleneck = _longest(pieces_, roof)
        passes = "forward and backward" if q.phase == "train" else "forward"
        title = f"{q.model} {passes} in {kernel} on one {system.chip}: {q.phase}, {q.batch:,} x {q.seq:,} tokens"
        assumptions += _of_passes(q)
    elif kernels:
        reached = _kernel(q, roof)
        answers, intensity = (*reached, *answers), float(reached[-1].value)
        title = f"{q.matmul or f'{q.intensity:g} FLOP/B'} in {kernel} on {system.chip}"
        bottleneck = roof.bottleneck(intensity) + f": {intensity:,.4g} FLOP/B, ridge point {roof.ridge:,.4g} FLOP/B"
    return Evaluation(
        evaluator="roofline",
        title=title,
        inputs=q.values(),
        answers=marked(answers, "ideal"),
        evidence=NO_LOSSES,
        parts=parts,
        bottleneck=bottleneck,
        assumptions=tuple(assumptions),
        figures_used=_figures_used(system, q, sparse),
        tables=tables,
    )


def _of_passes(q: RooflineQuestion) -> Iterator[Assumption]:
    yield Assumption("attention_flops", "full" if q.phase == "decode" else q.attention, "FLOP of scores and values")
    if q.phase == "train":
        yield Assumption("logits", "every token", "their loss is computed")
        why = "same FLOP and traffic as forward; nothing is recomputed"
        yield Assumption("backward", "2 products of each", why)
    else:
        yield Assumption("logits", "one token per sequence", "of every token if the model is not causal")
    yield Assumption("capacity", "not checked", "see the evaluator memory")


def _roof(system: Hardware, question: RooflineQuestion, sparse: Mapping[str, Stated]) -> _Roof:
    assert system.ends is not None
    slow, fast = system.ends
    chip, dtype = system.ranks_per_chip, question.dtype
    bandwidths = (slow.bandwidth * chip, system.bandwidth * chip, fast.bandwidth * chip)
    if not question.sparse:
        return _Roof((slow.rate(dtype) * chip, system.rate(dtype) * chip, fast.rate(dtype) * chip), bandwidths)
    figure = sparse.get(dtype)
    if figure is None:
        raise RefusalError(
            "unknown-figure",
            f"{system.chip} has no published sparse rate for {dtype}",
            place=f"{system.chip} spec.peak.sparse.{dtype}",
            hint=f"types with a sparse rate: {', '.join(sparse)}" if sparse else "sparse=False uses the dense rate",
        )
    ends = figure.interval
    high = float(ends.high) if ends.high is not None else float(figure.value)
    return _Roof((float(ends.low), float(figure.value), high), bandwidths)


def _sparse(catalog: Catalog, system: Hardware) -> dict[str, Stated]:
    """Rates for sparse operands by data type; those of the tensor engine go before those of the chip."""
    rates: dict[str, Stated] = {}
    for group in ("peak", "tensor_peak"):
        for at, figure in figures(catalog.graph, catalog.graph.named(system.chip)).items():
            if at.startswith(f"{group}.sparse."):
                rates[at.rsplit(".", 1)[-1]] = figure
    return rates


def _kernel(q: RooflineQuestion, roof: _Roof) -> tuple[Answer, ...]:
    """The answers about a matrix multiplication, or a kernel of some arithmetic intensity, which is the last."""
    work: tuple[Answer, ...] = ()
    intensity = q.intensity or 0.0
    if q.matmul is not None:
        shape = _MATMUL.fullmatch(q.matmul.replace(" ", ""))
        if shape is None:
            what = "m, k and n of (m, k) x (k, n) are expected, such as 4096x4096x4096"
            raise UsageError(f"matmul: {what}, not {q.matmul!r}")
        m, k, n = (float(g) for g in shape.groups())
        flops, size = matmul_flops(m, k, n), element_bytes(q.dtype, "dtype")
        # Products of narrow types are written in 16 bit.
        traffic = matmul_traffic(m, k, n, size, max(2.0, size))
        intensity = flops / traffic
        time, low, high = roof.time(flops, traffic)
        work = (
            Answer("time", time, "s", low, high),
            Answer("flops", flops, "FLOP"),
            Answer("traffic", traffic, "B", note="each operand moves once"),
        )
    elif intensity <= 0.0:
        raise UsageError(f"intensity: a positive number of FLOP/B is expected, not {q.intensity}")
    rate, slow, fast = roof.rate(intensity)
    return Answer("attainable_rate", rate, "FLOP/s", slow, fast), *work, Answer("intensity", intensity, "FLOP/B")


def _longest(pieces_: list[Piece], roof: _Roof) -> str:
    """The bottleneck of the part of a model that takes the most time."""
    times = [p.count * roof.time(p.flops, p.traffic)[0] for p in pieces_]
    time, part = max(zip(times, pieces_, strict=True), key=lambda pair: pair[0])
    kind = roof.bottleneck(part.flops / part.traffic)
    return f"{kind}: the longest part is {part.name}, {time / math.fsum(times):.0%} of the time"


def _pieces(catalog: Catalog, name: str, question: RooflineQuestion) -> list[Piece]:
    d = dimensions(model_named(catalog.graph, name).spec)
    decode, batch, seq = question.phase == "decode", question.batch, question.seq
    train = question.phase == "train"
    size = element_bytes(question.dtype, "dtype")
    if decode and d.rank:
        # Decoding absorbs the up-projections: heads multiply compressed vectors and the positional key.
        d = evolve(d, qk_size=d.kv_elements, v_size=d.rank)
    forward = list(
        pieces(
            d,
            tokens=float(batch if decode else batch * seq),
            sequences=float(batch),
            seq=float(seq),
            convention="full" if decode else question.attention,
            element_bytes=size,
            kv_bytes=size,
            logits=float(batch if d.causal and not train else batch * seq),
        )
    )
    # The gradients of both operands of a product are products of the same three sizes, so of the same intensity.
    return [p._replace(count=_PRODUCTS * p.count) for p in forward] if train else forward


def _of_model(pieces_: list[Piece], roof: _Roof) -> tuple[tuple[Answer, ...], tuple[Part, ...], Table]:
    times = [[p.count * t for t in roof.time(p.flops, p.traffic)] for p in pieces_]
    time, low, high = (math.fsum(t[i] for t in times) for i in range(3))
    flops, traffic = (math.fsum(p.count * getattr(p, name) for p in pieces_) for name in ("flops", "traffic"))
    answers = (
        Answer("time", time, "s", low, high, "each part at its roofline, in sequence"),
        Answer("attainable_rate", flops / time, "FLOP/s", flops / high, flops / low),
        Answer("flops", flops, "FLOP"),
        Answer("traffic", traffic, "B"),
    )
    names = dict.fromkeys(p.name for p in pieces_)
    parts = tuple(
        Part("time", name, math.fsum(t[0] for p, t in zip(pieces_, times, strict=True) if p.name == name))
        for name in names
    )
    rows = []
    for p, t in zip(pieces_, times, strict=True):
        intensity = float(p.flops / p.traffic)
        work = (int(p.count), float(p.flops), float(p.traffic), intensity, float(t[0]), float(p.count * p.flops / t[0]))
        rows.append((p.name, p.layers or None, *work, roof.bottleneck(intensity, "compute", "memory")))
    columns = ("part", "layers", "count", "flops", "traffic", "intensity", "time", "attainable_rate", "bound_by")
    units = ("", "", "", "FLOP", "B", "FLOP/B", "s", "FLOP/s", "")
    return answers, parts, Table("Parts of the model (work of one, time of all)", columns, tuple(rows), units)


def _ridges(system: Hardware, sparse: Mapping[str, Stated]) -> Table:
    """Ridge points of all data types: of the published rate, of matrix multiplication, and of sparse operands."""
    chip = system.ranks_per_chip
    bandwidth = system.bandwidth * chip
    rows = []
    for dtype in dict.fromkeys((*system.rates, *sparse)):
        rates = (
            system.published.get(dtype, 0.0) * chip,
            system.rates.get(dtype, 0.0) * chip,
            float(sparse[dtype].value) if dtype in sparse else 0.0,
        )
        cells = (cell for rate in rates for cell in ((rate, rate / bandwidth) if rate else (None, None)))
        rows.append((dtype, *cells))
    columns = ("dtype", "peak", "peak_ridge", "matmul", "matmul_ridge", "sparse", "sparse_ridge")
    return Table(f"Ridge points of {system.chip}", columns, tuple(rows), ("", *("FLOP/s", "FLOP/B") * 3), first_rows=0)


def _figures_used(system: Hardware, question: RooflineQuestion, sparse: Mapping[str, Stated]) -> tuple[UsedFigure, ...]:
    figures_used = tuple(b for b in system.figures_used_for(question.dtype, "bandwidth") if b.of == system.chip)
    if not question.sparse:
        return figures_used
    memory = tuple(b for b in figures_used if b.at == "memory.bandwidth")
    return (sparse[question.dtype].used, *memory)
