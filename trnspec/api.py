"""What a program calls: validate files, load a catalog, evaluate."""

from __future__ import annotations

import sys
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from trnspec.checks.runner import Checked, check, document_errors
from trnspec.errors import UsageError
from trnspec.loading.files import shipped
from trnspec.loading.pipeline import Reading, link, read
from trnspec.loading.selection import Selection, choose
from trnspec.loading.settings import Settings
from trnspec.yaml import Limits, read_file, read_text

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluation.result import Evaluation
    from trnspec.graph.graph import Graph
    from trnspec.plugins.api import Evaluator, Plugin, Registry
    from trnspec.plugins.discovery import Discovery


def registry() -> Registry:
    """The registry of what this installation knows: trnspec itself and the installed plugins that work.

    Raises:
        UsageError: TRNSPEC_PLUGINS names a plugin that is not installed.
    """
    return plugins().registry


def plugins() -> Discovery:
    """The installed plugins that this process uses, and what became of each of the others.

    Raises:
        UsageError: TRNSPEC_PLUGINS names a plugin that is not installed.
    """
    from trnspec.plugins.discovery import installed

    return installed(_core)


def _core() -> Plugin:
    # Imported here: where documents are read on demand and no plugin is installed, no rule is needed.
    from trnspec.builtin import plugin

    return plugin


def select(paths: Iterable[str], known: Registry, settings: Settings, *, every: bool = False) -> Selection:
    """The files that some arguments mean; one that is named twice, by whatever path, is one file.

    Args:
        paths: Files, folders, or ``-`` for standard input; nothing means the shipped catalog.
        known: Tells which folders hold documents of which kind, and which catalogs are installed.
        settings: Names further catalogs to resolve against.
        every: Nothing means every catalog: those of the settings, the shipped one, and those of plugins.

    Raises:
        UsageError: A path is not there or cannot be read, or a folder holds no documents.
    """
    folders = [k.folder for k in known.kinds.values()]
    return choose(paths, folders, [c for p in known.plugins for c in p.catalogs], settings, every=every)


def readings(selection: Selection, known: Registry) -> Iterator[Reading]:
    """Every document of a selection, read: the targets first, so that their names win.

    Raises:
        UsageError: Standard input is asked for and closed.
    """
    if selection.stdin:
        if sys.stdin is None:
            raise UsageError("there is no standard input to read")
        # One byte more than a document may have shows that it has too many.
        yield read(read_text(sys.stdin.buffer.read(Limits().bytes + 1), "<stdin>"), known)
    owner = _owners(known)
    layer = selection.layers.get
    for file in selection.targets:
        yield read(read_file(file), known, plugin=owner(file), layer=layer(file, 0))
    for file in selection.context:
        yield read(read_file(file), known, target=False, plugin=owner(file), layer=layer(file, 0))


def _owners(known: Registry) -> Callable[[FilePath], str]:
    """Tells which plugin a file belongs to; where only trnspec has catalogs there is nothing to tell apart."""
    roots = [(c.resolve(), p.name) for p in known.plugins for c in p.catalogs]
    if len({name for _, name in roots}) < 2:
        return lambda file: ""  # noqa: ARG005  # it need not even be looked at
    return lambda file: next((name for root, name in roots if file.resolve().is_relative_to(root)), "")


def validate(
    paths: Iterable[str] = (),
    *,
    settings: Settings | None = None,
    registry: Registry | None = None,
    every: bool = False,
) -> Checked:
    """Check documents and everything they take part in.

    Args:
        paths: Files, folders, or ``-``; nothing means the shipped catalog.
        settings: What to report; the usual settings when left out.
        registry: The kinds and rules; those of this installation when left out.
        every: Nothing means every catalog, as for ``trnspec validate``: the shipped one, those that the settings name,
            and those of plugins.

    Raises:
        UsageError: A path is not there, or a setting names a code that is not known.
    """
    known = registry if registry is not None else _registry()
    chosen = settings if settings is not None else Settings()
    chosen.verify(known.codes)
    return check(readings(select(paths, known, chosen, every=every), known), known, chosen)


def graph(paths: Iterable[str] = (), *, settings: Settings | None = None, registry: Registry | None = None) -> Graph:
    """The documents of some catalogs, linked: what queries and audits work on.

    Documents with errors are warned of, a few of them: in a program with :class:`trnspec.loading.precedence.CatalogWarning`. One
    that cannot be used is left out, and that of another catalog which has its name stays.

    Args:
        paths: Files and folders, which come before the catalogs of the settings, and these before the shipped one.
        settings: Names further catalogs.
        registry: The kinds; those of this installation when left out.

    Raises:
        UsageError: A path is not there.
    """
    known = registry if registry is not None else _registry()
    chosen = settings if settings is not None else Settings()
    made, found = link(readings(select(paths, known, chosen, every=True), known), shadow_broken=False)
    if found:
        from trnspec.loading.precedence import warn_of_errors

        owner = _owners(known)
        giver = plugins().giver if registry is None else "the plugin {}".format
        warn_of_errors(
            document_errors(found, made, known, chosen),
            known,
            lambda file: (name := owner(FilePath(file))) and giver(name),
        )
    return made


