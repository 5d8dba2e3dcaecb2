"""Software: chip, releases, successor and logical cores."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import pairwise
from typing import Any

from trnspec.graph.graph import Graph, at
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.software import Software
from trnspec.plugins.api import Finding, rule

_PHASES = ("beta", "supported", "maintenance", "ended")
"""Phases of the support of software, in the order of releases."""


@rule("TRN822", "software-mismatch", over=Software)
def software_mismatch(node: Node[Software], graph: Graph) -> Iterator[Finding]:
    """Software whose name, releases, successor or logical cores contradict each other or its chip.

    Why:
        A document for the next chip is written in a copy of the last one. Plans print the release in which support ends,
        and the software to use instead.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Software
        metadata: {name: example-trainium2, title: Example, source: neuron-trainium2-2026-08}
        spec:
          framework: example
          chip: trainium1  #! TRN822
          supported: 2.23.0
          ended: 2.20.0  #! TRN822
        ```

    Instead:
        ```diff
        -  chip: trainium1
        +  chip: trainium2
        -  ended: 2.20.0
        +  ended: 2.34.0
        ```

    Source:
        AWS Neuron documentation, release notes: a release has beta, supported, maintained and ended software.
    """
    spec: Any = node.spec
    chip = graph.find(spec.chip)
    if chip and any(node.name.endswith(f"-{other.name}") for other in graph.of(Chip) if other is not chip):
        message = f"the chip is {spec.chip}, but the name of the document is {node.name}"
        yield Finding(("spec", "chip"), message, f"correct the chip, or name it {spec.framework}-{spec.chip}")
    stem = node.name.removesuffix(f"-{spec.chip.name}")
    same = [o for o in graph.of(Software) if (o.spec.framework, o.spec.chip.name) == (spec.framework, spec.chip.name)]
    if not stem.startswith(spec.framework) and (len(same) > 1 or get_close_matches(spec.framework, (stem,), 1, 0.85)):
        message = f"the framework is {spec.framework}, but the name of the document is {node.name}"
        yield Finding(("spec", "framework"), message, f"{stem}?")
    known = {phase for phase in ("training", "inference") if phase in spec.framework.split("-")}
    if spec.phases and known - set(spec.phases):
        message = f"the framework is {spec.framework}, but {', '.join(known)} is not among its phases"
        yield Finding(("spec", "phases"), message, "correct the phases or the framework")
    for one, other in pairwise([p for p in _PHASES if getattr(spec, p) is not None]):
        first, later = _release(getattr(spec, one)), _release(getattr(spec, other))
        if first and later and first > later:
            message = f"{other} is {getattr(spec, other)}, before {one}, {getattr(spec, one)}"
            yield Finding(("spec", other), message, "correct one of the two releases")
    for name in ("version", *_PHASES):
        text = getattr(spec, name)
        # Versions of packages have several forms, releases of the SDK only one.
        if text is not None and not (re.search(r"\d", text) if name == "version" else _release(text)):
            yield Finding(("spec", name), f"{text!r} is not a release", "write a release, such as 2.34.0")
    successor = spec.successor and graph.find(spec.successor)
    if successor is node or (chip and successor and graph.find(successor.spec.chip) not in (None, chip)):
        message = "it is its own successor" if successor is node else f"{successor.name} runs on {successor.spec.chip}"
        see = () if successor is node else (at(successor, ("spec", "chip")),)
        yield Finding(("spec", "successor"), message, f"name other software on {spec.chip}", see)
    cores = chip.spec.cores.count if chip and chip.spec.cores and spec.logical_cores else None
    if cores and cores % spec.logical_cores:
        message = f"{spec.chip} has {cores} cores, which are not logical cores of {spec.logical_cores} each"
        see = (at(chip, ("spec", "cores", "count")),) if chip else ()
        yield Finding(("spec", "logical_cores"), message, f"write a divisor of {cores}", see)


def _release(text: str) -> tuple[int, ...]:
    """The numbers that a release begins with."""
    match = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(number) for number in match[0].split(".")) if match else ()
