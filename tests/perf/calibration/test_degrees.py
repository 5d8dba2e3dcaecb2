"""The degrees with which models like one were trained in measurements."""

from __future__ import annotations

import pytest

from tests.support.engine import everything, shipped
from trnspec.model.transformers.counting import dimensions
from trnspec.perf.calibration.degrees import measured_degrees
from trnspec.perf.lowering.lower import model_named


def degrees(chip: str, model: str) -> dict[str, tuple[int, ...]]:
    return measured_degrees(everything(), chip, dimensions(model_named(everything(), model).spec))


def test_models_of_similar_size_on_chips_of_the_publisher() -> None:
    """Llama 3.1 8B on Trainium1 was measured with TP 32, Llama 2 7B and 13B with TP 8 and PP 4; Trainium2 has no rows."""
    expected = {"tp": (8, 32), "pp": (1, 4), "cp": (1,), "ep": (1,)}
    assert degrees("trainium1", "llama-3.1-8b") == degrees("trainium2", "llama-3.1-8b") == expected
    assert max(degrees("h100-sxm", "llama-3.1-405b")["pp"]) > 1


@pytest.mark.parametrize(("chip", "model"), [("trainium1", "mixtral-8x7b"), ("trainium1", "llama-3.1-405b")])
def test_without_a_comparable_model(chip: str, model: str) -> None:
    """No model with experts was trained on Trainium1 in a table, and none of more than 13B parameters."""
    assert degrees(chip, model) == {}


def test_a_catalog_without_the_hardware_of_a_table() -> None:
    """Rows of chips that the catalog lacks do not count."""
    llama = dimensions(model_named(shipped().graph, "llama-3.1-8b").spec)
    assert measured_degrees(shipped().graph, "h100-sxm", llama) == {}