def graph_of(paths: Iterable[str] = (), *, settings: Settings | None = None) -> Graph:
    """The same graph as :func:`graph`, whose documents are read when they are first asked for.

    A question about one document is answered several times quicker. What is found the same way: a name is that of a
    file; for an alias, a document that is wrong or a kind of a plugin, everything is read after all.

    Args:
        paths: Files and folders; nothing means the shipped catalog.
        settings: Names further catalogs.

    Raises:
        UsageError: A path is not there.
    """
    from trnspec.loading.index import on_demand
    from trnspec.plugins.discovery import simple

    paths = list(paths)
    chosen = settings if settings is not None else Settings()
    return on_demand(paths, chosen, lambda: graph(paths, settings=chosen), simple())


def load(  # each one is independent of the others
    paths: Iterable[str] = (),
    *,
    edition: str | None = None,
    as_of: str | None = None,
    overlay: str | os.PathLike[str] | None = None,
    settings: Settings | None = None,
    registry: Registry | None = None,
) -> Catalog:
    """The catalog, to ask.

    Args:
        paths: Files and folders; nothing means the shipped catalog.
        edition: A frozen edition of it instead of the working one: ``2026.11``. With one folder in ``paths``, an
            edition of the catalog there.
        as_of: A day, a month or a year: only what was published by its end. See ``docs/reference/dates.md``.
        overlay: A YAML file with changes, laid over all that. See ``docs/reference/overlay.md``.
        settings: Names further catalogs.
        registry: The kinds; those of this installation when left out.

    Raises:
        UsageError: A path is not there, the date is not one, or the overlay is wrong.
        UnknownNameError: There is no such edition.
        EditionError: The edition was altered.
    """
    from trnspec.catalog.catalog import Catalog

    if edition is None:
        made = Catalog(graph(paths, settings=settings, registry=registry))
    else:
        from trnspec.catalog.versions.editions import FOLDER, checked
        from trnspec.catalog.versions.editions import read as thawed

        roots = list(paths)
        if len(roots) > 1 or settings is not None:
            raise UsageError("an edition is whole: it takes one catalog folder at most, and no settings")
        folder = (FilePath(roots[0]) if roots else shipped()) / FOLDER
        known = registry if registry is not None else _registry()
        made = Catalog(thawed(checked(folder, edition), known), edition)
    if as_of is not None:
        made = made.then(as_of)
    return made if overlay is None else made.overlay(overlay)


_registry = registry


def evaluate(name: str, catalog: Catalog | None = None, /, **inputs: Any) -> Evaluation:
    """What an evaluator answers.

    Args:
        name: The name of the evaluator; ``trnspec eval`` lists them.
        catalog: The catalog to ask; the shipped one when left out.
        **inputs: What the evaluator asks for, by name; ``trnspec eval NAME --help`` tells.

    Raises:
        UsageError: There is no such evaluator; an input is missing, unknown or of another type; or the evaluator broke,
            or gave something unsound. The message names which.
        RefusalError: There is no answer, and why.
    """
    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluation.runner import run

    chosen, giver = evaluator(name)
    if catalog is not None and not isinstance(catalog, Catalog):
        raise UsageError(f"the catalog is what trnspec.load() gives, not {type(catalog).__name__}")
    return run(chosen, giver, load() if catalog is None else catalog, inputs)


def evaluator(name: str) -> tuple[Evaluator, str]:
    """The evaluator of that name, and who brings it: ``trnspec`` or ``the plugin energy of trnspec-energy 0.1.0``.

    Raises:
        UsageError: There is none, and the message lists the nearest; or it cannot be imported, or its inputs are not
            told as they should be, and the message names who brings it.
    """
    from trnspec.diagnostics import did_you_mean
    from trnspec.evaluation.runner import asked

    found = plugins()
    known = found.registry.evaluators
    if not isinstance(name, str) or name not in known:
        hint = did_you_mean(str(name), known) or (f"there are {', '.join(known)}" if known else "there are none")
        raise UsageError(f"there is no evaluator {name!r}; {hint}")
    giver = found.giver(next(p.name for p in found.plugins if known[name] in p.evaluators))
    asked(known[name], giver)
    return known[name], giver
