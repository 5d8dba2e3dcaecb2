"""What a path means for a kind: a figure of its own, one of a part, or a total over its parts.

``memory.capacity`` of a chip is what one chip holds; of a server it is the total over its chips, computed from the
parts; ``chip.memory.capacity`` of a server is again that of one chip, and ``stated.memory.capacity`` what a page prints.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from attrs import evolve, frozen

from trnspec.amount import Amount
from trnspec.graph import Graph
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.marks import Date
from trnspec.model.server import Server
from trnspec.model.shape import (
    ChoiceShape,
    FigureShape,
    FlagShape,
    ListShape,
    MapShape,
    NumberShape,
    ObjectShape,
    RefShape,
    Shape,
    TextShape,
    leaves,
    shape_of,
    value_at,
)
from trnspec.model.ultraserver import UltraServer
from trnspec.source import Path
from trnspec.totals import Total, chips
from trnspec.units import Dimension


class Sort(enum.Enum):
    """What stands at a place that is no figure."""

    COUNT = "a count"
    WORD = "a word"
    DATE = "a date"
    GROUP = "a group"


@frozen
class Found:
    """What one document has at a place.

    Attributes:
        value: An amount, an exact count, or a word.
        text: The same as people write it: a figure as printed, a total with all its digits.
        figure: The printed figure that it is or is computed from, and the document that states it.
        part: That document.
    """

    value: Amount | int | Fraction | str
    text: str
    figure: Figure | None = None
    part: Node[Any] | None = None


@frozen
class Place:
    """A path of a kind.

    Attributes:
        path: The path, dotted.
        type: The dimension of the figures there, or what stands there instead; ``None`` for a figure whose dimension
            differs between documents.
        read: What a document has there; ``None`` where that is not known.
        total: True where it is computed from the parts of a system.
        words: The words that may stand there, where the set is closed.
        target: The class of the documents that are named there.
    """

    path: str
    type: Dimension | Sort | None
    read: Callable[[Node[Any]], Found | None]
    total: bool = False
    words: tuple[str, ...] = ()
    target: type | None = None


_METADATA = ("name", "title", "kind", "source")
_PARTS: dict[type, dict[str, Path]] = {
    Chip: {"core": ("cores", "core")},
    Server: {"chip": ("chips", "chip"), "core": ("chips", "chip", "cores", "core")},
    UltraServer: {
        "server": ("servers", "server"),
        "chip": ("servers", "server", "chips", "chip"),
        "core": ("servers", "server", "chips", "chip", "cores", "core"),
    },
}
"""The parts of a kind by the word for them, and the references that lead there."""

_OF_CHIPS: tuple[Path, ...] = (
    ("peak",),
    ("tensor_peak",),
    ("memory", "capacity"),
    ("memory", "bandwidth"),
    ("memory", "stacks", "count"),
    ("sbuf",),
    ("dma",),
    ("cc_cores",),
    ("cores", "count"),
    ("dies",),
    ("power",),
)
"""What adds up over the chips of a system; rates of links and sizes of one stack do not."""

_OF_SERVERS: tuple[Path, ...] = (("host",), ("efa", "bandwidth"), ("efa", "cards"), ("local_storage",))
"""What adds up over the servers of an UltraServer."""


def place(graph: Graph, spec: type, path: str) -> Place | None:
    """What a path means for a kind, or ``None`` where it means nothing.

    Args:
        graph: Tells which names of further figures are in use, and where parts are.
        spec: The class of the kind.
        path: The path, dotted.
    """
    steps = _steps(path)
    found = _own(graph, spec, steps) or _part(graph, spec, steps) or _total(graph, spec, steps)
    if found is None and len(steps) == 1 and steps[0] in _METADATA:
        return Place(path, Sort.WORD, _metadata(str(steps[0])), target=spec if steps[0] == "name" else None)
    if found is not None and found.type is None:
        dimensions = {f.value.dimension for n in graph.of(spec) if (f := found.read(n)) and isinstance(f.value, Amount)}
        found = evolve(found, type=dimensions.pop()) if len(dimensions) == 1 else found
    return None if found is None else evolve(found, path=path)


def why_not(graph: Graph, spec: type, path: str) -> str:
    """What to write instead of a path that is one of the parts but not of the whole; empty where it is neither."""
    for word in ("chip", "server", "core"):
        if _part_of(spec, word) and place(graph, spec, f"{word}.{path}") is not None:
            return f"{path} of a {word} does not add up; write {word}.{path}"
    return ""


def paths(graph: Graph, spec: type, *, parts: bool = True) -> Iterator[str]:
    """The paths of a kind: its own in the order of the classes, its totals, and with ``parts`` those of its parts.

    Of mappings, the keys in use are told; lists of objects are left out, a list of counts or names is one path.
    """
    yield from ("name", "title", "source")
    yield from (".".join(map(str, p)) for p in _expanded(graph, spec))
    yield from total_paths(graph, spec)
    for word in _PARTS.get(_base(spec), {}) if parts else ():
        target = _target(spec, word)
        if target is not None:
            yield word
            yield from (f"{word}.{p}" for p in paths(graph, target, parts=False) if p != "source")


def total_paths(graph: Graph, spec: type) -> Iterator[str]:
    """The paths of a kind whose figures are totals over its parts; none for a kind that is no system."""
    base = _base(spec)
    if base is UltraServer:
        yield "chips.count"
        yield from (".".join(map(str, p)) for p in _adding(graph, Server, _OF_SERVERS))
    if base in (Server, UltraServer):
        yield from (".".join(map(str, p)) for p in _adding(graph, Chip, _OF_CHIPS))


def present(value: Any, shape: Shape) -> bool:
    """True where a group holds anything at all."""
    return next(leaves(value, shape), None) is not None


def _steps(path: str) -> Path:
    return tuple(int(s) if s.isascii() and s.isdigit() else s for s in path.split("."))


def _base(spec: type) -> type:
    """The kind that a kind is derived from, or itself."""
    return next((c for c in spec.__mro__ if c in _PARTS), spec)


def _part_of(spec: type, word: str) -> Path | None:
    return _PARTS.get(_base(spec), {}).get(word)


def _target(spec: type, word: str) -> type | None:
    """The class of a part."""
    here: type | None = spec
    steps = _part_of(spec, word) or ()
    while here is not None and steps:
        shape: Shape | None = None
        for count in range(1, len(steps) + 1):
            shape = _shape(here, steps[:count])
            if isinstance(shape, RefShape):
                steps = steps[count:]
                break
        here = shape.target if isinstance(shape, RefShape) else None
    return here


def _shape(spec: type, path: Path) -> Shape | None:
    shape: Shape = shape_of(spec)
    for step in path:
        if isinstance(shape, ObjectShape) and step in shape.fields:
            shape = shape.fields[str(step)].shape
        elif isinstance(shape, ListShape) and isinstance(step, int):
            shape = shape.item
        elif isinstance(shape, MapShape):
            shape = shape.value
        else:
            return None
    return shape


def _own(graph: Graph, spec: type, steps: Path) -> Place | None:
    """A path of the document itself, or through a reference of a document that it names."""
    for count in range(1, len(steps)):
        shape = _shape(spec, steps[:count])
        if isinstance(shape, RefShape):
            return _through(graph, steps[:count], place(graph, shape.target, ".".join(map(str, steps[count:]))))
    shape = _shape(spec, steps)
    if shape is None or not _in_use(graph, spec, steps):
        return None
    kind = _type(shape)
    return Place(
        path="",
        type=kind,
        read=_group(steps, shape) if kind is Sort.GROUP else _reader(graph, steps),
        words=shape.words if isinstance(shape, ChoiceShape) else ("yes", "no") if isinstance(shape, FlagShape) else (),
        target=shape.target if isinstance(shape, RefShape) else None,
    )


def _in_use(graph: Graph, spec: type, steps: Path) -> bool:
    """False for a key of a mapping that no document has: a slip, not something unknown."""
    heads = (steps[:i] for i in range(1, len(steps)))
    mapped = next((head for head in heads if isinstance(_shape(spec, head), MapShape)), None)
    if mapped is None:
        return True
    return any(value_at(n.spec, steps[: len(mapped) + 1]) is not None for n in graph.of(spec))


def _part(graph: Graph, spec: type, steps: Path) -> Place | None:
    way = _part_of(spec, str(steps[0]))
    return None if way is None else _own(graph, spec, (*way, *steps[1:]))


def _total(graph: Graph, spec: type, steps: Path) -> Place | None:
    base = _base(spec)
    if base is UltraServer:
        if steps == ("chips", "count"):
            return Place("", Sort.COUNT, lambda node: _times(graph, node, None), total=True)
        if _starts(steps, _OF_SERVERS):
            server = _target(spec, "server")
            inner = None if server is None else _own(graph, server, steps)
            return None if inner is None else evolve(inner, read=_of_servers(graph, inner), total=True)
    if base in (Server, UltraServer) and _starts(steps, _OF_CHIPS, groups=True):
        chip = _target(spec, "chip")
        inner = None if chip is None else _own(graph, chip, steps)
        if inner is not None and (inner.type is Sort.GROUP or _starts(steps, _OF_CHIPS)):
            return evolve(inner, read=lambda node: _times(graph, node, inner), total=True)
    return None


def _starts(steps: Path, heads: tuple[Path, ...], *, groups: bool = False) -> bool:
    """True for a path below one of the heads; with ``groups`` also for one that they stand below."""
    return any(steps[: len(h)] == h or (groups and h[: len(steps)] == steps) for h in heads)


def _type(shape: Shape) -> Dimension | Sort | None:
    if isinstance(shape, FigureShape):
        return shape.dimension
    if isinstance(shape, NumberShape):
        return Sort.COUNT
    if isinstance(shape, TextShape):
        return Sort.DATE if shape == shape_of(Date) else Sort.WORD
    return Sort.GROUP if isinstance(shape, (ObjectShape, ListShape, MapShape)) else Sort.WORD


# Reading values.

Read = Callable[[Node[Any]], Found | None]


def _metadata(name: str) -> Read:
    def read(node: Node[Any]) -> Found | None:
        value = node.kind if name == "kind" else getattr(node.metadata, name)
        return None if value is None else Found(str(value), str(value))

    return read


def _reader(graph: Graph, steps: Path) -> Read:
    def read(node: Node[Any]) -> Found | None:
        value = value_at(node.spec, steps)
        if value is None:
            return None
        if isinstance(value, Figure):
            return Found(value.amount, value.value.text, value, node)
        if isinstance(value, bool):
            return Found("yes" if value else "no", "yes" if value else "no")
        if isinstance(value, (int, float)):
            number = value if isinstance(value, int) else Fraction(value)
            return Found(number, f"{value:,}")
        word = (
            graph.aliases.get(str(value), str(value)) if isinstance(_shape(type(node.spec), steps), RefShape) else value
        )
        return Found(str(word), str(word))

    return read


def _group(steps: Path, shape: Shape) -> Read:
    def read(node: Node[Any]) -> Found | None:
        value = value_at(node.spec, steps)
        if value is None or not present(value, shape):
            return None
        told = " x ".join(map(str, value)) if isinstance(value, tuple) else "known"
        return Found(told, told)

    return read


def _through(graph: Graph, steps: Path, inner: Place | None) -> Place | None:
    """A place of the document that is named at some steps."""
    if inner is None:
        return None

    def read(node: Node[Any]) -> Found | None:
        ref = value_at(node.spec, steps)
        other = None if ref is None else graph.find(ref)
        target = _shape(type(node.spec), steps)
        # A reference may lead to another kind; that is reported where it stands.
        fits = other is not None and isinstance(target, RefShape) and isinstance(other.spec, target.target)
        return inner.read(other) if other is not None and fits else None

    return evolve(inner, read=read)


def _times(graph: Graph, node: Node[Any], inner: Place | None) -> Found | None:
    """How many chips a system has, or a value of its chip times that number."""
    found = chips(graph, node)
    if found is None:
        return None
    count, chip = found
    return Found(count, f"{count:,}") if inner is None else _multiplied(count, chip, inner)


def _of_servers(graph: Graph, inner: Place) -> Read:
    def read(node: Node[Any]) -> Found | None:
        server = graph.find(node.spec.servers.server)
        if server is None or not isinstance(server.spec, Server):
            return None
        return _multiplied(node.spec.servers.count, server, inner)

    return read


def _multiplied(count: int, part: Node[Any], inner: Place) -> Found | None:
    one = inner.read(part)
    if one is None or isinstance(one.value, str):
        return one
    if one.figure is not None:
        total = Total(count, one.figure, part, ())
        return Found(one.figure.amount * count, str(total), one.figure, part)
    if isinstance(one.value, Amount):
        return Found(one.value * count, str(one.value * count))
    return Found(one.value * count, f"{one.value * count:,}")


# Every path there is.


def _expanded(graph: Graph, spec: type) -> Iterator[Path]:
    seen: set[Path] = set()
    nodes = graph.of(spec)

    def walk(shape: Shape, path: Path, above: tuple[type, ...]) -> Iterator[Path]:
        if isinstance(shape, ObjectShape):
            for name, member in shape.fields.items() if shape.cls not in above else ():
                yield from walk(member.shape, (*path, name), (*above, shape.cls))
        elif isinstance(shape, MapShape):
            found = [value_at(n.spec, path) or {} for n in nodes]
            for key in dict.fromkeys(key for mapping in found for key in mapping):
                yield from walk(shape.value, (*path, key), above)
        elif not isinstance(shape, ListShape) or not isinstance(shape.item, (ObjectShape, ListShape, MapShape)):
            yield path

    for path in walk(shape_of(spec), (), ()):
        if path not in seen:
            seen.add(path)
            yield path


def _adding(graph: Graph, spec: type, heads: tuple[Path, ...]) -> Iterator[Path]:
    return (p for p in _expanded(graph, spec) if _starts(p, heads))
