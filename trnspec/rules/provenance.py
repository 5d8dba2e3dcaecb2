"""Where figures come from, and what was decided about those that disagree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trnspec.graph import Graph, at, figure_at
from trnspec.diagnostics import Severity
from trnspec.errors import QuantityError
from trnspec.model.document import Claim, Node
from trnspec.model.figure import Figure
from trnspec.model.shape import dotted, shape_at, spread
from trnspec.plugin import Finding, rule
from trnspec.quantity import agrees, parse
from trnspec.source import Path


@rule("TRN301", "unsourced-figure", over=object)
def unsourced_figure(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A figure without a source.

    Why:
        A figure is worth what its source is worth.  One without a source cannot be checked, dated or superseded.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}  #! TRN301
          memory:
            capacity: 32 GiB  #! TRN301
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory: {capacity: 32 GiB}
        ```

    Source:
        Wilkinson et al.: The FAIR Guiding Principles, Scientific Data 3 (2016), principle R1.2.
    """
    if node.metadata.source is not None:
        return
    for path, figure in graph.figures(node).items():
        if figure.source is None and figure.derived is None:
            hint = "name one in metadata.source, or write {value: ..., source: ...}; a computed figure says derived:"
            yield Finding(path, f"{dotted(path)} is {figure} on nobody's word", hint)


def claimed(claim: Claim) -> list[Path]:
    """The paths a claim speaks of; empty when they cannot be read."""
    try:
        return spread(claim.at)
    except ValueError:
        return []


@rule("TRN302", "misplaced-claim", over=object)
def misplaced_claim(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A claim about a figure that documents of its kind cannot have, or of another dimension than the figure.

    Why:
        A claim stands beside the figure it contradicts or supports; at a path that means nothing it is lost.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory: {capacity: 32 GiB}
        claims:
          - at: spec.memory.capacty  #! TRN302
            says: 32 GB
            source: neuron-trainium-2024-02
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory: {capacity: 32 GiB}
        claims:
          - at: spec.memory.capacity
            says: 32 GiB
            source: neuron-trainium-2024-02
        ```

    Source:
        The design of trnspec: a claim and the figure it speaks of have one path.
    """
    from trnspec.model.shape import ChoiceShape, FigureShape, ListShape, NumberShape, ObjectShape, TextShape

    for index, claim in enumerate(node.claims):
        base = node.claim_path(index)
        paths = claimed(claim)
        if not paths:
            yield Finding((*base, "at"), f"{claim.at!r} is not a path", "the braces do not match")
        for path in paths:
            shape = shape_at(type(node.spec), path[1:])
            if shape is None:
                yield Finding((*base, "at"), f"a {node.kind} has no {dotted(path)}", "the path is misspelt")
            elif isinstance(shape, FigureShape):
                try:
                    parse(str(claim.says), shape.dimension)
                except QuantityError as error:
                    yield Finding((*base, "says"), f"{error} (a claim on {dotted(path)})", error.hint)
            elif isinstance(shape, NumberShape) and not isinstance(claim.says, int):
                yield Finding((*base, "says"), f"{claim.says!r} is not a count", f"{dotted(path)} is a count: write 16")
            elif not isinstance(shape, (ChoiceShape, FigureShape, ListShape, NumberShape, ObjectShape, TextShape)):
                yield Finding((*base, "at"), f"nothing can be claimed of {dotted(path)}", "claims speak of figures")


@rule("TRN303", "conflict-without-verdict", over=object)
def conflict_without_verdict(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """Two figures for one thing that exclude each other, and no word on which is right.

    Why:
        A conflict that is kept without a verdict is a conflict for every reader again.  A verdict other than "agrees"
        is worth something only with its reason.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory: {capacity: 32 GiB}
        claims:
          - at: spec.peak.dense.bf16
            says: 210 TFLOPS  #! TRN303
            source: neuron-trn1-2023-02
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory: {capacity: 32 GiB}
        claims:
          - at: spec.peak.dense.bf16
            says: 210 TFLOPS
            source: neuron-trn1-2023-02
            verdict: superseded
            reason: The vendor lowered the rate in 2023-04.
        ```

    Source:
        JCGM 100:2008, Guide to the expression of uncertainty in measurement, 4.3: judgement must be stated.
    """
    for index, claim in enumerate(node.claims):
        base = node.claim_path(index)
        if claim.verdict not in (None, "agrees"):
            if claim.reason is None:
                yield Finding((*base, "verdict"), f"{claim.verdict!r} is said without a reason", "add reason: ...")
            continue
        for path in claimed(claim):
            adopted = figure_at(node, path)
            if _excludes(claim, adopted):
                verdict = "and it is said to agree" if claim.verdict else "and no verdict says which is right"
                message = f"{claim.source} says {claim.says} of {dotted(path)}, {adopted} is adopted, {verdict}"
                see = (at(node, path, text=f"{dotted(path)}: {adopted}"),)
                yield Finding((*base, "says"), message, "add verdict: and reason:", see)


def _excludes(claim: Claim, adopted: object) -> bool:
    """True when no number is both what the claim and what the adopted figure stand for."""
    if isinstance(adopted, Figure):
        try:
            said = parse(str(claim.says))
            return said.dimension is adopted.value.dimension and not agrees(said, adopted.value)
        except QuantityError:
            return False
    return isinstance(adopted, int) and isinstance(claim.says, int) and adopted != claim.says


@rule("TRN601", "decimal-memory", severity=Severity.WARNING, over=object)
def decimal_memory(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """Memory in decimal units, or a bandwidth in binary ones.

    Why:
        Memory is built in powers of two and links are clocked in powers of ten.  A page that prints "32 GB" of memory
        means 32 GiB, which is 7.4 % more; one that prints "820 GiB/s" means 820 GB/s.  Disks are sold in decimal units
        and are not meant here.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory:
            capacity: 32 GB  #! TRN601
            bandwidth: 820 GiB/s  #! TRN601
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory:
            capacity: 32 GiB
            bandwidth: 820 GB/s
        ```

    Source:
        IEC 80000-13:2008 for the prefixes; JEDEC JESD235 for the organisation of HBM.
    """
    for path, figure in graph.figures(node).items():
        symbol = figure.value.unit.symbol
        text = figure.value.text
        number = text[: -len(symbol)] if text.endswith(symbol) else f"{float(figure.value.number):g} "
        if path[-1] in _MEMORY_FIELDS and path[-2:-1] != ("local_storage",) and symbol in _DECIMAL:
            hint = f"did you mean {number}{symbol[0]}iB? Memory is built in powers of two"
            yield Finding(path, f"{dotted(path)} is {figure}, in decimal units", hint)
        elif symbol.endswith("iB/s"):
            hint = f"did you mean {number}{symbol[0]}B/s? Bandwidth is a clock rate times a width: it is decimal"
            yield Finding(path, f"{dotted(path)} is {figure}, in binary units", hint)


_DECIMAL = frozenset({"kB", "MB", "GB", "TB", "PB"})
_MEMORY_FIELDS = frozenset({"capacity", "memory", "sbuf", "per_partition", "per_bank"})
