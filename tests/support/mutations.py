"""Edits of documents that a rule must find."""

from __future__ import annotations

import copy
import functools
import json
import re
from collections import defaultdict
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen, has

from trnspec.checks.reconcile.relations import claimed_paths, relations
from trnspec.checks.reconcile.sites import Site
from trnspec.checks.rules.derived import AGREES as RATIO_AGREES
from trnspec.checks.runner import apply_waivers, run
from trnspec.graph.graph import Graph, figure_at
from trnspec.graph.provenance import source_of
from trnspec.loading.structure import plain, structure
from trnspec.model.document import Claim
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import FigureShape, NumberShape, dotted, fields_of, leaves, spread
from trnspec.model.rounded import RoundedCount, interval_of
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.transformers.contradictions import contradictions
from trnspec.model.transformers.counting import active_parameters_of, parameters_of
from trnspec.model.transformers.model import Model
from trnspec.model.ultraserver import UltraServer
from trnspec.quantities.quantity import Interval, Quantity, parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trnspec.diagnostics import Diagnostic
    from trnspec.model.chip import Chip
    from trnspec.model.document import Node
    from trnspec.plugins.api import Rule
    from trnspec.yaml import Path

# Slips of those who copy figures, made in a catalog one at a time: what the rules are measured by.

Place = tuple[str, "Path"]
"""A document by name, and a path in it."""

FACTORS = {"x2": Fraction(2), "/2": Fraction(1, 2), "x8": Fraction(8), "x1000": Fraction(1000)}
BINARY = Fraction(1024, 1000)
POWERS = (1, 2, 3, 4, 5)
"""k of 1.024^k: kB for KiB, MB for MiB, and so on to PB for PiB."""

KINDS = (*FACTORS, "x1.024^k", "another's value", "off by one", "swapped row", "dropped dimension")


@frozen
class Change:
    """One slip.

    Attributes:
        kind: One of :data:`KINDS`.
        name: The document that is changed.
        edits: What is written instead, by path: a figure as printed, a count, or a list.
        before: What was there.
        beyond: Whether the new value differs from the old one by more than rounding.
    """

    kind: str
    name: str
    edits: tuple[tuple[Path, Any], ...]
    before: tuple[Any, ...]
    beyond: bool = field(default=True)

    @property
    def places(self) -> tuple[Place, ...]:
        """What is changed; the entries of a list count as one place each."""
        return tuple((self.name, path) for path, _ in self.edits)

    def __str__(self) -> str:
        given_text = [
            f"{dotted(path[1:])} {_text(old)} -> {_text(new)}"
            for (path, new), old in zip(self.edits, self.before, strict=True)
        ]
        return f"{self.kind}: {self.name} {', '.join(given_text)}"


def _text(value: Any) -> str:
    return str(value) if not isinstance(value, list) else f"[{', '.join(map(_text, value))}]"


def _interval(value: Figure | int) -> Interval:
    return value.value.interval if isinstance(value, Figure) else Interval.point(value)


def _plain(value: Figure | int) -> str | int:
    # A count may carry its source; only the number is written.
    return value.value.text if isinstance(value, Figure) else int(value)


def sites(node: Node[Any]) -> dict[Path, Figure | int]:
    """Every adopted figure and count that a document states, in the order of its classes."""
    found = leaves(node.spec, ("spec",))
    return {
        path: v for path, shape, v in found if isinstance(shape, (FigureShape, NumberShape)) and _stated(node, path)
    }


def _stated(node: Node[Any], path: Path) -> bool:
    """Whether it is in the file; what is left out there has the value of its class."""
    return path in node.document.places


def changes(graph: Graph) -> Iterator[Change]:
    """Every change of one figure, count or topology of a catalog."""
    for node in graph:
        if isinstance(node.spec, Source):
            continue
        mine = sites(node)
        for path, value in mine.items():
            yield from _factors(node.name, path, value)
            yield from _others(graph, node, path, value)
        yield from _swaps(node.name, mine)
        yield from _dropped(node)


def _one(kind: str, name: str, path: Path, old: Figure | int, new: str | int) -> Change:
    after = Interval.point(new) if isinstance(new, int) else parse(new).interval
    return Change(kind, name, ((path, new),), (_plain(old),), not _interval(old).overlaps(after))


