"""The stages of loading: read, structure, link.

Every stage reports its problems and passes on the valid parts, so that one run shows all problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import evolve, frozen

from trnspec._version import __version__
from trnspec.diagnostics import Diagnostic, Location, Severity, nearest
from trnspec.graph.graph import Graph, NodeProblem, at, build, name_of_file
from trnspec.loading.forms.lists import documents_in_list, list_problems
from trnspec.loading.precedence import replacement_problems
from trnspec.loading.renamed import upgrade
from trnspec.loading.structure import StructureError, structure
from trnspec.loading.values import show
from trnspec.model.document import API_VERSIONS, Node
from trnspec.model.kinds import BUILTIN, LISTS
from trnspec.model.parts import has_parts, parts_fault
from trnspec.model.reflection import dotted
from trnspec.plugins.api import Kind, Registry
from trnspec.plugins.selection import CORE
from trnspec.yaml import Document, Path, Problem
from trnspec.yaml.text import BIDI, name_of, unsafe_texts


@frozen
class LoadResult:
    """The result of loading one text.

    Attributes:
        document: The text with its positions.
        node: The document, if it is valid enough to be used.
        problems: The problems of the text and of its form.
        name: The name of the document; the stem of its file if the name cannot be read.
        target: True for a text that the caller wants to check.
        plugin: The plugin whose catalog contains the file; empty for files of the user.
        layer: The catalog, counted from the user's own; a document replaces those of the same name in later layers.
        parts: The documents that its rows are, where it is a list: they are in the catalog in its place.
    """

    document: Document
    node: Node[Any] | None
    problems: tuple[Problem, ...]
    name: str
    target: bool
    plugin: str = ""
    layer: int = 0
    parts: tuple[LoadResult, ...] = ()


def load_document(  # each one is independent of the others
    document: Document,
    registry: Registry,
    *,
    target: bool = True,
    plugin: str = "",
    layer: int = 0,
) -> LoadResult:
    """The node of a document, and its problems."""
    result = _load(document, registry, target=target)
    result = evolve(result, problems=tuple(_without_consequences(result.problems)))
    if result.node is not None and result.node.kind in LISTS:
        parts = tuple(_parts(result, registry, plugin=plugin, layer=layer))
        result = evolve(result, parts=parts, problems=(*result.problems, *list_problems(result.node)))
    return evolve(result, plugin=plugin, layer=layer)


def _parts(result: LoadResult, registry: Registry, *, plugin: str, layer: int) -> Iterator[LoadResult]:
    """The documents of a list, without the items that have errors."""
    paths = {problem.path[:3] for problem in result.problems} | {path[:3] for path in result.document.rejected}
    rejected = {path[2] for path in paths if path[:1] == ("spec",) and len(path) == 3}
    assert result.node is not None
    for part in documents_in_list(result.node, rejected):
        yield load_document(part, registry, target=result.target, plugin=plugin, layer=layer)


def _load(document: Document, registry: Registry, *, target: bool) -> LoadResult:
    problems = list(document.problems)
    data = document.data
    name = _name(document)
    if data is None:
        return LoadResult(document, None, tuple(problems), name, target)
    kind, problem = _kind(document, data, registry)
    if kind is None:
        if problem is not None and problem.code == "TRN102":
            # Without a kind, what the document lacks otherwise is reported in the same run.
            missing = [problem, *(p for p in _missing_envelope(document, data) if p.message != problem.message)]
            if len(missing) == len(_ENVELOPE) and not any(p.path for p in missing):
                # Text of another kind: only what is wrong with that, or one finding.
                message = f"the document has none of {', '.join(_ENVELOPE)}"
                hint = f"begin with api_version: {API_VERSIONS[0]}, and kind: {next(iter(BUILTIN))}, for instance"
                missing = [Problem("TRN102", message, document.place(()), hint)]
                missing = [] if any(p.code < _DOUBTS[0] for p in problems) else missing
            problems += missing
        elif problem is not None:
            problems.append(problem)
        return LoadResult(document, None, tuple(problems), name, target)
    node: Node[Any] | None
    document = upgrade(document, kind)
    problems = list(document.problems)
    if document.data is None:
        return LoadResult(document, None, tuple(problems), name, target)
    data = document.data
    if unsafe := _unsafe(document, data):
        problems += unsafe
        paths = frozenset(p.path for p in unsafe)
        data = _without(data, paths)
        document = evolve(document, data=data, rejected=document.rejected | paths)
    try:
        if document.rejected:  # a claim without its verdict, or a waiver without its path, would be another one
            raise StructureError([])  # noqa: TRY301
        node = structure(kind.name, kind.spec, document, data, registry.units, kind.api_versions)
    except StructureError as error:
        node, more = _valid_part(kind, document, data, error, registry)
        problems += more
    if node is not None and kind.name not in BUILTIN and has_parts(kind.spec) and (fault := parts_fault(node.spec)):
        message = f"{fault} (the kind {kind.name} of {registry.provider(kind)})"
        problems.append(Problem("TRN190", message, document.place(("spec",)), "report this to its author", ("spec",)))
        node = None
    if node is not None:
        node = evolve(node, target=target, folder="" if kind.name in BUILTIN else kind.folder)
    return LoadResult(document, node, tuple(problems), name, target)


def _without_consequences(problems: Iterable[Problem]) -> Iterator[Problem]:
    """The problems without doubts about how a text is written that has an error, and keys that are missing in half a file."""
    errors = [p for p in problems if p.code not in _DOUBTS]
    wrong = {error.path for error in errors if error.path}
    lines = {error.place.line for error in errors if error.code in ("TRN003", "TRN004") and error.place}
    halved = any(error.code == "TRN015" for error in errors)
    for problem in problems:
        doubted = problem.path in wrong or (problem.place is not None and problem.place.line in lines)
        if not (doubted if problem.code in _DOUBTS else halved and problem.code == "TRN102"):
            yield problem


_DOUBTS = ("TRN050", "TRN054")
"""Ambiguous numbers and invisible characters."""


def _unsafe(document: Document, data: Mapping[str, Any]) -> list[Problem]:
    """The control characters that a document writes as escapes, and those that reorder text."""
    if "\\" not in document.text and (document.text.isascii() or not BIDI.search(document.text)):
        return []
    problems = []
    for path, key, character in unsafe_texts(dict(data)):
        what = "The key" if key else f"The text at {dotted(path)}"
        message = f"{what} holds a control character: {name_of(character)}."
        problems.append(Problem("TRN003", message, document.place(path, key=key), "delete it", path))
    return problems


def _without(value: Any, paths: frozenset[Path], path: Path = ()) -> Any:
    """Plain data without the values at some paths; an item of a list becomes ``None``, as with the reader."""
    if isinstance(value, dict):
        inside = ((key, (*path, key), item) for key, item in value.items())
        return {key: _without(item, paths, at) for key, at, item in inside if at not in paths}
    if isinstance(value, list):
        items = (((*path, index), item) for index, item in enumerate(value))
        return [None if at in paths else _without(item, paths, at) for at, item in items]
    return value


def _name(document: Document) -> str:
    """The name by which others refer to a document, also to an invalid one: such a reference is not dangling."""
    metadata = (document.data or {}).get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return name if isinstance(name, str) else name_of_file(document.file)


def _missing_envelope(document: Document, data: Mapping[str, Any]) -> Iterator[Problem]:
    """The keys that a document of any kind lacks; of what its spec lacks only its kind could inform."""
    for above, keys in ((), _ENVELOPE), (("metadata",), ("name", "title")):
        present: Any = data.get("metadata") if above else data
        for key in keys if isinstance(present, dict) else ():
            if key not in present and (*above, key) not in document.rejected:
                yield _missing(document, present, (*above, key), keys, f"add {key}")


def _missing(document: Document, present: Mapping[str, Any], path: Path, keys: Iterable[str], hint: str) -> Problem:
    """The problem of a missing key: at the key that is likely a misspelling of it, if there is one."""
    *above, key = path
    message = f"{dotted(tuple(above)) or 'the document'} has no {key!r}"
    at = tuple(above)
    if (other := next((k for k in present if k not in keys and key in nearest(k, keys)), None)) is not None:
        message, at, hint = f"{message}, but the unknown key {other!r}", (*at, other), f"did you mean {key!r}?"
    return Problem("TRN102", message, document.place(at, key=True), hint, at)


_ENVELOPE = ("api_version", "kind", "metadata", "spec")


def _kind(document: Document, data: Mapping[str, Any], registry: Registry) -> tuple[Kind | None, Problem | None]:
    """The kind of a document, or the problem of its ``kind`` or ``api_version``.

    A missing version is not reported here: the schema reports it together with the other errors of the document.
    """
    kinds = list(registry.kinds)
    # The value may be a mapping, which no dictionary can look up.
    kind = registry.kinds[str(data["kind"])] if data.get("kind") in kinds else None
    versions = API_VERSIONS if kind is None else kind.api_versions
    for key, code, known in (("api_version", "TRN108", versions), ("kind", "TRN107", kinds)):
        value = data.get(key)
        if value in known or (key == "api_version" and key not in data and kind is not None):
            continue
        if (key,) in document.rejected:
            return None, None
        # An older version is read, but not recommended.
        expected = versions[0] if key == "api_version" else "one of " + ", ".join(known)
        if key not in data:
            return None, _missing(document, data, (key,), _ENVELOPE, f"add {key}: {expected}")
        hint = f"write {expected}"
        if key == "kind":
            from trnspec.loading.schema.check import likely_kind

            hint = likely_kind(value, data, registry.kinds) or f"known: {', '.join(known)}"
        message = f"{show(value)} at {key} is not {expected}"
        if key == "api_version" and _is_newer(str(value), expected):
            of_plugin = kind is not None and kind.name not in BUILTIN
            reader = registry.provider(kind) if of_plugin else "this trnspec"
            message = f"{value!r} at api_version is newer than {expected}, the format of {reader}"
            newer = "version of the plugin" if of_plugin else f"trnspec than {__version__}"
            hint = f"it needs a newer {newer}: pip install --upgrade {'NAME' if of_plugin else 'trnspec'}"
        return None, Problem(code, message, document.place((key,)), hint, (key,))
    return kind, None


def _is_newer(version: str, present: str) -> bool:
    """Whether a version such as ``acme/v3`` is of the same format as the present one, and has a higher number."""
    one, other = (re.fullmatch(r"(.+/v)([0-9]{1,4})\w*", each) for each in (version, present))
    return one is not None and other is not None and one[1] == other[1] and int(one[2]) > int(other[2])


def _valid_part(
    kind: Kind, document: Document, data: Mapping[str, Any], error: StructureError, registry: Registry
) -> tuple[Node[Any] | None, list[Problem]]:
    """The node of the valid part of a document that the classes rejected, and the schema errors of the rest."""
    # Imported here, so that a valid file does not import jsonschema.
    from trnspec.loading.schema.check import check, wrong_kind
    from trnspec.loading.schema.prune import prune

    if problem := wrong_kind(kind.name, document, data, registry.kinds):
        return None, [problem]
    units = registry.units
    unsound = check(kind.name, kind.spec, document, data, units, kind.api_versions)
    if not unsound and not document.rejected:
        return None, [
            Problem("TRN190", f"{r.message} (at {dotted(r.path) or 'the top'})", document.place(r.path), "", r.path)
            for r in error.rejections
        ]
    # These values can be assumed, so that an error in them does not hide errors that only a node can have.
    assumed: dict[str, dict[str, Any]] = {
        "": {"api_version": kind.api_version},
        "metadata": {"name": _name(document), "title": _name(document)},
    }
    data = {**assumed[""], **data}
    drops = [u.drop for u in unsound if u.missing not in assumed.get(".".join(map(str, u.drop)), ())]
    if isinstance(data.get("metadata"), dict):
        # An invalid title is replaced too; no document refers to it.
        invalid = {"title"} if ("metadata", "title") in drops else set()
        stated = {key: value for key, value in data["metadata"].items() if key not in invalid}
        data["metadata"] = {**assumed["metadata"], **stated}
        drops = [drop for drop in drops if drop != ("metadata", "title")]
    rejected = [p for p in _rejected_by_reader(document) if p[:1] != ("metadata",) or p[1:] not in _ASSUMED_METADATA]
    rest, positions = prune(kind.spec, data, [*drops, *rejected])
    problems = [u.problem for u in unsound if u.problem is not None]
    if rest is None:
        return None, problems
    document = evolve(document, rejected=document.rejected.union(drops))
    try:
        node: Node[Any] = structure(kind.name, kind.spec, document, rest, units, kind.api_versions)
    except StructureError:
        return None, problems
    return evolve(node, positions=positions), problems


_ASSUMED_METADATA = (("name",), ("title",))


def _rejected_by_reader(document: Document) -> Iterable[Path]:
    """The paths of values that the reader rejected; a merge key makes its whole mapping unusable."""
    return (path[:-1] if path[-1] == "<<" else path for path in document.rejected if path)


def apply_precedence(results: Iterable[LoadResult]) -> tuple[list[LoadResult], list[NodeProblem]]:
    """Resolves name conflicts between documents of plugins and built-in ones.

    A document of a plugin replaces another only if its ``metadata.overrides`` lists the differences.

    Returns:
        The results without the replaced and the rejected ones, and the problems of the latter.
    """
    results = list(results)
    builtin = ((r, r.node) for r in results if r.plugin == CORE[0])
    taken = {n: r for r, node in builtin if node is not None for n in (node.name, *node.aliases)}
    gone: set[int] = set()
    problems: list[NodeProblem] = []
    # In the order of the names of the plugins, so that the result does not depend on which of them is checked.
    for result in sorted((r for r in results if r.plugin not in ("", CORE[0])), key=lambda r: r.plugin):
        node = result.node
        if node is None:
            continue
        names = (node.name, *node.aliases)
        other = next((taken[n] for n in names if n in taken), None)
        if other is not None and other.node is not None and (other.plugin != result.plugin):
            conflicts = list(replacement_problems(node, other.node, other.plugin))
            problems += conflicts
            gone.add(id(result) if conflicts else id(other))
            if conflicts:
                continue
        for name in names:
            taken[name] = result
    return [r for r in results if id(r) not in gone], problems


def link(
    results: Iterable[LoadResult],
    *,
    shadow_broken: bool = True,
    targets_only: bool = False,
) -> tuple[Graph, list[Diagnostic]]:
    """The graph of loaded documents, and all problems so far, unfiltered.

    A document replaces the documents of the same name in the context and in later layers.

    Args:
        results: Targets first, in the order of their layers.
        shadow_broken: Whether an unusable document also replaces those of the same name in the context, so that
            references to it are reported.
        targets_only: Whether to check the references of targets alone.
    """
    results = list(results)
    every = [each for result in results for each in (result, *result.parts)]
    # Of a document and an item of a list with one name, the item is to blame: it comes last.
    names = {result.name for result in results}
    repeated = {id(part) for result in results for part in result.parts if part.name in names}
    if repeated:
        every.sort(key=lambda each: (not each.target, each.layer, id(each) in repeated))
    results, rejected = apply_precedence(r for r in every if r.node is None or r.node.kind not in LISTS)
    nodes: list[Node[Any]] = []
    clashes = list(_kind_clashes(results))
    clashing = {id(problem.node) for problem in clashes}
    targets = {r.node.name for r in results if r.node is not None and r.target and id(r.node) not in clashing}
    if shadow_broken:
        # The file of a document with a wrong name replaces what it is named after.
        targets |= {name_of_file(r.document.file) for r in results if r.target}
    broken: dict[str, str] = {}
    nearest: dict[str, int] = {}
    for result in results:
        node = result.node
        if node is None:
            broken.setdefault(result.name, result.document.file)
        elif id(node) in clashing:
            continue
        elif nearest.setdefault(node.name, result.layer) == result.layer and (
            result.target or not ((shadow_broken and node.name in broken) or targets & {node.name, *node.aliases})
        ):
            nodes.append(node)
            if not result.target:
                # A catalog may replace a document of a later one by an alias.
                for alias in node.aliases:
                    nearest.setdefault(alias, result.layer)
    if not shadow_broken:
        broken = {name: file for name, file in broken.items() if name not in nearest}
    graph, problems = build(nodes, broken, targets_only=targets_only)
    diagnostics = [_diagnostic(p, r.document) for r in every for p in r.problems]
    diagnostics += [
        evolve(_diagnostic(p.problem, p.node.document), see=p.see)
        for p in (*rejected, *clashes, *problems)
        # The author of a broken document does not need a list of the documents that refer to it.
        if p.node.target or p.problem.code != "TRN203"
    ]
    # A value that several documents of a list have is one value of the text.
    return graph, [*dict.fromkeys(diagnostics)]


def _kind_clashes(results: Iterable[LoadResult]) -> Iterator[NodeProblem]:
    """Targets with the name of a document of another kind: replacing it would break every reference to it."""
    context = {r.node.name: r.node for r in results if r.node is not None and not r.target}
    path: Path = ("metadata", "name")
    for result in results:
        node = result.node
        other = context.get(node.name) if node is not None and result.target else None
        if node is not None and other is not None and other.kind != node.kind:
            message = f"the name {node.name!r} is that of a {other.kind}"
            hint = "a document replaces one of its own kind only; choose another name"
            see = (at(other, path, text=f"{other.kind} {other.name}"),)
            yield NodeProblem(node, Problem("TRN204", message, node.document.place(path), hint, path), see)


_REPEATED = ("TRN005", "TRN055")
"""The codes of problems with the second of two keys."""


def _diagnostic(problem: Problem, document: Document) -> Diagnostic:
    text = text_at(document, problem)
    where = Location(document.file, problem.place, problem.path, text)
    first = "the first one" if problem.code in _REPEATED else ""
    see = (Location(document.file, problem.see, problem.path, first),) if problem.see else ()
    return Diagnostic(problem.code, Severity.ERROR, problem.message, where, problem.hint, see, edit=problem.edit)


def text_at(document: Document, problem: Problem) -> str:
    """The text at a problem, if it is on one line: the part that a caret underlines."""
    span = document.places.get(problem.path)
    if span is None or problem.place is None or not document.text:
        return ""
    begin, start, end = document.extent(problem.path)
    if span.key == problem.place and problem.path:
        # The key as it is written: that of a renamed attribute differs from the last step of its path.
        match = _KEY.match(document.text, begin)
        return match[0] if match else str(problem.path[-1])
    return document.text[start:end] if span.value == problem.place and span.end.line == span.value.line else ""


_KEY = re.compile(r"[\w.-]+")
