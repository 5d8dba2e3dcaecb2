"""Dates: of sources, of products, and of the pages that replace each other."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import date
from typing import Any

from trnspec.checks.reconcile.relations import AGREES
from trnspec.checks.reconcile.sites import Site
from trnspec.graph.graph import Graph, at, cached_by_graph, figure_at
from trnspec.graph.products import about, chips_of, is_described
from trnspec.graph.provenance import claims_at, source_of
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import dotted, leaves, spread
from trnspec.model.source import Source
from trnspec.model.sourced import origin_of
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.dates import compared, date_of
from trnspec.quantities.quantity import Quantity
from trnspec.text_table import plural
from trnspec.yaml import Path

VENDORS = frozenset({"amazon", "amd", "annapurna", "aws", "google", "intel", "nvidia"})
"""Words by which publishers and addresses name a vendor, besides those that names and titles of chips begin with."""

_WORD = re.compile(r"[a-z][a-z0-9]{2,}")
_OWNER = re.compile(r"https?://(?:github\.com/)?([^/]+)")
_DATED_NAME = re.compile(r"-((?:19|20)\d\d(?:-\d\d(?:-\d\d)?)?)$")

_EARLIEST = "1990"
"""No page has an earlier version: the web began then."""


@rule("TRN307", "date-out-of-range", over=Source, local=True)
def date_out_of_range(source: Node[Source], graph: Graph) -> Iterator[Finding]:
    """A source that is dated in the future or before 1990, or whose name has another date.

    Why:
        Conflicts between sources are resolved by date, so a wrong date makes an outdated figure the adopted one. The
        name of a source ends with its date where it has versions; name and date were read from one page.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Source
        metadata: {name: a-page-2023-02, title: A page}
        spec: {publisher: Example, as_of: 2023-12-24, rank: third-party}  #! TRN307
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Source
        metadata: {name: a-page-2023-02, title: A page}
        spec: {publisher: Example, as_of: 2023-02-24, rank: third-party}
        ```

    Source:
        The naming of sources in trnspec: PAGE-YEAR-MONTH.
    """
    stated, today = source.spec.as_of, date.today().isoformat()  # noqa: DTZ011  # pages are dated without a time zone
    path = ("spec", "as_of")
    match = _DATED_NAME.search(source.name)
    order = 0 if match is None else compared(match[1], stated)
    if compared(stated, today) > 0:
        yield Finding(
            path, f"{stated} is in the future; today is {today}", "a source is dated by the day of its version"
        )
    elif stated < _EARLIEST:
        yield Finding(path, f"{stated} is before {_EARLIEST}", "a source is dated by the day of its version")
    # A date "not before" is a lower bound; the name may have a later year.
    elif match is not None and (order < 0 or (order > 0 and source.spec.dating == "exact")):
        hint = f"as_of: {match[1]}, or rename the source"
        yield Finding(path, f"as_of is {stated}, but the name ends with {match[1]}", hint)


@rule("TRN316", "vendor-rank-mismatch", over=Source, local=True)
def vendor_rank_mismatch(source: Node[Source], graph: Graph) -> Iterator[Finding]:
    """A source with the rank of a vendor whose publisher and address are those of another.

    Why:
        Of two sources that differ, one of a third party is not adopted. A page of a third party with the rank of a
        vendor would replace the figures of the vendor. A vendor is named in the publisher or in the host of the address,
        by one of the words "amazon", "aws", "nvidia" and so on, or by the first word of the name or title of a chip. A
        publisher of several sources that all have the rank of a vendor is one, too; other publishers are reported for
        sources about chips of a known vendor, or where another of their sources is of a third party.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Source
        metadata: {name: trainium2-review-2024-12, title: Trainium2 reviewed}
        spec:
          publisher: A magazine
          as_of: 2024-12
          rank: vendor-chip-page  #! TRN316
        ```

    Instead:
        ```diff
        -  rank: vendor-chip-page
        +  rank: third-party
        ```

    Source:
        The design of trnspec: the rank is how close the publisher is to the hardware.
    """
    spec = source.spec
    if not spec.rank.startswith("vendor-"):
        return
    owner, ranks = _OWNER.match(spec.address or ""), _ranks(graph)[spec.publisher]
    if _names_vendor(spec.publisher, graph) or (ranks["vendor"] > 1 and not ranks["third"]):
        return
    if owner is not None and _names_vendor(owner[1], graph):
        if ranks["third"]:
            message = f"the publisher is {spec.publisher}, a third party, but the rank is {spec.rank}"
            yield Finding(("spec", "publisher"), message, "correct the publisher, or the rank")
    elif ranks["third"] or _is_about_vendor(source, graph):
        message = f"the rank is {spec.rank}, but {spec.publisher} is not known as a vendor"
        hint = "third-party? a vendor is named in the publisher or the address, or a chip is named after it"
        yield Finding(("spec", "rank"), message, hint)


def _is_about_vendor(source: Node[Source], graph: Graph) -> bool:
    """Whether a source is about chips of a known vendor, or documents of such chips refer to it."""
    users = (graph.nodes[name] for name in graph.users.get(source.name, ()) if name in graph.nodes)
    chips = about(graph, source.name).union(*(chips_of(graph, user) for user in users))
    return any(VENDORS & set(_WORD.findall(graph.named(chip).metadata.title.lower())) for chip in chips)


def _names_vendor(text: str, graph: Graph) -> bool:
    words = set(_WORD.findall(text.lower()))
    return bool(words & (VENDORS | _words_of_chips(graph)))


@cached_by_graph
def _words_of_chips(graph: Graph) -> frozenset[str]:
    """The first words of the names and titles of chips, but for GPU."""
    texts = [text for chip in graph.of(Chip) for text in (chip.name, chip.metadata.title)]
    return frozenset(word[0] for text in texts if (word := _WORD.match(text.lower())) and word[0] != "gpu")


@cached_by_graph
def _ranks(graph: Graph) -> defaultdict[str, Counter[str]]:
    """Number of sources of a publisher with ranks that begin with ``vendor`` or ``third``."""
    ranks: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for source in graph.of(Source):
        ranks[source.spec.publisher][source.spec.rank.partition("-")[0]] += 1
    return ranks


@rule("TRN308", "superseded-by-older", over=object, local=True)
def superseded_by_older(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A claim that is called superseded, but is newer than the figure that replaces it, or of the same source.

    Why:
        A figure is superseded by a newer version. If the claim is newer, one of the two dates is wrong, the wrong figure
        was adopted, or the verdict is another one, such as rejected.

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
            says: 210 TFLOPS
            source: neuron-trainium-2026-08
            verdict: superseded  #! TRN308
            reason: The vendor lowered the rate.
        ```

    Instead:
        ```diff
        -    source: neuron-trainium-2026-08
        +    source: neuron-trn1-2022-10
        ```

    Source:
        The definition of the verdict: it was true at its date, and its publisher has changed it since.
    """
    for index, claim in enumerate(node.claims):
        if claim.verdict != "superseded":
            continue
        for path in spread(claim.at):
            adopted, said = graph.find(source_of(node, path)), graph.find(claim.source)
            if adopted is None or said is None:
                continue
            if adopted.name == said.name:
                what = f"is of {said.name}, as the adopted figure is"
            elif compared(said.spec.as_of, adopted.spec.as_of) > 0 and adopted.spec.dating == "exact":
                what = f"is of {said.spec.as_of}, the adopted figure of {adopted.spec.as_of} ({adopted.name})"
            else:
                continue
            message = f"the superseded claim on {dotted(path)} {what}"
            see = (at(adopted, ("spec", "as_of")), at(said, ("spec", "as_of")))
            hint = "check both dates, adopt the newer figure, or give another verdict"
            yield Finding((*node.claim_path(index), "verdict"), message, hint, see)
            break


