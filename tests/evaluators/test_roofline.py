"""trnspec.evaluators.roofline: cells of data types for which a chip has only some of the rates."""

import pytest

from tests.support.engine import everything
from tests.support.rules import document, graph, source
from trnspec.api import evaluate
from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError

CHIP = """\
spec:
  peak: {dense: {bf16: 100 TFLOPS}, sparse: {fp8: 400 TFLOPS}}
  tensor_peak: {dense: {fp16: 80 TFLOPS}}
  memory: {capacity: 32 GiB, bandwidth: 1 TB/s}
"""


CATALOG = Catalog(graph(source("page", "2024-05-01"), document("Chip", "part", CHIP, "source: page")))


def test_a_rate_that_is_not_published_has_an_empty_cell() -> None:
    (table,) = evaluate("roofline", CATALOG, on="part").tables

    assert [
        ("bf16", 1e14, 100.0, 1e14, 100.0, None, None),
        ("fp16", None, None, 8e13, 80.0, None, None),
        ("fp8", None, None, None, None, 4e14, 400.0),
    ] == list(table.rows)


@pytest.mark.parametrize(("dtype", "sparse", "size", "result"), [("bf16", False, 2, 2), ("fp8", True, 1, 2)])
def test_products_of_narrow_types_are_written_in_16_bit(dtype: str, sparse: bool, size: int, result: int) -> None:
    found = evaluate("roofline", CATALOG, on="part", matmul="64x128x256", dtype=dtype, sparse=sparse)

    assert found["traffic"] == (64 * 128 + 128 * 256) * size + 64 * 256 * result


def test_the_rates_of_networks_are_not_used() -> None:
    found = evaluate("roofline", Catalog(everything()), on="dgx-h200*2", dtype="bf16")

    assert {("h200", "peak.dense.bf16"), ("h200", "memory.bandwidth")} == {(f.of, f.at) for f in found.figures_used}


@pytest.mark.parametrize(
    ("on", "hint"), [("part", "types with a sparse rate: fp8"), ("trainium1", "sparse=False uses the dense rate")]
)
def test_a_type_without_a_sparse_rate(on, hint) -> None:
    with pytest.raises(RefusalError, match="no published sparse rate for bf16") as refused:
        evaluate("roofline", CATALOG if on == "part" else None, on=on, dtype="bf16", sparse=True)

    assert refused.value.hint.endswith(hint)