def _factors(name: str, path: Path, value: Figure | int) -> Iterator[Change]:
    if isinstance(value, int):
        for kind, factor in FACTORS.items():
            if (value * factor).denominator == 1:
                yield _one(kind, name, path, value, int(value * factor))
        yield from (_one("off by one", name, path, value, n) for n in (value - 1, value + 1) if n >= 1)
        return
    for kind, factor in FACTORS.items():
        yield _one(kind, name, path, value, _times(value.value, factor))
    for k in POWERS:
        # Whoever converts a figure writes as many digits as it had.
        yield _one("x1.024^k", name, path, value, _times(value.value, BINARY**k, value.value.digits))


def _times(quantity: Quantity, factor: Fraction, digits: int | None = None) -> str:
    """The quantity times a factor, in its own unit: exact, or to a number of digits."""
    number = quantity.number * factor
    places = 0
    if digits is None:
        while (number * 10**places).denominator != 1:
            places += 1
    else:
        places = digits - len(str(int(number))) if number >= 1 else digits + 2
    if places < 0:
        step = 10**-places
        shown = f"{round(number / step) * step:,}"
    else:
        whole, rest = divmod(round(number * 10**places), 10**places)
        shown = f"{whole:,}" + (f".{rest:0{places}d}" if places else "")
    before = f"{quantity.qualifier.value} " if quantity.qualifier.value == "up to" else quantity.qualifier.value
    return f"{before}{shown}{quantity.unit.separator}{quantity.unit.symbol}"


def _others(graph: Graph, node: Node[Any], path: Path, value: Figure | int) -> Iterator[Change]:
    """What the same place of every other document of the kind says, such as another generation's."""
    seen = set()
    for other in graph.of(type(node.spec)):
        found = figure_at(other, path)
        if other.name == node.name or not isinstance(found, (Figure, int)) or _plain(found) == _plain(value):
            continue
        if isinstance(found, Figure) != isinstance(value, Figure) or _plain(found) in seen:
            continue
        seen.add(_plain(found))
        yield _one("another's value", node.name, path, value, _plain(found))


def _swaps(name: str, mine: dict[Path, Figure | int]) -> Iterator[Change]:
    """Each figure or count with the next one of the same document that measures the same."""
    last: dict[object, tuple[Path, Figure | int]] = {}
    for path, value in mine.items():
        measure = value.value.dimension if isinstance(value, Figure) else int
        if measure in last:
            other_path, other = last[measure]
            edits = ((other_path, _plain(value)), (path, _plain(other)))
            beyond = not _interval(value).overlaps(_interval(other))
            yield Change("swapped row", name, edits, (_plain(other), _plain(value)), beyond)
        last[measure] = (path, value)


def _dropped(node: Node[Any]) -> Iterator[Change]:
    for part in ("fabric", "between_servers"):
        fabric = getattr(node.spec, part, None)
        if fabric is None or fabric.topology is None:
            continue
        lists = {"dimensions": list(fabric.topology.dimensions), "levels": []}
        lists["levels"] = [{"name": s.name, "count": s.count, "chips": s.chips} for s in fabric.topology.levels]
        for key, items in lists.items():
            for index in range(len(items)):
                rest = items[:index] + items[index + 1 :]
                if index == 0 or rest != items[: index - 1] + items[index:]:
                    path: Path = ("spec", part, "topology", key)
                    yield Change("dropped dimension", node.name, ((path, rest),), (items,))


def determined(graph: Graph) -> dict[Place, set[str]]:
    """The figures and counts that some other figure determines, each with how.

    ``sum``: it is a total, a part or a count of a relation between adopted figures;
    ``source``: another source says the same, with no verdict or with "agrees";
    ``ratio``: it is a printed ratio, with no verdict or with "agrees", or one of the two figures that it divides;
    ``formula``: it is derived, or a formula of other figures gives it;
    ``base``: it is a dimension that a model has in common with the one it is built on;
    ``topology``: a declared topology gives it, or is given by it;
    ``parameters``: it is a parameter count, or a dimension that enters one.

    Bounds do not determine: a sparse rate must be above the dense one, which says little of how much it is.
    """
    found: dict[Place, set[str]] = defaultdict(set)
    for relation in relations(graph):
        for site in relation.sites:
            if site.claim is None:
                found[site.node.name, site.path].add("source" if relation.is_claim else "sum")
    for node in graph:
        for path, figure in graph.figures(node).items():
            if figure.derived is not None or figure.check is not None:
                found[node.name, path].add("formula")
        for place in _wired(node):
            found[place].add("topology")
        for place in _divided(graph, node):
            found[place].add("ratio")
        for place in _counted(node):
            found[place].add("parameters")
        for place in _inherited(graph, node):
            found[place].add("base")
    return dict(found)


