"""GPU configurations of llm-analysis, and the package itself reading them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import trnspec
from tests.support.engine import everything
from trnspec.catalog.catalog import Catalog

CAT = trnspec.load()
ALL = Catalog(everything())
GPUS = ["p4d.24xlarge", "p5.48xlarge", "dgx-b300", "gb200-nvl72"]
FABRICS = ["trn1.32xlarge", "trn1n.32xlarge", "trn2.48xlarge", "trn2u.48xlarge"]
WHOLE = ["trn2-ultraserver", "trn3-gen1-ultraserver", "trn3-gen2-ultraserver"]

VERSION = "0.2.2"


def config(name: str, catalog: trnspec.Catalog = CAT) -> dict:
    text = catalog[name].export("llm-analysis").text
    assert text.startswith('{\n    "name"')  # as in the files of the package
    return json.loads(text)


def test_trn1() -> None:
    assert {
        "name": "trn1.32xlarge",
        "mem_per_GPU_in_GB": 32,  # the package multiplies by 1024 ** 3
        "hbm_bandwidth_in_GB_per_sec": 820,
        "intra_node_bandwidth_in_GB_per_sec": 192,  # four links of 96 GB/s in both directions
        "intra_node_min_message_latency": 0,
        "peak_fp16_TFLOPS": 190,
        "peak_i8_TFLOPS": 380,
        "peak_i4_TFLOPS": 190,
        "inter_node_bandwidth_in_GB_per_sec": 100,  # 800 Gbps
    } == config("trn1.32xlarge")
    (of_peak,) = (a.says for a in CAT["trn1.32xlarge"].export("llm-analysis").assumptions if "engines" in a.says)
    assert f"{183.5 / 190:.3f} of it" in of_peak


@pytest.mark.parametrize("name", [*FABRICS, *WHOLE])
def test_assumed_and_used_fields_of_llm_analysis(name) -> None:
    made = CAT[name].export("llm-analysis")
    assumed = {a.field for a in made.assumptions}
    used = {u.field for u in made.used}

    assert set(config(name)) - {"name"} == assumed | used
    assert {"peak_i4_TFLOPS"} <= assumed - used


@pytest.fixture(scope="module")
def package(tmp_path_factory) -> Path:
    """The package and what its configurations need, without the models that its other parts ask for."""
    folder = tmp_path_factory.mktemp("llm-analysis")
    wanted = [f"llm-analysis=={VERSION}", "fire", "termcolor"]
    args = ["-m", "pip", "install", "--quiet", "--no-deps", "--target", folder, *wanted]
    done = subprocess.run([sys.executable, *args], capture_output=True, check=False, text=True)

    assert done.returncode == 0, done.stderr
    for name in [*FABRICS, *WHOLE, *GPUS]:
        file = folder / "llm_analysis" / "gpu_configs" / f"{name}.json"
        file.write_text(ALL[name].export("llm-analysis").text, encoding="utf-8")
    return folder


ASK = """\
import dataclasses, json, sys
from llm_analysis.analysis import LLMAnalysis
from llm_analysis.config import (
    ParallelismConfig, get_dtype_config_by_name, get_gpu_config_by_name, get_model_config_by_name
)

found = {}
for name in sys.argv[1:]:
    gpu = get_gpu_config_by_name(name)
    model, parallel = get_model_config_by_name("gpt2-xl"), ParallelismConfig(tp_size=2)
    made = {dtype: LLMAnalysis(model, gpu, get_dtype_config_by_name(dtype), parallel) for dtype in
            ("w16a16e16", "w8a8e16", "w4a4e16")}
    run = made["w16a16e16"].inference(batch_size_per_gpu=1, seq_len=128, num_tokens_to_generate=8)
    found[name] = {
        "gpu": dataclasses.asdict(gpu),
        "rates": [each.get_TFLOPS_per_gpu() for each in made.values()],
        "latency": run["total_latency"],
        "mlp": made["w16a16e16"].get_latency_fwd_per_layer_mlp(8, 1024),
        "left": made["w16a16e16"].gpu_config.mem_per_GPU_in_GB * 1024**3,
    }
print(json.dumps(found))
"""


@pytest.mark.slow
def test_the_package_reads_it_and_calculates_with_it(package, tmp_path) -> None:
    """Its loader takes every key as it is, its analysis gives times, and no default of its own slips in."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")} | {"PYTHONPATH": str(package)}
    args = [sys.executable, "-c", ASK, *FABRICS, *WHOLE, *GPUS]
    done = subprocess.run(args, cwd=tmp_path, env=env, capture_output=True, check=False, text=True)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    assert {*FABRICS, *WHOLE, *GPUS} == set(found)
    for name, read in found.items():
        ours, chip = config(name, ALL), ALL[name].chip_view
        assert ours == read["gpu"]
        assert [ours["peak_fp16_TFLOPS"], ours["peak_i8_TFLOPS"], ours["peak_i4_TFLOPS"]] == read["rates"]
        assert float(chip.memory.capacity) == read["left"], "bytes of a chip"
        # Two products of 8 x 1,024 tokens with matrices of 1,600 x 6,400 on two chips, bound by compute.
        assert 2 * 2 * 8 * 1024 * 1600 * 6400 / 2 / float(chip.peak.dense.fp16) == pytest.approx(read["mlp"])
        # The weights of 1.5 billion parameters in two parts must be read once for each of eight tokens.
        assert read["latency"] > 8 * 1.5e9 / float(chip.memory.bandwidth)
