"""The published run or fleet that is nearest to a plan."""

import pytest
from attrs import evolve

from tests.support.engine import everything
from tests.support.tables import tables
from trnspec.model.transformers.counting import active_parameters, dimensions
from trnspec.perf.calibration.published_runs import nearest_fleet, nearest_run
from trnspec.perf.lowering.lower import model_named

TABLES = tables(__file__)

GRAPH = everything()


@pytest.mark.parametrize(("model", "chip", "run"), TABLES["the nearest run"])
def test_the_nearest_run(model, chip, run) -> None:
    found = nearest_run(GRAPH, model, dimensions(model_named(GRAPH, model).spec), chip)

    assert found is not None
    assert found.id == run
    assert found.is_of(model) is (run.replace("llama3", "llama-3") == model)


@pytest.mark.parametrize("model", ["llama-2-70b", "llama-3.1-405b"])
def test_chip_hours_at_the_mfu_of_the_same_run_are_its_own(model) -> None:
    dims = dimensions(model_named(GRAPH, model).spec)
    found = nearest_run(GRAPH, model, dims, "h100-sxm")
    assert found is not None
    peak = 989.4e12 if "H100" in found.hardware else 312e12

    work = 6.0 * active_parameters(dims) * found.tokens
    hours = found.scaled(work, peak) / 3600.0
    assert hours == pytest.approx(found.chip_hours, rel=0.01)
    assert found.scaled(2.0 * work, peak / 2.0) == pytest.approx(4.0 * 3600.0 * hours)
    assert evolve(found, mfu=2.0 * found.mfu).scaled(work, peak) == pytest.approx(1800.0 * hours)


@pytest.mark.parametrize(("model", "chip", "load", "fleet"), TABLES["the nearest fleet"])
def test_the_nearest_fleet(model, chip, load, fleet) -> None:
    found = nearest_fleet(GRAPH, model, dimensions(model_named(GRAPH, model).spec), chip, tuple(load))

    assert found is not None
    assert found.id.removeprefix("mlperf51-") == fleet
