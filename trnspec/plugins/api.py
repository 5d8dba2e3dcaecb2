"""The plugin interface: what a plugin can add, and the registry of everything a run knows.

trnspec registers its own kinds, rules, evaluators, exporters, reporters and commands through the same classes, in
:mod:`trnspec.builtin`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path as FilePath
from typing import Any, TypeVar

from attrs import field, frozen

from trnspec.diagnostics import Code, Location, Severity, did_you_mean, present_id
from trnspec.errors import UsageError
from trnspec.model.document import API_VERSION, OLDER_VERSIONS, Node
from trnspec.plugins.selection import CORE
from trnspec.quantities.units import UNITS, Unit, UnitTable, extended
from trnspec.short_repr import ShortRepr
from trnspec.yaml import Edit, Path

API = 1
"""The version of this interface; a plugin states the version it was written for."""


@frozen(repr=False)
class Kind(ShortRepr):
    """A kind of document.

    Attributes:
        name: The value of ``kind:`` in documents, such as ``Chip``.
        folder: The catalog folder of its files, such as ``chips``.
        spec: The frozen attrs class of ``spec:``.
        api_version: The value of ``api_version:`` in its documents, such as ``acme/v2``; that of trnspec by default.
        upgrade: Conversions of documents in former versions, the oldest first: by a former ``api_version``, the function
            from the plain data of a document in it to those of the next version. It may change what it gets. Attributes
            that were only renamed need none: see ``RENAMED`` in ``docs/explanation/plugins.md``.
    """

    name: str
    folder: str
    spec: type
    api_version: str = field(default=API_VERSION, kw_only=True)
    upgrade: Mapping[str, Callable[[dict[str, Any]], dict[str, Any]]] = field(
        factory=dict, kw_only=True, repr=False, hash=False
    )

    @property
    def api_versions(self) -> tuple[str, ...]:
        """The versions in which its documents are read, the present one first."""
        return (self.api_version, *(OLDER_VERSIONS if self.api_version == API_VERSION else ()), *self.upgrade)


@frozen(repr=False)
class Finding(ShortRepr):
    """Report of a rule; the runner turns it into a diagnostic.

    Attributes:
        path: The place, from the top of the document.
        message: One sentence with both values.
        hint: How to fix it, or the likely cause.
        see: Related places.
        node: The document; needed only from a rule over the whole graph.
        key: Whether the place is the key instead of the value.
        where: A place in another file than the document, such as a table; the place of ``path`` is then a related one.
        edit: A correction of the document that ``trnspec fix`` may apply without a review.
    """

    path: Path
    message: str
    hint: str = ""
    see: tuple[Location, ...] = ()
    node: Node[Any] | None = None
    key: bool = False
    where: Location | None = None
    edit: Edit | None = None


Check = Callable[..., Iterator[Finding]]


@frozen(repr=False)
class Rule(ShortRepr):
    """A cross-check.

    Attributes:
        code: Its code, name, default severity and explanation.
        over: The spec class of the documents it checks; ``None`` for a rule that checks the whole graph once.
        check: ``check(node, graph)``, or ``check(graph)`` for the whole graph; yields findings.
        local: Whether its findings on a document only point into that document, those that it refers to, directly or
            through others, and files other than documents. When one file is checked, such a rule is run on the
            documents of that file and their users. Of a rule over the whole graph: whether the findings that an edit of
            some documents can cause are found with these and their users as the focus of the graph.
    """

    code: Code
    over: type | None
    check: Check = field(repr=False)
    local: bool = False

    @property
    def is_over_graph(self) -> bool:
        """Whether it checks the whole graph once."""
        return self.over is None

    def concerns(self, node: Node[Any]) -> bool:
        """Whether it is over a document.

        A rule of a plugin is not over an announced product, which may lack figures that every other one has.
        """
        if self.over is None or not node.is_of(self.over):
            return False
        return self.code.id.startswith("TRN") or getattr(node.spec, "status", None) is None


R = TypeVar("R", bound=Check)


def rule(
    id: str, name: str, *, over: type | None = None, severity: Severity = Severity.ERROR, local: bool = False
) -> Callable[[R], Rule]:
    """Turn a function into a rule; its docstring is the explanation, the manual page and a test.

    Args:
        id: The code: capital letters of the plugin's own and digits, such as ``ACME001``.
        name: A short name, such as ``tiny-memory``.
        over: The spec class of the documents to check; ``None`` for the whole graph.
        severity: The default severity.
        local: See :class:`Rule`; for rules of trnspec.

    Raises:
        TypeError: The function has no docstring.
    """

    def decorate(check: R) -> Rule:
        doc = check.__doc__
        if not doc and sys.flags.optimize > 1:
            doc = "No explanation: Python was started with -OO, which removes docstrings."
        if not doc:
            raise TypeError(f"the rule {id} has no docstring; write one, it is the rule's explanation")
        return Rule(Code(id, name, severity, doc), over, check, local)

    return decorate


Function = str | Callable[..., Any]
"""A function, or where it is: ``package.module:function``, imported when it is first needed."""


def loaded(name: str, function: Function) -> Callable[..., Any]:
    """A function that a plugin names, imported now.

    Raises:
        UsageError: It cannot be imported or is not a function; the message has the name and the reason.
    """
    if not isinstance(function, str):
        return function
    module, _, attribute = function.partition(":")
    try:
        value = getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:
        raise UsageError(f"{name}: {function} cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(value):
        raise UsageError(f"{name}: {function} is not a function")
    result: Callable[..., Any] = value
    return result


@frozen
class _Named:
    """A function with a name.

    Attributes:
        name: A short word, unique among its like.
        summary: One sentence for lists.
        run: The function, or where it is: ``package.module:function``.
    """

    name: str
    summary: str
    run: Function = field(repr=False)

    @property
    def functions(self) -> dict[str, Function]:
        """Its functions by the name of the attribute."""
        return {"run": self.run}

    def load(self) -> Callable[..., Any]:
        """The function, imported now.

        Raises:
            UsageError: It cannot be imported or is not a function.
        """
        return loaded(self.name, self.run)


@frozen
class Evaluator(_Named):
    """A computation: ``run(catalog, *, ...)`` returns a :class:`trnspec.evaluation.result.Evaluation`.

    ``catalog`` is a :class:`trnspec.catalog.catalog.Catalog`. The inputs are the keyword-only parameters of the
    function; they become the options of ``trnspec eval NAME``. Where it has no result, the function raises a
    :class:`trnspec.errors.RefusalError`.

    Attributes:
        rows: The result is its first table, which ``--format csv`` prints; the answers only summarise it.
        trace: A function with the parameters of ``run`` that returns a timeline in the Chrome trace event format, as
            plain data, for ``trnspec eval NAME --trace FILE.json``; or where it is.
        execution: The same for a function that returns the files of an execution trace by Chakra, the content of each by
            what follows the stem of its name, for ``--trace FILE.et``.
    """

    rows: bool = field(default=False, kw_only=True)
    trace: Function | None = field(default=None, repr=False, kw_only=True)
    execution: Function | None = field(default=None, repr=False, kw_only=True)

    @property
    def functions(self) -> dict[str, Function]:
        """Its functions by the name of the attribute."""
        others = {"trace": self.trace, "execution": self.execution}
        return {"run": self.run} | {name: function for name, function in others.items() if function is not None}


@frozen
class Exporter:
    """An output format of ``trnspec export`` and of ``export()`` in Python. At least one of the functions is needed.

    Attributes:
        name: What ``trnspec export`` calls the format.
        suffix: The suffix of its files, such as ``.json``.
        summary: One line for lists.
        one: ``one(node, graph)`` returns the :class:`trnspec.output.exporters.exported.Export` of one document. With a
            parameter ``use``, it takes figures in place of unknown ones (``trnspec export --use FIELD=PATH``).
        all: ``all(graph)`` returns the ``Export`` of the whole catalog.
        inline: Whether the text itself contains the assumptions; if not, they are written to a separate file.
    """

    name: str
    suffix: str
    summary: str
    one: Function | None = field(default=None, repr=False, kw_only=True)
    all: Function | None = field(default=None, repr=False, kw_only=True)
    inline: bool = field(default=True, kw_only=True)

    @property
    def functions(self) -> dict[str, Function]:
        """Its functions by the name of the attribute."""
        return {n: f for n, f in (("one", self.one), ("all", self.all)) if f is not None}


@frozen
class Reporter(_Named):
    """A format of ``trnspec validate --format``: ``run(report, **options)`` returns a text without a final newline.

    The options are those of :func:`trnspec.output.reporters.render`: ``color``, ``width``, ``texts``, ``docs`` and
    ``when``; a reporter takes ``**_`` for those it does not use.
    """


@frozen
class Command(_Named):
    """A command of the command line: ``run`` is a ``click.Command``, or where it is.

    It is imported when the command is called; ``trnspec --help`` shows the summary.
    """


@frozen(kw_only=True, repr=False)
class Plugin(ShortRepr):
    """Additions of a distribution to trnspec.

    Attributes:
        name: A short name, unique among the installed plugins; that of its entry point.
        api: The :data:`API` version it was written for.
        kinds: Kinds of documents.
        rules: Cross-checks.
        codes: Explanations of codes that do not belong to a rule.
        catalogs: Folders of documents.
        evaluators: Computations over the catalog.
        exporters: Formats of ``trnspec export``.
        reporters: Formats of ``trnspec validate``.
        explanations: Functions that explain why two figures disagree: from a case to ``Explanation`` values, see
            ``trnspec.checks.reconcile.hypotheses``.
        commands: Commands of the command line.
        units: Further units of the existing dimensions.
    """

    name: str
    api: int
    kinds: tuple[Kind, ...] = ()
    rules: tuple[Rule, ...] = ()
    codes: tuple[Code, ...] = ()
    catalogs: tuple[FilePath, ...] = ()
    evaluators: tuple[Evaluator, ...] = ()
    exporters: tuple[Exporter, ...] = ()
    reporters: tuple[Reporter, ...] = ()
    explanations: tuple[Callable[..., Iterator[Any]], ...] = ()
    commands: tuple[Command, ...] = ()
    units: tuple[Unit, ...] = ()

    @property
    def all_codes(self) -> Iterator[Code]:
        """Its codes, those of the rules included."""
        yield from self.codes
        yield from (r.code for r in self.rules)


def unique_names(plugin: Plugin) -> Iterator[tuple[str, str, Any]]:
    """Everything that only one plugin may define: what it is, its name and its value."""
    yield "plugin", plugin.name, plugin
    for kind in plugin.kinds:
        yield "kind", kind.name, kind
    # Two kinds of one plugin may share a folder, as the two forms of prices do.
    yield from (("folder", folder, plugin) for folder in dict.fromkeys(k.folder for k in plugin.kinds) if folder)
    for code in plugin.all_codes:
        yield "code", code.id, code
        yield "code name", code.name, code
    for what, values in (
        ("evaluator", plugin.evaluators),
        ("exporter", plugin.exporters),
        ("reporter", plugin.reporters),
        ("command", plugin.commands),
    ):
        yield from ((what, v.name, v) for v in values)


@frozen(repr=False)
class Registry(ShortRepr):
    """Everything that the plugins of a run define, by name. It is a value: two runs share nothing.

    Attributes:
        plugins: The plugins, trnspec itself first.
        distributions: By the name of a plugin, its distribution and version: ``trnspec-energy 0.1.0``.
    """

    plugins: tuple[Plugin, ...]
    kinds: Mapping[str, Kind]
    rules: tuple[Rule, ...]
    codes: Mapping[str, Code]
    evaluators: Mapping[str, Evaluator] = field(factory=dict)
    exporters: Mapping[str, Exporter] = field(factory=dict)
    reporters: Mapping[str, Reporter] = field(factory=dict)
    explanations: tuple[Callable[..., Iterator[Any]], ...] = ()
    units: UnitTable = UNITS
    distributions: Mapping[str, str] = field(factory=dict)

    @classmethod
    def of(cls, plugins: Iterable[Plugin], distributions: Mapping[str, str] | None = None) -> Registry:
        """The registry of some plugins.

        Args:
            plugins: The plugins.
            distributions: The distribution and version of each, by name, for messages.

        Raises:
            UsageError: One was written for another :data:`API`, or two define the same name; both are named.
        """
        plugins = tuple(plugins)
        owners: dict[tuple[str, str], str] = {}
        tables: dict[str, dict[str, Any]] = {}
        units = UNITS
        for plugin in plugins:
            if plugin.api != API:
                raise UsageError(f"the plugin {plugin.name} was written for API {plugin.api}; this is API {API}")
            for what, name, value in unique_names(plugin):
                if what == "plugin" and (what, name) in owners:
                    raise UsageError(f"two plugins are named {name}; rename one of them")
                if (what, name) in owners:
                    both = f"{owners[what, name]} and {plugin.name}"
                    raise UsageError(f"{what} {name!r} is defined by two plugins: {both}")
                owners[what, name] = plugin.name
                tables.setdefault(what, {})[name] = value
            try:
                units = with_units(units, plugin)
            except UsageError as error:
                raise UsageError(f"the plugin {plugin.name}: {error}") from error
        return cls(
            plugins,
            tables.get("kind", {}),
            tuple(r for p in plugins for r in p.rules),
            dict(sorted(tables.get("code", {}).items())),
            tables.get("evaluator", {}),
            tables.get("exporter", {}),
            tables.get("reporter", {}),
            tuple(e for p in plugins for e in p.explanations),
            units,
            {} if distributions is None else distributions,
        )

    def code(self, id: str) -> Code:
        """The code of that id or name.

        Raises:
            UsageError: There is none; the message suggests the nearest.
        """
        for code in self.codes.values():
            if present_id(id).upper() == code.id or id == code.name:
                return code
        hint = did_you_mean(id, [*self.codes, *(c.name for c in self.codes.values())])
        raise UsageError(f"there is no code {id!r}" + (f"; {hint}" if hint else ""))

    def exporter(self, name: str) -> Exporter:
        """The exporter of that name; ``UsageError`` suggests the nearest or lists all."""
        return _named(self.exporters, name, "export format")

    def reporter(self, name: str) -> Reporter:
        """The reporter of that name; ``UsageError`` suggests the nearest or lists all."""
        return _named(self.reporters, name, "report format")

    def provider(self, value: object) -> str:
        """The plugin that defines a rule, an exporter, ...: ``trnspec``, or ``the plugin NAME of DISTRIBUTION VERSION``."""
        for plugin in self.plugins:
            if any(value is v for _, _, v in unique_names(plugin)) or any(value is r for r in plugin.rules):
                return described_plugin(plugin.name, self.distributions.get(plugin.name, ""))
        return "an unknown plugin"


def described_plugin(name: str, distribution: str) -> str:
    """``trnspec``, or ``the plugin energy of trnspec-energy 0.1.0``."""
    if name == CORE[0]:
        return name
    return f"the plugin {name} of {distribution}" if distribution else f"the plugin {name}"


V = TypeVar("V")


def _named(table: Mapping[str, V], name: str, what: str) -> V:
    if name not in table:
        hint = did_you_mean(name, table) or f"available: {', '.join(table)}"
        raise UsageError(f"there is no {what} {name!r}; {hint}")
    return table[name]


def with_units(table: UnitTable, plugin: Plugin) -> UnitTable:
    """A table of units and those of a plugin.

    Raises:
        UsageError: One of them could be mistaken for another.
    """
    known = table
    for unit in plugin.units:
        if reason := known.confusion(unit):
            raise UsageError(reason)
        known = known.with_units(unit)
    return extended(tuple(dict.fromkeys((*table.units[len(UNITS.units) :], *plugin.units))))
