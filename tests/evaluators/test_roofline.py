"""trnspec.evaluators.roofline: cells of data types for which a chip has only some of the rates."""

from __future__ import annotations

from catalogs import document, graph, source

from trnspec.api import evaluate
from trnspec.catalog.catalog import Catalog

CHIP = """\
spec:
  peak: {dense: {bf16: 100 TFLOPS}, sparse: {fp8: 400 TFLOPS}}
  tensor_peak: {dense: {fp16: 80 TFLOPS}}
  memory: {capacity: 32 GiB, bandwidth: 1 TB/s}
"""


def test_a_rate_that_is_not_published_has_an_empty_cell() -> None:
    catalog = Catalog(graph(source("page", "2024-05-01"), document("Chip", "part", CHIP, "source: page")))
    (table,) = evaluate("roofline", catalog, on="part").tables

    assert [
        ("bf16", 1e14, 100.0, 1e14, 100.0, None, None),
        ("fp16", None, None, 8e13, 80.0, None, None),
        ("fp8", None, None, None, None, 4e14, 400.0),
    ] == list(table.rows)
