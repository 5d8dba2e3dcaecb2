"""Quoted quantities, one document at a time: the name that says what is quoted, and the date."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trnspec.checks.reconcile.quotes import OF_PACKAGE
from trnspec.diagnostics import Severity, did_you_mean
from trnspec.graph.composition import chip_count
from trnspec.graph.currency import months_between
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import source_of
from trnspec.graph.quotes import REGIONS, is_known, region_of
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.quotes import UNSTATED, Power, Price, Quoted
from trnspec.model.reflection import spread
from trnspec.model.server import Server
from trnspec.plugins.api import Finding, rule
from trnspec.yaml import Path

STALE = 18
"""Months after which a price or a measured power is stale, before the newest one of the catalog."""


@rule("TRN801", "quote-name-mismatch", over=Quoted, local=True)
def quote_name_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A document of prices or of a power that does not fit its name, or whose region or scope does not fit.

    Why:
        The name of the file, its product and its type say the same. Where they differ, the price or the power of one
        product is attributed to another. A region that is misspelt is never found. The power of a package is that of a
        chip; what includes hosts and fans is that of a system.

    Example:
        ```yaml
        # file: prices/trn1.32xlarge-spot-example.yaml
        api_version: trnspec/v1
        kind: Price
        metadata: {name: trn1.32xlarge-spot-example, title: Example, source: skypilot-catalog-00148f2}
        spec:
          server: trn2.48xlarge  #! TRN801
          type: spot
          hourly:
            US East: 15.5 USD/h  #! TRN801
        # file: power/trainium1-tdp-example.yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium1-tdp-example, title: Example, source: semianalysis-2024-12}
        spec:
          of: trainium2  #! TRN801
          type: tdp
          scope: system  #! TRN801
          power: 500 W
        ```

    Instead:
        ```diff
        -  server: trn2.48xlarge
        +  server: trn1.32xlarge
        -    US East: 15.5 USD/h
        -# file: power/trainium1-tdp-example.yaml
        +    us-west-2: 3.5 USD/h
        +# file: power/trainium2-tdp-example.yaml
        -metadata: {name: trainium1-tdp-example, title: Example, source: semianalysis-2024-12}
        +metadata: {name: trainium2-tdp-example, title: Example, source: semianalysis-2024-12}
        -  scope: system
        +  scope: package
        ```

    Source:
        The naming of prices and powers in trnspec: PRODUCT-TYPE, and more words where there are several. Regions: Amazon
        EC2 User Guide, Regions and Zones.
    """
    yield from _price_mismatch(node, graph) if isinstance(node.spec, Price) else _power_mismatch(node, graph)


def _price_mismatch(price: Node[Price], graph: Graph) -> Iterator[Finding]:
    spec = price.spec
    yield from _misnamed(price, graph.find(spec.server), "server", spec.server.name)
    places: list[tuple[Path, Any]] = [
        *((("spec", group, place), place) for group in ("hourly", "observed") for place in getattr(spec, group)),
        *(
            ((*price.claim_path(i), "at"), path[2])
            for i, c in enumerate(price.claims)
            for path in spread(c.at)
            if path[2:]
        ),
    ]
    for path, place in {place: (path, place) for path, place in reversed(places)}.values():
        if place != UNSTATED and not is_known(place):
            hint = f"write us-east-1, us-east-1a, or {UNSTATED} if the source names no region"
            yield _unknown_place(path, place, hint, key=path[0] == "spec")
    if spec.status == "unlisted" and spec.hourly:
        message = f"the status is unlisted, but there are prices of {', '.join(spec.hourly)}"
        yield Finding(("spec", "status"), message, "remove the status, or the prices")


def _unknown_place(path: Path, place: str, hint: str, *, key: bool = False) -> Finding:
    """The finding on a text that is neither a region nor a zone of one."""
    if (region := region_of(place)) in REGIONS:
        return Finding(path, f"{place!r} is not a zone of {region}", hint, key=key)
    similar = did_you_mean(place[:-1] if place[-1:].isalpha() else place, REGIONS)
    return Finding(path, f"{place!r} is not a region", similar or hint, key=key)


@rule("TRN821", "unknown-region", over=Server, local=True)
def unknown_region(node: Node[Server], graph: Graph) -> Iterator[Finding]:
    """A server that is offered in a region or a zone that does not exist, or whose lists of offers contradict each other.

    Why:
        A plan for a region leaves out servers that are not offered there, so a misspelt region hides a server.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
        spec:
          chips: {chip: trainium1, count: 16}
          availability:
            regions:
              - us-esat-1  #! TRN821
              - us-west-2
            zones:
              - us-east-2a
            blocks: {places: [us-west-9]}  #! TRN821
        ```

    Instead:
        ```diff
        -      - us-esat-1
        +      - us-east-2
        -    blocks: {places: [us-west-9]}
        +    blocks: {places: [us-west-2]}
        ```

    Source:
        Amazon EC2 User Guide, Regions and Zones.
    """
    known = node.spec.availability
    if known is None:
        return
    unknown = [number for number, region in enumerate(known.regions) if region not in REGIONS]
    for number in unknown:
        path = ("spec", "availability", "regions", number)
        yield _unknown_place(path, known.regions[number], "write a region, such as us-east-2")
    for number, place in enumerate(known.blocks.places if known.blocks is not None else ()):
        at = ("spec", "availability", "blocks", "places", number)
        if not is_known(place):
            yield _unknown_place(at, place, "write a region or a zone, such as us-east-2 or us-east-2a")
        elif not unknown and region_of(place) not in known.regions:
            yield Finding(at, f"{place} is not in a region that regions lists", "list the region too")
    if known.blocks is not None and known.purchase and "capacity-block" not in known.purchase:
        message = "blocks names offers of capacity blocks, which purchase does not list"
        yield Finding(("spec", "availability", "purchase"), message, "list capacity-block too, or remove blocks")
    for number, zone in enumerate(known.zones):
        path = ("spec", "availability", "zones", number)
        if not is_known(zone) or zone in REGIONS:
            yield _unknown_place(path, zone, "write a zone, such as us-east-2a")
        elif not unknown and region_of(zone) not in known.regions:
            yield Finding(path, f"{zone} is in {region_of(zone)}, which regions does not list", "list the region too")


