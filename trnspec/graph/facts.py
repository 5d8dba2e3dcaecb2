"""Facts of a document (figures, counts and words), with its source, its date and the conflicting values.

The commands ``show``, ``compare`` and ``source`` print these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from attrs import evolve, frozen

from trnspec.graph.graph import Graph, figure_at
from trnspec.graph.provenance import ConflictingValue, Stated, cited, conflicting, figures, inherited
from trnspec.model.document import Node
from trnspec.model.feature import Feature
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import (
    ListShape,
    NumberShape,
    TextShape,
    dotted,
    leaves,
    shape_in_document,
    spread,
    value_at,
)
from trnspec.model.rounded import RoundedCount
from trnspec.model.source import Source
from trnspec.model.sourced import Origin, origin_of
from trnspec.quantities.display import interval_text
from trnspec.yaml import Path


@frozen(kw_only=True)
class Fact:
    """The value of a document at one path, or the values of other sources where none is adopted.

    Attributes:
        of: The document.
        at: The path below ``spec``: ``memory.bandwidth``.
        label: The label: the path, or the terms of a printed ratio.
        value: A figure, a count, a word, or a list of counts; ``None`` where nothing is adopted.
        source: The name of the source; empty where there is none.
        cited: The name of the source, marked if that has no address.
        as_of: The date of the source; empty where it is not known.
        where: The place in the source.
        verdict: ``adopted``; ``derived``; for a printed ratio its verdict; ``-`` where nothing is adopted.
        reason: The formula of a derived figure, or the reason for the verdict on a ratio.
        note: A remark for readers.
        conflicting: The values of other sources.
    """

    of: str
    at: str
    label: str
    value: Stated | int | str | bool | tuple[int, ...] | tuple[str, ...] | None
    source: str = ""
    cited: str = ""
    as_of: str = ""
    where: str = ""
    verdict: str = "adopted"
    reason: str = ""
    note: str = ""
    conflicting: tuple[ConflictingValue, ...] = ()

    @property
    def figure(self) -> Stated | None:
        """The figure, where it is one."""
        return self.value if isinstance(self.value, Stated) else None

    @property
    def text(self) -> str | None:
        """The value as printed."""
        return None if self.value is None else words(self.value)

    @property
    def interval_text(self) -> str:
        """The interval of a figure in its unit, or of a rounded count: ``[2.85, 2.95)``; empty for other values."""
        figure = self.figure
        if figure is None:
            return self.value.interval_text if isinstance(self.value, RoundedCount) else ""
        return interval_text(figure.interval, figure.value.unit, figure.value.digits + 3)


def group(at: str) -> str:
    """The group that a path belongs to: all of it but the last step."""
    return at.rpartition(".")[0]


def joined(paths: Iterable[str]) -> list[str]:
    """Paths with the group that some share written once: ``peak.dense.{bf16,fp16}``."""
    names: dict[str, list[str]] = {}
    for at in paths:
        names.setdefault(group(at), []).append(at.rpartition(".")[2])
    lists = {before: below[0] if len(below) == 1 else f"{{{','.join(below)}}}" for before, below in names.items()}
    return [f"{before}.{below}" if before else below for before, below in lists.items()]


def in_groups(paths: Iterable[str]) -> list[str]:
    """Paths with those of one group together: first what belongs to none, then the groups as they first appear."""
    paths = list(dict.fromkeys(paths))
    order = {name: n for n, name in enumerate(dict.fromkeys(group(at) for at in paths))}
    return sorted(paths, key=lambda at: (group(at) != "", order[group(at)]))


def words(value: Stated | int | str | bool | tuple[int, ...] | tuple[str, ...]) -> str:  # noqa: FBT001  # a flag of a document
    """A value as text."""
    if isinstance(value, Stated):
        return value.value.text
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return (", " if isinstance(value[0], str) else " x ").join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else value


def facts(graph: Graph, node: Node[Any]) -> tuple[Fact, ...]:
    """Every fact of a document in the order of the classes, then the paths for which only other sources have a value.

    A list of counts, such as the dimensions of a torus, or of texts is one fact.
    """
    stated = figures(graph, node)
    others = dict(conflicting(graph, node))
    result: list[Fact] = []
    for path, value in _values(node):
        if path[:1] == ("ratios",):
            fact = _ratio(graph, node, path, stated)
        elif path[:1] == ("features",):
            fact = _feature(graph, node, path)
        elif path[0] in ("fabric", "availability") and path[-1] in ("source", "where"):
            continue
        else:
            fact = _fact(graph, node, path, value, stated)
        if fact is not None:
            claims = others.pop(("spec", *path), ())
            result.append(evolve(fact, conflicting=claims) if claims else fact)
    for path, claims in others.items():
        at = dotted(path[1:])
        result.append(Fact(of=node.name, at=at, label=at, value=None, verdict="-", conflicting=claims))
    return tuple(result)


def _values(node: Node[Any]) -> Iterator[tuple[Path, Any]]:
    """Every leaf below ``spec``; a list of numbers or of texts is one leaf."""
    seen: set[Path] = set()
    for path, _, value in leaves(node.spec):
        shape = shape_in_document(type(node.spec), ("spec", *path[:-1])) if len(path) > 1 else None
        if isinstance(shape, ListShape) and isinstance(shape.item, (NumberShape, TextShape)):
            if path[:-1] not in seen:
                seen.add(path[:-1])
                yield path[:-1], value_at(node.spec, path[:-1])
        else:
            yield path, value


def _fact(graph: Graph, node: Node[Any], path: Path, value: Any, stated: Any) -> Fact:
    at = dotted(path)
    origin = value if isinstance(value, Figure) else origin_of(value) or Origin()
    ref, where = origin.source, origin.where
    # A note is written by the catalog itself and has no source.
    if ref is None and path[-1] != "note" and origin.derived is None:
        ref, around = inherited(node, ("spec", *path))
        where = where or around
    if isinstance(value, Figure):
        shown = stated[at]
    else:
        shown = value if isinstance(value, (int, str, bool, tuple)) else str(value)
    return _sourced(
        graph, node, at, shown, ref, where=where, note=origin.note,
        verdict="adopted" if origin.derived is None else "derived", reason=origin.derived,
    )  # fmt: skip


def _sourced(graph: Graph, node: Node[Any], at: str, value: Any, ref: Ref[Any] | None, **rest: str | None) -> Fact:
    """A fact with the source that a reference names."""
    source = graph.find(ref)
    stated: dict[str, Any] = {"label": at, "source": "" if ref is None else ref.name}
    stated["cited"] = stated["source"]
    if ref is not None and source is not None and isinstance(source.spec, Source):
        stated |= {"as_of": source.spec.as_of, "cited": cited(ref.name, source)}
    return Fact(of=node.name, at=at, value=value, **stated | {name: text for name, text in rest.items() if text})


def _feature(graph: Graph, node: Node[Any], path: Path) -> Fact | None:
    """A statement in words as one fact, whose label is the name of the feature."""
    if path[2:] != ("says",):
        return None
    feature: Feature = value_at(node.spec, path[:-1])
    at = f"features.{feature.name}"
    return _sourced(graph, node, at, feature.says, feature.source, where=feature.where)


def _ratio(graph: Graph, node: Node[Any], path: Path, stated: Any) -> Fact | None:
    """A printed ratio as one fact, whose label names the terms of the ratio."""
    if path[2:] != ("says",):
        return None
    printed, at = value_at(node.spec, path[:-1]), dotted(path)
    terms = (node, graph.find(printed.over))
    compared = all(t is not None and any(figure_at(t, of) is not None for of in spread(printed.of)) for t in terms)
    return _sourced(
        graph, node, at, stated[at], printed.source, where=printed.where, reason=printed.reason,
        label=f"{printed.of.removeprefix('spec.')} over {printed.over}",
        verdict=printed.verdict or ("agrees" if compared else "adopted"),
    )  # fmt: skip
