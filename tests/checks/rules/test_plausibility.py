"""trnspec.checks.rules.plausibility: what cannot be, whatever a page says."""

from __future__ import annotations

import functools

import attrs
import pytest

from tests.support.rules import bare, findings, found, put, shipped
from trnspec.checks.rules.plausibility import WIDTHS
from trnspec.model.chip import Generation
from trnspec.model.fields import Peak, Rates
from trnspec.model.figure import Figure
from trnspec.quantities.quantity import parse

CODES = ["TRN602", "TRN603", "TRN604", "TRN605", "TRN607", "TRN608", "TRN609", "TRN610", "TRN612", "TRN613"]


def chip(**values: str):
    """Trainium2 with other figures; ``peak__dense__bf16`` represents the path."""
    return functools.reduce(lambda g, kv: put(g, "trainium2", kv[0].replace("__", "."), kv[1]), values.items(), bare())


@pytest.mark.parametrize("code", CODES)
def test_the_shipped_chips_are_plausible(code):
    assert findings(code, shipped()) == []


@pytest.mark.parametrize(
    ("dense", "sparse", "reported"),
    [
        ("2,563 TFLOPS", "667 TFLOPS", True),
        ("667 TFLOPS", "2,563 TFLOPS", False),
        ("667 TFLOPS", "667 TFLOPS", False),
        ("667 TFLOPS", "0.7 PFLOPS", False),
        ("667 TFLOPS", "0.6 PFLOPS", True),
        ("667 TFLOPS", "up to 600 TFLOPS", True),
        ("667 TFLOPS", ">= 600 TFLOPS", False),
    ],
)
def test_sparse_is_not_below_dense(dense, sparse, reported):
    graph = chip(peak__dense__bf16=dense, peak__sparse__bf16=sparse)

    assert ({("trainium2", "spec.peak.sparse.bf16")} if reported else set()) == found("TRN602", graph)


def test_sparse_rates_of_the_tensor_engines_too():
    graph = chip(tensor_peak__sparse__fp8="1,000 TFLOPS")

    assert {("trainium2", "spec.tensor_peak.sparse.fp8")} == found("TRN602", graph)


def rates(**values: str):
    """Trainium2 with these dense rates alone."""
    given = Rates(**{k: Figure(value=parse(v)) for k, v in values.items()})
    return put(put(bare(), "trainium2", "peak", Peak(dense=given)), "trainium2", "tensor_peak", None)


@pytest.mark.parametrize(
    ("values", "reported"),
    [
        ({"bf16": "190 TFLOPS", "fp32": "47.5 TFLOPS"}, set()),
        ({"bf16": "47.5 TFLOPS", "fp32": "190 TFLOPS"}, {"bf16"}),
        ({"fp8": "600 TFLOPS", "bf16": "667 TFLOPS", "fp32": "700 TFLOPS"}, {"fp8", "bf16"}),
        ({"fp8": "667 TFLOPS", "bf16": "667 TFLOPS"}, set()),
        ({"mxfp4": "2,517 TFLOPS", "mxfp8": "2,517 TFLOPS"}, set()),
        ({"fp4": "1 PFLOPS", "fp8": "1.2 PFLOPS"}, set()),
        ({"cfp8": "180 TFLOPS", "fp8": "190 TFLOPS"}, set()),
        ({"int8": "100 TOPS", "bf16": "190 TFLOPS"}, set()),
        ({"fp32": "47.5 TFLOPS", "fp64": "67 TFLOPS"}, {"fp32"}),
    ],
)
def test_a_narrow_type_is_not_slower(values, reported):
    assert {("trainium2", f"spec.peak.dense.{d}") for d in reported} == found("TRN603", rates(**values))


def test_widths_are_those_in_the_names():
    """But TF32 has 19 bits."""
    assert {name: int("".join(filter(str.isdigit, name.removeprefix("mx")))) for name in WIDTHS} | {
        "tf32": 19
    } == WIDTHS


