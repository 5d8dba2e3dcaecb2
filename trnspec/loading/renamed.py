"""Documents of former versions, read as the present one: former paths of attributes, and conversions of a kind."""

from __future__ import annotations

import copy
import functools
from collections.abc import Mapping
from typing import Any

from attrs import evolve, field, frozen

from trnspec.loading.forms.claims import one_for_each_source
from trnspec.loading.upgraded import upgrade_edit
from trnspec.model.document import API_VERSION, OLDER_VERSIONS, Claim, Metadata, PathText
from trnspec.model.reflection import (
    ListShape,
    MapShape,
    ObjectShape,
    Shape,
    classes_below,
    dotted,
    fields_of,
    item_of,
    shape_at,
    shape_of,
    value_at,
)
from trnspec.model.renames import current, current_text, has_renames, is_group, renames
from trnspec.plugins.api import Kind
from trnspec.plugins.failures import call_seconds, contained, described
from trnspec.yaml import Document, Path, Places, Problem
from trnspec.yaml.document import Edit
from trnspec.yaml.edits import joined, renaming, replacement

DEPRECATED = "TRN057"
OLDER_VERSION = "TRN058"
CONFLICT = "TRN109"


def upgrade(document: Document, kind: Kind) -> Document:
    """The document with present values and paths only, and one source for a claim; else the same document.

    Positions stay those of the lines that the author wrote.  Each former path adds a problem of information level,
    each attribute that is given by both paths an error; the present path then takes precedence.
    """
    if document.data is None:
        return document
    present = _of_version(document, kind)
    # The edits of former paths need the data that were read; after a conversion they follow the edit of that.
    return one_for_each_source(_with_present_paths(present, kind.spec, as_read=present.data is document.data))


def _with_present_paths(document: Document, spec: type, *, as_read: bool) -> Document:
    if document.data is None or not has_renames(spec):
        return document
    upgraded = _Renaming(spec, document)
    data = upgraded.document_data(document.data)
    problems = upgraded.problems
    if not problems:
        return document
    if (
        as_read
        and document.places
        and any(p.edit is None for p in problems)
        and all(p.code == DEPRECATED for p in problems)
    ):
        edit = upgrade_edit(document, data)
        problems = [evolve(p, edit=edit or p.edit) for p in problems]
    pairs = [(path, path) for path in document.places]
    for path in document.places:
        present = ("spec", *current(spec, path[1:])) if path[:1] == ("spec",) else path
        if present != path and value_at(data, present) is not None:
            pairs.append((present, path))
    refused = {("spec", *current(spec, path[1:])) for path in document.rejected if path[:1] == ("spec",)}
    return evolve(
        document,
        data=data,
        places=document.places.renamed(pairs),
        rejected=document.rejected | refused,
        problems=(*document.problems, *problems),
    )


def _of_version(document: Document, kind: Kind) -> Document:
    """The document in the present version of its kind, with a notice if it is written in an older one."""
    data = dict(document.data or {})
    version, present = data.get("api_version"), kind.api_version
    path = ("api_version",)
    if isinstance(version, str) and version in kind.upgrade:
        versions, seconds = list(kind.upgrade), call_seconds()
        try:
            converted = copy.deepcopy(data)
            for each in versions[versions.index(version) :]:
                with contained(seconds):
                    converted = kind.upgrade[each](converted)
                if not isinstance(converted, dict):
                    raise TypeError(f"it returned {converted!r}; the data of the next version are expected")  # noqa: TRY301
            converted = {**converted, "api_version": present}
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  # the code of a plugin
            message = f"the conversion of {kind.name} from {each} to {present} failed: {described(error)}"
            problem = Problem("TRN190", message, document.place(path), "report this to the author of the kind", path)
            # Where a value was rejected, that is the cause.
            return evolve(document, data=None, problems=document.problems + (() if document.rejected else (problem,)))
        edit = upgrade_edit(document, converted) if document.places else None
        document = evolve(document, data=converted)
    elif present == API_VERSION and version in OLDER_VERSIONS:
        edit = replacement(document, path, str(version), API_VERSION)
    else:
        return document
    message = f"{version} is an older version; the document is read as {present}"
    hint = "trnspec fix writes it" if edit is not None else "convert it by hand: a comment would be lost"
    notice = Problem(OLDER_VERSION, message, document.place(path), hint, path, edit=edit)
    return evolve(document, problems=(*document.problems, notice))


def upgrade_data(spec: type, data: Mapping[str, Any]) -> dict[str, Any]:
    """The plain data of a document with present paths only."""
    document = _with_present_paths(Document("", dict(data), Places(), (), ""), spec, as_read=True)
    return one_for_each_source(document).data or {}


