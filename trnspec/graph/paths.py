"""Meaning of a path for a kind: a figure of its own, one of a part, or a total over its parts.

``memory.capacity`` of a chip is the capacity of one chip; of a server it is the total over its chips, computed from the
parts; ``chip.memory.capacity`` of a server is that of one chip again, and ``stated.memory.capacity`` the published total.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve

from trnspec.graph.composition import declared_closure, part_kinds, part_words, word
from trnspec.graph.graph import Graph
from trnspec.graph.values import (
    PathField,
    Sort,
    group,
    group_of_parts,
    metadata,
    of_part,
    own,
    part_count,
    through,
    total_of,
)
from trnspec.model.annotations import Date
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
    is_extensive,
    shape_of,
    step_into,
    steps_of,
    value_at,
)
from trnspec.model.renames import current
from trnspec.model.source import Source
from trnspec.quantities.amount import Amount
from trnspec.quantities.units import Dimension
from trnspec.yaml import Path

_METADATA = ("name", "title", "kind", "source")


def place(graph: Graph, spec: type[Any], path: str) -> PathField | None:
    """The meaning of a path for a kind; ``None`` where it has none.

    Args:
        graph: The documents: they determine which kinds of parts and which names of further figures are in use.
        spec: The class of the kind.
        path: The path, dotted.
    """
    steps = steps_of(getattr(spec, "SHORT", {}).get(path, path))
    field = _own(graph, spec, steps) or _part(graph, spec, steps) or _total(graph, spec, steps)
    if field is None and len(steps) == 1 and steps[0] in _METADATA:
        target = {"name": spec, "source": Source}.get(path)
        return PathField(path, Sort.WORD, metadata(graph, path), target=target)
    if field is not None and field.holds is None:
        values = [field.read(n) for n in graph.of(spec)]
        dimensions = {v.value.dimension for v in values if v is not None and isinstance(v.value, Amount)}
        field = evolve(field, holds=dimensions.pop()) if len(dimensions) == 1 else field
    return None if field is None else evolve(field, path=path)


def unknown_path(graph: Graph, spec: type[Any], path: str) -> str:
    """The correction of a path that was renamed, or that a part has but that does not add up; else empty."""
    present = present_path(spec, path)
    if present:
        return f"{path} is now {present}"
    for name in reversed(part_words(graph, spec)):
        if place(graph, spec, f"{name}.{path}") is not None:
            return f"{path} of a {name} does not add up; write {name}.{path}"
    return ""


def present_path(spec: type[Any], path: str) -> str:
    """The present path of a renamed attribute of a kind, its parts or its totals; empty where none was renamed."""
    steps = steps_of(path)
    present = [current(spec, steps)]
    for part in declared_closure(spec):
        if word(part) == steps[0]:
            present.append((steps[0], *current(part, steps[1:])))
        present.append(current(part, steps))
    return next((".".join(map(str, p)) for p in present if p != steps), "")


def paths(graph: Graph, spec: type[Any], *, parts: bool = True) -> Iterator[str]:
    """The paths of a kind: its own in the order of the class, its totals, and with ``parts`` those of its parts.

    A mapping has the keys in use; lists of objects are left out, a list of counts or names is one path.
    """
    offered = ["name", "title", "source"]
    offered += [".".join(map(str, p)) for p in _expanded(graph, spec)]
    offered += total_paths(graph, spec)
    for name, kinds in part_words(graph, spec).items() if parts else ():
        offered.append(name)
        for kind in kinds:
            offered += [f"{name}.{p}" for p in paths(graph, kind, parts=False) if p != "source"]
    yield from dict.fromkeys(offered)


def total_paths(graph: Graph, spec: type[Any]) -> Iterator[str]:
    """The paths of a kind that are totals over its parts; none for a kind without parts."""
    for name in part_words(graph, spec):
        if _count(graph, spec, (f"{name}s", "count")):
            yield f"{name}s.count"
    seen: set[Path] = set()
    for kind in part_kinds(graph, spec):
        for path in _expanded(graph, kind):
            if path not in seen and is_extensive(kind, path) and _shape(spec, path) is None:
                seen.add(path)
                yield ".".join(map(str, path))


def _shape(spec: type[Any], path: Path) -> Shape | None:
    shape: Shape | None = ObjectShape(spec)
    for step in path:
        shape = step_into(shape, step)
    return shape


def _own(graph: Graph, spec: type[Any], steps: Path) -> PathField | None:
    """A path of the document itself, or through a reference of the document that it names."""
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
        read=group(steps, shape) if kind in (Sort.GROUP, Sort.WORDS) else own(graph, steps),
        words=shape.words if isinstance(shape, ChoiceShape) else ("yes", "no") if isinstance(shape, FlagShape) else (),
        target=shape.target if isinstance(shape, RefShape) else None,
    )


def _in_use(graph: Graph, spec: type[Any], steps: Path) -> bool:
    """False for a key of a mapping that no document has: such a key is a spelling mistake, not an unknown value."""
    heads = (steps[:i] for i in range(1, len(steps)))
    mapped = next((head for head in heads if isinstance(_shape(spec, head), MapShape)), None)
    if mapped is None:
        return True
    return any(value_at(n.spec, steps[: len(mapped) + 1]) is not None for n in graph.of(spec))


def _part(graph: Graph, spec: type[Any], steps: Path) -> PathField | None:
    """A path of a part, ``chip.memory.capacity``, or the word for a part alone: the name of that document."""
    name = str(steps[0])
    for kind in part_words(graph, spec).get(name, ()):
        inner = place(graph, kind, ".".join(map(str, steps[1:])) or "name")
        if inner is not None:
            return evolve(inner, read=of_part(graph, name, inner.read))
    return None


def _total(graph: Graph, spec: type[Any], steps: Path) -> PathField | None:
    for kind in part_kinds(graph, spec):
        shape = _shape(kind, steps)
        if isinstance(shape, (ObjectShape, ListShape, MapShape)):
            if any(p[: len(steps)] == steps and is_extensive(kind, p) for p in _expanded(graph, kind)):
                return PathField("", Sort.GROUP, group_of_parts(graph, steps, shape), total=True)
        elif shape is not None and is_extensive(kind, steps):
            inner = _own(graph, kind, steps)
            return None if inner is None else evolve(inner, read=total_of(graph, steps), total=True)
    return _count(graph, spec, steps)


def _count(graph: Graph, spec: type[Any], steps: Path) -> PathField | None:
    """The number of parts of a kind, ``chips.count``, where no document has a field that counts them."""
    name = str(steps[0]).removesuffix("s")
    known = name in part_words(graph, spec) and steps == (f"{name}s", "count") and _shape(spec, steps) is None
    if not known or any(is_extensive(kind, steps) for kind in part_kinds(graph, spec)):
        return None
    return PathField("", Sort.COUNT, part_count(graph, name), total=True)


def _type(shape: Shape) -> Dimension | Sort | None:
    if isinstance(shape, FigureShape):
        return shape.dimension
    if isinstance(shape, NumberShape):
        return Sort.COUNT
    if isinstance(shape, TextShape):
        return Sort.DATE if shape == shape_of(Date) else Sort.WORD
    if isinstance(shape, ListShape) and isinstance(shape.item, (TextShape, ChoiceShape)):
        return Sort.WORDS
    return Sort.GROUP if isinstance(shape, (ObjectShape, ListShape, MapShape)) else Sort.WORD


def _expanded(graph: Graph, spec: type[Any]) -> Iterator[Path]:
    """The paths of all leaves of a class, with the keys in use of its mappings."""
    seen: set[Path] = set()
    nodes = graph.of(spec)

    def walk(shape: Shape, path: Path, above: tuple[type, ...]) -> Iterator[Path]:
        if isinstance(shape, ObjectShape):
            for name, member in shape.fields.items() if shape.cls not in above else ():
                yield from walk(member.shape, (*path, name), (*above, shape.cls))
        elif isinstance(shape, MapShape):
            mappings = [value_at(n.spec, path) or {} for n in nodes]
            for key in dict.fromkeys(key for mapping in mappings for key in mapping):
                yield from walk(shape.value, (*path, key), above)
        elif not isinstance(shape, ListShape) or not isinstance(shape.item, (ObjectShape, ListShape, MapShape)):
            yield path

    for path in walk(ObjectShape(spec), (), ()):
        if path not in seen:
            seen.add(path)
            yield path
