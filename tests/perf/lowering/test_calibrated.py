"""Choice of calibration: by chip, framework, models and era, a named one, or none."""

import math

import pytest
from attrs import evolve, fields

from tests.support.engine import everything, shipped
from tests.support.rules import document, graph, source
from trnspec.errors import UnknownNameError, UsageError
from trnspec.model.calibration import Achieved, Calibration
from trnspec.model.reflection import ObjectShape
from trnspec.perf.lowering.calibrated import SCORE_PASSES, TOLERANCE, Calibrated, calibrated, distances, nearest
from trnspec.perf.lowering.machine import IDEAL, Efficiency
from trnspec.quantities.units import Dimension


def test_none_is_a_bound():
    found = calibrated(shipped().graph, "trainium1", "training", "none")
    assert Calibrated() == found
    assert ("", IDEAL, 1.0, 1.0, 0.0) == (found.name, found.efficiency, found.low, found.high, found.coverage)
    assert "lower bounds" in found.description


def test_the_nearest_chip():
    graph = everything()
    assert ["trainium2", "trainium1"] == nearest(graph, "trainium3", {"trainium1", "trainium2", "h100-sxm"})
    assert ["trainium3", "trainium2"] == nearest(graph, "trainium3", {"trainium2", "trainium3"})
    rates = nearest(graph, "h200", {"a100-80gb", "h100-sxm", "b200"})
    assert "h100-sxm" == rates[0]
    assert [] == nearest(graph, "trainium2", {"h100-sxm"})
    # A generation counts more than a rate.
    first, third = (graph.named(name).spec for name in ("trainium1", "trainium3"))
    moved = graph.replace("trainium1", evolve(first, generation=third.generation))
    assert ["trainium1", "trainium2"] == nearest(moved, "trainium3", {"trainium1", "trainium2"})


def test_of_chips_that_are_equally_near_the_one_with_more_rows_is_used():
    """H100 and H200 have the same peak rate, printed with other digits; GB200 is nearer to GB300 than B200."""
    graph = everything()
    assert nearest(graph, "b200", {"h200", "h100-sxm", "gb200"}) == ["gb200", "h100-sxm", "h200"]
    dense, routed = (
        calibrated(graph, chip, "inference", experts=experts)
        for chip, experts in (("b200", False), ("a100-80gb", True))
    )
    assert (dense.name, routed.name) == ("h100-sxm-trtllm-2026-dense-inference", "h200-vllm-2026-experts-inference")
    assert calibrated(graph, "gb300", "inference", experts=True).name == "gb200-trtllm-2026-experts-inference"


def test_software_counts_more_than_the_chip_within_a_generation():
    chosen = {
        (chip, framework): calibrated(everything(), chip, "inference", framework=framework, experts=experts).name
        for chip, framework, experts in (
            ("h200", "trtllm", False), ("h200", "sglang", False), ("h200", "", False), ("b200", "trtllm", False), ("gb200", "vllm", True),
            ("gb200", "sglang", True),
        )
    }  # fmt: skip
    assert chosen == {
        ("h200", "trtllm"): "h100-sxm-trtllm-2026-dense-inference",
        ("h200", "sglang"): "h200-sglang-2026-dense-inference",
        ("h200", ""): "h200-sglang-2026-dense-inference",
        # None of its generation serves dense models: that of the framework.
        ("b200", "trtllm"): "h100-sxm-trtllm-2026-dense-inference",
        ("gb200", "vllm"): "gb200-vllm-2026-experts-inference",
        ("gb200", "sglang"): "gb200-trtllm-2026-experts-inference",
    }
    graph = everything()
    assert [0, 1] == [apart for _, apart, _ in distances(graph, "trainium1", {"inferentia2", "trainium2"}).values()]
    # Without a number of the generation rates decide.
    ratios = [ratio for *_, ratio in distances(graph, "b200", {"gb200", "b200", "h200", "a100-80gb"}).values()]
    assert [True, True, False, False] == [ratio <= math.log(TOLERANCE) for ratio in ratios]


def test_an_interval_contains_its_estimate():
    graph = everything()
    known = graph.of(Calibration)
    assert len(known) > 50
    for node in known:
        found = calibrated(graph, node.spec.chip.name, node.spec.of, node.name)
        for framework in ("", "another"):
            moved = calibrated(graph, node.spec.chip.name, node.spec.of, node.name, framework)
            ends = [(moved.low, moved.high), moved.ttft_interval or (1.0, 1.0)]
            assert all(low <= 1.0 <= high for low, high in ends), (node.name, framework, ends)
        for scale in ("server", "cluster", "large"):
            for experts in (False, True):
                at = found.at({}, scale=scale, experts=experts)
                assert at.low <= 1.0 <= at.high, (node.name, scale, experts)


RANGES = "fitted_on: {chips: [c], dtypes: [bf16], seq: {low: 1024, high: 4096}, tp: {low: 2, high: 8}}, "
WIDER = "extrapolation: 0.5x, transfer: {rows: 9, groups: 2, low: 0.8x, high: 1.05x}, "


