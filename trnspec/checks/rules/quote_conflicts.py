"""Prices and powers that contradict each other, or the rate of their chips."""

from __future__ import annotations

from collections.abc import Iterator

from trnspec.checks.reconcile.quotes import likely_cause, market, powers
from trnspec.checks.reconcile.suspects import blamed
from trnspec.diagnostics import Location
from trnspec.graph.graph import Graph, at
from trnspec.model.document import Node
from trnspec.model.quotes import Price
from trnspec.model.server import Server
from trnspec.plugins.api import Finding, rule
from trnspec.yaml import Path


def _violations(graph: Graph, code: str) -> Iterator[Finding]:
    """The findings of one code on prices and powers that contradict each other or the rate of their chips."""
    prices = [market(graph)] if graph.focused(Price, Server) else []
    # Findings point into the documents that state a power.
    has_power = any(getattr(n.spec, "power", None) is not None for n in graph.focused())
    for known in [*prices, *([powers(graph)] if has_power else [])]:
        for conflict in known.conflicts:
            one, other, is_price = conflict.one, conflict.other, known in prices
            if conflict.code != code or (is_price and other is None and _contradicted(one.subject, graph)):
                continue
            see: tuple[Location, ...] = ()
            if other is not None:
                see = (other.site.location if is_price else at(other.document, other.site.place),)
            elif is_price:
                see = (at(one.subject, ("spec", "chips")),)
            cause = likely_cause(conflict, known.quotes if is_price else ())
            hint = f"likely cause: {cause}" if cause else ""
            yield Finding(one.site.place, conflict.text(), hint, see, one.document)


def _contradicted(server: Node[Server], graph: Graph) -> bool:
    """Whether a figure of the server or of its chip is reported, so that the rate which a price is compared with is wrong."""
    suspects = {s.site.node.name for s in blamed(graph) if not s.is_claim}
    chip = graph.find(server.spec.chips.chip)
    return server.name in suspects or (chip is not None and chip.name in suspects)


@rule("TRN802", "price-out-of-proportion")
def price_out_of_proportion(graph: Graph) -> Iterator[Finding]:
    """A price that is not in proportion to that of another server with the same chip.

    Why:
        The sizes of a family cost as many times more as they have chips, or processors and memory where these grow by
        another factor: in one price list the ratio of two prices is between those of their resources, within 3 %. Between
        families with the same chip it is within 1.5 per chip. Lists of two dates may differ by 2, regions by 1.75.

    Example:
        ```yaml
        # file: prices/trn1.2xlarge-on-demand-example.yaml
        api_version: trnspec/v1
        kind: Price
        metadata: {name: trn1.2xlarge-on-demand-example, title: Example, source: skypilot-catalog-00148f2}
        spec:
          server: trn1.2xlarge
          type: on-demand
          hourly:
            eu-north-1: 1.3975 USD/h
        # file: prices/trn1.32xlarge-on-demand-example.yaml
        api_version: trnspec/v1
        kind: Price
        metadata: {name: trn1.32xlarge-on-demand-example, title: Example, source: skypilot-catalog-00148f2}
        spec:
          server: trn1.32xlarge
          type: on-demand
          hourly:
            eu-north-1: 11.18 USD/h  #! TRN802
        ```

    Instead:
        ```diff
        -    eu-north-1: 11.18 USD/h
        +    eu-north-1: 22.36 USD/h
        ```

    Source:
        The price lists of AWS of 2025-04 to 2026-10: inf1, inf2, trn1 and p5 by size; trn1n and trn1.
    """
    yield from _violations(graph, "TRN802")