def _power_mismatch(power: Node[Power], graph: Graph) -> Iterator[Finding]:
    spec = power.spec
    subject = graph.find(spec.of)
    if subject is None:
        return
    is_chip = isinstance(subject.spec, Chip)
    if chip_count(graph, subject) == 0:
        message = f"{subject.name} is a {subject.kind}, which has no chips, and so no power"
        yield Finding(("spec", "of"), message, "name a chip, a server or an UltraServer")
        return
    yield from _misnamed(power, subject, "of", spec.of.name)
    if spec.scope is not None and is_chip is not (spec.scope in OF_PACKAGE):
        allowed = " or ".join(OF_PACKAGE) if is_chip else "system or rack"
        yield Finding(("spec", "scope"), f"{spec.scope} is not a scope of a {subject.kind}", f"write {allowed}")


def _misnamed(node: Node[Any], subject: Node[Any] | None, key: str, name: str) -> Iterator[Finding]:
    """The finding of a document whose name is not SUBJECT-TYPE, or that with more words."""
    if subject is None:
        return  # the reference is reported, or the document that it names
    type_ = node.spec.type
    names = {subject.name, *subject.metadata.aliases}
    if any(node.name == f"{n}-{type_}" or node.name.startswith(f"{n}-{type_}-") for n in names):
        return
    if any(node.name.startswith(f"{n}-") for n in names):
        wrong, value = "type", type_
    else:
        wrong, value = key, name
    article = "" if key == "of" else "the "
    message = f"{article}{wrong} is {value}, but the name of the document is {node.name}"
    yield Finding(("spec", wrong), message, f"name it {name}-{type_}, or correct spec.{wrong}")


@rule("TRN807", "stale-quote", over=Quoted, severity=Severity.INFO, local=True)
def stale_quote(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A price or a measured power 18 months older than the newest of the catalog, or a power from before the launch.

    Why:
        Prices change: in June 2025 by up to 44 %. A cost computed with an old price is wrong without any sign of it.
        The power of a system changes with firmware and programs. A power that is stated before a chip is sold is a
        forecast. The design power of a chip that is sold does not change.

    Example:
        ```yaml
        # file: prices/trn1.32xlarge-on-demand-example.yaml
        api_version: trnspec/v1
        kind: Price
        metadata: {name: trn1.32xlarge-on-demand-example, title: Example, source: ec2-capacity-blocks-2024}
        spec:
          server: trn1.32xlarge
          type: on-demand
          hourly:
            us-east-1: 21.50 USD/h  #! TRN807
        # file: power/trainium3-tdp-example.yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium3-tdp-example, title: Example, source: dcd-trainium3-2024}
        spec:
          of: trainium3
          type: tdp
          power: 1 kW  #! TRN807
        ```

    Instead:
        ```diff
        -metadata: {name: trn1.32xlarge-on-demand-example, title: Example, source: ec2-capacity-blocks-2024}
        +metadata: {name: trn1.32xlarge-on-demand-example, title: Example, source: karpenter-pricing-2026-07}
        -metadata: {name: trainium3-tdp-example, title: Example, source: dcd-trainium3-2024}
        +metadata: {name: trainium3-tdp-example, title: Example, source: semianalysis-2025-12}
        ```

    Source:
        The price lists of AWS of 2025-04 and 2025-06.
        The one power of Trainium3 that the press states, of 2024, when the chip was sold from 2025-12.
    """
    spec: Any = type(node.spec)
    others: tuple[Node[Any], ...] = graph.of(spec)
    newest = max((date for other in others for date in _dates(graph, other).values()), default="")
    for path, date in _dates(graph, node).items():
        what, newer, hint = f"price of {path[-1]}", "price", "look for a newer price list"
        if isinstance(node.spec, Power):
            subject = graph.find(node.spec.of)
            launched = None if subject is None else getattr(subject.spec, "launched", None)
            if subject is not None and launched is not None and str(launched)[: len(date)] > date:
                message = (
                    f"the source is of {date}, before {subject.name} was launched ({launched}): the power is a forecast"
                )
                yield Finding(path, message, "look for a source of after the launch")
                continue
            if subject is None or node.spec.type not in ("typical", "measured"):
                continue
            what, newer, hint = f"{node.spec.type} power", "power", "look for a newer measurement"
        age = months_between(date, newest)
        if age > STALE:
            yield Finding(path, f"the {what} is of {date}, {age} months before the newest {newer} of the catalog", hint)


def _dates(graph: Graph, node: Node[Any]) -> dict[Path, str]:
    """The date of the source of each adopted price or power, by path."""
    paths: list[Path] = [("spec", "power")] if isinstance(node.spec, Power) and node.spec.power is not None else []
    if isinstance(node.spec, Price):
        paths = [("spec", "hourly", place) for place in node.spec.hourly]
    found = {path: graph.find(source_of(node, path)) for path in paths}
    return {path: source.spec.as_of for path, source in found.items() if source is not None}