@pytest.mark.parametrize(
    ("dma", "memory", "reported"),
    [
        ("3.5 TB/s", "2.9 TB/s", False),
        ("2.9 TB/s", "2.9 TB/s", False),
        ("0.37 TB/s", "2.9 TB/s", True),
        ("3 TB/s", "2.9 TB/s", False),
        ("3.5 TB/s", "4.9 TB/s", True),
    ],
)
def test_dma_keeps_up_with_the_memory(dma, memory, reported):
    graph = chip(dma__bandwidth=dma, memory__bandwidth=memory)

    assert ({("trainium2", "spec.dma.bandwidth")} if reported else set()) == found("TRN604", graph)


@pytest.mark.parametrize(
    ("peak", "memory", "reported"),
    [
        ("667 TFLOPS", "2.9 TB/s", False),
        ("667 TFLOPS", "2.9 GB/s", True),
        ("667 PFLOPS", "2.9 TB/s", True),
        ("667 GFLOPS", "2.9 TB/s", True),
        ("5 TFLOPS", "1 TB/s", False),
        ("4.9 TFLOPS", "1 TB/s", True),
        ("5,000 TFLOPS", "1 TB/s", False),
        ("5,001 TFLOPS", "1 TB/s", True),
        ("667 TFLOPS", "0 TB/s", False),
    ],
)
def test_the_ridge_point(peak, memory, reported):
    graph = chip(peak__dense__bf16=peak, memory__bandwidth=memory)

    assert ({("trainium2", "spec.memory.bandwidth")} if reported else set()) == found("TRN605", graph)


def test_the_ridge_point_of_a_chip_without_bf16():
    graph = put(rates(fp16="667 TFLOPS"), "trainium2", "memory.bandwidth", "2.9 GB/s")

    assert {("trainium2", "spec.memory.bandwidth")} == found("TRN605", graph)


@pytest.mark.parametrize(
    ("tensor", "reported"),
    [
        ("629.1 TFLOPS", False),
        ("667 TFLOPS", False),
        ("670 TFLOPS", False),
        ("680 TFLOPS", True),
        ("1,258 TFLOPS", True),
        ("534 TFLOPS", False),
        ("530 TFLOPS", True),
        ("0 TFLOPS", False),
    ],
)
def test_the_tensor_engines_fit_the_chip(tensor, reported):
    graph = chip(tensor_peak__dense__bf16=tensor)

    assert ({("trainium2", "spec.tensor_peak.dense.bf16")} if reported else set()) == found("TRN607", graph)


# TRN608.


@pytest.mark.parametrize(
    ("path", "value", "reported"),
    [
        ("peak.dense.fp16", "667 TFLOPS", []),
        ("peak.dense.fp16", "0.67 PFLOPS", []),
        ("peak.dense.fp16", "700 TFLOPS", ["spec.peak.dense.fp16"]),
        ("peak.dense.bf16", "600 TFLOPS", ["spec.peak.dense.bf16"]),
        ("peak.dense.fp32", "190 TFLOPS", []),
        ("peak.dense.fp16", None, []),
        ("tensor_peak.dense.fp16", "700 TFLOPS", []),
        ("peak.sparse.tf32", "2,871 TFLOPS", ["spec.peak.sparse.tf32"]),
    ],
)
def test_types_of_one_engine_have_one_peak(path, value, reported):
    assert {("trainium2", p) for p in reported} == found("TRN608", put(bare(), "trainium2", path, value))


# TRN609.


