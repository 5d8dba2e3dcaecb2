"""The published run that is nearest to a plan."""

import pytest
from attrs import evolve

from tests.support.engine import everything
from trnspec.model.transformers.counting import active_parameters, dimensions
from trnspec.perf.calibration.published_runs import nearest_run
from trnspec.perf.lowering.lower import model_named

GRAPH = everything()


@pytest.mark.parametrize(
    ("model", "chip", "run"),
    [
        ("llama-3.1-8b", "h100-sxm", "llama3.1-8b"),
        # Of another chip before another model.
        ("llama-3.1-8b", "trainium2", "llama3.1-8b"),
        ("deepseek-v3", "h100-sxm", "deepseek-v3"),
        # With experts, as the model; of 671 and 42 billion parameters the second is nearer to 47.
        ("mixtral-8x7b", "h100-sxm", "grin-moe"),
        # No run of this model: of the nearest size on the same chip.
        ("mistral-7b", "a100-80gb", "llama2-7b"),
        ("mistral-7b", "h100-sxm", "llama3-8b"),
    ],
)
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

    hours = found.scaled(active_parameters(dims), found.tokens, peak)
    assert hours == pytest.approx(found.chip_hours, rel=0.01)
    assert found.scaled(active_parameters(dims), 2.0 * found.tokens, peak / 2.0) == pytest.approx(4.0 * hours)
    assert evolve(found, mfu=2.0 * found.mfu).scaled(active_parameters(dims), found.tokens, peak) == pytest.approx(
        hours / 2
    )
