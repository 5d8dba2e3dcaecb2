"""Shell completion of names: kinds, documents, figure paths, codes, evaluators' inputs.

A file has the name of its document, so that no document is read. Catalogs of plugins are found where their packages lie:
no plugin is imported, so completion is quick and prints no warnings.
"""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from trnspec.loading.files import documents_in, shipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    import click
    from click.shell_completion import CompletionItem

    from trnspec.plugins.api import Registry

    Completer = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]

_FOLDER = "catalog"
"""The folder of a plugin's package that holds its documents."""
_PARTS = ("chips", "servers", "ultraservers", "clusters")
_FIGURES = ("chips", "servers", "ultraservers", "links", "calibrations")
"""The folders whose figures an evaluation can use."""
_NO_FIGURES = ("note", "source", "where", "derived")
_INPUTS = {
    "model": ("models",),
    "on": ("servers", "ultraservers", "clusters"),
    "calibration": ("calibrations",),
    "chip": ("chips",),
}
"""The folders whose documents an input of an evaluator may name."""


def roots(catalog: str | None) -> list[FilePath]:
    """The catalogs that may hold a name: that of ``--catalog``, the shipped one, those of plugins."""
    if catalog is not None:
        return [FilePath(catalog)]
    return [shipped(), *_of_plugins()]


def _of_plugins() -> Iterator[FilePath]:
    from importlib.util import find_spec

    from trnspec.plugins.entry_points import installed
    from trnspec.plugins.selection import chosen

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


def names(catalog: str | None, folders: Iterable[str] = ("",)) -> list[str]:
    """The names of the documents in some folders of the catalogs, sorted."""
    stems = {file.stem for root in roots(catalog) for folder in folders for file in documents_in(root / folder)}
    return sorted(stems)


def documents(*folders: str) -> Completer:
    """Completes names of documents in some folders of a catalog, such as ``sources``; in all of them for none."""

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  # click passes it
        return _items(names(_catalog(ctx), folders or ("",)), incomplete)

    return complete


def document_then_path(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes the name of a document, and figure paths after a document."""
    known = names(_catalog(ctx))
    given = ctx.params.get(param.name or "") or ()
    if any(name in known for name in given):
        return _items([*known, *paths()], incomplete)
    return _items(known, incomplete)


def path_list(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  # click passes it
    """Completes figure paths that are separated by commas."""
    before, comma, _ = incomplete.rpartition(",")
    return _items([f"{before}{comma}{path}" for path in ["name", *paths()]], incomplete)


def figure_of_document(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  # click passes it
    """Completes the name of a document that has figures, then a path of its kind: ``trainium2.memory.bandwidth``."""
    items: list[str] = []
    for folder in _FIGURES:
        for name in names(_catalog(ctx), [folder]):
            items += [f"{name}.{path}" for path in paths((folder,))] if incomplete.startswith(f"{name}.") else [name]
    return _items(items, incomplete)


def paths(folders: Iterable[str] = _PARTS) -> list[str]:
    """The paths of documents in some folders, by default chips, servers, UltraServers and clusters: ``memory.capacity``."""
    from trnspec.model.kinds import BUILTIN, spec_of

    return _paths_of(spec_of(kind) for kind, (folder, _) in BUILTIN.items() if folder in folders)


def _paths_of(specs: Iterable[type]) -> list[str]:
    """The paths of the figures of some classes of documents, sorted."""
    from trnspec.model.reflection import ObjectShape, dotted

    dotted_paths: set[str] = set()

    def walk(shape: Any, path: tuple[str, ...]) -> None:
        if not isinstance(shape, ObjectShape):
            dotted_paths.add(dotted(path))
            return
        for name, field in shape.fields.items():
            if name not in _NO_FIGURES:
                walk(field.shape, (*path, name))

    for spec in specs:
        walk(ObjectShape(spec), ())
    return sorted(dotted_paths)


def kinds(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  # click passes it
    """Completes kinds by the names of their folders."""
    from trnspec.model.kinds import BUILTIN

    return _items([folder for folder, _ in BUILTIN.values()], incomplete.lower())


def codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  # click passes it
    """Completes codes and names of findings, those of plugins included: ``TRN402``, ``aggregate-mismatch``."""
    known = _registry().codes.values()
    return _items([*(c.id for c in known), *(c.name for c in known)], incomplete)


def topics(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completes what ``explain`` takes: codes, kinds in lower case, and fields of a kind after a dot."""
    kind, dot, _ = incomplete.partition(".")
    known = {k.name.lower(): k for k in _registry().kinds.values()}
    if not dot:
        return codes(ctx, param, incomplete) + _items(sorted(known), incomplete.lower())
    if kind.lower() not in known:
        return []
    return _items([f"{kind}.{path}" for path in _paths_of([known[kind.lower()].spec])], incomplete)


def _registry() -> Registry:
    """What trnspec and the plugins define. A plugin that prints or warns on import does not disturb the shell."""
    import contextlib
    import io
    import warnings

    from trnspec.api import registry

    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(action="ignore"),
    ):
        return registry()


def of_input(name: str) -> Completer | None:
    """What completes an input of an evaluator, by its name: ``model``, ``on``, ``calibration``; values between commas too."""
    folders = _INPUTS.get(name)
    if folders is None:
        return None

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  # click passes it
        before, comma, last = incomplete.rpartition(",")
        known = names(_catalog(ctx), folders)
        if name == "calibration":
            known = ["auto", "none", *known]
        return _items([f"{before}{comma}{each}" for each in known if each.startswith(last)], incomplete)

    return complete


def _catalog(ctx: click.Context) -> str | None:
    given = ctx.params.get("catalog")
    return given if isinstance(given, str) else None


def _items(known: Iterable[str], incomplete: str) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(name) for name in known if name.startswith(incomplete)]
