"""Published measurements of collectives: which can be computed, and as what."""

from collections import Counter

import pytest

from tests.perf.calibration.measured.conftest import changed
from tests.perf.collectives.conftest import timings
from tests.support.engine import everything
from trnspec.loading.files import shipped as folder
from trnspec.perf.calibration.fits.collectives import LIBRARIES
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.cells import records
from trnspec.perf.calibration.measured.collectives import CollectiveCase, collective_cases
from trnspec.perf.collectives.groups import group
from trnspec.perf.lowering.lower import lower

DATA = folder() / "measured"
STATED = "does not state the instance type"


def collective(**edit: str) -> CollectiveCase | Skipped:
    (found,) = collective_cases(everything(), [changed("collective", edit)])
    return found


def measured(name: str) -> tuple[dict[object, int], dict[str, int]]:
    found = list(collective_cases(everything(), records(DATA / name)))
    return (
        Counter((c.system.name, c.kind, c.framework, c.launch) for c in found if isinstance(c, CollectiveCase)),
        Counter(s.reason for s in found if isinstance(s, Skipped)),
    )


def test_every_row_of_nccl():
    groups, reasons = measured("collectives_nccl.csv")
    # The script of ml-engineering waits for each call; nccl-tests queues them.
    assert {
        ("p4de.24xlarge*2", "all-reduce", "nccl", "graph"): 14,
        ("p5.48xlarge*2", "all-reduce", "nccl", "graph"): 18,
        ("dgx-a100-80gb*1", "all-reduce", "nccl", "synchronous"): 11,
        ("dgx-h200*1", "all-reduce", "nccl", "synchronous"): 12,
        ("p6-b200.48xlarge*1", "all-reduce", "nccl", "synchronous"): 11,
        ("p6-b200.48xlarge*4", "all-reduce", "nccl", "synchronous"): 11,
        ("dgx-h200", "all-reduce", "nccl", "synchronous"): 4,
        ("dgx-h200", "reduce-scatter", "nccl", "synchronous"): 1,
    } == groups
    assert {f"'trn1 (slurm sample)' {STATED}": 7} == reasons


def test_no_row_of_nccom_names_its_instance():
    sizes = "all_gatherv: the parts differ in size, and the row does not state them"
    pairs = "permute: the pairs of ranks that send are not stated"
    assert ({}, {f"the row {STATED}": 51, sizes: 1, pairs: 1}) == measured("collectives_nccom.csv")


def test_switches_that_reduce_are_not_used_where_they_are_off():
    alone, off, on = (collective(hardware="8xH200", note=note) for note in ("", "Ring (NVLS off)", "NVLS"))
    nvls = next(p for p in LIBRARIES["nccl"].protocols if p.algorithm == "in-network")
    assert (True, False, True) == tuple(case.can_use(nvls) for case in (alone, off, on))
    # 1 + 1/8 of 1 GiB, or 2 x 7/8, at 450 GB/s.
    assert alone.ideal == on.ideal == pytest.approx(1.125 * 2**30 / 450e9)
    assert off.ideal == pytest.approx(1.75 * 2**30 / 450e9)
    assert [off.ideal] * 2 == [collective(hardware="8xH200", note=note).ideal for note in ("NVLS off", "Ring")]
    assert alone.bound == off.bound == on.bound == pytest.approx(2**30 / 450e9)


def test_ranks_and_logical_cores_that_a_row_states():
    one = collective(hardware="trn2.48xlarge", n_chips="16", ranks="64", lnc="2", size_bytes="1048576")
    chips = collective(hardware="trn2.48xlarge", n_chips="16", size_bytes="1048576")
    system = lower(everything(), "trn2.48xlarge", lnc=2)
    assert isinstance(one, CollectiveCase)
    assert timings(system, group(system, 64), "all-reduce", 2.0**20)[0].time == one.ideal
    assert timings(system, group(system, 16), "all-reduce", 2.0**20)[0].time == chips.ideal
