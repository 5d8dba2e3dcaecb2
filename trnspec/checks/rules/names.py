"""Identity of documents: the names of documents, files and families, and copies under another name."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from trnspec.diagnostics import Severity, did_you_mean
from trnspec.graph.graph import Graph, at, cached_by_graph
from trnspec.loading.files import misplacements
from trnspec.model.calibration import Calibration
from trnspec.model.chip import Chip
from trnspec.model.core import Core
from trnspec.model.document import Claim, Node
from trnspec.model.kinds import BUILTIN, LISTS
from trnspec.model.link import Link
from trnspec.model.measurements import Measurements
from trnspec.model.quota import Quota
from trnspec.model.ref import indefinite
from trnspec.model.reflection import dotted
from trnspec.model.server import Server
from trnspec.model.software import Software
from trnspec.model.source import Source
from trnspec.model.transformers.model import Model
from trnspec.model.ultraserver import UltraServer
from trnspec.plugins.api import Finding, rule
from trnspec.yaml import Path

Content = frozenset[tuple[str, str]]
"""The values of a document with their paths below ``spec``, and its claims, without sources and remarks."""


@rule("TRN205", "name-file-mismatch", over=object, local=True)
def name_file_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A document whose name differs from the name of its file, or that is in the folder of another kind.

    Why:
        A reader of ``chip: trainium1`` must find ``trainium1.yaml`` without a search, and so must a program: the chips of
        the shipped catalog are read from the folder ``chips`` alone.

    Example:
        ```yaml
        # file: sources/one.yaml
        api_version: trnspec/v1
        kind: Source
        metadata:
          name: another  #! TRN205
          title: Another
        spec: {publisher: Somebody, as_of: 2024-02-13, rank: third-party}
        ```

    Instead:
        ```yaml
        # file: sources/one.yaml
        api_version: trnspec/v1
        kind: Source
        metadata: {name: one, title: One}
        spec: {publisher: Somebody, as_of: 2024-02-13, rank: third-party}
        ```

    Source:
        Common practice of Kubernetes manifests and of most package registries: one name, one file.
    """
    # The list has the name of the file.
    is_listed = node.kind in LISTS.values() and _kind_in_file(node) in LISTS
    for path, message, hint in () if is_listed else misplacements(node.document.file, node.kind, node.name):
        yield Finding(path, message, hint)


def _kind_in_file(node: Node[Any]) -> str:
    """The kind of a document as its file has it: that of the list for an item of one."""
    _, start, end = node.document.extent(("kind",))
    return node.document.text[start:end].strip("\"'")