def _divided(graph: Graph, node: Node[Chip]) -> Iterator[Place]:
    for index, ratio in enumerate(getattr(node.spec, "ratios", ())):
        older = graph.find(ratio.over)
        if older is None or ratio.verdict not in RATIO_AGREES:
            continue
        for path in claimed_paths(ratio.of):
            if figure_at(node, path) is not None and figure_at(older, path) is not None:
                yield from ((node.name, path), (older.name, path), (node.name, ("spec", "ratios", index, "says")))


def _counted(node: Node[Any]) -> Iterator[Place]:
    """The parameter counts of a model, and the dimensions of which another value gives another count, or none.

    The other value is one more where a count is exact, and twice as many where it is rounded.
    """
    stated = node.spec.parameters if isinstance(node.spec, Model) else None
    if stated is None:
        return
    counts = [
        (c, getattr(stated, n))
        for n, c in (("total", parameters_of), ("active", active_parameters_of))
        if getattr(stated, n)
    ]
    for path, value in sites(node).items():
        if path[1] == "parameters":
            yield node.name, path
            continue
        for count, printed in counts:
            rounded = isinstance(printed, RoundedCount)
            other = _with(node.spec, path[1:], value * 2 if rounded else value + 1)
            if any(contradictions(other)) or not interval_of(printed if rounded else count(node.spec)).overlaps(
                Interval.point(Fraction(count(other)))
            ):
                yield node.name, path


def _inherited(graph: Graph, node: Node[Any]) -> Iterator[Place]:
    """The dimensions that a model has in common with its base, in both documents."""
    base = node.spec.base if isinstance(node.spec, Model) else None
    if base is None:
        return
    differing = tuple(path for text in base.differs for path in spread(text))
    for path in sites(node):
        if path[1] != "parameters" and not any(path[: len(other)] == other for other in differing):
            yield node.name, path
            yield graph.node(base.model).name, path


def _with(spec: Any, path: Path, value: int) -> Any:
    step, *below = path
    return evolve(spec, **{str(step): _with(getattr(spec, str(step)), tuple(below), value) if below else value})


def _wired(node: Node[Any]) -> Iterator[Place]:
    if not isinstance(node.spec, (Server, UltraServer)):
        return
    count = ("chips" if isinstance(node.spec, Server) else "servers", "count")
    for part in ("fabric", "between_servers"):
        fabric = getattr(node.spec, part, None)
        if fabric is None or fabric.topology is None:
            continue
        base: Path = ("spec", part, "topology")
        yield node.name, ("spec", *count)
        yield from ((node.name, (*base, key)) for key in ("dimensions", "levels"))
        yield from ((node.name, (*base, "dimensions", i)) for i in range(len(fabric.topology.dimensions)))
        for index in range(len(fabric.topology.levels)):
            yield from ((node.name, (*base, "levels", index, key)) for key in ("count", "chips"))
        if fabric.links_per_chip is not None and fabric.topology.shape != "switched":
            yield node.name, ("spec", part, "links_per_chip")


def counts(change: Change, known: dict[Place, set[str]]) -> bool:
    """Whether a change must be noticed: it goes beyond rounding and touches what another figure determines."""
    return change.beyond and any(place in known for place in change.places)


def changed(graph: Graph, change: Change) -> Graph:
    """The catalog with a change made, by way of plain data, as if it had been read so."""
    node = graph.named(change.name)
    data = copy.deepcopy(plain(node))
    for path, value in change.edits:
        *above, last = path
        where: Any = functools.reduce(lambda inside, step: inside[step], above, data)
        if isinstance(where[last], dict):
            where[last]["value"] = value
        else:
            where[last] = value
    made = structure(node.kind, type(node.spec), node.document, data)
    return graph.replace(node.name, made.spec)


