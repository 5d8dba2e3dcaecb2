"""Printed ratios between generations, compared with the figures of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.checks.reconcile.relations import AGREES, claimed_paths
from trnspec.checks.reconcile.sites import Site
from trnspec.diagnostics import Severity
from trnspec.graph.graph import Graph, at
from trnspec.model.chip import Chip
from trnspec.model.reflection import dotted, shape_at
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.quantity import Interval, render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.model.document import Node


@rule("TRN606", "ratio-mismatch", over=Chip, severity=Severity.WARNING, local=True)
def ratio_mismatch(chip: Node[Chip], graph: Graph) -> Iterator[Finding]:
    """A printed ratio that contradicts the figures.

    Why:
        "3.4x faster" is computed once and then copied; when a figure is corrected, the ratio often is not. The verdict
        states whether the ratio is outdated or is based on other figures than the adopted ones.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          peak: {dense: {bf16: 667 TFLOPS}}
          memory: {capacity: 96 GiB}
          ratios:
            - of: spec.peak.dense.bf16
              over: trainium1
              says: 3.0x  #! TRN606
              source: neuron-trainium2-2026-08
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium2-2026-08}
        spec:
          peak: {dense: {bf16: 667 TFLOPS}}
          memory: {capacity: 96 GiB}
          ratios:
            - of: spec.peak.dense.bf16
              over: trainium1
              says: 3.5x
              source: neuron-trainium2-2026-08
        ```

    Source:
        Moore, Kearfott, Cloud: Introduction to Interval Analysis (2009), 2.3, for quotients of intervals.
    """
    for index, ratio in enumerate(chip.spec.ratios):
        older = graph.find(ratio.over)
        if ratio.verdict not in AGREES or older is None:
            continue
        for path in claimed_paths(ratio.of):
            if shape_at(Chip, path[1:]) is None:
                yield Finding(("spec", "ratios", index, "of"), f"a Chip has no {dotted(path)}", "the path is misspelt")
            new, old = Site(chip, path), Site(older, path)
            if new.value is None or old.value is None or old.interval.low == 0:
                continue
            given = new.interval.ratio(old.interval)
            if not given.overlaps(ratio.says.value.interval):
                message = f"{ratio.source} has {ratio.says}, but {new.value} over {old.value} is {_show(given)}"
                see = (new.location, at(older, path, text=old.location.text))
                yield Finding(("spec", "ratios", index, "says"), message, "add a verdict and a reason", see)


def _show(given: Interval) -> str:
    middle = given.low if given.high is None else (given.low + given.high) / 2
    return render(middle, "x", 3)
