"""Power: of the right chip or system, in proportion to that of its chips, plausible, and not out of date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.checks.reconcile.power import OF_PACKAGE, likely_cause, power_conflicts
from trnspec.checks.rules.prices import STALE, misnamed
from trnspec.diagnostics import Severity
from trnspec.graph.composition import chips
from trnspec.graph.currency import months_between
from trnspec.graph.graph import at
from trnspec.graph.provenance import source_of
from trnspec.model.chip import Chip
from trnspec.model.power import Power
from trnspec.plugins.api import Finding, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node


@rule("TRN811", "power-not-of-its-subject", over=Power, local=True)
def power_not_of_its_subject(power: Node[Power], graph: Graph) -> Iterator[Finding]:
    """A document of power whose name is not that of its chip or system and type, or whose scope does not fit.

    Why:
        The name of the file, ``of`` and ``type`` say the same. Where they differ, the power of one chip is attributed to
        another. The power of a package is that of a chip; what includes hosts and fans is that of a system.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium1-tdp-example, title: Example, source: semianalysis-2024-12}
        spec:
          of: trainium2  #! TRN811
          type: tdp
          scope: system  #! TRN811
          power: 500 W
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium2-tdp-example, title: Example, source: semianalysis-2024-12}
        spec:
          of: trainium2
          type: tdp
          scope: package
          power: 500 W
        ```

    Source:
        The naming of power in trnspec: SUBJECT-TYPE, and more words where there are several.
    """
    spec = power.spec
    subject = graph.find(spec.of)
    yield from misnamed(power, subject, "of", spec.of.name)
    if subject is None:
        return
    is_chip = isinstance(subject.spec, Chip)
    if chips(graph, subject) is None:
        message = f"{subject.name} is a {subject.kind}, which has no chips, and so no power"
        yield Finding(("spec", "of"), message, "name a chip, a server or an UltraServer")
    elif spec.scope is not None and is_chip is not (spec.scope in OF_PACKAGE):
        allowed = " or ".join(OF_PACKAGE) if is_chip else "system or rack"
        yield Finding(("spec", "scope"), f"{spec.scope} is not a scope of a {subject.kind}", f"write {allowed}")


def _violations(graph: Graph, code: str) -> Iterator[Finding]:
    # Findings point into the documents that state a power.
    concerned = any(getattr(n.spec, "power", None) is not None for n in graph.focused())
    for one in power_conflicts(graph) if concerned else ():
        if one.code == code:
            known, other, cause = one.one, one.other, likely_cause(one)
            see = () if other is None else (at(other.document, ("spec", "power")),)
            hint = f"likely cause: {cause}" if cause else ""
            yield Finding(("spec", "power"), one.text("W"), hint, see, known.document)


@rule("TRN812", "power-types-disagree")
def power_types_disagree(graph: Graph) -> Iterator[Finding]:
    """A power that does not agree with one of another type of the same chip or system.

    Why:
        A typical power is not above the maximum, a nameplate not below it; a limit that can be set is at least a fourth of
        it. A wrong power of ten violates this.

    Example:
        ```yaml
        # file: power/trainium2-tdp-example.yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium2-tdp-example, title: Example, source: semianalysis-2024-12}
        spec: {of: trainium2, type: tdp, power: 500 W}
        # file: power/trainium2-typical-example.yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium2-typical-example, title: Example, source: semianalysis-2024-12}
        spec:
          of: trainium2
          type: typical
          power: 4 kW  #! TRN812
        ```

    Instead:
        ```yaml
        # file: power/trainium2-tdp-example.yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium2-tdp-example, title: Example, source: semianalysis-2024-12}
        spec: {of: trainium2, type: tdp, power: 500 W}
        # file: power/trainium2-typical-example.yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium2-typical-example, title: Example, source: semianalysis-2024-12}
        spec:
          of: trainium2
          type: typical
          power: 400 W
        ```

    Source:
        Data sheets of NVIDIA DGX A100, H100, H200, B200 and B300.
    """
    yield from _violations(graph, "TRN812")


@rule("TRN813", "power-below-its-chips")
def power_below_its_chips(graph: Graph) -> Iterator[Finding]:
    """A power of a server, an UltraServer or a rack that does not exceed the sum of its chips, or exceeds it by far.

    Why:
        Hosts, network, fans and conversion need power too: the maximum of a known server is 1.59 to 2.03 of the design
        power of its chips, that of a known rack 1.41. Bounds are 1.25 and 2.6 for a server, 1.1 and 2.6 for a rack.

    Example:
        ```yaml
        # file: power/trainium2-tdp-example.yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium2-tdp-example, title: Example, source: semianalysis-2024-12}
        spec: {of: trainium2, type: tdp, power: 500 W}
        # file: power/trn2.48xlarge-maximum-example.yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trn2.48xlarge-maximum-example, title: Example, source: semianalysis-2024-12}
        spec:
          of: trn2.48xlarge
          type: maximum
          scope: system
          power: 8 kW  #! TRN813
        ```

    Instead:
        ```yaml
        # file: power/trainium2-tdp-example.yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium2-tdp-example, title: Example, source: semianalysis-2024-12}
        spec: {of: trainium2, type: tdp, power: 500 W}
        # file: power/trn2.48xlarge-maximum-example.yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trn2.48xlarge-maximum-example, title: Example, source: semianalysis-2024-12}
        spec:
          of: trn2.48xlarge
          type: maximum
          scope: system
          power: 13 kW
        ```

    Source:
        Data sheets of NVIDIA DGX A100, H100, H200, B200, B300 and of GB300 NVL72.
    """
    yield from _violations(graph, "TRN813")


@rule("TRN814", "two-powers")
def two_powers(graph: Graph) -> Iterator[Finding]:
    """Two documents with different powers of one chip or system, type and scope.

    Why:
        One power is adopted; the other is a claim on it with a verdict. Otherwise an evaluator would use either. Typical
        and measured powers may differ by load.

    Example:
        ```yaml
        # file: power/trainium2-tdp-example.yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium2-tdp-example, title: Example, source: semianalysis-2024-12}
        spec:
          of: trainium2
          type: tdp
          power: 500 W  #! TRN814
        # file: power/trainium2-tdp-other.yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium2-tdp-other, title: Example, source: semianalysis-2024-12}
        spec:
          of: trainium2
          type: tdp
          power: 550 W
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium2-tdp-example, title: Example, source: aiwiki-trainium2-2026-05}
        spec: {of: trainium2, type: tdp, power: 500 W}
        claims:
          - at: spec.power
            says: 550 W
            source: semianalysis-2024-12
            verdict: unresolved
            reason: An estimate.
        ```

    Source:
        The design of trnspec: one value is adopted; the conflicting values are claims with a verdict and a reason.
    """
    yield from _violations(graph, "TRN814")


@rule("TRN815", "implausible-power")
def implausible_power(graph: Graph) -> Iterator[Finding]:
    """A power of a chip that is far from that of every known chip of this rate.

    Why:
        Chips compute 0.42 (V100) to 2.27 (B300) dense 16-bit TFLOPS per watt of design power. Outside 0.3 to 4 the power
        has a wrong power of ten, or is that of a board or a system.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium2-tdp-example, title: Example, source: semianalysis-2024-12}
        spec:
          of: trainium2
          type: tdp
          power: 5 kW  #! TRN815
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium2-tdp-example, title: Example, source: semianalysis-2024-12}
        spec:
          of: trainium2
          type: tdp
          power: 500 W
        ```

    Source:
        Data sheets of NVIDIA V100 to GB300.
    """
    yield from _violations(graph, "TRN815")


@rule("TRN816", "stale-power", over=Power, severity=Severity.INFO, local=True)
def stale_power(power: Node[Power], graph: Graph) -> Iterator[Finding]:
    """A typical or measured power 18 months older than the newest power of the catalog, or any of before the launch.

    Why:
        What a system draws changes with firmware and programs. A power that is stated before a chip is sold is a
        forecast. The design power of a chip that is sold does not change.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium3-tdp-example, title: Example, source: dcd-trainium3-2024}
        spec:
          of: trainium3
          type: tdp
          power: 1 kW  #! TRN816
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium3-tdp-example, title: Example, source: semianalysis-2025-12}
        spec:
          of: trainium3
          type: tdp
          power: 1 kW
        ```

    Source:
        The one power of Trainium3 that the press states, of 2024, when the chip was sold from 2025-12.
    """
    spec, date = power.spec, _date(graph, power)
    subject = graph.find(spec.of)
    if spec.power is None or not date or subject is None:
        return
    launched = getattr(subject.spec, "launched", None)
    if launched is not None and str(launched)[: len(date)] > date:
        message = f"the source is of {date}, before {subject.name} was launched ({launched}): the power is a forecast"
        yield Finding(("spec", "power"), message, "look for a source of after the launch")
    elif spec.type in ("typical", "measured"):
        newest = max((d for node in graph.of(Power) if (d := _date(graph, node))), default=date)
        age = months_between(date, newest)
        if age > STALE:
            message = f"the {spec.type} power is of {date}, {age} months before the newest power of the catalog"
            yield Finding(("spec", "power"), message, "look for a newer measurement")


def _date(graph: Graph, power: Node[Power]) -> str:
    """The date of the source of an adopted power; empty if there is none."""
    ref = None if power.spec.power is None else source_of(power, ("spec", "power"))
    source = None if ref is None else graph.find(ref)
    return "" if source is None else source.spec.as_of