@rule("TRN209", "repeated-item", over=object, local=True)
def repeated_item(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A word or a name that one list has twice, or a claim that a document has twice.

    Why:
        The number of times that a list has an item does not count, so the second one is one that was not corrected after
        copying: another region, server or dtype is missing.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
        spec:
          chips: {chip: trainium1, count: 16}
          availability:
            regions:
              - us-east-1
              - us-east-1  #! TRN209
        ```

    Instead:
        ```diff
        -      - us-east-1
        -      - us-east-1
        +      - us-east-1
        +      - us-east-2
        ```

    Source:
        uniqueItems of JSON Schema.
    """
    data = node.document.data or {}
    for path, items in _lists(data.get("spec"), ("spec",)) if node.kind in BUILTIN else ():
        for index, item in enumerate(items):
            if item in items[:index] and (*path, index) not in node.document.rejected:
                see = (at(node, (*path, items.index(item))),)
                yield Finding((*path, index), f"{item!r} is listed twice", "remove or correct one of them", see)
    first: dict[Claim, int] = {}
    for index, claim in enumerate(node.claims):
        path = node.claim_path(index)
        known = first.setdefault(claim, index)
        if node.claim_path(known) != path:
            see = (at(node, node.claim_path(known)),)
            yield Finding(path, "this claim is listed twice", "remove or correct one of them", see)


def _lists(value: Any, path: Path) -> Iterator[tuple[Path, list[Any]]]:
    """Each list of texts in plain data."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _lists(item, (*path, key))
    elif isinstance(value, list):
        if all(isinstance(item, str) for item in value):
            yield path, value
        else:
            for index, item in enumerate(value):
                yield from _lists(item, (*path, index))


@rule("TRN206", "name-family-mismatch", over=object, local=True)
def name_family_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A server whose family or chip is not that of its name, or a quota with a family or a purchase that is not one.

    Why:
        The name of an instance type is its family and its size, ``trn2.48xlarge``. With another family the server is
        listed, and priced, among those of another generation. The number of the family is that of the chip: Trn2 has
        Trainium2. The families of a quota are those of servers, and its purchase is that of its name.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: trn2.12xlarge, title: Example, source: neuron-trn2-2026-08}
        spec:
          family: {name: trn1}  #! TRN206
          chips: {chip: trainium2, count: 4}
        ```

    Instead:
        ```diff
        -  family: {name: trn1}
        +  family: {name: trn2}
        ```

    Source:
        Amazon EC2 User Guide, instance type naming conventions.
    """
    if node.is_of(Server):
        yield from _other_family(node, graph)
    elif node.is_of(Quota):
        for index, name in enumerate(node.spec.families):
            if (other := graph.nodes.get(name)) is not None:
                message, path = (
                    f"{name!r} is {indefinite(other.kind)}, not a family of servers",
                    ("spec", "families", index),
                )
                yield Finding(path, message, "write the first part of the names of the servers, such as trn2")
            elif name not in (known := _families(graph)) and (hint := did_you_mean(name, known)):
                yield Finding(("spec", "families", index), f"no server is of the family {name!r}", hint)
        named = [way for way in _PURCHASES if re.search(rf"(?<![a-z]){way}(?![a-z])", node.name)]
        if named and node.spec.purchase not in named:
            message = f"the purchase is {node.spec.purchase}, but the name of the document has {named[0]}"
            yield Finding(("spec", "purchase"), message, f"write {named[0]}, or rename the document")


@cached_by_graph
def _families(graph: Graph) -> list[str]:
    """The families of the servers, and the first parts of their names."""
    servers = graph.of(Server)
    stated = [node.spec.family.name for node in servers if node.spec.family is not None]
    return [*dict.fromkeys([*stated, *(node.name.partition(".")[0] for node in servers)])]


_PURCHASES = ("on-demand", "spot", "capacity-block")


def _other_family(server: Node[Server], graph: Graph) -> Iterator[Finding]:
    """The findings of a server whose family or chip is not that of its name."""
    family = server.spec.family
    stem, dot, _ = server.name.partition(".")
    if family is not None and dot and family.name != stem:
        message = f"the family is {family.name}, but the name of the server begins with {stem}"
        yield Finding(("spec", "family", "name"), message, f"write {stem}, or rename the server")
    chip = graph.find(server.spec.chips.chip)
    generations = _GENERATION.match(stem if dot else ""), chip and _GENERATION.match(chip.name)
    if generations[0] and generations[1] and generations[0]["number"] != generations[1]["number"]:
        assert chip is not None
        message = f"the chip is {chip.name}, but the name of the server begins with {stem}"
        yield Finding(("spec", "chips", "chip"), message, "correct the chip, or rename the server")


_GENERATION = re.compile(r"(?:trn|trainium|inf|inferentia)(?P<number>[0-9]+)(?![0-9])")


_VERSION = re.compile(r"(?<![a-z0-9])v[0-9]+(?:\.[0-9]+)?(?![a-z0-9])")


@rule("TRN207", "name-version-mismatch", over=object, local=True)
def name_version_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A core or a link whose version is not that of its name.

    Why:
        ``neuronlink-v3`` is NeuronLink of version v3. With another version its figures are taken for those of another
        generation.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Link
        metadata: {name: example-v3, title: Example}
        spec: {connects: chips, version: v2}  #! TRN207
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Link
        metadata: {name: example-v3, title: Example}
        spec: {connects: chips, version: v3}
        ```

    Source:
        The Neuron pages, which name cores and links by their version.
    """
    if not isinstance(node.spec, (Core, Link)):
        return
    named = _VERSION.findall(node.name)
    version = _VERSION.findall((node.spec.version or "").lower())
    if named and version and not set(named) & set(version):
        message = f"the version is {node.spec.version}, but the name of the document has {named[0]}"
        yield Finding(("spec", "version"), message, f"write {named[0]}, or rename the document")


SHARE = 0.8
"""Least share of equal values and claims of a copy. Of the catalogs, two sizes of a server share up to 0.75 of them."""

LEAST = 12
"""Least number of values of two documents that are compared by the share of equal ones."""

LEAST_BUT_ONE = 6
"""Least number of values of two documents that differ in one figure."""

LEAST_EQUAL = 3
"""Least number of values of two documents that are compared for equality."""


@rule("TRN208", "copied-document", severity=Severity.WARNING, local=True)
def copied_document(graph: Graph) -> Iterator[Finding]:
    """A document whose values and claims are those of another document of its kind.

    Why:
        The next generation is often written in a copy of the document of the last one. A value that is left as it was is
        that of another product, also where its source was changed. Sizes of a family differ in more than a fifth of their
        values and claims; of two models of one architecture one is the ``base`` of the other, or both name one and have
        different publications. A framework may have the same values on two chips. A page that was read at two dates is
        two sources with two versions.

    Example:
        ```yaml
        # file: links/cable-v1.yaml
        api_version: trnspec/v1
        kind: Link
        metadata: {name: cable-v1, title: Example}
        spec: {connects: chips, version: v1, technology: copper}
        # file: links/cable-x.yaml
        api_version: trnspec/v1
        kind: Link
        metadata: {name: cable-x, title: Example}
        spec: {connects: chips, version: v1, technology: copper}  #! TRN208
        ```

    Instead:
        ```yaml
        # file: links/cable-v1.yaml
        api_version: trnspec/v1
        kind: Link
        metadata: {name: cable-v1, title: Example, aliases: [cable-x]}
        spec: {connects: chips, version: v1, technology: copper}
        ```

    Source:
        The pairs of similar documents in the catalogs of trnspec: the values of two products differ.
    """
    copies = [_order(one, other) for one, other in _copies(graph)]
    for node, original in copies:
        own, known = _content(node), _content(original)
        changed = sorted({path for path, _ in own ^ known if path})
        total = len(own | known)
        see = (at(original, ("spec",), key=True, text=original.name),)
        if not changed and own == known:
            message = f"it has the same content as {original.name}"
            hint = f"write {node.name} among the aliases of {original.name}, or remove one of the two"
        else:
            paths = ", ".join(changed[:3]) + (f" and {len(changed) - 3} more" if len(changed) > 3 else "")
            others = f"other values: {paths}" if changed else "only claims differ"
            message = f"{len(own & known)} of {total} values and claims are those of {original.name}; {others}"
            hint = f"correct the values that are still those of {original.name}, and their sources"
        yield Finding(("spec",), message, hint, see, node, key=True)
    yield from _same_version(graph)
    yield from _same_title(graph, {node.name for node, _ in copies})


def _copies(graph: Graph) -> Iterator[tuple[Node[Any], Node[Any]]]:
    """Pairs of documents of one kind of which one is a copy of the other, each document with the most similar one."""
    by_kind: dict[str, list[Node[Any]]] = defaultdict(list)
    for node in graph:
        if not node.is_of(Source, Calibration, Measurements):
            by_kind[node.kind].append(node)
    focus = {node.name for node in graph.focused()}
    for nodes in by_kind.values():
        if not any(node.name in focus for node in nodes):
            continue
        contents = {node.name: _content(node) for node in nodes}
        known = {node.name: node for node in nodes}
        found: dict[str, tuple[float, str]] = {}
        for one, other in _candidates(contents):
            if (one in focus or other in focus) and not _is_variant(known[one], known[other]):
                share, size = _share(contents[one], contents[other]), len(contents[one] | contents[other])
                least = LEAST_EQUAL if share == 1 else LEAST
                if (share >= SHARE and size >= least) or _is_but_one_figure(contents[one], contents[other]):
                    later = _order(known[one], known[other])[0].name
                    found[later] = max(found.get(later, (0.0, "")), (share, other if later == one else one))
        yield from ((known[name], known[original]) for name, (_, original) in found.items())


def _candidates(contents: Mapping[str, Content]) -> Iterator[tuple[str, str]]:
    """Pairs that may share :data:`SHARE` of their values: equal ones, and those that share one of their rarest values.

    Of two sets with that share, the rarest values of each, one more than may differ, have one in common.
    """
    alike: dict[Content, list[str]] = defaultdict(list)
    for name, content in contents.items():
        alike[content].append(name)
    for first, *others in alike.values():
        yield from ((first, other) for other in others)
    counts = Counter(value for content in alike for value in content)
    users: dict[tuple[str, str], list[str]] = defaultdict(list)
    for content, (name, *_) in alike.items():
        rarest = sorted(content, key=lambda value: (counts[value], value))
        for value in rarest[: len(content) - math.ceil(SHARE * len(content)) + 1]:
            users[value].append(name)
    yield from {pair for names in users.values() for pair in combinations(sorted(names), 2)}


def _share(one: Content, other: Content) -> float:
    return len(one & other) / len(one | other)


_FIGURE = re.compile(r"'?(?:[~<>= ]|up to )*[0-9]")


def _is_but_one_figure(one: Content, other: Content) -> bool:
    changed = one ^ other
    is_one = len(changed) == 2 and len({path for path, _ in changed}) == 1  # a value of each
    return is_one and len(one | other) >= LEAST_BUT_ONE and all(_FIGURE.match(value) for _, value in changed)


def _is_variant(one: Node[Any], other: Node[Any]) -> bool:
    """Whether one is the base of the other or both name one base, the bare-metal size, or the software on another chip."""
    if one.is_of(Server):
        families, sizes = zip(*(node.name.partition(".")[::2] for node in (one, other)), strict=True)
        return families[0] == families[1] and any(size.startswith("metal") for size in sizes)
    if one.is_of(Software):
        return bool(one.spec.chip != other.spec.chip)
    if not one.is_of(Model):
        return False
    bases = [node.spec.base.model.name for node in (one, other) if node.spec.base is not None]
    # A copy has the base of the original, and often its source.
    is_sibling = len(set(bases)) < len(bases) and one.metadata.source != other.metadata.source
    return is_sibling or bool({*bases} & {one.name, other.name})


def _order(one: Node[Any], other: Node[Any]) -> tuple[Node[Any], Node[Any]]:
    """The copy and the original: a document that is checked is a copy of one that is not, else the later name."""
    first, second = sorted((one, other), key=lambda node: (node.target, _natural(node.name)))
    return second, first


def _natural(name: str) -> list[tuple[bool, int, str]]:
    """A key that sorts ``v10`` after ``v9``."""
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.split(r"([0-9]+)", name)]