@rule("TRN803", "price-differs-too-much")
def price_differs_too_much(graph: Graph) -> Iterator[Finding]:
    """A price of a server that differs too much from another of the same type: of another region, date or term.

    Why:
        On-demand prices of two regions differ by at most 1.75, and prices of two dates by at most 2; the largest change
        known is the one of June 2025, by 44 %. Where several servers are sold in two regions, the ratio is about the same
        for all.
        Two spot prices of a server differ by at most 5, over all zones and dates.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Price
        metadata: {name: trn2.48xlarge-capacity-block-example, title: Example, source: neuron-availability-survey-2026-10}
        spec:
          server: trn2.48xlarge
          type: capacity-block
          term: 24 h
          hourly:
            us-east-2: 357.60 USD/h  #! TRN803
        ```

    Instead:
        ```diff
        -    us-east-2: 357.60 USD/h
        +    us-east-2: 35.76 USD/h
        ```

    Source:
        The price lists of AWS of 2025-04 to 2026-10, in 15 regions.
    """
    yield from _violations(graph, "TRN803")


@rule("TRN804", "quote-type-conflict")
def quote_type_conflict(graph: Graph) -> Iterator[Finding]:
    """A price or a power that does not agree with one of another type, or a spot price outside its published range.

    Why:
        A spot price is never above the on-demand price of its region, nor below 0.09 of it; a reserved instance costs
        between 0.25 and 1 of it, a capacity block between 0.25 and 1.25. A typical
        power is not above the maximum, a nameplate not below it; a limit that can be set is at least a fourth of it. A
        wrong power of ten violates this.

    Example:
        ```yaml
        # file: prices/trn1.32xlarge-spot-example.yaml
        api_version: trnspec/v1
        kind: Price
        metadata: {name: trn1.32xlarge-spot-example, title: Example, source: skypilot-catalog-00148f2}
        spec:
          server: trn1.32xlarge
          type: spot
          hourly:
            us-west-2: 36.774 USD/h  #! TRN804
            us-west-2a: 3.6774 USD/h  #! TRN804
          observed:
            us-west-2a: {days: 30, low: 6.1428 USD/h, high: 6.5 USD/h}
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
          power: 4 kW  #! TRN804
        ```

    Instead:
        ```diff
        -    us-west-2: 36.774 USD/h
        +    us-west-2: 3.6774 USD/h
        -    us-west-2a: {days: 30, low: 6.1428 USD/h, high: 6.5 USD/h}
        +    us-west-2a: {days: 30, low: 2.1428 USD/h, high: 6.5 USD/h}
        -  power: 4 kW
        +  power: 400 W
        ```

    Source:
        Amazon EC2 pricing: spot instances cost up to 90 % less than on demand, savings plans up to 72 % less.
        Data sheets of NVIDIA DGX A100, H100, H200, B200 and B300.
    """
    yield from _violations(graph, "TRN804")
    for price in graph.focused(Price):
        for place, own in price.spec.observed.items():
            path: Path = ("spec", "observed", place)
            names = [n for n in ("low", "mean", "high") if getattr(own, n) is not None]
            figures = [(n, getattr(own, n).value) for n in names]
            if [v.value for _, v in figures] != sorted(v.value for _, v in figures):
                text = ", ".join(f"{n} {v}" for n, v in figures)
                yield Finding((*path, "low"), f"the range of {place} is not in order: {text}", node=price)
            elif place in price.spec.hourly:
                value = price.spec.hourly[place].value
                bounds = own.low.value.interval, own.high.value.interval
                if not (value.interval.overlaps(bounds[0]) or value.value >= own.low.value.value) or not (
                    value.interval.overlaps(bounds[1]) or value.value <= own.high.value.value
                ):
                    message = f"{value} is outside the range of {own.days} days: {own.low.value} to {own.high.value}"
                    see = (at(price, path, key=True, text="the range"),)
                    yield Finding(("spec", "hourly", place), message, "correct the price, or the range", see, price)


