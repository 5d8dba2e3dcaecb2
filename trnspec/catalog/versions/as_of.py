"""A catalog as of a date: what could be known from what was published by the end of a day, a month or a year.

The rules, with their reasons, stand in ``docs/reference/dates.md``.
"""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, Any, get_args

from attrs import evolve, field, frozen

from trnspec.errors import QuantityError, UsageError
from trnspec.graph.graph import Graph, references
from trnspec.loading.structure import plain, structure
from trnspec.model.document import Claim, Node
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import (
    ChoiceShape,
    FigureShape,
    ListShape,
    MapShape,
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
from trnspec.model.source import Rank, Source
from trnspec.quantities.quantity import Quantity, agrees, parse
from trnspec.yaml import Path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from trnspec.model.annotations import Pattern
    from trnspec.quantities.units import UnitTable

_DATE = re.compile(r"[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?", re.ASCII)
_RANKS: tuple[str, ...] = get_args(Rank)
_CURRENT = (None, "agrees", "rounded")
"""Verdicts on claims that say what is adopted today."""
_OF_ITS_DAY = "superseded"
_LATEST = "-12-31"


def end(date: str) -> str:
    """The last day of a day, a month or a year, as a text that sorts: a month ends on a 31st, whatever its length."""
    return date if len(date) == len("2023-04-15") else date + _LATEST[len(date) - len("2023") :]


def as_of(graph: Graph, date: str) -> tuple[Graph, dict[str, str]]:
    """A graph with what was published by the end of a day, a month or a year.

    Args:
        graph: The whole catalog.
        date: Such as ``2023-03``.

    Returns:
        The graph, and the documents that it lacks, sources apart, each with the reason.

    Raises:
        UsageError: The date is not one.
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
        found = _Dated(graph, node, limit).made()
        if isinstance(found, str):
            unknown[node.name] = found
        else:
            kept[node.name] = found
    _let_go(graph, kept, unknown)
    return Graph(kept, graph.broken), dict(sorted(unknown.items()))


def _let_go(graph: Graph, kept: dict[str, Node[Any]], unknown: dict[str, str]) -> None:
    """Take out what refers to documents that are gone, until nothing does."""
    while True:
        before = len(unknown)
        for node in list(kept.values()):
            lost = {
                path: ref.name
                for path, _, ref in references(node)
                if (found := graph.find(ref)) is not None and found.name not in kept
            }
            if not lost:
                continue
            rest = _without(node, plain(node), lost)
            if rest is None:
                del kept[node.name]
                path, name = next((p, n) for p, n in lost.items() if _needed(type(node.spec), p))
                unknown[node.name] = f"{dotted(path)} is {name}, which was not known"
            else:
                kept[node.name] = rest
        if len(unknown) == before:
            return


@frozen
class _Candidate:
    """A claim that was published by then."""

    claim: Claim
    date: str
    rank: int
    inferred: bool
    says: Quantity | int | str

    @property
    def recent(self) -> tuple[bool, str, int, bool]:
        """Sorts the claim that decides last: a publisher before third parties, then the newest."""
        return (_RANKS[self.rank] != "third-party", self.date, -self.rank, self.inferred)

    @property
    def near(self) -> tuple[bool, int, str]:
        """Sorts the one that is cited last, among those that say the same."""
        return (self.claim.verdict != "rounded", -self.rank, self.date)


@frozen
class _Dated:
    """One document on its way to an earlier date."""

    graph: Graph
    node: Node[Any]
    limit: str
    adopted: dict[Path, _Candidate] = field(factory=dict)
    lost: dict[Path, str] = field(factory=dict)

    def made(self) -> Node[Any] | str:
        """The document as it could have been written then, or why it could not."""
        node = self.node
        earliest = min(self._sources(), default=None)
        if earliest is None:
            return "nothing in it has a source, so nobody can say when it was published"
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
        rest = _without(node, data, self.lost, positions)
        if rest is None:
            path = next(p for p in self.lost if _needed(type(node.spec), p))
            return f"{dotted(path)} {self.lost[path]}"
        return rest

    def _sources(self) -> Iterator[tuple[str, str]]:
        """Every source that the document names, as (date, name)."""
        for _, target, ref in references(self.node):
            found = self.graph.find(ref)
            if target is Source and found is not None and isinstance(found.spec, Source):
                yield end(found.spec.as_of), found.name

    @functools.cached_property
    def _said(self) -> Mapping[Path, list[Claim]]:
        """The claims by the places they speak of."""
        found: dict[Path, list[Claim]] = {}
        for claim in self.node.claims:
            for path in spread(claim.at):
                found.setdefault(path, []).append(claim)
        return found

    def _source(self, name: str) -> Source | None:
        found = self.graph.nodes.get(self.graph.aliases.get(name, ""))
        return found.spec if found is not None and isinstance(found.spec, Source) else None

    def _date(self, name: str) -> str:
        found = self._source(name)
        return "" if found is None else found.as_of

    def _published(self, name: str) -> bool:
        found = self._source(name)
        return found is not None and end(found.as_of) <= self.limit

    def _paths(self) -> Iterator[Path]:
        """The figures, counts and words of the document, and those that only claims speak of."""
        spec = self.node.spec
        yield from dict.fromkeys((*(p for p, _, _ in leaves(spec, ObjectShape(type(spec)), ("spec",))), *self._said))

    def _chosen(self, path: Path) -> _Candidate | None:
        """Who is believed at a path; ``None`` leaves what stands there, or notes that it is lost."""
        node = self.node
        shape = shape_in_document(type(node.spec), path)
        value = value_at(node.spec, path[1:])
        if isinstance(value, Figure):
            ref = _cited(node, path, value)
            if ref is not None and self._published(ref.name):
                return None
        elif node.metadata.source is not None and self._published(node.metadata.source.name):
            return None
        if shape is None or (value is None and not _may_stand(node.spec, path)):
            return None
        candidates = list(self._candidates(path, shape))
        if not candidates:
            if isinstance(value, Figure):
                self.lost[path] = self._later(path, value)
            return None
        decides = max(candidates, key=lambda c: c.recent)
        if not isinstance(value, Figure) and decides.claim.verdict != _OF_ITS_DAY:
            # A count or a word has no date of its own, and what nobody adopts today was not adopted then: only what
            # has been taken back since stands there once more.
            return None
        return max((c for c in candidates if _same(c, decides)), key=lambda c: c.near)

    def _candidates(self, path: Path, shape: Shape) -> Iterator[_Candidate]:
        for claim in self._said.get(path, ()):
            source = self._source(claim.source.name)
            if claim.verdict not in (*_CURRENT, _OF_ITS_DAY) or source is None:
                continue
            says = _in_form(claim.says, shape, self.node.units)
            if says is not None and end(source.as_of) <= self.limit:
                inferred = source.dating == "not-before"
                yield _Candidate(claim, end(source.as_of), _RANKS.index(source.rank), inferred, says)

    def _later(self, path: Path, figure: Figure) -> str:
        """When a figure was first published."""
        names = [c.source.name for c in self._said.get(path, ()) if c.verdict in (*_CURRENT, _OF_ITS_DAY)]
        ref = _cited(self.node, path, figure)
        names += [ref.name] if ref is not None else []
        dates = sorted((end(date), name) for name in names if (date := self._date(name)))
        if not dates:
            return "has no source, so nobody can say when it was published"
        verb = "was first derived from" if figure.derived is not None else "was first published by"
        return f"{verb} {dates[0][1]}, of {self._date(dates[0][1])}"

    def _adopt(self, data: dict[str, Any], path: Path, chosen: _Candidate) -> None:
        self.adopted[path] = chosen
        claim = chosen.claim
        value: Any = chosen.says
        if isinstance(chosen.says, Quantity):
            value = {"value": chosen.says.text, "source": claim.source.name}
            if claim.where is not None:
                value["where"] = claim.where
        *way, last = path
        inner: Any = data
        for step in way:
            inner = inner.setdefault(step, {}) if isinstance(inner, dict) else inner[step]
        inner[last] = value

    def _claims(self) -> tuple[list[dict[str, Any]], tuple[int, ...]]:
        """The claims that were made by then, without those that are adopted, and their positions in the file."""
        kept: list[dict[str, Any]] = []
        positions: list[int] = []
        written: list[Any] = plain(self.node).get("claims", [])  # type: ignore[assignment]  # a list of mappings
        for index, (claim, data) in enumerate(zip(self.node.claims, written, strict=True)):
            if not self._published(claim.source.name):
                continue
            paths = spread(claim.at)
            rest = [p for p in paths if p not in self.adopted or self.adopted[p].claim is not claim]
            if not rest:
                continue
            for path in [None] if len(rest) == len(paths) else rest:
                made = data if path is None else {**data, "at": dotted(path)}
                if claim.verdict == _OF_ITS_DAY and all(self._as_adopted(claim, p) for p in rest):
                    made = {k: v for k, v in made.items() if k not in ("verdict", "reason")}
                kept.append(made)
                positions.append(self.node.claim_path(index)[1])  # type: ignore[arg-type]  # an index
        return kept, tuple(positions)

    def _as_adopted(self, claim: Claim, path: Path) -> bool:
        """True for a claim that has been superseded since, and was not yet: it says what is adopted."""
        chosen = self.adopted.get(path)
        shape = shape_in_document(type(self.node.spec), path)
        says = None if shape is None else _in_form(claim.says, shape, self.node.units)
        if chosen is None or says is None:
            return False
        return _overlap(says, chosen.says)


def _cited(node: Node[Any], path: Path, figure: Figure) -> Ref[Source] | None:
    """On whose word a figure stands; for a derived one, on whose word the document does."""
    beside = value_at(node.spec, (*path[1:-1], "source"))
    return figure.source or (beside if isinstance(beside, Ref) else None) or node.metadata.source


def _in_form(says: int | str, shape: Shape, units: UnitTable) -> Quantity | int | str | None:
    """What a claim says in the form that stands at such a place; ``None`` when it has another."""
    if isinstance(shape, FigureShape):
        try:
            return parse(str(says), shape.dimension, units)
        except QuantityError:
            return None
    if isinstance(shape, NumberShape):
        return says if isinstance(says, int) and (shape.least is None or says >= shape.least) else None
    if isinstance(shape, ChoiceShape):
        return says if says in shape.words else None
    if isinstance(shape, TextShape):
        return says if isinstance(says, str) and _fits(says, shape.pattern) else None
    return None


def _fits(text: str, pattern: Pattern | None) -> bool:
    return pattern is None or (re.search(pattern.regex, text) is not None and not text.endswith("\n"))


def _overlap(one: Quantity | int | str, other: Quantity | int | str) -> bool:
    if isinstance(one, Quantity) and isinstance(other, Quantity):
        return one.dimension is other.dimension and agrees(one, other)
    return one == other


def _same(one: _Candidate, decides: _Candidate) -> bool:
    """True for two claims that give the same figure: both give today's, or neither does and they overlap."""
    current = [c.claim.verdict in _CURRENT for c in (one, decides)]
    return one is decides or all(current) or (not any(current) and _overlap(one.says, decides.says))


def _may_stand(spec: Any, path: Path) -> bool:
    """True where a value can be written although nothing stands there: no part above it needs anything else."""
    for length in range(1, len(path) - 1):
        if value_at(spec, path[1 : length + 1]) is not None:
            continue
        above = shape_at(type(spec), path[1 : length + 1])
        if isinstance(above, ListShape):
            return False
        if isinstance(above, ObjectShape) and any(f.required for f in above.fields.values()):
            return False
    return not isinstance(path[-1], int)


def _needed(spec: type, path: Path) -> bool:
    return _widened(spec, path) is None


def _widened(spec: type, path: Path) -> Path | None:
    """The nearest place at or above a path that may be left out; ``None`` where that is the whole document."""
    while len(path) > 1:
        above = shape_in_document(spec, path[:-1])
        if path[:-1] == ("claims",) or isinstance(above, (ListShape, MapShape)):
            return path
        if isinstance(above, ObjectShape) and not above.fields[str(path[-1])].required:
            return path
        path = path[:-1]
    return None


def _without(
    node: Node[Any], data: dict[str, Any], lost: Iterable[Path], positions: tuple[int, ...] | None = None
) -> Node[Any] | None:
    """The node that is left without some places, and without what needs them; ``None`` when nothing can be left.

    Args:
        node: Where it came from.
        data: What it says now.
        lost: The places.
        positions: Where its claims stood, when they are not those of the node.
    """
    spec = type(node.spec)
    gone = {_widened(spec, path) for path in lost}
    if None in gone:
        return None
    rest = _copy(spec, data, (), gone)
    where = positions if positions is not None else tuple(int(node.claim_path(i)[1]) for i in range(len(node.claims)))
    kept = tuple(w for i, w in enumerate(where) if ("claims", i) not in gone)
    made = structure(node.kind, spec, node.document, rest, node.units)
    return evolve(made, positions=kept, target=node.target, folder=node.folder)


def _copy(spec: type, value: Any, path: Path, gone: set[Path | None]) -> Any:
    """The data without what is gone, and without optional parts that are empty for it."""
    if isinstance(value, dict):
        kept = {}
        for key, item in value.items():
            at: Path = (*path, key)
            if at in gone:
                continue
            made = _copy(spec, item, at, gone)
            emptied = not made and item and isinstance(item, (dict, list))
            if not emptied or len(at) == 1 or _widened(spec, at) != at:
                kept[key] = made
        if path == () and not kept.get("claims", True):
            del kept["claims"]
        return kept
    if isinstance(value, list):
        return [_copy(spec, item, (*path, i), gone) for i, item in enumerate(value) if (*path, i) not in gone]
    return value