def _content(node: Node[Any]) -> Content:
    data = node.document.data or {}
    stated = data.get("claims")
    claims = (("", repr(sorted(_leaves(claim, ())))) for claim in stated) if isinstance(stated, list) else ()
    return frozenset((*_leaves(data.get("spec"), ("spec",)), *claims))


_PROVENANCE = ("source", "where", "note", "reason")


def _leaves(value: object, path: tuple[str | int, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key not in _PROVENANCE:
                # A figure with its source has the path of the figure alone.
                yield from _leaves(item, path if key == "value" else (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _leaves(item, (*path, index))
    else:
        yield dotted(path), repr(value)


def _same_title(graph: Graph, copies: set[str]) -> Iterator[Finding]:
    """Products, other than known copies, whose title has the name of another one."""
    titles: dict[tuple[str, str], list[Node[Any]]] = defaultdict(list)
    for node in graph:
        if node.is_of(Core, Chip, Link, Server, UltraServer, Software):
            titles[node.kind, node.metadata.title].append(node)
    focus = {node.name for node in graph.focused()}
    for (_, title), nodes in titles.items():
        letters = re.sub(r"[^a-z0-9.]", "", title.lower())
        wrong = [node for node in nodes if node.name.replace("-", "") not in letters]
        for node in wrong if len(wrong) < len(nodes) else ():
            if node.name in focus - copies:
                others = [other for other in nodes if other is not node]
                see = tuple(at(other, ("metadata", "title")) for other in others)
                message = f"{others[0].name} has the title {title!r} too"
                yield Finding(("metadata", "title"), message, "write the title of this product", see, node)


def _same_version(graph: Graph) -> Iterator[Finding]:
    """Sources with the same address and version, which one reading of a page cannot have twice."""
    by_address: dict[tuple[str, str | None], list[Node[Source]]] = defaultdict(list)
    for source in graph.of(Source) if graph.focused(Source) else ():
        if source.spec.address is not None:
            by_address[str(source.spec.address), source.spec.version].append(source)
    for sources in by_address.values():
        original, *copies = sorted(sources, key=lambda node: (node.target, node.spec.as_of, _natural(node.name)))
        for copy in copies:
            message = f"it has the address and the version of {original.name} ({original.spec.as_of})"
            hint = f"write the address or the version that was read on {copy.spec.as_of}, or remove one of the two"
            see = (at(original, ("spec", "address")),)
            yield Finding(("spec", "address"), message, hint, see, copy)
