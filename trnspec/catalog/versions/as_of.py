"""A catalog as of a date: what was published by the end of a day, a month or a year.

The rules, with their reasons, are in ``docs/reference/dates.md``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import evolve, field, frozen

from trnspec.catalog.versions.changes import set_at
from trnspec.errors import UsageError
from trnspec.graph.graph import Graph, references
from trnspec.graph.provenance import claims_at, credited_source
from trnspec.loading.schema.prune import is_needed, prune
from trnspec.loading.structure import plain, structure
from trnspec.model.annotations import Pattern
from trnspec.model.document import Claim, Node
from trnspec.model.figure import Figure
from trnspec.model.reflection import (
    ChoiceShape,
    FigureShape,
    ListShape,
    NumberShape,
    ObjectShape,
    Shape,
    TextShape,
    dotted,
    leaves,
    shape_at,
    shape_in_document,
    spread,
    value_at,
)
from trnspec.model.rounded import count_of
from trnspec.model.source import Source, end
from trnspec.quantities.quantity import Quantity, parse_or_none
from trnspec.quantities.units import UnitTable
from trnspec.yaml import Path

_DATE = re.compile(r"[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?", re.ASCII)
_CURRENT = (None, "agrees", "rounded")
"""Verdicts on claims that agree with the value adopted today."""
_SUPERSEDED = "superseded"


def as_of(graph: Graph, date: str) -> tuple[Graph, dict[str, str]]:
    """A graph with what was published by the end of a day, a month or a year.

    Returns:
        The graph, and the documents it lacks, except sources, each with the reason.

    Raises:
        UsageError: ``date`` is not a date.
    """
    if not _DATE.fullmatch(date):
        raise UsageError(f"{date!r} is not a date; write a day, a month or a year, such as 2023-03")
    limit = end(date)
    kept: dict[str, Node[Any]] = {}
    unknown: dict[str, str] = {}
    for node in graph:
        if isinstance(node.spec, Source):
            if end(node.spec.as_of) <= limit:
                kept[node.name] = node
            continue
        dated = _Dated(graph, node, limit).result()
        if isinstance(dated, str):
            unknown[node.name] = dated
        else:
            kept[node.name] = dated
    _remove_dangling(graph, kept, unknown)
    return Graph(kept, graph.broken), dict(sorted(unknown.items()))


def _remove_dangling(graph: Graph, kept: dict[str, Node[Any]], unknown: dict[str, str]) -> None:
    """Removes references to documents that are unknown, and documents that need them, until there are none."""
    while True:
        before = len(unknown)
        for node in list(kept.values()):
            lost = {
                path: ref.name
                for path, _, ref in references(node)
                if (target := graph.find(ref)) is not None and target.name not in kept
            }
            if not lost:
                continue
            remainder = _without(node, plain(node), lost)
            if remainder is None:
                del kept[node.name]
                path, name = next((p, n) for p, n in lost.items() if is_needed(type(node.spec), p))
                unknown[node.name] = f"{dotted(path)} is {name}, which is unknown at that date"
            else:
                kept[node.name] = remainder
        if len(unknown) == before:
            return


@frozen
class _DatedClaim:
    """A claim published by the date."""

    claim: Claim
    source: Source
    inferred: bool
    says: Quantity | int | str

    @property
    def recent(self) -> tuple[tuple[bool, str, int], bool]:
        """Sort key; the claim that decides comes last."""
        return self.source.precedence, self.inferred

    @property
    def near(self) -> tuple[bool, int, str]:
        """Sort key of claims with the same value; the one to cite comes last."""
        _, date, rank = self.source.precedence
        return self.claim.verdict != "rounded", rank, date


@frozen
class _Dated:
    """One document, reduced to what was published by a date."""

    graph: Graph
    node: Node[Any]
    limit: str
    adopted: dict[Path, _DatedClaim] = field(factory=dict)
    lost: dict[Path, str] = field(factory=dict)

    def result(self) -> Node[Any] | str:
        """The document as of the date, or the reason why there is none."""
        node = self.node
        earliest = min(self._sources(), default=None)
        if earliest is None:
            return "nothing in it has a source, so its date is unknown"
        if earliest[0] > self.limit:
            return f"its earliest source is {earliest[1]}, of {self._date(earliest[1])}"
        data: dict[str, Any] = plain(node)
        for path in self._paths():
            chosen = self._chosen(path)
            if chosen is not None:
                self._adopt(data, path, chosen)
        if node.metadata.source is not None and not self._published(node.metadata.source.name):
            data["metadata"].pop("source")
            data["metadata"].pop("where", None)
        data["claims"], positions = self._claims()
        remainder = _without(node, data, self.lost, positions)
        if remainder is None:
            path = next(p for p in self.lost if is_needed(type(node.spec), p))
            return f"{dotted(path)} {self.lost[path]}"
        return remainder

    def _sources(self) -> Iterator[tuple[str, str]]:
        """Sources that the document refers to, as (date, name)."""
        for _, target, ref in references(self.node):
            source = self.graph.find(ref)
            if target is Source and source is not None:
                yield end(source.spec.as_of), source.name

    def _claims_on(self, path: Path) -> list[Claim]:
        """The claims that are about a path."""
        return [self.node.claims[index] for index in claims_at(self.node).get(path, ())]

    def _source(self, name: str) -> Source | None:
        node = self.graph.lookup(name, Source)
        return None if node is None else node.spec

    def _date(self, name: str) -> str:
        source = self._source(name)
        return "" if source is None else source.as_of

    def _published(self, name: str) -> bool:
        source = self._source(name)
        return source is not None and end(source.as_of) <= self.limit

    def _paths(self) -> Iterator[Path]:
        """The paths of the figures, counts and texts of the document, and those that only claims are about."""
        spec = self.node.spec
        yield from dict.fromkeys((*(p for p, _, _ in leaves(spec, ("spec",))), *claims_at(self.node)))

    def _chosen(self, path: Path) -> _DatedClaim | None:
        """The claim to adopt at a path; ``None`` keeps the value, or records it as lost."""
        node = self.node
        shape = shape_in_document(type(node.spec), path)
        value = value_at(node.spec, path[1:])
        if isinstance(value, Figure):
            ref = credited_source(node, path)
            if ref is not None and self._published(ref.name):
                return None
        elif node.metadata.source is not None and self._published(node.metadata.source.name):
            return None
        if shape is None or (value is None and not _may_be_set(node.spec, path)):
            return None
        candidates = list(self._candidates(path, shape))
        if not candidates:
            if isinstance(value, Figure):
                self.lost[path] = self._later(path, value)
            return None
        deciding = max(candidates, key=lambda c: c.recent)
        if not isinstance(value, Figure) and deciding.claim.verdict != _SUPERSEDED:
            # A count or a text has no date of its own, and a value not adopted today was not adopted then, unless it
            # has been superseded since.
            return None
        return max((c for c in candidates if _same(c, deciding)), key=lambda c: c.near)

    def _candidates(self, path: Path, shape: Shape) -> Iterator[_DatedClaim]:
        for claim in self._claims_on(path):
            source = self._source(claim.source.name)
            if claim.verdict not in (*_CURRENT, _SUPERSEDED) or source is None:
                continue
            says = _typed(claim.says, shape, self.node.units)
            if says is not None and end(source.as_of) <= self.limit:
                inferred = source.dating == "not-before"
                yield _DatedClaim(claim, source, inferred, says)

    def _later(self, path: Path, figure: Figure) -> str:
        """The message with the date at which a figure was first published."""
        names = [c.source.name for c in self._claims_on(path) if c.verdict in (*_CURRENT, _SUPERSEDED)]
        ref = credited_source(self.node, path)
        names += [ref.name] if ref is not None else []
        dates = sorted((end(date), name) for name in names if (date := self._date(name)))
        if not dates:
            return "has no source, so its date is unknown"
        verb = "was first derived from" if figure.derived is not None else "was first published by"
        return f"{verb} {dates[0][1]}, of {self._date(dates[0][1])}"

    def _adopt(self, data: dict[str, Any], path: Path, chosen: _DatedClaim) -> None:
        self.adopted[path] = chosen
        claim = chosen.claim
        value: Any = chosen.says
        if isinstance(chosen.says, Quantity):
            value = {"value": chosen.says.text, "source": claim.source.name}
            if claim.where is not None:
                value["where"] = claim.where
        set_at(data, path, value)

    def _claims(self) -> tuple[list[dict[str, Any]], tuple[int, ...]]:
        """The claims published by the date, without those that are adopted, and their positions in the file."""
        kept: list[dict[str, Any]] = []
        positions: list[int] = []
        written: list[Any] = plain(self.node).get("claims", [])  # type: ignore[assignment]  # a list of mappings
        for index, (claim, data) in enumerate(zip(self.node.claims, written, strict=True)):
            if not self._published(claim.source.name):
                continue
            paths = spread(claim.at)
            remaining = [p for p in paths if p not in self.adopted or self.adopted[p].claim is not claim]
            if not remaining:
                continue
            for path in [None] if len(remaining) == len(paths) else remaining:
                dated = data if path is None else {**data, "at": dotted(path)}
                if claim.verdict == _SUPERSEDED and all(self._is_adopted(claim, p) for p in remaining):
                    dated = {k: v for k, v in dated.items() if k not in ("verdict", "reason")}
                kept.append(dated)
                positions.append(self.node.claim_path(index)[1])  # type: ignore[arg-type]  # an index
        return kept, tuple(positions)

    def _is_adopted(self, claim: Claim, path: Path) -> bool:
        """True if a claim that was superseded later agrees with the value adopted at the date."""
        chosen = self.adopted.get(path)
        shape = shape_in_document(type(self.node.spec), path)
        says = None if shape is None else _typed(claim.says, shape, self.node.units)
        if chosen is None or says is None:
            return False
        return _overlap(says, chosen.says)


def _typed(says: int | str, shape: Shape, units: UnitTable) -> Quantity | int | str | None:
    """The value of a claim in the type of its path; ``None`` if it has another type."""
    if isinstance(shape, FigureShape):
        quantity = parse_or_none(str(says), units)
        return quantity if quantity is not None and shape.dimension in (None, quantity.dimension) else None
    if isinstance(shape, NumberShape):
        count = count_of(says) if shape.rounded else says
        return count if isinstance(count, int) and (shape.least is None or count >= shape.least) else None
    if isinstance(shape, ChoiceShape):
        return says if says in shape.words else None
    if isinstance(shape, TextShape):
        return says if isinstance(says, str) and _fits(says, shape.pattern) else None
    return None


def _fits(text: str, pattern: Pattern | None) -> bool:
    return pattern is None or (re.search(pattern.regex, text) is not None and not text.endswith("\n"))


def _overlap(one: Quantity | int | str, other: Quantity | int | str) -> bool:
    if isinstance(one, Quantity) and isinstance(other, Quantity):
        return one.dimension is other.dimension and one.agrees(other)
    return one == other


def _same(one: _DatedClaim, deciding: _DatedClaim) -> bool:
    """True if two claims give the same value: both today's, or neither today's and they overlap."""
    current = [c.claim.verdict in _CURRENT for c in (one, deciding)]
    return one is deciding or all(current) or (not any(current) and _overlap(one.says, deciding.says))


def _may_be_set(spec: Any, path: Path) -> bool:
    """True if a missing value may be set: no object above it, missing too, has other required fields."""
    for length in range(1, len(path) - 1):
        if value_at(spec, path[1 : length + 1]) is not None:
            continue
        above = shape_at(type(spec), path[1 : length + 1])
        if isinstance(above, ListShape):
            return False
        if isinstance(above, ObjectShape) and any(f.required for f in above.fields.values()):
            return False
    return not isinstance(path[-1], int)


def _without(
    node: Node[Any], data: dict[str, Any], lost: Iterable[Path], positions: tuple[int, ...] | None = None
) -> Node[Any] | None:
    """The node without some paths and the objects that require them; ``None`` if the document requires them."""
    remaining, left = prune(type(node.spec), data, lost, items=True)
    if remaining is None:
        return None
    where = positions if positions is not None else tuple(int(node.claim_path(i)[1]) for i in range(len(node.claims)))
    structured = structure(node.kind, type(node.spec), node.document, remaining, node.units)
    return evolve(structured, positions=tuple(where[i] for i in left), target=node.target, folder=node.folder)
