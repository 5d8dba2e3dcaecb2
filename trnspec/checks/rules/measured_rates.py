"""Measured rates that cannot be right: above the peak of the hardware, or in contradiction to another column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from trnspec.checks.rules.measurements import number_in, read_rows
from trnspec.diagnostics import Location
from trnspec.graph.composition import chips
from trnspec.graph.graph import Graph, at
from trnspec.loading.measured import DTYPES, MeasuredRow
from trnspec.model.document import Node
from trnspec.model.measurements import Measurements
from trnspec.model.transformers.model import Model
from trnspec.plugins.api import Finding, rule

_AGREE = 0.02
"""Relative difference that rounding of printed rates and times can cause."""


@rule("TRN704", "above-peak", over=Measurements, local=True)
def above_peak(node: Node[Measurements], graph: Graph) -> Iterator[Finding]:
    """A measured rate above the peak rate of the chip.

    Why:
        A rate above the peak is a wrong unit, a wrong precision, or a kernel that did not do the work. It would shift every
        fit that uses it.

    Example:
        ```yaml
        # file: measured/example.yaml
        api_version: trnspec/v1
        kind: Measurements
        metadata: {name: example, title: Example, source: neuron-trn1-2023-02}
        spec:
          data: example.csv
          of: matmul
          framework: PyTorch
          licence: Apache-2.0
          hardware: {Trn1: trn1.32xlarge}
          columns:
            kind: {meaning: what the row measures}
            id: {meaning: name of the row}
            source: {meaning: where it is published}
            hardware: {meaning: the server}
            precision: {meaning: data type}
            tflops_per_chip: {meaning: rate per chip, unit: TFLOPS}
        # file: measured/example.csv
        kind,id,source,hardware,precision,tflops_per_chip
        matmul,one,a page,Trn1,bf16,150
        matmul,two,a page,Trn1,fp32,150  #! TRN704
        ```

    Instead:
        ```diff
             tflops_per_chip: {meaning: rate per chip, unit: TFLOPS}
        +  rejected:
        +    - {row: two, reason: "above the peak rate of the chip for fp32, 47.5 TFLOPS"}
        ```

    Source:
        Williams, Waterman, Patterson: Roofline, Communications of the ACM 52(4), 2009.
    """
    of = read_rows(node)
    if of is None:
        return
    for row in of.rows:
        if (share := number_in(row, "mfu_pct") or 0.0) > 100.0:
            message = f"an MFU of {share:g} % is above the peak rate"
            yield of.finding(row, "mfu_pct", message, "correct the row, or list it in spec.rejected with the reason")
        for column, rate, cores in (*_rates(row), *_rate_of_step(row, node.spec, graph)):
            bound = _peak(graph, node.spec.hardware, row, cores)
            if bound is not None and rate * 1e12 > bound[0]:
                text = f"{rate:,.6g} TFLOPS {row.cells.get('precision', '')}".strip()
                text = f"a step of {row.cells[column]} s, at least {text}," if column == "step_time_s" else text
                message = f"{text} is above the peak rate of {bound[1]}, {bound[0] / 1e12:,.5g} TFLOPS"
                hint = "correct the row, or list it in spec.rejected with the reason"
                yield of.finding(row, column, message, hint, bound[2])


def _rates(row: MeasuredRow) -> Iterator[tuple[str, float, float | None]]:
    """The rates of a row [TFLOPS], and the share of a chip that reached each; ``None`` for a whole chip."""
    rate = number_in(row, "tflops_per_chip")
    if rate is not None:
        yield "tflops_per_chip", rate, None
    rate, cores, lnc = (number_in(row, c) for c in ("achieved", "cores", "lnc"))
    if rate is not None and row.cells.get("unit") == "TFLOPS" and cores:
        yield "achieved", rate, cores * (lnc or 1.0)


def _rate_of_step(row: MeasuredRow, spec: Measurements, graph: Graph) -> Iterator[tuple[str, float, None]]:
    """The least rate of a training step [TFLOPS per chip].

    A step has 4 FLOP per parameter and token, even with frozen weights; a layer has two square matrices and two of its feed
    forward at least.
    """
    text = row.cells.get("model", "")
    model = graph.lookup(spec.models.get(text, text), Model)
    layers, hidden, ffn = (number_in(row, c) or 0.0 for c in ("layers", "hidden", "ffn"))
    if not layers and model is not None:
        layers, hidden = float(model.spec.layers), float(model.spec.hidden)
    step, n, batch, seq = (number_in(row, c) for c in ("step_time_s", "n_chips", "global_batch", "seq"))
    if spec.of == "train" and step and n and batch and seq:
        yield "step_time_s", 8.0 * layers * hidden * (hidden + ffn) * batch * seq / step / n / 1e12, None


def _peak(
    graph: Graph, hardware: Mapping[str, str], row: MeasuredRow, cores: float | None
) -> tuple[float, str, tuple[Location, ...]] | None:
    """The highest peak rate that a row can reach [FLOP/s], its name and places; ``None`` where it is not known."""
    text = row.cells.get("hardware", "")
    name = hardware.get(text, text)
    counted = chips(graph, graph.named(name)) if name in graph else None
    if counted is None:
        return None
    chip = counted[1]
    dense = chip.spec.peak.dense
    precision = row.cells.get("precision", "").split("/")[0].lower()
    for pattern, names in DTYPES:
        if re.search(pattern, precision):
            rates = [getattr(dense, n) for n in names if getattr(dense, n, None) is not None]
            highs = [r.interval.high for r in rates]
            if not rates or any(h is None for h in highs):
                return None
            share = 1.0 if cores is None or chip.spec.cores is None else cores / chip.spec.cores.count
            label = chip.name if cores is None else f"{cores:g} cores of {chip.name}"
            paths = [("peak", "dense", n) for n in names] + [("cores", "count")] * (cores is not None)
            places = tuple(at(chip, ("spec", *path)) for path in paths)
            return max(float(h) for h in highs if h is not None) * share, label, places
    return None


@rule("TRN705", "throughput-time-mismatch", over=Measurements, local=True)
def throughput_time_mismatch(node: Node[Measurements], graph: Graph) -> Iterator[Finding]:
    """A throughput and a time of one row that contradict each other.

    Why:
        One of the two is misread, or is of another run.

    Example:
        ```yaml
        # file: measured/example.yaml
        api_version: trnspec/v1
        kind: Measurements
        metadata: {name: example, title: Example, source: neuron-trn1-2023-02}
        spec:
          data: example.csv
          of: train
          framework: Megatron-LM
          licence: Apache-2.0
          columns:
            kind: {meaning: what the row measures}
            id: {meaning: name of the row}
            source: {meaning: where it is published}
            n_chips: {meaning: chips, holds: number}
            seq: {meaning: tokens of a sequence, holds: number}
            global_batch: {meaning: sequences of a step, holds: number}
            step_time_s: {meaning: time of a step, unit: s}
            tokens_per_s_per_chip: {meaning: throughput, unit: tokens/s}
        # file: measured/example.csv
        kind,id,source,n_chips,seq,global_batch,step_time_s,tokens_per_s_per_chip
        train,one,a page,8,4096,128,6.55,10000
        train,two,a page,8,4096,128,6.55,12000  #! TRN705
        ```

    Instead:
        ```diff
        -train,two,a page,8,4096,128,6.55,12000
        ```

    Source:
        Tokens of a step over its time are its throughput, by definition.
    """
    of = read_rows(node)
    if of is None:
        return
    for row in of.rows:
        step, chips_, batch, seq = (number_in(row, c) for c in ("step_time_s", "n_chips", "global_batch", "seq"))
        rates = (
            ("tokens_per_s_per_chip", None if not (batch and seq and chips_) else batch * seq / chips_),
            ("seq_per_s", batch),
        )
        for column, work in rates:
            rate = number_in(row, column)
            if rate and step and work and step > 0.0 and abs(rate * step / work - 1.0) > _AGREE:
                message = f"{column} {rate:,.6g} and a step of {step:g} s differ: that step is {work / step:,.6g}"
                yield of.finding(row, column, message, "one of the two is misread, or of another run")
        tokens, tpot, batch = (number_in(row, c) for c in ("out_tok_s", "tpot_ms", "batch_conc"))
        if tokens and tpot and batch and tokens > 1.1 * batch * 1000.0 / tpot:
            message = f"out_tok_s {tokens:,.6g} is more than {batch:g} requests of {tpot:g} ms per token give"
            yield of.finding(row, "out_tok_s", message, "one of them is misread, or of another run")
        size, time, busbw = (number_in(row, c) for c in ("size_bytes", "time_us", "busbw_GBps"))
        ranks = number_in(row, "n_ranks") or chips_ or 0.0
        if size and time and busbw and busbw >= _ROUNDED_AWAY and ranks > 1.0:
            rounds = 2.0 if row.cells.get("collective") == "all_reduce" else 1.0
            expected = rounds * (ranks - 1.0) / ranks * size / time / 1e3
            if not 1 / _FAR <= busbw / expected <= _FAR:
                message = f"busbw_GBps is {busbw:,.6g}, but size_bytes and time_us give {expected:,.4g} GB/s"
                yield of.finding(row, "busbw_GBps", message, "one of them is misread, or has another unit")


_FAR = 3.0
"""The factor by which a bus bandwidth differs from what tools compute if a unit, a digit or a column is wrong."""

_ROUNDED_AWAY = 0.05
"""The bus bandwidth [GB/s] below which the two decimals of tools have one digit at most."""
