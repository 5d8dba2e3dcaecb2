"""Calibrations: the tables of the rows that they were fitted to."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.loading.measured import table_of
from trnspec.model.calibration import Calibration
from trnspec.model.measurements import Measurements
from trnspec.plugins.api import Finding, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node


@rule("TRN706", "changed-table", over=Calibration)
def changed_table(node: Node[Calibration], graph: Graph) -> Iterator[Finding]:
    """A calibration whose table of measurements has changed since the fit, or is not in the catalog.

    Why:
        Its lines no longer name the fitted rows, so that no row of the table counts as one that the fit has not seen.

    Example:
        ```yaml
        # file: measured/example.yaml
        api_version: trnspec/v1
        kind: Measurements
        metadata: {name: example, title: Example, source: neuron-trn1-2023-02}
        spec:
          data: example.csv
          of: matmul
          framework: PyTorch
          licence: Apache-2.0
          columns:
            kind: {meaning: what the row measures}
            id: {meaning: name of the row}
            source: {meaning: where it is published}
            time_us: {meaning: time per call, unit: us}
        # file: measured/example.csv
        kind,id,source,time_us
        matmul,one,a page,12.5
        # file: calibrations/trainium1-example.yaml
        api_version: trnspec/v1
        kind: Calibration
        metadata: {name: trainium1-example, title: Example, source: neuron-trn1-2023-02}
        spec:
          chip: trainium1
          of: kernels
          software: PyTorch
          fitted: 2026-11-20
          tables:
            - {table: example.csv, hash: 0a1b2c3d4e5f, lines: "2"}  #! TRN706
          achieved: {matmul: 0.8x}
          spread: {rows: 1, mean: 0.1x, median: 0.1x, worst: 0.1x, coverage: 0.8x, low: 0.9x, high: 1.1x}
        ```

    Instead:
        ```yaml
        # file: measured/example.yaml
        api_version: trnspec/v1
        kind: Measurements
        metadata: {name: example, title: Example, source: neuron-trn1-2023-02}
        spec:
          data: example.csv
          of: matmul
          framework: PyTorch
          licence: Apache-2.0
          columns:
            kind: {meaning: what the row measures}
            id: {meaning: name of the row}
            source: {meaning: where it is published}
            time_us: {meaning: time per call, unit: us}
        # file: measured/example.csv
        kind,id,source,time_us
        matmul,one,a page,12.5
        # file: calibrations/trainium1-example.yaml
        api_version: trnspec/v1
        kind: Calibration
        metadata: {name: trainium1-example, title: Example, source: neuron-trn1-2023-02}
        spec:
          chip: trainium1
          of: kernels
          software: PyTorch
          fitted: 2026-11-20
          tables:
            - {table: example.csv, hash: e3186d1538b0, lines: "2"}
          achieved: {matmul: 0.8x}
          spread: {rows: 1, mean: 0.1x, median: 0.1x, worst: 0.1x, coverage: 0.8x, low: 0.9x, high: 1.1x}
        ```

    Source:
        docs/explanation/performance/calibration.md: errors are those of rows that a fit has not seen.
    """
    hashes: dict[str, set[str]] = {}
    for document in graph.of(Measurements):
        # TRN701 reports a table that cannot be read.
        with suppress(UsageError):
            table = table_of(document.spec, document.document.file)
            hashes.setdefault(document.spec.data, set()).add(table.hash)
    for index, fitted in enumerate(node.spec.tables):
        path = ("spec", "tables", index)
        known = hashes.get(fitted.table)
        if known is None:
            hint = did_you_mean(fitted.table, hashes)
            yield Finding((*path, "table"), f"no document has the table {fitted.table}", hint)
        elif fitted.hash not in known:
            message = f"{fitted.table} has changed since the fit: its hash is {' or '.join(sorted(known))}"
            yield Finding((*path, "hash"), message, "fit it anew with trnspec calibrate")
