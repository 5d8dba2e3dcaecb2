"""``trnspec calibrate`` with rows of collectives: a document for each chip, which ``eval collective`` uses."""

import pytest

from tests.support.evaluations import keywords
from trnspec.api import load
from trnspec.evaluators.collective import run
from trnspec.loading.files import shipped
from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.measured.cells import fitted_hashes, records, row_hashes

TABLE = shipped() / "measured" / "collectives_neuron.csv"
ABOUT = ("--software", "Neuron collectives", "--era", "2027", "--source", "xpu-perf-b841954")


@pytest.mark.slow
def test_a_document_that_is_used(here, tmp_path):
    done = here("calibrate", TABLE, *ABOUT, "--framework", "nccom", "--out", "mine")
    assert (0, False) == (done.status, "Traceback" in done.err)
    assert "39 rows fitted, 0 cannot be evaluated" in done.out

    name = "trainium2-nccom-2027-collectives"
    assert ["trainium2-nccom-calibrations.yaml"] == [f.name for f in (tmp_path / "mine" / "calibrations").iterdir()]
    catalog = load([str(shipped()), str(tmp_path / "mine")])
    (node,) = (n for n in catalog.graph.of(Calibration) if n.name == name)
    spec = node.spec
    assert ("collectives", "nccom", "2027", "collectives_neuron.csv") == (
        spec.of,
        spec.framework,
        spec.era,
        spec.tables[0].table,
    )
    assert ("all-gather", "all-reduce") == spec.fitted_on.collectives
    assert {h for row in records(TABLE) for h in row_hashes(row)} == fitted_hashes(catalog.graph)[name]
    assert ["mesh", "RDH", "KangaRing", "P2P"] == [p.name for p in spec.protocols]
    # The newest era of the chip's library is used.
    found = keywords(run)(catalog, kind="all-reduce", size="1 MiB", on="trn2.48xlarge")
    assert name == next(a.value for a in found.assumptions if a.name == "calibration")
    assert found["time"] == pytest.approx(51.8e-6, rel=0.15)


def test_rows_of_ones_own_start_from_the_calibration_of_the_library(here, tmp_path):
    """Three rows, all 20 % slower than it; the protocols that they use, and no others, become slower."""
    lines = ["kind,id,hardware,ranks,collective,size_bytes,time_us,framework,launch,source"]
    known = {2**16: 20.9, 2**20: 52.0, 2**24: 280.0}
    lines += [
        f"collective,r{size},trn2.48xlarge,64,all_reduce,{size},{1.2 * time},nccom,nccom-test,own"
        for size, time in known.items()
    ]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    done = here("calibrate", "rows.csv", *ABOUT, "--framework", "nccom", "--out", "mine", "--format", "json")
    assert 0 == done.status, done.err
    report = done.data["trainium2"]
    assert ("trainium2-nccom-2026-collectives", 3) == (report["prior"]["calibration"], report["rows"])
    learned = {each["name"]: each for each in report["parameters"]}
    assert {"prior"} == {each["origin"] for name, each in learned.items() if name.startswith("P2P")}
    assert learned["mesh call"]["value"] > learned["mesh call"]["prior"]
    assert "P2P link" in done.err
    spec = load([str(tmp_path / "mine")]).graph.named("trainium2-nccom-2027-collectives").spec
    assert ("trainium2-nccom-2026-collectives", 3) == (spec.prior.calibration, spec.spread.rows)
    # Of three rows the interval is mostly that of the prior.
    assert float(spec.spread.high) < 1.2
