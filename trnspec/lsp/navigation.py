"""Definition, references and renaming of documents and figures across files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from trnspec.errors import UsageError
from trnspec.graph.graph import Graph, references
from trnspec.lsp.hover import paths_named, reference_target, value_at_data
from trnspec.lsp.positions import Spot
from trnspec.model.annotations import NAME_PATTERN
from trnspec.model.document import Node
from trnspec.model.reflection import spread
from trnspec.yaml import Document, Path, Place

_OPERAND = re.compile(r"(?<![a-z0-9.-])([a-z0-9][a-z0-9.-]*):(?=spec\.)")
"""The name of a document in a formula: ``trn2.48xlarge:spec.network.bandwidth``."""

_NAME: Path = ("metadata", "name")


@frozen
class TextLocation:
    """A text in a file, on one line.

    Attributes:
        file: The file.
        place: Where it begins.
        text: The text.
    """

    file: str
    place: Place
    text: str

    @property
    def end(self) -> Place:
        """The position after it."""
        return Place(self.place.line, self.place.column + len(self.text))


def named_at(spot: Spot, place: Place, node: Node[Any], graph: Graph) -> Node[Any] | None:
    """The document that the text at a position names: the document itself, a reference, an operand of a formula."""
    if spot.key:
        return None
    if spot.path == _NAME:
        return node
    target = reference_target(spot.path, node, graph)
    if target is not None:
        return target
    for site in _operands(node.document):
        if site.place <= place <= site.end:
            return graph.lookup(site.text)
    return None


def definition(spot: Spot, named: Node[Any] | None, node: Node[Any]) -> Iterator[TextLocation]:
    """Definition of the element at a position: the name of the document there, or the figures that a claim is about."""
    if named is not None:
        yield _scalar(named.document, _NAME, named.name)
        return
    if not spot.key and spot.path[-1:] and spot.path[-1] in {"at", "of"}:
        for path in paths_named(value_at_data(node, spot.path)):
            if path in node.document.places:
                yield TextLocation(node.document.file, node.document.place(path, key=True), str(path[-1]))


def uses(named: Node[Any], graph: Graph, *, aliases: bool = True) -> Iterator[TextLocation]:
    """Every reference to a document, in the order of the documents; operands of formulas included.

    Args:
        named: The document.
        graph: The catalog.
        aliases: Whether to include references by other names than the first.
    """
    names = {named.name, *(named.metadata.aliases if aliases else ())}
    of_file: dict[str, set[Place]] = {}
    for node in graph:
        seen = of_file.setdefault(node.document.file, set())  # the rows of a list of prices are several documents
        for path, _, ref in references(node):
            if ref.name in names and path in node.document.places and node.document.place(path) not in seen:
                seen.add(node.document.place(path))
                yield _scalar(node.document, path, ref.name)
        for site in _operands(node.document):
            if site.text in names and site.place not in seen:
                seen.add(site.place)
                yield site


def claims_on(path: Path, node: Node[Any]) -> Iterator[TextLocation]:
    """The claims and printed ratios of a document that are about the figure at a path."""
    for index, claim in enumerate(node.claims):
        at = (*node.claim_path(index), "at")
        if any(each[: len(path)] == path for each in spread(claim.at)) and at in node.document.places:
            yield _scalar(node.document, at, claim.at)


def renamed(named: Node[Any], new: str, graph: Graph, fixed: Mapping[str, str]) -> tuple[TextLocation, ...]:
    """The texts to replace by a new name.

    Args:
        named: The document.
        new: Its new name.
        graph: The catalog.
        fixed: Files that cannot be edited, with the reason for each.

    Raises:
        UsageError: The name is invalid or taken, or a file that cannot be edited has the old one.
    """
    if not re.search(NAME_PATTERN.regex, new):
        raise UsageError(f"{new!r} is not {NAME_PATTERN.words}")
    if new in graph.aliases or new in graph.broken:
        raise UsageError(f"the name {new!r} is taken")
    sites = (_scalar(named.document, _NAME, named.name), *uses(named, graph, aliases=False))
    for site in sites:
        if site.file in fixed:
            raise UsageError(f"{named.name} cannot be renamed: {site.file} {fixed[site.file]}")
    return tuple(dict.fromkeys(sites))


def _scalar(document: Document, path: Path, text: str) -> TextLocation:
    """A scalar without its quotes."""
    place = document.place(path)
    line = _line(document, place)
    at = line.find(text, place.column - 1)
    return TextLocation(document.file, place if at < 0 else Place(place.line, at + 1), text)


def _operands(document: Document) -> Iterator[TextLocation]:
    if ":spec." not in document.text:
        return
    for number, line in enumerate(_lines(document), 1):
        for match in _OPERAND.finditer(line):
            yield TextLocation(document.file, Place(number, match.start() + 1), match[1])


def _line(document: Document, place: Place) -> str:
    lines = _lines(document)
    return lines[place.line - 1] if place.line <= len(lines) else ""


def _lines(document: Document) -> list[str]:
    return re.split(r"\r\n|\n|\r", document.text)
