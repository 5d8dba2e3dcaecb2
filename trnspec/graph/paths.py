"""What a path means for a kind: a figure of its own, one of a part, or a total over its parts.

``memory.capacity`` of a chip is what one chip holds; of a server it is the total over its chips, computed from the
parts; ``chip.memory.capacity`` of a server is again that of one chip, and ``stated.memory.capacity`` what a page prints.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve

from trnspec.graph.values import PathField, Sort, group, metadata, of_servers, own, through, times
from trnspec.model.annotations import Date
from trnspec.model.chip import Chip
from trnspec.model.reflection import (
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
    shape_of,
    value_at,
)
from trnspec.model.renames import current
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.ultraserver import UltraServer
from trnspec.quantities.amount import Amount

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node
    from trnspec.quantities.units import Dimension
    from trnspec.yaml import Path

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

_OF_SERVERS: tuple[Path, ...] = (("host",), ("network", "bandwidth"), ("network", "nics"), ("local_storage",))
"""What adds up over the servers of an UltraServer."""


def place(graph: Graph, spec: type[Any], path: str) -> PathField | None:
    """What a path means for a kind, or ``None`` where it means nothing.

    Args:
        graph: Tells which names of further figures are in use, and where parts are.
        spec: The class of the kind.
        path: The path, dotted.
    """
    steps = _steps(path)
    found = _own(graph, spec, steps) or _part(graph, spec, steps) or _total(graph, spec, steps)
    if found is None and len(steps) == 1 and steps[0] in _METADATA:
        target = {"name": spec, "source": Source}.get(path)
        return PathField(path, Sort.WORD, metadata(graph, path), target=target)
    if found is not None and found.holds is None:
        read = [found.read(n) for n in _nodes(graph, spec)]
        dimensions = {f.value.dimension for f in read if f is not None and isinstance(f.value, Amount)}
        found = evolve(found, holds=dimensions.pop()) if len(dimensions) == 1 else found
    return None if found is None else evolve(found, path=path)


def unknown_path(graph: Graph, spec: type[Any], path: str) -> str:
    """What to write instead of a path that was renamed, or is one of the parts but not of the whole; else empty."""
    present = present_path(spec, path)
    if present:
        return f"{path} is now {present}"
    for word in ("chip", "server", "core"):
        if _part_of(spec, word) and place(graph, spec, f"{word}.{path}") is not None:
            return f"{path} of a {word} does not add up; write {word}.{path}"
    return ""


def present_path(spec: type[Any], path: str) -> str:
    """The present path of a renamed attribute of a kind, its parts or its totals; empty where none was renamed."""
    steps = _steps(path)
    part = _target(spec, str(steps[0]))
    server = _target(spec, "server")
    present = [current(spec, steps)]
    if part is not None:
        present.append((steps[0], *current(part, steps[1:])))
    if server is not None:
        present.append(current(server, steps))
    return next((".".join(map(str, p)) for p in present if p != steps), "")


def paths(graph: Graph, spec: type[Any], *, parts: bool = True) -> Iterator[str]:
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


def total_paths(graph: Graph, spec: type[Any]) -> Iterator[str]:
    """The paths of a kind whose figures are totals over its parts; none for a kind that is no system."""
    base = _base(spec)
    if base is UltraServer:
        yield "chips.count"
        yield from (".".join(map(str, p)) for p in _adding(graph, Server, _OF_SERVERS))
    if base in (Server, UltraServer):
        yield from (".".join(map(str, p)) for p in _adding(graph, Chip, _OF_CHIPS))


def _nodes(graph: Graph, spec: type[Any]) -> tuple[Node[Any], ...]:
    return graph.of(spec)


def _steps(path: str) -> Path:
    return tuple(int(s) if s.isascii() and s.isdigit() else s for s in path.split("."))


def _base(spec: type[Any]) -> type:
    """The kind that a kind is derived from, or itself."""
    return next((c for c in spec.__mro__ if c in _PARTS), spec)


def _part_of(spec: type[Any], word: str) -> Path | None:
    return _PARTS.get(_base(spec), {}).get(word)


def _target(spec: type[Any], word: str) -> type | None:
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


def _shape(spec: type[Any], path: Path) -> Shape | None:
    shape: Shape = ObjectShape(spec)
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


def _own(graph: Graph, spec: type[Any], steps: Path) -> PathField | None:
    """A path of the document itself, or through a reference of a document that it names."""
    for count in range(1, len(steps)):
        shape = _shape(spec, steps[:count])
        if isinstance(shape, RefShape):
            inner = place(graph, shape.target, ".".join(map(str, steps[count:])))
            return None if inner is None else through(graph, steps[:count], shape.target, inner)
    shape = _shape(spec, steps)
    if shape is None or not _in_use(graph, spec, steps):
        return None
    kind = _type(shape)
    return PathField(
        path="",
        holds=kind,
        read=group(steps, shape) if kind is Sort.GROUP else own(graph, steps),
        words=shape.words if isinstance(shape, ChoiceShape) else ("yes", "no") if isinstance(shape, FlagShape) else (),
        target=shape.target if isinstance(shape, RefShape) else None,
    )


def _in_use(graph: Graph, spec: type[Any], steps: Path) -> bool:
    """False for a key of a mapping that no document has: a slip, not something unknown."""
    heads = (steps[:i] for i in range(1, len(steps)))
    mapped = next((head for head in heads if isinstance(_shape(spec, head), MapShape)), None)
    if mapped is None:
        return True
    return any(value_at(n.spec, steps[: len(mapped) + 1]) is not None for n in _nodes(graph, spec))


def _part(graph: Graph, spec: type[Any], steps: Path) -> PathField | None:
    way = _part_of(spec, str(steps[0]))
    return None if way is None else _own(graph, spec, (*way, *steps[1:]))


def _total(graph: Graph, spec: type[Any], steps: Path) -> PathField | None:
    base = _base(spec)
    if base is UltraServer:
        if steps == ("chips", "count"):
            return PathField("", Sort.COUNT, lambda node: times(graph, node, None), total=True)
        if _starts(steps, _OF_SERVERS):
            server = _target(spec, "server")
            inner = None if server is None else _own(graph, server, steps)
            return None if inner is None else evolve(inner, read=of_servers(graph, inner), total=True)
    if base in (Server, UltraServer) and _starts(steps, _OF_CHIPS, groups=True):
        chip = _target(spec, "chip")
        inner = None if chip is None else _own(graph, chip, steps)
        if inner is not None and (inner.holds is Sort.GROUP or _starts(steps, _OF_CHIPS)):
            return evolve(inner, read=lambda node: times(graph, node, inner), total=True)
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


# Every path there is.


def _expanded(graph: Graph, spec: type[Any]) -> Iterator[Path]:
    seen: set[Path] = set()
    nodes = _nodes(graph, spec)

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

    for path in walk(ObjectShape(spec), (), ()):
        if path not in seen:
            seen.add(path)
            yield path


def _adding(graph: Graph, spec: type[Any], heads: tuple[Path, ...]) -> Iterator[Path]:
    return (p for p in _expanded(graph, spec) if _starts(p, heads))