@pytest.mark.parametrize(
    ("peak", "baseline", "reported"),
    [
        ("12.5 Gbps", "3.125 Gbps", False),
        ("12.5 Gbps", "12.5 Gbps", False),
        ("up to 12.5 Gbps", "3.125 Gbps", False),
        ("3.125 Gbps", "12.5 Gbps", True),
        ("200 Gbps", "50 GB/s", True),
        (None, "50 Gbps", False),
        ("50 Gbps", None, False),
    ],
)
def test_baseline_is_not_above_the_peak(peak, baseline, reported):
    graph = put(put(bare(), "trn1.2xlarge", "network.peak", peak), "trn1.2xlarge", "network.baseline", baseline)

    assert ({("trn1.2xlarge", "spec.network.baseline")} if reported else set()) == found("TRN609", graph)


# TRN610.


@pytest.mark.parametrize(
    ("numbers", "reported"),
    [
        ({"trainium2": (3, 2)}, []),
        ({"trainium2": (4, 2)}, ["trainium3"]),
        ({"trainium1": (4, 1)}, ["trainium2", "trainium3"]),
        ({"trainium2": (2, 2)}, ["trainium2"]),
        # In the other order than their launches.
        ({"trainium1": (3, 2), "trainium2": (2, 1)}, ["trainium1 launched"]),
        ({"trainium2": (None, 2)}, []),
        ({"trainium2": (9, 9)}, ["trainium2 launched"]),
    ],
)
def test_generations_grow_together(numbers, reported):
    graph = bare()
    for name, (accelerator, training) in numbers.items():
        graph = put(graph, name, "generation", Generation(accelerator=accelerator, training=training))

    expected = {tuple(f"{text} generation".split()[:2]) for text in reported}
    assert {(name, f"spec.{what}") for name, what in expected} == found("TRN610", graph)


# TRN612.


@pytest.mark.parametrize(
    ("capacity", "bandwidth", "technology", "reported"),
    [
        ("96 GiB", "2.9 TB/s", "HBM", False),
        ("4 GiB", "512 GB/s", "HBM", False),
        ("288 GiB", "22 TB/s", "HBM4", False),
        ("96 GiB", "2.9 Tbps", "HBM", True),
        ("96 GiB", "2.9 Tbps", None, True),  # the stacks remain
        ("96 GiB", "725 GB/s", "HBM3e", True),
        ("96 MiB", "2.9 TB/s", "HBM", True),
        ("12 GiB", "2.9 TB/s", "HBM", True),
        ("96 GiB", None, "HBM", False),
    ],
)
def test_stacked_memory_is_read_in_milliseconds(capacity, bandwidth, technology, reported):
    graph = chip(memory__capacity=capacity)
    for name, value in (("bandwidth", bandwidth), ("technology", None)):
        graph = put(graph, "trainium2", f"memory.{name}", value)
    memory = attrs.evolve(graph.named("trainium2").spec.memory, technology=technology)
    graph = put(graph, "trainium2", "memory", memory)

    assert ({("trainium2", "spec.memory.bandwidth")} if reported else set()) == found("TRN612", graph)


def test_other_memory_may_be_slow():
    memory = attrs.evolve(bare().named("trainium2").spec.memory, technology="LPDDR5", stacks=None)
    graph = put(put(bare(), "trainium2", "memory", memory), "trainium2", "memory.bandwidth", "200 GB/s")

    assert set() == found("TRN612", graph)


# TRN613.


@pytest.mark.parametrize(
    ("vcpus", "memory", "reported"),
    [
        (192, "2,048 GiB", False),
        (2, "512 MiB", False),
        (448, "24,576 GiB", False),
        (192, "2,048 MiB", True),
        (2_048, "192 GiB", True),
        (128, "12 GiB", True),
        (12, "1,024 GiB", True),
        (192, None, False),
        (None, "2,048 GiB", False),
    ],
)
def test_hosts_have_memory_for_their_cpus(vcpus, memory, reported):
    graph = put(put(bare(), "trn2.48xlarge", "host.vcpus", vcpus), "trn2.48xlarge", "host.memory", memory)

    assert ({("trn2.48xlarge", "spec.host.memory")} if reported else set()) == found("TRN613", graph)
