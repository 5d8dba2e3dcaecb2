"""Scenarios: evaluators, inputs, bases and figures that exist."""

from __future__ import annotations

from collections.abc import Iterator

from trnspec.graph.graph import Graph
from trnspec.model.document import Node
from trnspec.model.scenarios import Scenarios
from trnspec.plugins.api import Finding, rule
from trnspec.plugins.discovery import installed


@rule("TRN820", "invalid-scenario", over=Scenarios, local=True)
def invalid_scenario(node: Node[Scenarios], graph: Graph) -> Iterator[Finding]:
    """A scenario with a base, an evaluator, an input or an assumed figure that does not exist or has a wrong value.

    Why:
        Such a scenario cannot be evaluated. `trnspec run` reports all of them before it evaluates the first.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Scenarios
        metadata: {name: plan-example, title: Example}
        spec:
          scenarios:
            now:
              evaluator: training
              inputs:
                model: llama-3.1-8b
                on: trn2.48xlarge
                seq: 4096
                global_batch: 64
                tp: eight  #! TRN820
            faster:
              base: nwo  #! TRN820
            other:
              base: now
              assume:
                trainium2.memory.bandwidth: 3 TB  #! TRN820
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Scenarios
        metadata: {name: plan-example, title: Example}
        spec:
          scenarios:
            now:
              evaluator: training
              inputs: {model: llama-3.1-8b, on: trn2.48xlarge, seq: 4096, global_batch: 64, tp: 8}
            other:
              base: now
              assume:
                trainium2.memory.bandwidth: 3 TB/s
        ```

    Source:
        The inputs of the installed evaluators: `trnspec eval NAME --help`.
    """
    from trnspec.evaluation.scenarios import faults

    for fault in faults(node.spec, installed().registry.evaluators, graph):
        if len(fault.path) == len(("spec", "scenarios", "name")) and node.document.damages(fault.path):
            continue  # what it lacks is reported otherwise
        yield fault
