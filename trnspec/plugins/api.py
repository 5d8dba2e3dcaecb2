"""What a plugin is made of, and the registry of all that is known to a run.

trnspec itself is one plugin among others: its kinds and rules come through this door, so the door is wide enough.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Any, TypeVar

from attrs import field, frozen

from trnspec.diagnostics import Code, Location, Severity, did_you_mean
from trnspec.errors import UsageError
from trnspec.model.document import Node
from trnspec.plugins import entry_points
from trnspec.quantities.units import UNITS, Unit, UnitTable, extended
from trnspec.short_repr import short_repr
from trnspec.yaml import Path

API = 1
"""The version of everything in this module; a plugin says which one it was written for."""

GROUP = entry_points.GROUP
"""The entry-point group whose objects are :class:`Plugin` values."""


@frozen
class Kind:
    """A kind of document.

    Attributes:
        name: What documents write: ``kind: Chip``.
        folder: The folder of a catalog that holds its files: ``chips``.
        spec: The frozen attrs class of its specs.
    """

    name: str
    folder: str
    spec: type

    __repr__ = short_repr


@frozen
class Finding:
    """What a rule found; the runner makes a diagnostic of it.

    Attributes:
        path: Where, from the top of the document.
        message: One sentence with both values.
        hint: What to do about it, or the likely cause.
        see: The other places that belong to it.
        node: The document, when a rule over the whole graph found it.
        key: Points at the key and not at the value.
    """

    path: Path
    message: str
    hint: str = ""
    see: tuple[Location, ...] = ()
    node: Node[Any] | None = None
    key: bool = False

    __repr__ = short_repr


Check = Callable[..., Iterator[Finding]]


@frozen
class Rule:
    """A cross-check.

    Attributes:
        code: Its code, name, usual severity and explanation.
        over: The class of the specs it looks at; ``None`` for a rule that looks at the whole graph once.
        check: ``check(node, graph)``, or ``check(graph)`` for the whole graph; yields findings.
    """

    code: Code
    over: type | None
    check: Check = field(repr=False)

    __repr__ = short_repr


R = TypeVar("R", bound=Check)


def rule(id: str, name: str, *, over: type | None = None, severity: Severity = Severity.ERROR) -> Callable[[R], Rule]:
    """Makes a rule of a function; its docstring is the explanation, the manual page and the test."""

    def decorate(check: R) -> Rule:
        doc = inspect.getdoc(check)
        if not doc:
            raise TypeError(f"rule {id} has no docstring, which is its explanation")
        return Rule(Code(id, name, severity, doc), over, check)

    return decorate


@frozen
class _Function:
    """Something a plugin computes, under a name, imported when it is first asked for.

    Attributes:
        name: A short word, unique among its like.
        summary: One sentence for lists.
        run: The function, or where it is: ``package.module:function``.
    """

    name: str
    summary: str
    run: str | Callable[..., Any] = field(repr=False)

    def load(self) -> Callable[..., Any]:
        """The function, imported now.

        Raises:
            UsageError: It cannot be imported, or is no function; the message names it and says why.
        """
        if not isinstance(self.run, str):
            return self.run
        from importlib import import_module

        module, _, name = self.run.partition(":")
        try:
            found = getattr(import_module(module), name)
        except (Exception, SystemExit) as error:
            raise UsageError(f"{self.name}: {self.run} cannot be imported: {type(error).__name__}: {error}") from error
        if not callable(found):
            raise UsageError(f"{self.name}: {self.run} is not a function")
        function: Callable[..., Any] = found
        return function


@frozen
class Evaluator(_Function):
    """Something that answers a question: ``run(catalog, *, ...)`` gives a :class:`trnspec.evaluation.result.Evaluation`.

    ``catalog`` is a :class:`trnspec.catalog.catalog.Catalog`. The inputs are the function's keyword-only parameters; their
    annotations and the ``Args:`` of its docstring make the options of ``trnspec eval NAME``. Where there is no answer
    it raises a :class:`trnspec.evaluation.result.RefusalError`.

    Attributes:
        rows: Its answer is its first table, which ``--format csv`` prints; the answers only sum it up.
    """

    rows: bool = field(default=False, kw_only=True)


@frozen
class Exporter(_Function):
    """Something that writes the catalog in a form of its own: ``run(catalog)`` gives a text."""


@frozen
class Command(_Function):
    """A command of the command line: ``run`` is a ``click.Command``, or where it is.

    It is imported when the command is called; ``trnspec --help`` shows the summary.
    """


@frozen(kw_only=True)
class Plugin:
    """What a distribution adds.

    Attributes:
        name: A short name, unique among the installed plugins.
        api: The :data:`API` it was written for.
        kinds: Kinds of documents.
        rules: Cross-checks.
        codes: Explanations of codes that are not those of rules.
        catalogs: Folders of documents.
        evaluators: What answers questions from the catalog.
        exporters: What writes the catalog in other forms.
        explanations: Functions that tell why two figures disagree: of a case to ``Explanation`` values, as in
            ``trnspec.checks.reconcile.hypotheses``.
        commands: What ``trnspec NAME`` runs.
        units: Further units of the dimensions that there are.
    """

    name: str
    api: int
    kinds: tuple[Kind, ...] = ()
    rules: tuple[Rule, ...] = ()
    codes: tuple[Code, ...] = ()
    catalogs: tuple[FilePath, ...] = ()
    evaluators: tuple[Evaluator, ...] = ()
    exporters: tuple[Exporter, ...] = ()
    explanations: tuple[Callable[..., Iterator[Any]], ...] = ()
    commands: tuple[Command, ...] = ()
    units: tuple[Unit, ...] = ()

    __repr__ = short_repr


@frozen
class Registry:
    """All that the plugins of one run add, by name.  A value: two runs never share what they know."""

    plugins: tuple[Plugin, ...]
    kinds: Mapping[str, Kind]
    rules: tuple[Rule, ...]
    codes: Mapping[str, Code]
    evaluators: Mapping[str, Evaluator] = field(factory=dict)
    exporters: Mapping[str, Exporter] = field(factory=dict)
    explanations: tuple[Callable[..., Iterator[Any]], ...] = ()
    units: UnitTable = UNITS

    __repr__ = short_repr

    @classmethod
    def of(cls, plugins: Iterable[Plugin]) -> Registry:
        """The registry of some plugins.

        Raises:
            UsageError: One was written for another :data:`API`, or two of them give the same thing; both are named.
        """
        plugins = tuple(plugins)
        for plugin in plugins:
            if plugin.api != API:
                raise UsageError(f"the plugin {plugin.name} was written for API {plugin.api}; this is API {API}")
        names = [p.name for p in plugins]
        for number, name in enumerate(names):
            if name in names[:number]:
                raise UsageError(f"two plugins are named {name}; a name is that of one plugin")
        kinds = _unique(((k.name, k, p) for p in plugins for k in p.kinds), "the kind")
        codes = _unique(((c.id, c, p) for p in plugins for c in _codes(p)), "the code")
        _unique(((k.folder, k, p) for p in plugins for k in p.kinds if k.folder), "the folder")
        _unique(((c.name, c, p) for p in plugins for c in p.commands), "the command")
        return cls(
            plugins,
            kinds,
            tuple(r for p in plugins for r in p.rules),
            dict(sorted(codes.items())),
            _unique(((e.name, e, p) for p in plugins for e in p.evaluators), "the evaluator"),
            _unique(((e.name, e, p) for p in plugins for e in p.exporters), "the exporter"),
            tuple(e for p in plugins for e in p.explanations),
            table(plugins),
        )

    def code(self, id: str) -> Code:
        """The code of that id or name.

        Raises:
            UsageError: There is none; the message lists the nearest.
        """
        for code in self.codes.values():
            if id.upper() == code.id or id == code.name:
                return code
        names = [*self.codes, *(c.name for c in self.codes.values())]
        hint = did_you_mean(id, names)
        raise UsageError(f"there is no code {id!r}" + (f"; {hint}" if hint else ""))

    def kind_of_folder(self, folder: str) -> Kind | None:
        """The kind whose files lie in a folder of that name."""
        return next((k for k in self.kinds.values() if k.folder == folder), None)


def _codes(plugin: Plugin) -> Iterator[Code]:
    yield from plugin.codes
    yield from (r.code for r in plugin.rules)


def table(plugins: Iterable[Plugin]) -> UnitTable:
    """The units that figures may be written in: those of trnspec, and those of some plugins.

    Raises:
        UsageError: One of them could be mistaken for another; the message names it and its plugin.
    """
    made = UNITS
    for plugin in plugins:
        if reason := unit_clash(plugin, made):
            raise UsageError(f"the plugin {plugin.name}: {reason}")
        made = extended(tuple(dict.fromkeys((*made.units[len(UNITS.units) :], *plugin.units))))
    return made


def unit_clash(plugin: Plugin, known: UnitTable) -> str:
    """Why the units of a plugin cannot stand beside those that are known, or an empty text."""
    for unit in plugin.units:
        if reason := known.confusion(unit):
            return reason
        known = known.with_units(unit)
    return ""


V = TypeVar("V")


def _unique(items: Iterable[tuple[str, V, Plugin]], what: str) -> dict[str, V]:
    found: dict[str, V] = {}
    givers: dict[str, str] = {}
    for name, value, plugin in items:
        if name in found:
            raise UsageError(f"{what} {name} is given by two plugins: {givers[name]} and {plugin.name}")
        found[name], givers[name] = value, plugin.name
    return found
