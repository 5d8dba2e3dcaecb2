"""What-if: a document with other values.

A figure that is assumed is nobody's word: it is marked as derived from what was written, never shown as published.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.loading.structure import Rejection, StructureError, plain, structure
from trnspec.model.figure import Figure
from trnspec.model.reflection import FigureShape, ObjectShape, dotted, leaves, shape_at, shape_of, value_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trnspec.model.document import Node
    from trnspec.yaml import Path


def changed(node: Node[Any], changes: Mapping[str, Any]) -> Any:
    """The spec of a node with some values exchanged.

    Args:
        node: The document.
        changes: Values by dotted path below ``spec``, written as in YAML; ``None`` takes a value away.

    Raises:
        UsageError: A change does not fit the kind; the message says which and what was expected.
    """
    made, wrong = attempt(node, changes)
    if wrong:
        raise UsageError(f"{node.name} cannot be changed so: {'; '.join(w.message for w in wrong)}")
    return made.spec


@frozen
class Wrong:
    """What is wrong with a change.

    Attributes:
        at: The path of the change, as it was written.
        message: One sentence.
        key: True where the path itself is wrong, and not the value.
    """

    at: str
    message: str
    key: bool = False


def attempt(node: Node[Any], changes: Mapping[str, Any]) -> tuple[Node[Any], list[Wrong]]:
    """A node with some values exchanged; or the same node, and what is wrong with which change."""
    data: dict[str, Any] = plain(node)
    wrong: list[Wrong] = []
    for path, value in changes.items():
        hint = _misspelt(type(node.spec), steps(path))
        if hint:
            wrong.append(Wrong(path, f"a {node.kind} has no {path}; {hint}", key=True))
            continue
        try:
            put(data["spec"], path.removeprefix("spec.").split("."), value)
        except UsageError as error:
            wrong.append(Wrong(path, str(error)))
    try:
        made = structure(node.kind, type(node.spec), node.document, data, node.units)
        for path_, value in _assumed(node, made):
            _set(data, path_, value)
        made = structure(node.kind, type(node.spec), node.document, data, node.units)
    except StructureError as error:
        wrong += [Wrong(_blamed(changes, r), f"{r.message} (at {dotted(r.path)})") for r in error.rejections]
    if wrong:
        return node, wrong
    return evolve(made, positions=node.positions, target=node.target, folder=node.folder), []


def steps(path: str) -> Path:
    """The path from the top of a document that someone wrote below ``spec``, or with it."""
    return ("spec", *(int(s) if s.isdigit() else s for s in path.removeprefix("spec.").split(".")))


def put(data: dict[str, Any], steps: list[str], value: Any) -> None:
    """Write a value at a path of plain data, making mappings on the way; ``None`` takes away what stands there.

    Raises:
        UsageError: The path leads through something that is not a mapping, or nothing stands there to take away.
    """
    *way, last = steps
    for step in way:
        inner = data.setdefault(step, {}) if value is not None else data.get(step, {})
        if not isinstance(inner, dict):
            raise UsageError(f"{'.'.join(steps)} leads through {step}, which is not a mapping")
        data = inner
    if value is not None:
        data[last] = value
    elif data.pop(last, None) is None:
        raise UsageError(f"nothing stands at {'.'.join(steps)} that could be taken away")


def _misspelt(spec: type, path: Path) -> str:
    """What may be meant by a path that documents do not have; empty for one that they have."""
    for length in range(2, len(path) + 1):
        if shape_at(spec, path[1:length]) is None:
            above = shape_at(spec, path[1 : length - 1]) if length > 2 else shape_of(spec)  # below spec
            known = list(above.fields) if isinstance(above, ObjectShape) else []
            return did_you_mean(str(path[length - 1]), known) or f"known: {', '.join(known) or 'nothing below it'}"
    return ""


def _blamed(changes: Mapping[str, Any], refusal: Rejection) -> str:
    """The change that a refusal is about: the one that leads the way to it, or that it leads the way to."""
    for path in changes:
        written = steps(path)
        shorter = min(len(written), len(refusal.path))
        if written[:shorter] == refusal.path[:shorter]:
            return path
    return next(iter(changes))


def _assumed(old: Node[Any], new: Node[Any]) -> list[tuple[Path, Any]]:
    """What to write for each figure that is another now and for which no one is named."""
    found: list[tuple[Path, Any]] = []
    for path, shape, figure in leaves(new.spec, ObjectShape(type(new.spec)), ("spec",)):
        if not isinstance(shape, FigureShape) or figure.source is not None or figure.derived is not None:
            continue
        before = value_at(old.spec, path[1:])
        if isinstance(before, Figure) and before.value == figure.value:
            continue
        text = figure.value.text
        start = next(i for i, char in enumerate(text) if char.isdigit())
        note = f"assumed, instead of {before}" if isinstance(before, Figure) else "assumed"
        written = {"value": text, "derived": text[start:], "note": figure.note or note}
        found.append((path, written))
    return found


def _set(data: Any, path: Path, value: Any) -> None:
    *way, last = path
    for step in way:
        data = data[step]
    data[last] = value


def retitled(node: Node[Any], **metadata: Any) -> Node[Any]:
    """The same node with other metadata."""
    return evolve(node, metadata=evolve(node.metadata, **metadata))