@frozen
class _Renaming:
    spec: type
    document: Document
    problems: list[Problem] = field(factory=list)

    def document_data(self, data: Mapping[str, Any]) -> dict[str, Any]:
        parts: dict[str, Shape] = {
            "metadata": ObjectShape(Metadata),
            "spec": ObjectShape(self.spec),
            "claims": ListShape(ObjectShape(Claim)),
        }
        return {key: self._value(value, parts[key], (key,)) if key in parts else value for key, value in data.items()}

    def _value(self, value: Any, shape: Shape, path: Path) -> Any:
        if isinstance(shape, ObjectShape) and isinstance(value, dict):
            fields = _concerned(shape.cls)
            value = self._object(value, shape.cls, path)
            return {k: self._value(v, fields[k], (*path, k)) if k in fields else v for k, v in value.items()}
        if isinstance(shape, ListShape) and isinstance(value, list):
            return [self._value(item, shape.item, (*path, index)) for index, item in enumerate(value)]
        if isinstance(shape, MapShape) and isinstance(value, dict):
            return {key: self._value(item, shape.value, (*path, key)) for key, item in value.items()}
        if isinstance(value, str) and shape == _PATH_TEXT:
            return self._path_text(value, path)
        return value

    def _path_text(self, text: str, path: Path) -> str:
        # Waivers and overrides cover everything below their path, so the path of a group needs no change.
        present = current_text(self.spec, text, groups=path[0] != "metadata")
        if present != text:
            edit = replacement(self.document, path, text, present)
            place = self.document.place(path)
            self.problems.append(
                Problem(DEPRECATED, f"{text} is now {present}", place, f"write {present}", path, edit=edit)
            )
        return present

    def _object(self, value: dict[str, Any], cls: type, path: Path) -> dict[str, Any]:
        table = renames(cls)
        former = [
            (old, new)
            for old, new in table.items()
            if old[0] in value and not any(other != old and other[: len(old)] == old for other in table)
        ]
        if former:
            value = dict(value)
        edits = {old[0]: self._renaming(value, path, table, str(old[0])) for old, _ in former}
        for old, new in former:
            if is_group(old, new):
                self._wrap(value, cls, old, new, path)
            else:
                self._move(value, old, new, path, edits[old[0]])
        for old, new in table.items() if former else ():
            # A former group whose members have moved; where it has other keys, the schema reports them.
            if len(old) == 1 and not is_group(old, new) and value.get(str(old[0])) == {}:
                del value[str(old[0])]
                if not any(problem.path[: len(path) + 1] == (*path, *old) for problem in self.problems):
                    self._report((*path, *old), (*path, *new), edits[old[0]])
        return value

    def _renaming(self, value: Mapping[str, Any], path: Path, table: Mapping[Path, Path], key: str) -> Edit | None:
        """The edit that renames a key and those below it; ``None`` where values move to another mapping."""
        moves = {old: new for old, new in table.items() if old[0] == key and not is_group(old, new)}
        if not moves or any(len(old) != len(new) for old, new in moves.items()):
            return None
        (name, *others) = {str(new[0]) for new in moves.values()}
        if others or (name != key and (name in value or (key,) not in moves)):
            return None
        present = {old: str(new[-1]) for old, new in moves.items() if (*path, *old) in self.document.places}
        return joined(self.document, (renaming(self.document, (*path, *old), last) for old, last in present.items()))

    def _wrap(self, value: dict[str, Any], cls: type, old: Path, new: Path, path: Path) -> None:
        """Turn a bare figure into the group that replaces it."""
        *way, last = map(str, old)
        holder = _descend(value, way)
        bare = None if holder is None else holder.get(last)
        shape = shape_at(cls, old)
        members = shape.fields if isinstance(shape, ObjectShape) else {}
        is_figure = isinstance(bare, dict) and "value" in bare and members.keys().isdisjoint(bare)
        if holder is None or bare is None or isinstance(bare, list) or (isinstance(bare, dict) and not is_figure):
            return
        for step in reversed(new[len(old) :]):
            bare = {str(step): bare}
        holder[last] = bare
        self._report((*path, *old), (*path, *new), None)

    def _move(
        self, value: dict[str, Any], old: Path, new: Path, path: Path, edit: Edit | None
    ) -> None:  # all of one change
        """Move a value from its former path to its present one."""
        *way, last = map(str, old)
        holder = _descend(value, way)
        if holder is None or last not in holder:
            return
        moved = holder.pop(last)
        *way, last = map(str, new)
        for count in range(1, len(way) + 1):
            above = _descend(value, way[: count - 1])
            if above is not None:
                above.setdefault(way[count - 1], {})
        target = _descend(value, way)
        if target is None:
            return  # the schema reports the value that is there instead
        if last in target:
            message = (
                f"{dotted((*path, *new))} is given twice, the other time by its former path {dotted((*path, *old))}"
            )
            see = self.document.place((*path, *new), key=True)
            place = self.document.place((*path, *old), key=True)
            self.problems.append(Problem(CONFLICT, message, place, "remove the former path", (*path, *old), see))
            return
        target[last] = moved
        self._report((*path, *old), (*path, *new), edit)

    def _report(self, old: Path, new: Path, edit: Edit | None) -> None:
        message = f"{dotted(old)} is now {dotted(new)}"
        place = self.document.place(old, key=True)
        self.problems.append(Problem(DEPRECATED, message, place, f"write {dotted(new)}", old, edit=edit))


_PATH_TEXT = shape_of(PathText)


@functools.cache
def _concerned(cls: type) -> Mapping[str, Shape]:
    """The fields of a class that have a renamed attribute or a path text in them."""
    return {name: field.shape for name, field in ObjectShape(cls).fields.items() if _is_concerned(field.shape)}


def _is_concerned(shape: Shape) -> bool:
    inner = [field.shape for cls in classes_below(shape) for field in fields_of(cls).values()]
    return any(map(renames, classes_below(shape))) or any(item_of(each) == _PATH_TEXT for each in (shape, *inner))


def _descend(value: dict[str, Any], way: list[str]) -> dict[str, Any] | None:
    """The mapping at the end of a path, every mapping on the way copied; ``None`` where there is none."""
    for step in way:
        inner = value.get(step)
        if not isinstance(inner, dict):
            return None
        value[step] = inner = dict(inner)
        value = inner
    return value
