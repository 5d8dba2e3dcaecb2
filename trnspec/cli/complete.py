"""Shell completion of names: kinds, documents, figure paths, codes, evaluators' inputs.

A file has the name of its document, so that no document is read. Catalogs of plugins are found where their packages are
installed: no plugin is imported, so completion is quick and prints no warnings.
"""

from __future__ import annotations

import contextlib
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path as FilePath

import click

from trnspec.api import registry
from trnspec.loading.files import documents_in, shipped
from trnspec.model.kinds import BUILTIN, LISTS, spec_of
from trnspec.model.reflection import ObjectShape, dotted, fields_below
from trnspec.plugins.api import Registry
from trnspec.plugins.entry_points import installed
from trnspec.plugins.selection import chosen

Completer = Callable[[click.Context, click.Parameter, str], list[str]]

_FOLDER = "catalog"
"""The folder of a plugin's package that holds its documents."""
_PARTS = ("chips", "servers", "ultraservers", "clusters")
_FIGURES = ("chips", "servers", "ultraservers", "links", "calibrations")
"""The folders whose figures an evaluation can use."""
_NO_FIGURES = frozenset({"note", "source", "where", "derived"})
_INPUTS = {
    "model": ("models",),
    "on": ("servers", "ultraservers", "clusters"),
    "calibration": ("calibrations",),
    "chip": ("chips",),
}
"""The folders whose documents an input of an evaluator may name."""


def offering(candidates: Callable[[click.Context, str], Iterable[str]], *, listed: bool = False) -> Completer:
    """A completer that offers those candidates that begin with the text.

    Args:
        candidates: All candidates, of the context and the text.
        listed: Whether the text is a list, whose last item after a comma is completed.
    """

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:  # noqa: ARG001  # click passes it
        before, comma, last = incomplete.rpartition(",") if listed else ("", "", incomplete)
        return [f"{before}{comma}{name}" for name in candidates(ctx, last) if name.startswith(last)]

    return complete


def names(ctx: click.Context, folders: Iterable[str] = ("",)) -> list[str]:
    """The names of the documents in some folders of the catalogs in use, sorted."""
    catalog = ctx.params.get("catalog")
    roots = [FilePath(catalog)] if isinstance(catalog, str) else [shipped(), *_of_plugins()]
    return sorted({n for root in roots for folder in folders for f in documents_in(root / folder) for n in _named(f)})


def _named(file: FilePath) -> Iterator[str]:
    """The names of the documents in a file: the stem of the file, or those of a list."""
    stem, _, form = file.stem.rpartition("-")
    text = file.read_text(encoding="utf-8", errors="replace") if form in ("prices", "platforms", "calibrations") else ""
    if form == "prices":
        yield from (f"{stem}-{each}" for each in re.findall(r"\btype: ([a-z-]+)", text))
    elif form == "platforms":
        yield from (name for names in re.findall(r"\bnames: \[(.*)\]", text) for name in names.split(", "))
    elif form == "calibrations":
        yield from re.findall(r"^ *- name: (\S+)$", text, re.MULTILINE)
    else:
        yield file.stem


def _of_plugins() -> Iterator[FilePath]:

    wanted = chosen()
    if wanted.only == ():
        return
    for entry in installed():
        package = entry.value.partition(":")[0].partition(".")[0]
        if not wanted.takes(entry.name):
            continue
        spec = find_spec(package)
        for place in (spec.submodule_search_locations or ()) if spec is not None else ():
            yield FilePath(place) / _FOLDER


def documents(*folders: str) -> Completer:
    """Completes names of documents in some folders of a catalog, such as ``sources``; in all of them for none."""
    return offering(lambda ctx, _: names(ctx, folders or ("",)))


def _document_then_path(ctx: click.Context, _: str) -> list[str]:
    known = names(ctx)
    return [*known, *paths()] if any(name in known for name in ctx.params.get("names") or ()) else known


def _figures_of_documents(ctx: click.Context, incomplete: str) -> Iterator[str]:
    for folder in _FIGURES:
        for name in names(ctx, [folder]):
            yield from (f"{name}.{path}" for path in paths((folder,))) if incomplete.startswith(f"{name}.") else (name,)


def paths(folders: Iterable[str] = _PARTS) -> list[str]:
    """The paths of documents in some folders, by default chips, servers, UltraServers and clusters: ``memory.capacity``."""
    kinds = (kind for kind, (folder, _) in BUILTIN.items() if folder in folders and kind not in LISTS)
    return _paths_of(map(spec_of, kinds))


def _paths_of(specs: Iterable[type]) -> list[str]:
    """The paths of the figures of some classes of documents, sorted."""
    fields = (each for spec in specs for each in fields_below(spec))
    leaves = (path for path, field in fields if not isinstance(field.shape, ObjectShape))
    return sorted({dotted(path) for path in leaves if not _NO_FIGURES.intersection(path)})


def _folders(_: click.Context, __: str) -> list[str]:
    return list(dict.fromkeys(folder for folder, _ in BUILTIN.values()))


def _codes(_: click.Context, __: str) -> list[str]:
    known = _registry().codes.values()
    return [*(c.id for c in known), *(c.name for c in known)]


def _topics(ctx: click.Context, incomplete: str) -> list[str]:
    """Arguments of ``explain``: codes, kinds in lower case, and fields of a kind after a dot."""
    kind, dot, _ = incomplete.partition(".")
    known = {k.name.lower(): k for k in _registry().kinds.values()}
    if not dot:
        return [*_codes(ctx, incomplete), *sorted(known)]
    return [f"{kind}.{path}" for path in _paths_of([known[kind].spec])] if kind in known else []


document_then_path = offering(_document_then_path)
"""Completes the name of a document, and figure paths after a document."""
figure_of_document = offering(_figures_of_documents)
"""Completes the name of a document that has figures, then a path of its kind: ``trainium2.memory.bandwidth``."""
path_list = offering(lambda _, __: ["name", *paths()], listed=True)
"""Completes figure paths that are separated by commas."""
kinds = offering(_folders)
"""Completes kinds by the names of their folders."""
codes = offering(_codes)
"""Completes codes and names of findings, those of plugins included: ``TRN402``, ``aggregate-mismatch``."""
topics = offering(_topics)


def _registry() -> Registry:
    """The registry of trnspec and the plugins. A plugin that prints or warns on import does not disturb the shell."""
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(action="ignore"),
    ):
        return registry()


def of_input(name: str, choices: Iterable[object]) -> Completer | None:
    """Completions of an input of an evaluator: its choices, or documents by its name, values between commas too."""
    if choices:
        return offering(lambda _, __: map(str, choices))
    folders = _INPUTS.get(name)
    if folders is None:
        return None
    more = ("auto", "none") if name == "calibration" else ()
    return offering(lambda ctx, _: [*more, *names(ctx, folders)], listed=True)
