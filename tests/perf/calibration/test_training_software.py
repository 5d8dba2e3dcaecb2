"""Settings implied by the software of a measured training run, and settings that a row leaves open."""

from __future__ import annotations

import pytest

from tests.support.engine import everything
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.training import TrainingCase, training_cases

BRIDGE = {
    "kind": "train", "id": "a", "model": "LLAMA3_70B", "seq": "8192", "hardware": "DGX-GB200", "n_chips": "64", "tp": "2",
    "pp": "4", "vp": "5", "cp": "1", "ep": "n/a", "zero": "", "microbatch": "1", "global_batch": "256",
    "precision": "MXFP8", "step_time_s": "8.8", "source": "NVIDIA-NeMo+Megatron-Bridge:docs/x.md:1",
    "note": "26.04 NeMo Container; Pre-Training",
}  # fmt: skip


def one(**changed: str | None) -> TrainingCase | Skipped:
    row = {name: text for name, text in (BRIDGE | changed).items() if text is not None}
    (found,) = training_cases(everything(), [row])
    return found


def case(**changed: str | None) -> TrainingCase:
    found = one(**changed)
    assert isinstance(found, TrainingCase), found
    return found


SOFTWARE = [
    ({}, "megatron", "2026-04"),
    ({"note": "25.09 NeMo Container"}, "megatron", "2025-09"),
    ({"note": "26.06.01 NeMo Container"}, "megatron", "2026-06"),
    ({"id": "nemo-24.07-x", "source": "NVIDIA NeMo", "note": ""}, "megatron", "2024-07"),
    ({"source": "mlcommons/training_results_v5.1:x", "note": ""}, "megatron", "2025"),
    ({"source": "arXiv 2104.04473", "note": ""}, "megatron", "2021"),
    ({"id": "sc21-t2-ZeRO-3-174.6-384", "source": "arXiv 2104.04473", "note": ""}, "deepspeed", "2021"),
    ({"source": "arXiv 2205.05198", "note": ""}, "megatron", "2022"),
    ({"source": "pytorch+torchtitan:x", "note": ""}, "torchtitan", "2024"),
    ({"release": "2025-01"}, "megatron", "2025-01"),
    ({"source": "somebody", "note": ""}, "", ""),
]


@pytest.mark.parametrize(("changed", "framework", "era"), SOFTWARE)
def test_the_framework_and_the_era_of_a_row(changed, framework, era):
    found = case(**changed)
    assert (framework, era) == (found.framework, found.era)


def test_recipes_overlap_and_shard():
    layout = case().layout
    assert (True, True, 1) == (layout.overlap, layout.sequence_parallel, layout.zero)
    assert not case(overlap="no").layout.overlap
    assert not case(source="somebody", note="").layout.overlap


def test_experts_of_recipes_are_whole():
    layout = case(model="Qwen3_30B_a3B", tp="2", pp="1", vp="1", ep="8", n_chips="8").layout
    assert (8, 1, "per-node") == (layout.ep, layout.expert_split, layout.dispatch)
    # The column counts a dense model as one expert.
    assert 1 == case(ep="8").layout.ep


def test_interleaving_that_is_left_open_spans_its_values():
    found = case(vp="")
    # 20 layers a stage; two layers a chunk are the likeliest.
    assert 10 == found.layout.interleave
    assert [1, 2, 4, 5, 20] == sorted(a.interleave for a in found.alternatives if 20 % a.interleave == 0)
    assert () == case().alternatives == case(vp="n/a").alternatives == case(vp="", pp="1", microbatch="2").alternatives
    assert 1 == case(vp="n/a").layout.interleave


def test_a_model_that_is_cut():
    whole, found = case(model="DeepSeek-V3", note="w/o MTP"), case(model="DeepSeek-V3 cut to 4 layers", pp="1", vp="1")
    assert (61.0, 58.0) == (whole.dims.layers, whole.dims.expert_layers)
    assert ("deepseek-v3-4-layers", 4.0, 3.0) == (found.model, found.dims.layers, found.dims.expert_layers)
    dense = case(model="Llama 3.1 405B cut to 4 layers", pp="1", vp="1")
    assert (4.0, 0.0) == (dense.dims.layers, dense.dims.expert_layers)


def test_multi_token_prediction_of_the_recipe():
    assert 1.0 == case(model="DeepSeekV3").dims.mtp_layers
    assert 0.0 == case(model="DeepSeekV3 (w/o MTP)").dims.mtp_layers
    assert 0.0 == case(model="DeepSeekV3", source="somebody").dims.mtp_layers


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"note": "26.06 NeMo Container; LoRA Performance"}, "fine-tuning of adapters (LoRA)"),
        ({"precision": "FP8 or NVFP4 (both configs submitted)"}, "the precision is one of two"),
        (
            {"model": "mine", "layers": "4", "hidden": "4096", "heads": "32", "experts_topk": "64/6"},
            "with 64/6 experts",
        ),
    ],
)
def test_unsupported_settings_are_skipped(changed, reason):
    found = one(**changed)
    assert isinstance(found, Skipped)
    assert reason in found.reason


def test_racks_that_are_used_in_part():
    system = case(n_chips="128").system
    assert (128.0, [64.0]) == (system.chips, [level.ranks for level in system.levels if level.name == "ultraserver"])