_DATE_IN_TEXT = re.compile(r"(?<![\w-])((?:19|20)[0-9]{2}-[0-9]{2}(?:-[0-9]{2})?)(?![\w-])")


@rule("TRN315", "impossible-change-date", over=object, local=True)
def impossible_change_date(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A date in a reason that is in the future or not in the calendar, or that lies outside of the change it explains.

    Why:
        "The publisher lowered the rate in 2023-04" explains why a claim of 2023-02 is superseded by a figure of
        2024-02: the change happened between the two. A date before the claim or after the figure is a slip, in the
        reason or in a source.

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
            says: 210 TFLOPS
            source: neuron-trn1-2023-02
            verdict: superseded
            reason: The vendor lowered the rate in 2022-04.  #! TRN315
        ```

    Instead:
        ```diff
        -    reason: The vendor lowered the rate in 2022-04.
        +    reason: The vendor lowered the rate in 2023-04.
        ```

    Source:
        The definition of the verdict: it was true at its date, and its publisher has changed it since.
    """
    today = date.today().isoformat()  # noqa: DTZ011  # pages are dated without a time zone
    for index, claim in enumerate(node.claims):
        path: Path = (*node.claim_path(index), "reason")
        for stated in _DATE_IN_TEXT.findall(claim.reason or ""):
            if not _is_in_calendar(stated):
                yield Finding(path, f"{stated} is not a date", "a month from 01 to 12, a day of that month")
                continue
            if compared(stated, today) > 0:
                yield Finding(path, f"{stated} is in the future; today is {today}", "correct the date")
                continue
            said, adopted = graph.find(claim.source), graph.find(source_of(node, spread(claim.at)[0]))
            if claim.verdict != "superseded" or said is None or adopted is None:
                continue
            start, end = said.spec.as_of, adopted.spec.as_of
            if (said.spec.dating == "exact" and compared(stated, start) < 0) or compared(stated, end) > 0:
                message = f"{stated} is not between {start}, the claim, and {end}, the adopted figure"
                see = (at(said, ("spec", "as_of")), at(adopted, ("spec", "as_of")))
                yield Finding(path, message, "correct the date of the change, or that of a source", see)


def _is_in_calendar(text: str) -> bool:
    try:
        date.fromisoformat(text if text.count("-") > 1 else f"{text}-01")
    except ValueError:
        return False
    return True


@rule("TRN309", "conflict-within-source", over=object, local=True)
def conflict_within_source(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """Two values of one source for one path that exclude each other, not at two named places of it.

    Why:
        A page in one version gives one value for one thing. Where it really prints two, ``where`` names both places;
        otherwise one of the two belongs to another source.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trainium-2023-04}
        spec:
          peak: {dense: {int8: 380 TOPS}}
          memory: {capacity: 32 GiB}
        claims:
          - at: spec.peak.dense.int8
            says: 420 TOPS
            source: neuron-trainium-2023-04  #! TRN309
            verdict: rejected
            reason: The rate was forgotten when the others were lowered.
        ```

    Instead:
        ```diff
        -metadata: {name: example, title: Example, source: neuron-trainium-2023-04}
        +metadata: {name: example, title: Example, source: neuron-trainium-2024-02}
        ```

    Source:
        The design of trnspec: a source is a document in one version.
    """
    indices: dict[tuple[Path, str], list[int]] = {}
    for index, claim in enumerate(node.claims):
        # A claim of other scope is about another quantity than its path.
        for path in spread(claim.at) if claim.verdict != "other-scope" else ():
            indices.setdefault((path, claim.source.name), []).append(index)
    reported: set[int] = set()
    for (path, name), several in indices.items():
        # The different values of each place; a page and its table are two places.
        places: dict[str, dict[str, Site]] = {}
        own = source_of(node, path)
        if own is not None and own.name == name:
            figure, site = figure_at(node, path), Site(node, path)
            place = figure if isinstance(figure, Figure) else origin_of(figure)
            places["" if place is None else place.where or ""] = {str(site.value): site}
        for index in several:
            values, site = places.setdefault(node.claims[index].where or "", {}), Site(node, path, index)
            one = next((one for one in values.values() if _exclude(one, site)), None)
            if one is not None and index not in reported:
                reported.add(index)
                message = f"{name} gives {dotted(path)} as {site.value} and as {one.value}"
                hint = "name the place of each with where, or correct one of the two sources"
                yield Finding((*node.claim_path(index), "source"), message, hint, (one.location,))
            values.setdefault(str(site.value), site)


def _exclude(a: Site, b: Site) -> bool:
    """Whether two values of one quantity exclude each other."""
    one, two = a.value, b.value
    if isinstance(one, Quantity) and isinstance(two, Quantity):
        return one.dimension == two.dimension and not one.interval.overlaps(two.interval)
    return isinstance(one, int) and isinstance(two, int) and not a.interval.overlaps(b.interval)


@rule("TRN310", "date-before-launch", over=object, local=True)
def date_before_launch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A source that is older than the launch of the product, or a launch date that another source contradicts.

    Why:
        What was published before the launch are announcements; the adopted figures are those of the product. A wrong year
        in either date shows here.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: example, title: Example, source: neuron-trn1-2022-10}
        spec:
          launched: 2024-12  #! TRN310
          peak: {dense: {bf16: 190 TFLOPS}}
          memory: {capacity: 32 GiB}
        ```

    Instead:
        ```diff
        -  launched: 2024-12
        +  launched: 2022-10
        ```

    Source:
        The design of trnspec: a figure is adopted from a description of the product.
    """
    launched = getattr(node.spec, "launched", None)
    if not isinstance(launched, str):
        return
    path = ("spec", "launched")
    for index in claims_at(node).get(path, ()):
        claim = node.claims[index]
        said = date_of(str(claim.says)) if claim.verdict in AGREES else ""
        if said and compared(said, launched):
            message = f"launched is {launched}, but {claim.source} says {claim.says}"
            see = (Site(node, path, index).location,)
            yield Finding(path, message, "adopt one, and give the claim on the other a verdict", see)
    adopted = {source_of(node, p) for p in graph.figures(node)} | {node.metadata.source}
    sources = sorted({s.name: s for ref in adopted if (s := graph.find(ref)) is not None}.items())
    if getattr(node.spec, "status", None) == "announced":
        for name, source in sources:
            if compared(source.spec.as_of, launched) > 0:
                message = f"the status is announced, but launched is {launched}, before {name} of {source.spec.as_of}"
                yield Finding(path, message, "remove the status, or correct the date", (at(source, ("spec", "as_of")),))
                return
        return
    older = [source for _, source in sources if compared(source.spec.as_of, launched) < 0]
    if older:
        message = f"launched is {launched}, but figures are adopted from {older[0].name} of {older[0].spec.as_of}"
        message += f" and {plural(len(older) - 1, 'other older source')}" if older[1:] else ""
        places = tuple(at(source, ("spec", "as_of")) for source in older)
        yield Finding(path, message, "correct one of the two dates, or adopt a newer figure", places)


@rule("TRN311", "wrong-source-page", over=object, local=True)
def wrong_source_page(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A figure from a page about another chip, without the place on that page, or older than the launch of the chip.

    Why:
        A page about one chip sometimes compares it with another, and is then a source for both; ``where`` shows that the
        figure was read from the comparison. Without it the page was probably named by mistake, and so was a page that is
        older than the chip.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Chip
        metadata: {name: trainium1, title: Example, source: neuron-trainium2-2026-08}  #! TRN311
        spec:
          peak: {dense: {bf16: 190 TFLOPS}}
          memory: {capacity: 32 GiB}
        ```

    Instead:
        ```diff
        -metadata: {name: trainium1, title: Example, source: neuron-trainium2-2026-08}
        +metadata: {name: trainium1, title: Example, source: neuron-trainium-2026-08}
        ```

    Source:
        The naming of sources in trnspec: a page about a product has its name.
    """
    own = chips_of(graph, node)
    if not is_described(graph, own):
        return  # no page of the catalog is about it
    launched = min((graph.named(chip).spec.launched or "" for chip in own), default="")
    for path, ref, where in _references(node):
        others = about(graph, ref.name)
        # Variants of a chip share the first word of their names, such as h100.
        if (
            graph.lookup(ref.name, Source) is None
            or not others
            or others & own
            or any(chip.split("-")[0] in ref.name.split("-") for chip in own)
        ):
            continue
        message = f"{ref.name} is about {', '.join(sorted(others))}, not about {', '.join(sorted(own))}"
        page = graph.find(ref)
        if not where or path == ("metadata", "source"):
            yield Finding(
                path, message, "name a page about this product, or the place with where, in the figure itself"
            )
        elif launched and page is not None and page.spec.dating == "exact" and compared(page.spec.as_of, launched) < 0:
            message += f", and of {page.spec.as_of}, before the launch of {launched}"
            see = (at(page, ("spec", "as_of")), *(at(graph.named(chip), ("spec", "launched")) for chip in own))
            yield Finding(path, message, "name a page about this product", see)


def _references(node: Node[Any]) -> Iterator[tuple[Path, Ref[Source], str]]:
    """Every reference of a document to a source, with its path and the place in the source."""
    if node.metadata.source is not None:
        yield ("metadata", "source"), node.metadata.source, node.metadata.where or ""
    for path, _, value in leaves(node.spec, ("spec",)):
        own = value if isinstance(value, Figure) else origin_of(value)
        if own is not None and own.source is not None:
            yield (*path, "source"), own.source, own.where or ""
    for index, claim in enumerate(node.claims):
        yield (*node.claim_path(index), "source"), claim.source, claim.where or ""