def claimed(graph: Graph, change: Change) -> Graph | None:
    """The catalog with nothing adopted where a change is made: what was there and what is written are claims.

    ``None`` where a document cannot do without a figure, or where what was there has no source.
    """
    node = graph.named(change.name)
    ((path, said),) = change.edits
    figure = figure_at(node, path)
    source = (figure.source if isinstance(figure, Figure) else None) or node.metadata.source
    holder = figure_at(node, path[:-1])
    if source is None or not has(type(holder)) or fields_of(type(holder))[str(path[-1])].required:
        return None
    data = copy.deepcopy(plain(node))
    del functools.reduce(lambda inside, step: inside[step], path[:-1], data)[path[-1]]
    at = dotted(path)
    conflicting = (Claim(at=at, says=change.before[0], source=source), Claim(at=at, says=said, source=Ref(RIVAL)))
    made = structure(node.kind, type(node.spec), node.document, data)
    return Graph({**graph.nodes, node.name: evolve(node, spec=made.spec, claims=conflicting)})


RIVAL = "neuron-trn1-2023-02"
"""Who makes the claims that differ."""


def findings(graph: Graph, rules: Iterable[Rule]) -> list[Diagnostic]:
    """What some rules say of a catalog, waivers applied; a rule that fails says nothing of it."""
    found = apply_waivers(run(rules, graph), graph)[0]

    assert not [d for d in found if d.code == "TRN900"], found

    return found


def first_findings(graph: Graph, rules: Iterable[Rule]) -> list[Diagnostic]:
    """What the first rule says that has anything to say; a waiver that nothing uses is no finding here."""
    for rule in rules:
        found = [d for d in findings(graph, [rule]) if d.code != "TRN304"]
        if found:
            return found
    return []


@frozen
class Outcome:
    """What came of a change.

    Attributes:
        change: The change.
        reported: Something was found; in the unchanged catalog nothing is.
        laid: A finding is at what was changed.
        named: A finding is there or names it as another place.
    """

    change: Change
    reported: bool
    laid: bool
    named: bool


def outcome(graph: Graph, change: Change, found: list[Diagnostic]) -> Outcome:
    """What came of a change of a catalog, by what was found."""
    where = {(d.where.file, d.where.path) for d in found}
    see = {(s.file, s.path) for d in found for s in d.see}
    return Outcome(change, bool(found), _covers(graph, change, where), _covers(graph, change, where | see))


def _covers(graph: Graph, change: Change, named: set[tuple[str, Path]]) -> bool:
    """Whether one of the places is, or lies within or above, what was changed."""
    for name, path in change.places:
        file = graph.named(name).document.file
        if any(f == file and (p[: len(path)] == path or (len(p) > 1 and p == path[: len(p)])) for f, p in named):
            return True
    return False


def edited(text: str, node: Node[Any], change: Change) -> tuple[str, set[int]]:
    """The text of a document with a change made by hand, and the lines that were edited."""
    lines = text.splitlines(keepends=True)
    edits = []
    for path, value in change.edits:
        place = (*path, "value") if (*path, "value") in node.document.places else path
        edits.append((node.document.places[place], json.dumps(value)))
    # From the end, so that the columns of the edits to come stay what they are.
    for span, new in sorted(edits, key=lambda e: (e[0].value.line, e[0].value.column), reverse=True):
        first, last = span.value.line - 1, span.end.line - 1
        joined = lines[first][: span.value.column - 1] + new + lines[last][span.end.column - 1 :]
        lines[first : last + 1] = [joined]
    return "".join(lines), {span.value.line for span, _ in edits}


# Changes of dates, sources and verdicts, made in a catalog one at a time.

YEARS = 4
"""How far a date is moved."""

FAR = 1.1
"""Values that differ by this factor are not roundings of each other."""


_GENERATION = re.compile(r"(?:trn|trainium|inf|inferentia)([0-9]?)(?![a-z0-9])")


@frozen
class Statement:
    """A change of a document that leaves its figures as they are.

    Attributes:
        kind: ``date``, ``source`` or ``verdict``.
        text: The change in words.
        node: The changed document.
    """

    kind: str
    text: str
    node: Node[Any]

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"

    def made(self, graph: Graph) -> Graph:
        """The catalog with the change."""
        return Graph({**graph.nodes, self.node.name: self.node})