@pytest.mark.parametrize(
    ("inputs", "dtype", "kind", "ends"),
    [
        ({"seq": 2048, "tp": 4}, "bf16", "estimate", (0.9, 1.1)),
        ({"seq": 4096 * 1.25, "tp": 2 / 1.25}, "bf16", "estimate", (0.9, 1.1)),
        ({"seq": 4096 * 1.26, "tp": 4}, "bf16", "extrapolated", (0.9 / 1.26**0.5, 1.1 * 1.26**0.5)),
        # 0.9 / 4^0.5 and 1.1 * 4^0.5: the input that is furthest outside counts.
        ({"seq": 16384, "tp": 1}, "bf16", "extrapolated", (0.45, 2.2)),
        ({"seq": 256, "tp": 4}, "bf16", "extrapolated", (0.45, 2.2)),
        ({"seq": 2048, "tp": 4}, "fp8", "extrapolated", (0.8, 1.1)),
        ({"unknown": 1e9}, "", "estimate", (0.9, 1.1)),
    ],
)
def test_the_interval_widens_with_the_distance(inputs, dtype, kind, ends):
    found = calibrated(some("a 7 matmul: 0.5x", about=RANGES, spread=WIDER), "c", "training").at(inputs, dtype)
    assert kind == found.evidence.kind
    assert ends == pytest.approx((found.low, found.high))
    assert [o.input for o in found.evidence.outside] == sorted(
        (o.input for o in found.evidence.outside), key=lambda name: -max(inputs.get(name, 1) / 4096, 0)
    )


FRAMEWORK, ERA, MODELS = "framework: megatron, ", 'era: "2021", ', "models: experts, "


@pytest.mark.parametrize(
    ("documents", "wanted", "name"),
    [
        # Framework, then models, then era, then rows.
        ({"a": FRAMEWORK, "b": 'era: "2026", '}, {"framework": "megatron"}, "a"),
        ({"a": FRAMEWORK, "b": FRAMEWORK + ERA}, {"framework": "megatron"}, "b"),
        ({"a": MODELS, "b": 'era: "2026", '}, {"experts": True}, "a"),
        ({"a": "", "b": MODELS + ERA}, {"experts": False}, "a"),
        ({"a": "", "b": "models: dense, "}, {"experts": False}, "b"),
        ({"a": "", "b": MODELS + ERA}, {}, "a"),
        ({"a": ERA, "b": 'era: "2026", '}, {"era": "2021"}, "a"),
        # An era begins with a release: the newest that had begun, else the oldest.
        ({"a": ERA, "b": 'era: "2026-02", '}, {"era": "2023-01"}, "a"),
        ({"a": ERA, "b": 'era: "2026-02", '}, {"era": "2026-04"}, "b"),
        ({"a": ERA, "b": 'era: "2026", '}, {}, "b"),
    ],
)
def test_the_order_of_the_choice(documents, wanted, name):
    given = some(*(f"{each} {7 + i}" for i, each in enumerate(documents)), about=documents)
    found = calibrated(given, "c", "training", **wanted)
    assert (name, "estimate") == (found.name, found.evidence.kind)


@pytest.mark.parametrize(
    ("about", "wanted", "reason"),
    [
        (FRAMEWORK, {"framework": "nxd"}, "a has no rows of nxd, only of megatron (S, 7 rows)"),
        (ERA, {"era": "2025"}, "a has no rows of 2025, only of 2021 (S, 7 rows)"),
        (ERA, {"era": "2020"}, "a has no rows of 2020, only of 2021 (S, 7 rows)"),
        (ERA, {"era": "2024-04"}, "a (S, 7 rows)"),
        ("", {"era": "2026"}, "a has no rows of 2026 (S, 7 rows)"),
        (MODELS, {"experts": False}, "a has no rows of models without experts (S, 7 rows)"),
        ("models: dense, ", {"experts": True}, "a has no rows of models with experts (S, 7 rows)"),
        (FRAMEWORK + ERA, {"framework": "megatron", "era": "2021", "experts": True}, "a (S, 7 rows)"),
    ],
)
def test_a_calibration_of_something_else_is_transferred(about, wanted, reason):
    found = calibrated(some("a 7", about=about, spread=WIDER), "c", "training", **wanted)
    kind, low = ("estimate", 0.9) if reason == "a (S, 7 rows)" else ("transferred", 0.8)
    assert (kind, reason, low) == (found.evidence.kind, found.evidence.reason, found.low)


GROUPS = (
    "groups: [{phase: step, scale: server, models: dense, rows: 9, clusters: 9, mean: 0.1x, median: 0.1x, low: 0.95x, high: 1.02x}, "
    "{phase: step, scale: server, rows: 12, clusters: 12, mean: 0.1x, median: 0.1x, low: 0.94x, high: 1.03x}, "
    "{phase: step, models: experts, rows: 11, clusters: 9, mean: 0.1x, median: 0.1x, low: 0.7x, high: 1.5x}], "
)


