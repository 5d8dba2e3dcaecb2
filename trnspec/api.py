"""The functions of the public API, ``load``, ``validate`` and ``evaluate``, and those that the command line adds."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from trnspec.checks.runner import Checked, check, document_errors
from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.graph.graph import Graph
from trnspec.loading.files import shipped
from trnspec.loading.pipeline import LoadResult, link, load_document
from trnspec.loading.selection import Paths, Selection, choose, listed
from trnspec.loading.settings import Settings
from trnspec.plugins.api import Evaluator, Registry, described_plugin
from trnspec.plugins.discovery import Discovery, installed
from trnspec.yaml import ReadingLimits, read_file, read_text

# Validation needs none of them, and takes 20 ms less without.
if TYPE_CHECKING:
    from concurrent.futures import Executor

    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluation.result import Evaluation, Table
    from trnspec.evaluation.sweeps import Sweep
    from trnspec.loading.store import DocumentStore


def registry() -> Registry:
    """The registry of the built-in plugin and of the installed plugins that work.

    Raises:
        UsageError: TRNSPEC_PLUGINS names a plugin that is not installed.
    """
    return plugins().registry


def plugins() -> Discovery:
    """The installed plugins, with the status of each.

    Raises:
        UsageError: TRNSPEC_PLUGINS names a plugin that is not installed.
    """
    return installed()


def select(paths: Paths, known: Registry, settings: Settings, *, every: bool = False) -> Selection:
    """The files that the arguments select; a file given by two paths is one file.

    Args:
        paths: Files, folders, or ``-`` for standard input; the shipped catalog if empty.
        known: The kinds, with the folders of their documents, and the catalogs of plugins.
        settings: Further catalogs to resolve references against.
        every: If ``paths`` is empty, select every catalog: those of the settings, the shipped one, and those of plugins.

    Raises:
        UsageError: A path does not exist or cannot be read, or a folder contains no documents.
    """
    folders = [k.folder for k in known.kinds.values()]
    return choose(listed(paths), folders, [c for p in known.plugins for c in p.catalogs], settings, every=every)


def load_documents(selection: Selection, known: Registry, store: DocumentStore | None = None) -> Iterator[LoadResult]:
    """Loads every document of a selection, the targets first, so that their names take precedence.

    Args:
        selection: The files.
        known: The kinds.
        store: The documents that are in memory, if the program keeps them.

    Raises:
        UsageError: Standard input is selected, but closed.
    """
    if selection.stdin:
        if sys.stdin is None:
            raise UsageError("there is no standard input to read")
        # One byte more than the limit reveals a document that exceeds it.
        yield load_document(read_text(sys.stdin.buffer.read(ReadingLimits().bytes + 1), "<stdin>"), known)
    owner = owners(known)
    layer = selection.layers.get
    for files, target in ((selection.targets, True), (selection.context, False)):
        for file in files:
            where: Any = {"target": target, "plugin": owner(file), "layer": layer(file, 0)}
            yield load_document(read_file(file), known, **where) if store is None else store.load(file, **where)


def owners(known: Registry) -> Callable[[str], str]:
    """A function from the path of a file to the plugin that provides it; always empty if only one plugin has catalogs."""
    roots = [(os.path.join(c.resolve(), ""), p.name) for p in known.plugins for c in p.catalogs]  # noqa: PTH118  # a final separator
    if len({name for _, name in roots}) < 2:
        return lambda path: ""  # noqa: ARG005  # files need not be resolved

    def owner_of(path: str) -> str:
        # Not Path.resolve, which raises an error for a loop of links before Python 3.13.
        real = os.path.realpath(path)
        return next((name for root, name in roots if real.startswith(root)), "")

    folders: dict[str, str] = {}

    def owner(path: str) -> str:
        if os.path.islink(path):  # noqa: PTH114  # many files
            return owner_of(path)
        folder = os.path.dirname(path)  # noqa: PTH120
        if folder not in folders:
            folders[folder] = owner_of(os.path.join(folder, "file"))  # noqa: PTH118
        return folders[folder]

    return owner


def validate(
    paths: Paths = (),
    *,
    settings: Settings | None = None,
    registry: Registry | None = None,
    every: bool = False,
    store: DocumentStore | None = None,
) -> Checked:
    """Checks documents, and the documents that refer to them.

    Args:
        paths: A file, a folder, ``-``, or several; the shipped catalog if empty.
        settings: The settings; the defaults if omitted.
        registry: The kinds and rules; those of this installation if omitted.
        every: If ``paths`` is empty, check every catalog, as ``trnspec validate`` does: the shipped one, those of the
            settings, and those of plugins.
        store: The documents that are in memory, if the program keeps them.

    Returns:
        The report, and the graph of the documents.

    Raises:
        UsageError: A path does not exist, or a setting names an unknown code.
    """
    known = registry if registry is not None else _registry()
    chosen = settings if settings is not None else Settings()
    chosen.verify(known.codes)
    return check(load_documents(select(paths, known, chosen, every=every), known, store), known, chosen)


def graph(paths: Paths = (), *, settings: Settings | None = None, registry: Registry | None = None) -> Graph:
    """The documents of catalogs with their references resolved, for queries and audits.

    Errors in documents are reported by a :class:`trnspec.loading.precedence.CatalogWarning`. A document that cannot be
    used is omitted, and does not replace a document of the same name in another catalog.

    Args:
        paths: A file or a folder, or several; they take precedence over the catalogs of the settings, and these over the shipped one.
        settings: Further catalogs.
        registry: The kinds; those of this installation if omitted.

    Raises:
        UsageError: A path does not exist.
    """
    known = registry if registry is not None else _registry()
    chosen = settings if settings is not None else Settings()
    linked, diagnostics = link(load_documents(select(paths, known, chosen, every=True), known), shadow_broken=False)
    if diagnostics:
        from trnspec.loading.precedence import warn_of_errors

        owner = owners(known)
        warn_of_errors(
            document_errors(diagnostics, linked, known, chosen),
            known,
            lambda file: (name := owner(file)) and described_plugin(name, known.distributions.get(name, "")),
        )
    return linked


def load(  # each one is independent of the others
    paths: Paths = (),
    *,
    edition: str | None = None,
    as_of: str | None = None,
    overlay: str | os.PathLike[str] | None = None,
    settings: Settings | None = None,
    registry: Registry | None = None,
) -> Catalog:
    """Loads a catalog.

    Args:
        paths: A file or a folder, or several; the shipped catalog if empty.
        edition: A frozen edition, such as ``2026.11``, instead of the working edition; with one folder in ``paths``, an
            edition of the catalog there.
        as_of: A day, a month or a year: only what was published by its end. See ``docs/reference/dates.md``.
        overlay: A YAML file with changes, which is applied last. See ``docs/reference/overlay.md``.
        settings: Further catalogs.
        registry: The kinds; those of this installation if omitted.

    Raises:
        UsageError: A path does not exist, ``as_of`` is not a date, or the overlay is invalid.
        UnknownNameError: There is no such edition.
        EditionError: The edition was altered.
    """
    from trnspec.catalog.catalog import Catalog

    if edition is None:
        catalog = Catalog(graph(paths, settings=settings, registry=registry))
    else:
        from trnspec.catalog.versions.editions import FOLDER, checked
        from trnspec.catalog.versions.editions import read as read_edition

        roots = listed(paths)
        if len(roots) > 1 or settings is not None:
            raise UsageError("edition takes at most one catalog folder, and no settings")
        folder = (FilePath(roots[0]) if roots else shipped()) / FOLDER
        known = registry if registry is not None else _registry()
        catalog = Catalog(read_edition(checked(folder, edition), known), edition)
    if as_of is not None:
        catalog = catalog.then(as_of)
    return catalog if overlay is None else catalog.overlay(overlay)


_registry = registry


def evaluate(name: str, catalog: Catalog | None = None, /, **inputs: Any) -> Evaluation:
    """Runs an evaluator.

    Args:
        name: The name of the evaluator; ``trnspec eval`` lists them.
        catalog: The catalog; the shipped one if omitted.
        **inputs: The inputs by name; ``trnspec eval NAME --help`` lists them. Every evaluator also has ``assume``, figures
            to assume by path, ``{"trainium2.memory.bandwidth": "3 TB/s"}``, and ``use_claims``: evaluate a figure that
            is not published at every value that a source claims for it.

    Raises:
        UsageError: There is no such evaluator; an input is missing, unknown or of another type; or the evaluator raised
            another error or returned an invalid result.
        RefusalError: There is no answer; the error has the reason.
    """
    from trnspec.evaluation.runner import run

    return run(*evaluator(name), _loaded(catalog), inputs)


def search(
    catalog: Catalog | None = None, /, *, executor: Executor | None = None, parts: int = 64, **inputs: Any
) -> Evaluation:
    """Searches for the best layout of a training step, or the best deployment for serving; see ``docs/reference/search.md``.

    Args:
        catalog: The catalog; the shipped one if omitted.
        executor: Evaluates parts of the search: a ``ProcessPoolExecutor``, or any other of ``concurrent.futures``, such as
            that of a Dask client; this process if omitted. The result does not depend on it.
        parts: Number of parts for an executor.
        **inputs: The inputs by name, as for ``evaluate("search", ...)``.

    Raises:
        UsageError: As for :func:`evaluate`, or a worker failed.
        RefusalError: Nothing fits or meets the condition; the error has the nearest searches that have an answer.
    """
    from trnspec.evaluation.progress import SearchExecution, distributed

    if parts < 1:
        raise UsageError(f"parts: a number of at least 1 is expected, not {parts}")
    with distributed(SearchExecution(executor, parts)):
        return evaluate("search", catalog, **inputs)


def sensitivity(name: str, catalog: Catalog | None = None, answer: str = "", /, **inputs: Any) -> Table:
    """The elasticities of an answer: by how many percent it changes when a figure grows by one percent.

    Args:
        name: The name of the evaluator.
        catalog: The catalog; the shipped one if omitted.
        answer: The name of an answer that is a number; the first number by default.
        **inputs: The inputs by name, as for :func:`evaluate`.

    Returns:
        One row for each figure of the catalog that the evaluation uses and for each parameter of its calibration, the
        largest elasticity first: ``figure``, ``value``, ``elasticity``, ``note``.

    Raises:
        UsageError: As for :func:`evaluate`, or the answer is not a number.
        UnknownNameError: There is no such answer.
        RefusalError: There is no answer.
    """
    from trnspec.evaluation.analysis import sensitivity as table_of

    return table_of(*evaluator(name), _loaded(catalog), inputs, answer)[1]


def solve(name: str, catalog: Catalog | None, target: str, vary: str, /, **inputs: Any) -> Evaluation:
    """The value that a figure needs for an answer to reach a target.

    Args:
        name: The name of the evaluator.
        catalog: The catalog; the shipped one if ``None``.
        target: The answer and its value, with its unit: ``"step_time=20 s"``, ``"mfu=50 %"``.
        vary: A figure or a calibrated parameter: ``"trn2.48xlarge.network.bandwidth"``,
            ``"trainium1-neuron.achieved.matmul"``.
        **inputs: The inputs by name, as for :func:`evaluate`.

    Returns:
        The evaluation at that value, with the answers ``needed``, ``present`` and ``ratio``, in base units, before its own.

    Raises:
        UsageError: As for :func:`evaluate`; or the target or the figure is invalid, or the evaluation does not use it.
        UnknownNameError: There is no such answer, document or path; the message has the nearest.
        RefusalError: There is no answer; ``out-of-reach``: no value suffices, and the message has the limit.
    """
    from trnspec.evaluation.analysis import solve as solution

    return solution(*evaluator(name), _loaded(catalog), inputs, target, vary)


def trace(name: str, catalog: Catalog | None = None, /, **inputs: Any) -> dict[str, Any]:
    """The timeline of an evaluation in the Chrome trace event format, as plain data for ``json.dump``.

    Args:
        name: The name of the evaluator: ``training``.
        catalog: The catalog; the shipped one if omitted.
        **inputs: The inputs by name, as for :func:`evaluate`.

    Raises:
        UsageError: As for :func:`evaluate`, or the evaluator has no timeline.
        RefusalError: There is no answer, or no exact timeline of the schedule.
    """
    from trnspec.evaluation.runner import traced

    found: dict[str, Any] = traced(*evaluator(name), _loaded(catalog), inputs, "timeline")
    return found


def _loaded(catalog: Catalog | None) -> Catalog:
    from trnspec.catalog.catalog import Catalog

    if catalog is not None and not isinstance(catalog, Catalog):
        raise UsageError(f"catalog is the result of trnspec.load(), not {type(catalog).__name__}")
    return load() if catalog is None else catalog


def sweep(name: str, catalog: Catalog | None = None, /, **inputs: Any) -> Sweep:
    """Runs an evaluator for every combination of the inputs that are lists: ``sweep("training", tp=[8, 16], ...)``.

    A number may be a range as text, ``tp="1..64:x2"``. Figures are axes too:
    ``vary={"trn2.48xlarge.network.bandwidth": "1.6..6.4Tbps:x2"}``.

    Args:
        name: The name of the evaluator.
        catalog: The catalog; the shipped one if omitted.
        **inputs: The inputs by name; a list, tuple or range has the values of a swept input. ``vary`` maps paths of
            figures to their values: a list of texts, or a range.

    Returns:
        The evaluations in the order of the combinations, the last input varying fastest. A combination without an
        answer has the refusal.

    Raises:
        UsageError: As for :func:`evaluate`, or a list is empty, or a range or a figure is invalid.
    """
    from trnspec.evaluation.runner import resolved
    from trnspec.evaluation.sweeps import Sweep, combinations, figure_axes, values_of, with_figures

    used, figures = _loaded(catalog), inputs.pop("vary", {})
    known = {one.name: one for one in resolved(*evaluator(name))[1]}
    given = {key: values_of(known.get(key), value) for key, value in inputs.items()}
    axes = {key: tuple(value) for key, value in given.items() if isinstance(value, (list, tuple, range))}
    if empty := [key for key, values in axes.items() if not values]:
        raise UsageError(f"{empty[0]} has no values to sweep")
    fixed = {key: value for key, value in given.items() if key not in axes}
    varied = figure_axes(used.graph, figures, fixed.get("assume", {}))
    axes |= {path: tuple(values) for path, values in varied.items()}
    rows = combinations(axes, lambda combination: evaluate(name, used, **with_figures(fixed, combination)))
    return Sweep(name, axes, tuple(rows), fixed)


def evaluator(name: str) -> tuple[Evaluator, str]:
    """The evaluator of that name and its provider: ``trnspec`` or ``the plugin energy of trnspec-energy 0.1.0``.

    Raises:
        UsageError: There is none; the message lists the nearest names.
    """
    registry = installed().registry
    known = registry.evaluators
    if not isinstance(name, str) or name not in known:
        hint = did_you_mean(str(name), known) or f"known: {', '.join(known) or 'none'}"
        raise UsageError(f"there is no evaluator {name!r}; {hint}")
    owner = next(p.name for p in registry.plugins if known[name] in p.evaluators)
    return known[name], described_plugin(owner, registry.distributions.get(owner, ""))
