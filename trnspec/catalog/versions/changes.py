"""Changes of documents for what-if questions.

An assumed figure has no source: it is marked as derived from the written value, and never shown as published.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve, frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.loading.renamed import upgrade_data
from trnspec.loading.structure import Rejection, StructureError, plain, structure
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.ref import indefinite
from trnspec.model.reflection import ObjectShape, dotted, figures_of, shape_at, steps_of, value_at, with_value
from trnspec.model.renames import current
from trnspec.yaml import Path


def changed(node: Node[Any], changes: Mapping[str, Any]) -> Any:
    """The spec of a node with some values replaced.

    Args:
        node: The document.
        changes: Values by dotted path below ``spec``, written as in YAML; ``None`` removes a value.

    Raises:
        UsageError: A change is not valid for the kind; the message names it and the expected value.
    """
    replaced, errors = attempt(node, changes)
    if errors:
        raise UsageError(f"invalid change of {node.name}: {'; '.join(e.message for e in errors)}")
    return replaced.spec


@frozen
class ChangeError:
    """The error of one change.

    Attributes:
        at: The path of the change, as written.
        message: One sentence.
        key: True if the path is invalid, not the value.
    """

    at: str
    message: str
    key: bool = False


def attempt(node: Node[Any], changes: Mapping[str, Any]) -> tuple[Node[Any], list[ChangeError]]:
    """A node with some values replaced; or the same node, and the errors of the changes."""
    data: dict[str, Any] = plain(node)
    errors: list[ChangeError] = []
    spec = type(node.spec)
    before: list[Path] = []
    for path, value in changes.items():
        full = steps(path, spec)
        hint = _path_hint(spec, full)
        if hint:
            errors.append(ChangeError(path, f"{indefinite(node.kind)} has no {path}; {hint}", key=True))
            continue
        if any(other[: len(full)] == full for other in before):
            errors.append(ChangeError(path, f"{path} replaces another change of this document", key=True))
            continue
        before.append(full)
        try:
            # Figures without a source are marked as assumed below, in this data and not in that of the caller.
            written = copy.deepcopy(_present(spec, path, value))
            put(data["spec"], [str(step) for step in full[1:]], written)
        except UsageError as error:
            errors.append(ChangeError(path, str(error)))
    try:
        replaced = structure(node.kind, spec, node.document, data, node.units)
    except StructureError as error:
        errors += [
            ChangeError(_change_of(changes, r, spec), f"{r.message} (at {dotted(r.path)})") for r in error.rejections
        ]
    if errors:
        return node, errors
    assumed = replaced.spec
    for at, figure in _assumed(node, replaced):
        assumed = with_value(assumed, at, figure)
    return evolve(replaced, spec=assumed, positions=node.positions, target=node.target, folder=node.folder), []


def steps(path: str, spec: type) -> Path:
    """The path from the top of a document for a dotted path below ``spec``, or with it; former paths become present."""
    written = steps_of(path.removeprefix("spec."))
    return ("spec", *current(spec, written, groups=False))


def put(data: dict[str, Any], steps: list[str], value: Any) -> None:
    """Writes a value at a path of plain data, and the mappings above it; ``None`` removes the value.

    Raises:
        UsageError: A value on the path is not a mapping, or there is no value to remove.
    """
    *parents, last = steps
    for step in parents:
        inner = data.setdefault(step, {}) if value is not None else data.get(step, {})
        if not isinstance(inner, dict):
            raise UsageError(f"{'.'.join(steps)}: {step} is not a mapping")
        data = inner
    if value is not None:
        data[last] = value
    elif data.pop(last, None) is None:
        raise UsageError(f"{'.'.join(steps)} has no value to remove")


def _present(spec: type, path: str, value: Any) -> Any:
    """A value for a path of a spec, with former paths of renamed attributes in it replaced by present ones."""
    nested = value
    for step in reversed(path.removeprefix("spec.").split(".")):
        nested = {step: nested}
    return value if value is None else value_at(upgrade_data(spec, {"spec": nested}), steps(path, spec))


def _path_hint(spec: type, path: Path) -> str:
    """The hint for a path that the kind does not have; empty for one that it has."""
    for length in range(2, len(path) + 1):
        if shape_at(spec, path[1:length]) is None:
            above = shape_at(spec, path[1 : length - 1])
            known = list(above.fields) if isinstance(above, ObjectShape) else []
            return did_you_mean(str(path[length - 1]), known) or f"known: {', '.join(known) or 'nothing below it'}"
    return ""


def _change_of(changes: Mapping[str, Any], rejection: Rejection, spec: type) -> str:
    """The change that a rejection is about: the one whose path is above or below it."""
    for path in changes:
        changed_path = steps(path, spec)
        shorter = min(len(changed_path), len(rejection.path))
        if changed_path[:shorter] == rejection.path[:shorter]:
            return path
    return next(iter(changes))


def _assumed(old: Node[Any], new: Node[Any]) -> Iterator[tuple[Path, Figure]]:
    """Each figure that was changed without giving a source, below ``spec``: derived from its own value."""
    for path, figure in figures_of(new.spec).items():
        if figure.source is not None or figure.derived is not None:
            continue
        before = value_at(old.spec, path)
        if isinstance(before, Figure) and before.value == figure.value:
            continue
        text = figure.value.text
        start = next(i for i, char in enumerate(text) if char.isdigit())
        note = f"assumed, instead of {before}" if isinstance(before, Figure) else "assumed"
        yield path, evolve(figure, derived=text[start:], note=figure.note or note)


def set_at(data: Any, path: Path, value: Any) -> None:
    """Write a value at a path of plain data, and the mappings above it."""
    *parents, last = path
    for step in parents:
        data = data.setdefault(step, {}) if isinstance(data, dict) else data[step]
    data[last] = value