@pytest.mark.parametrize(
    ("scale", "experts", "ends"),
    [
        ("server", False, (0.95, 1.02)),
        ("server", None, (0.94, 1.03)),
        ("large", True, (0.7, 1.5)),
        ("large", False, (0.9, 1.1)),
        ("", None, (0.9, 1.1)),
    ],
)
def test_the_interval_is_that_of_the_group(scale, experts, ends):
    known = calibrated(some("a 7", about=GROUPS + RANGES, spread=WIDER), "c", "training")
    found = known.at({"seq": 2048}, "bf16", scale=scale, experts=experts)
    assert ends == (found.low, found.high)
    far = known.at({"seq": 16384}, "bf16", scale=scale, experts=experts)
    assert (ends[0] / 2, ends[1] * 2) == pytest.approx((far.low, far.high))


def test_by_name():
    found = calibrated(everything(), "a100-80gb", "training", "a100-80gb-megatron-2021")
    spec = everything().named("a100-80gb-megatron-2021").spec
    assert "a100-80gb-megatron-2021" == found.name
    assert float(spec.achieved.matmul) == found.efficiency.matmul < 1.0
    assert float(spec.spread.low) == found.low < 1.0 < found.high == float(spec.spread.high)
    assert float(spec.spread.coverage) == found.coverage == 0.8
    assert spec.software in found.description
    assert f"{spec.spread.rows} rows" in found.description
    assert "fitted on" not in found.description


def test_parameters_absent_from_a_calibration_are_ideal():
    """But for passes over written scores, which none of its rows had."""
    found = calibrated(shipped().graph, "trainium1", "training")
    stated = shipped().graph.named(found.name).spec.achieved
    for name in (f.name for f in fields(Efficiency)):
        expected = getattr(stated, name)
        default = SCORE_PASSES if name == "score_passes" else getattr(IDEAL, name)
        assert (default if expected is None else float(expected)) == getattr(found.efficiency, name)
    assert stated.ultraserver is stated.score_passes is None


def test_a_name_that_is_not_there():
    with pytest.raises(UnknownNameError, match=r"no calibration is named 'trainium1-neuro'; .*trainium1-neuron"):
        calibrated(shipped().graph, "trainium1", "training", "trainium1-neuro")
    with pytest.raises(UnknownNameError, match=r"no calibration is named 'trn1\.32xlarge'"):
        calibrated(shipped().graph, "trainium1", "training", "trn1.32xlarge")


def test_of_something_else():
    with pytest.raises(UsageError, match="trainium1-neuron is for training, not for inference"):
        calibrated(shipped().graph, "trainium1", "inference", "trainium1-neuron")


def some(*calibrations: str, about: str | dict[str, str] = "", spread: str = ""):
    """A catalog of a chip and calibrations: ``name rows``, and what more their specs say."""
    chip = "spec: {memory: {capacity: 16 GiB, bandwidth: 100 GB/s}, peak: {dense: {bf16: 1 TFLOPS}}}"
    texts = [source("s", "2026-01-01"), document("Chip", "c", chip, "source: s")]
    for each in calibrations:
        name, rows, *more = each.split(" ", 2)
        errors = f"{spread}rows: {rows}, mean: 0.1x, median: 0.1x, worst: 0.2x, coverage: 0.8x, low: 0.9x, high: 1.1x"
        more_of_spec = about if isinstance(about, str) else about[name]
        spec = (
            f"spec: {{chip: c, of: training, software: S, fitted: 2026-11-21, data: x.csv, {more_of_spec}"
            f"achieved: {{{more[0] if more else 'matmul: 0.5x'}}}, spread: {{{errors}}}}}"
        )
        texts.append(document("Calibration", name, spec, f"source: s, aliases: [also-{name}]"))
    return graph(*texts)


@pytest.mark.parametrize(
    "name", ["matmul", "matmul_fp8", "attention", "memory", "chip", "server", "ultraserver", "network"]
)
def test_achieved_share_of_0_is_rejected(name):
    with pytest.raises(UsageError, match=rf"a spec\.achieved\.{name} is 0x"):
        calibrated(some(f"a 7 {name}: 0x"), "c", "training")


def test_parameters_of_0_are_accepted_where_optional():
    found = calibrated(some("a 7 overlap: 0x, causal: 0x, step: 0 s"), "c", "training").efficiency
    assert evolve(IDEAL, overlap=0.0, causal=0.0, step=0.0, score_passes=SCORE_PASSES) == found


TIMES = {"forward", "backward", "call", "hop", "network_hop", "send", "step", "dispatch"}


def test_fitted_parameters_are_fields_of_the_kind():
    """Each number of the engine is one of the document, a time where it is one, and has the same words for it."""
    shapes = {name: f.shape for name, f in ObjectShape(Achieved).fields.items()}
    for each in fields(Efficiency):
        expected = Dimension.TIME if each.name in TIMES else Dimension.RATIO
        assert expected is shapes[each.name].dimension