def statement_changes(graph: Graph) -> Iterator[Statement]:
    """Every change of a date, a source or a verdict that another statement of the catalog determines."""
    for node in graph:
        if isinstance(node.spec, Source):
            yield from _dates(node)
        elif node.kind in ("Chip", "Server", "UltraServer", "Link", "Core"):
            yield from _launches(node)
            yield from _sources(graph, node)
            yield from _verdicts(graph, node)


def _dates(node: Node[Source]) -> Iterator[Statement]:
    """Years of sources that are dated exactly: into the future, and away from the date in the name."""
    as_of = node.spec.as_of
    if node.spec.dating != "exact":
        return
    moved = [int(as_of[:4]) + YEARS + 1]
    if as_of[:4] in node.name:
        moved += [int(as_of[:4]) - YEARS, int(as_of[:4]) - 1]
    for year in moved:
        after = f"{year}{as_of[4:]}"
        yield Statement("date", f"{node.name} {as_of} -> {after}", evolve(node, spec=evolve(node.spec, as_of=after)))


def _launches(node: Node[Any]) -> Iterator[Statement]:
    launched = getattr(node.spec, "launched", None)
    if isinstance(launched, str):
        for years in (-10, YEARS):
            after = f"{int(launched[:4]) + years}{launched[4:]}"
            if years > 0 or any("spec.launched" in claim.at for claim in node.claims):
                spec = evolve(node.spec, launched=after)
                yield Statement("date", f"{node.name} launched {launched} -> {after}", evolve(node, spec=spec))


def _sources(graph: Graph, node: Node[Any]) -> Iterator[Statement]:
    """The page of another product for a document, and the page of the adopted figure for a claim that contradicts it."""
    own = node.metadata.source
    if own is not None and node.kind in ("Chip", "Server", "UltraServer"):
        for other in graph.of(type(node.spec)):
            page = other.metadata.source
            if page is not None and page.name != own.name and is_about_another(page.name, own.name):
                metadata = evolve(node.metadata, source=Ref(page.name))
                yield Statement("source", f"{node.name} {own} -> {page}", evolve(node, metadata=metadata))
    for index, claim in enumerate(node.claims):
        for path in claimed_paths(claim.at)[:1]:
            adopted = source_of(node, path)
            if adopted is not None and adopted.name != claim.source.name and _differs(node, index):
                text = f"{node.name} claim {index} {claim.source} -> {adopted}"
                yield Statement(
                    "source", text, _with_claim(node, index, source=Ref(adopted.name), where=_where(node, path))
                )


def _where(node: Node[Any], path: Any) -> str | None:
    from trnspec.graph.graph import figure_at

    figure = figure_at(node, path)
    return getattr(figure, "where", None)


def is_about_another(page: str, own: str) -> bool:
    """Whether both pages are named after a generation, such as trn1 and trainium2, and after different ones."""
    named = [_GENERATION.findall(name) for name in (page, own)]
    return all(named) and not {number or "1" for number in named[0]} & {number or "1" for number in named[1]}


def _verdicts(graph: Graph, node: Node[Any]) -> Iterator[Statement]:
    for index, claim in enumerate(node.claims):
        if claim.verdict in (None, "agrees") or not _differs(node, index):
            continue
        for verdict in ("rounded", "agrees", None):
            if verdict != claim.verdict:
                changed = _with_claim(node, index, verdict=verdict, scope=None)
                yield Statement("verdict", f"{node.name} claim {index} {claim.verdict} -> {verdict}", changed)


def _differs(node: Node[Any], index: int) -> bool:
    """Whether the value of a claim is far from the adopted one."""
    claim = node.claims[index]
    if claim.verdict == "other-scope":
        return False
    for path in claimed_paths(claim.at)[:1]:
        one, two = Site(node, path, index).value, Site(node, path).value
        if isinstance(one, Quantity) and isinstance(two, Quantity) and one.value and two.value:
            low, high = sorted((one.value, two.value))
            return high > low * FAR and not one.loose.overlaps(two.loose)
    return False


def _with_claim(node: Node[Any], index: int, **changes: Any) -> Node[Any]:
    claims = [evolve(claim, **changes) if i == index else claim for i, claim in enumerate(node.claims)]
    return evolve(node, claims=tuple(claims))
