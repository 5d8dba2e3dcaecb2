"""``trnspec calibrate`` with rows of collectives: a document for each chip, which ``eval collective`` uses."""

from __future__ import annotations

import pytest

from tests.support.evaluations import keywords
from trnspec.api import load
from trnspec.evaluators.collective import run
from trnspec.loading.files import shipped
from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.measured.tables import fitted_hashes, records, row_hashes

TABLE = shipped() / "measured" / "collectives_neuron.csv"
ABOUT = ("--software", "Neuron collectives", "--era", "2027", "--source", "xpu-perf-b841954")


@pytest.mark.slow
def test_a_document_that_is_used(here, tmp_path):
    done = here("calibrate", TABLE, *ABOUT, "--framework", "nccom", "--out", "mine")
    assert (0, False) == (done.status, "Traceback" in done.err)
    assert "39 rows fitted, 0 cannot be evaluated" in done.out

    name = "trainium2-nccom-2027-collectives"
    assert [f"{name}.yaml"] == [f.name for f in (tmp_path / "mine" / "calibrations").iterdir()]
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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--framework", "nccl"), "too few rows of nccl"),
        (("--framework", "mpi"), "no collective library is named 'mpi'"),
        (("--only", "nothing"), "the rows are of none; choose one with --framework"),
    ],
)
def test_refuses_unfit_rows(here, arguments, message):
    done = here("calibrate", TABLE, *ABOUT, *arguments)

    assert done.status == 2
    assert message in done.err
