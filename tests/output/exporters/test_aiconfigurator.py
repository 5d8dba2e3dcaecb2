"""Systems of aiconfigurator, and its compiled engine computing with them."""

import importlib.util
import json
import subprocess
import sys

import pytest

from tests.support.engine import everything
from trnspec.catalog.catalog import Catalog
from trnspec.output.exporters.aiconfigurator import _number
from trnspec.yaml import read_text

CAT = Catalog(everything())
NAMES = ["trn1.32xlarge", "trn2.48xlarge", "trn2-ultraserver"]
NAMES += ["p5.48xlarge", "p4d.24xlarge", "dgx-b300", "gb200-nvl72"]


def system(name: str) -> dict:
    data = read_text(CAT[name].export("aiconfigurator").text).data
    assert isinstance(data, dict)
    return data


def test_a_server() -> None:
    made = system("p5.48xlarge")

    assert {
        "mem_bw": 3_350_000_000_000,
        "mem_bw_empirical_scaling_factor": 1,
        "mem_empirical_constant_latency": 0,
        "mem_capacity": 80 * 2**30,
        "bfloat16_tc_flops": 989_400_000_000_000,
        "int8_tc_flops": 1_978_900_000_000_000,
        "fp8_tc_flops": 1_978_900_000_000_000,
    } == made["gpu"], "fp4, which the chip does not have, is left out"
    assert {
        "num_gpus_per_node": 8,
        "intra_node_bw": 450_000_000_000,
        "inter_node_bw": 50_000_000_000,
        "p2p_latency": 0,
    } == made["node"]


def test_an_ultraserver_is_a_rack() -> None:
    assert {
        "num_gpus_per_node": 16,
        "intra_node_bw": 512_000_000_000,
        "num_gpus_per_rack": 64,
        "inter_node_bw": 128_000_000_000,
        "inter_rack_bw": 25_000_000_000,
        "p2p_latency": 1.5e-6,
        "inter_rack_latency": 1.5e-5,
    } == system("trn2-ultraserver")["node"]
    assert {900_000_000_000} == {system("gb200-nvl72")["node"][key] for key in ("intra_node_bw", "inter_node_bw")}


def test_half_of_both_directions_is_used_for_one() -> None:
    made = CAT["trn3-gen1-ultraserver"].export("aiconfigurator", use={"node.inter_node_bw": "fabric.bandwidth.both"})

    assert "\n  inter_node_bw: 1024000000000\n" in made.text  # of 2,048 GB/s


# The program itself.

ASK = """\
import json, sys
from aiconfigurator_core.sdk import common, operations as ops, perf_database

folder, found = sys.argv[1], {}
for name in sys.argv[2:]:
    data = perf_database.get_database(name, "vllm", "0.19.0", systems_paths=[folder], allow_missing_data=True,
                                      database_mode="SOL", allow_unlisted_version=True)
    data.set_default_database_mode(common.DatabaseMode.SOL)
    gemm = ops.GEMM("gemm", 1, 8192, 8192, common.GEMMQuantMode.bfloat16)
    try:
        eight = float(ops.GEMM("gemm", 1, 8192, 8192, common.GEMMQuantMode.fp8)._engine_query(data, x=8192))
    except Exception as error:
        eight = str(error)
    found[name] = {
        "spec": perf_database.load_system_spec(name, [folder]),
        "rates": [data.system_spec.get_p2p_bandwidth(n) for n in (2, 10**6)],
        "gemm": float(gemm._engine_query(data, x=8192)),
        "fp8": eight,
        "p2p": float(ops.P2P("p2p", 1, 8192, 2)._engine_query(data, x=1024)),
    }
print(json.dumps(found))
"""


@pytest.mark.slow
@pytest.mark.skipif(
    importlib.util.find_spec("aiconfigurator_core") is None, reason="needs aiconfigurator-core (group exports, 113 MB)"
)
def test_its_engine_loads_the_system_and_its_times_are_those_of_the_catalog(tmp_path) -> None:
    for name in NAMES:
        (tmp_path / f"{name}.yaml").write_text(CAT[name].export("aiconfigurator").text, encoding="utf-8")
    args = [sys.executable, "-c", ASK, tmp_path, *NAMES]
    done = subprocess.run(args, cwd=tmp_path, capture_output=True, check=False, text=True)

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    for name in NAMES:
        read, chip, ours = found[name], CAT[name].chip_view, system(name)["node"]
        assert json.loads(json.dumps(system(name)["gpu"])) == read["spec"]["gpu"]
        beyond = ours.get("inter_rack_bw", ours["inter_node_bw"])
        assert [ours["intra_node_bw"], beyond] == read["rates"]
        work = 2 * 8192**3
        assert work / float(chip.peak.dense.bf16) * 1000 == pytest.approx(read["gemm"]), "ms; bound by compute"
        if chip.peak.dense.fp8 is None:
            assert "fp8_tc_flops" in read["fp8"], "it refuses a rate that is not known"
        else:
            assert work / float(chip.peak.dense.fp8) * 1000 == pytest.approx(read["fp8"])
        assert 2 * 8192 * 1024 / ours["inter_node_bw"] * 1000 == pytest.approx(read["p2p"])


@pytest.mark.parametrize(("value", "text"), [(10**15, "1000000000000000"), (1e-06, "1.0e-06"), (1.5e-06, "1.5e-06")])
def test_numbers_of_yaml(value, text) -> None:
    assert text == _number(value)