@rule("TRN805", "implausible-quote")
def implausible_quote(graph: Graph) -> Iterator[Finding]:
    """A price or a power of a chip that is far from that of every known chip of this rate.

    Why:
        On-demand prices of accelerators are between 3 and 25 USD/h for a dense 16-bit rate of 1 PFLOPS, over eight
        generations of chips. A price outside 1.5 to 30 has a wrong decimal point, or is that of another server.
        Chips compute 0.42 (V100) to 2.27 (B300) dense 16-bit TFLOPS per watt of design power. Outside 0.3 to 4 the power
        has a wrong power of ten, or is that of a board or a system.

    Example:
        ```yaml
        # file: prices/trn3-gen1-server-on-demand.yaml
        api_version: trnspec/v1
        kind: Price
        metadata: {name: trn3-gen1-server-on-demand, title: Example, source: neuron-availability-survey-2026-10}
        spec:
          server: trn3-gen1-server
          type: on-demand
          hourly:
            us-east-1: 0.12 USD/h  #! TRN805
        # file: power/trainium2-tdp-example.yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium2-tdp-example, title: Example, source: semianalysis-2024-12}
        spec:
          of: trainium2
          type: tdp
          power: 5 kW  #! TRN805
        ```

    Instead:
        ```diff
        -    us-east-1: 0.12 USD/h
        +    us-east-1: 40.00 USD/h
        -  power: 5 kW
        +  power: 500 W
        ```

    Source:
        The price lists of AWS of 2025-04 to 2026-10 over the peak rates of the catalogs.
        Data sheets of NVIDIA V100 to GB300.
    """
    yield from _violations(graph, "TRN805")


@rule("TRN806", "conflicting-quotes")
def conflicting_quotes(graph: Graph) -> Iterator[Finding]:
    """Two documents with different prices of one server, region, type, term and date, or powers of one product.

    Why:
        One price is adopted; the other is a claim on it with a verdict. Otherwise an evaluator would use either. Typical
        and measured powers may differ by load.

    Example:
        ```yaml
        # file: prices/trn1.32xlarge-on-demand-example.yaml
        api_version: trnspec/v1
        kind: Price
        metadata: {name: trn1.32xlarge-on-demand-example, title: Example, source: karpenter-pricing-2026-07}
        spec:
          server: trn1.32xlarge
          type: on-demand
          hourly:
            us-east-1: 24.50 USD/h  #! TRN806
        # file: power/trainium2-tdp-example.yaml
        api_version: trnspec/v1
        kind: Power
        metadata: {name: trainium2-tdp-example, title: Example, source: semianalysis-2024-12}
        spec:
          of: trainium2
          type: tdp
          power: 500 W  #! TRN806
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
        # file: prices/trn1.32xlarge-on-demand-example.yaml
        api_version: trnspec/v1
        kind: Price
        metadata: {name: trn1.32xlarge-on-demand-example, title: Example, source: karpenter-pricing-2026-07}
        spec:
          server: trn1.32xlarge
          type: on-demand
          hourly:
            us-east-1: 21.50 USD/h
        # file: power/trainium2-tdp-example.yaml
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
    yield from _violations(graph, "TRN806")


@rule("TRN808", "copied-price")
def copied_price(graph: Graph) -> Iterator[Finding]:
    """A price that is to the last digit that of a server with other chips, or with another number of them.

    Why:
        Rows of a price list are swapped easily, and the price of another server is often a plausible one. Prices with three
        digits or more are not equal by chance.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Price
        metadata: {name: trn1.32xlarge-spot-example, title: Example, source: skypilot-catalog-00148f2}
        spec:
          server: trn1.32xlarge
          type: spot
          hourly:
            us-east-1: 2.7396 USD/h  #! TRN808
        ```

    Instead:
        ```diff
        -    us-east-1: 2.7396 USD/h
        +    us-east-1: 2.9396 USD/h
        ```

    Source:
        The price lists of AWS of 2025-04 to 2026-10, in which no two such servers have equal prices.
    """
    yield from _violations(graph, "TRN808")


@rule("TRN813", "power-chip-mismatch")
def power_chip_mismatch(graph: Graph) -> Iterator[Finding]:
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
        ```diff
        -  power: 8 kW
        +  power: 13 kW
        ```

    Source:
        Data sheets of NVIDIA DGX A100, H100, H200, B200, B300 and of GB300 NVL72.
    """
    yield from _violations(graph, "TRN813")
