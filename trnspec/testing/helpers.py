"""Helpers for authors of rules and plugins: one line per case, and explanations that are tests."""

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path as FilePath
from typing import Any

import click
from attrs import evolve

from trnspec.api import graph, plugins, validate
from trnspec.api import registry as installed
from trnspec.builtin import plugin as builtin
from trnspec.catalog.catalog import Catalog
from trnspec.checks.runner import check
from trnspec.diagnostics import Code, Report
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation.inputs import inputs
from trnspec.evaluation.result import Evaluation
from trnspec.evaluation.runner import run
from trnspec.loading.files import SUFFIXES, documents_in, shipped
from trnspec.loading.pipeline import LoadResult, load_document
from trnspec.loading.settings import Settings
from trnspec.output.exporters.exported import Export, ExportError
from trnspec.plugins.api import API, Plugin, Registry, Rule, loaded
from trnspec.plugins.failures import called
from trnspec.plugins.selection import CORE, GROUP
from trnspec.plugins.validation import invalid_kinds, invalid_values
from trnspec.yaml import Document, read_file, read_text

Marks = set[tuple[str, str, int]]
"""Expected or reported findings: (file, code, line)."""


def report(
    files: Mapping[str, str] | str,
    *,
    plugins: Iterable[Plugin] | None = None,
    registry: Registry | None = None,
    settings: Settings | None = None,
) -> Report:
    """The report on some texts, checked like files of a catalog in addition to the shipped one.

    Args:
        files: Texts by file name, or a single text, which is split and named as an example is.
        plugins: The plugins to use besides trnspec; default: the installed ones.
        registry: The kinds and rules, instead of ``plugins``.
        settings: Which findings to report.

    Raises:
        UsageError: Both ``plugins`` and ``registry`` are given, or two plugins clash.
    """
    if plugins is not None and registry is not None:
        raise UsageError("give plugins or a registry, not both")
    if plugins is not None:
        registry = Registry.of([builtin, *plugins])
    known = registry if registry is not None else installed()
    texts = dict(split(files, known)) if isinstance(files, str) else files
    documents = {name: text for name, text in texts.items() if name.endswith(SUFFIXES)}
    results = [load_document(read_text(text, name), known) for name, text in documents.items()]
    results += _shipped() if registry is None else _context(known)
    with _beside({name: text for name, text in texts.items() if name not in documents}):
        return check(results, known, settings if settings is not None else Settings()).report


@contextlib.contextmanager
def _beside(tables: Mapping[str, str]) -> Iterator[None]:
    """Other files than documents, such as tables of measurements, on disk, without marks of expected findings."""
    if not tables:
        yield
        return
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name, text in tables.items():
            FilePath(name).parent.mkdir(parents=True, exist_ok=True)
            FilePath(name).write_text(re.sub(r" *#! [A-Z0-9, ]+$", "", text, flags=re.MULTILINE), "utf-8")
        yield


def _context(known: Registry) -> tuple[LoadResult, ...]:
    others = dict.fromkeys(c for p in known.plugins for c in p.catalogs if c != shipped())
    documents = (*_documents(), *(read_file(f) for folder in others for f in documents_in(folder)))
    return tuple(load_document(document, known, target=False) for document in documents)


@functools.cache
def _documents() -> tuple[Document, ...]:
    # Documents are values: all registries of a run share those of the shipped catalog.
    return tuple(read_file(f) for f in documents_in(shipped()))


@functools.cache
def _shipped() -> tuple[LoadResult, ...]:
    # Readings are values: all cases of a run share those of the shipped catalog.
    return _context(installed())


def diagnose(
    files: Mapping[str, str] | str, *, plugins: Iterable[Plugin] | None = None, registry: Registry | None = None
) -> Marks:
    """The findings in some texts, as a set of (file, code, line); see :func:`report`.

    Give the plugin under test in ``plugins``, so that the rules of other installed plugins do not matter.
    """
    return {
        (d.where.file, d.code, d.where.place.line if d.where.place else 0)
        for d in report(files, plugins=plugins, registry=registry).diagnostics
    }


def expected(files: Mapping[str, str] | str, *, registry: Registry | None = None) -> Marks:
    """The findings that marks in the texts expect: ``#! TRN402`` at the end of a line, several separated by commas."""
    known = registry if registry is not None else installed()
    texts = dict(split(files, known)) if isinstance(files, str) else files
    findings: Marks = set()
    for name, text in texts.items():
        for number, line in enumerate(text.splitlines(), 1):
            mark = re.search(r"#! ([A-Z0-9, ]+)\s*$", line)
            if mark:
                findings |= {(name, code.strip(), number) for code in mark[1].split(",")}
    return findings


def split(text: str, known: Registry) -> Iterator[tuple[str, str]]:
    """The files in an example: each begins with ``# file: NAME``; one without is named after its document."""
    parts = re.split(r"^# file: (.*)\n", text, flags=re.MULTILINE)
    if parts[0].strip():
        yield _name(parts[0], known), parts[0]
    yield from zip(parts[1::2], parts[2::2], strict=True)


def _name(text: str, known: Registry) -> str:
    data = read_text(text).data or {}
    metadata = data.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    kind = known.kinds.get(str(data.get("kind")))
    return f"{kind.folder}/{name}.yaml" if kind is not None and name else "example.yaml"


def examples(code: Code) -> Iterator[tuple[str, str]]:
    """The YAML examples in an explanation, each with its heading: ``Example`` or ``Instead``.

    A block of the language ``diff`` states how to change the last example above it.
    """
    heading, last, is_diff = "", "", False
    block: list[str] | None = None
    for line in code.doc.splitlines():
        if block is None and re.fullmatch(r"[A-Z][a-z]+:", line):
            heading = line[:-1]
        elif block is None and line.strip() in ("```yaml", "```diff"):
            block, is_diff = [], line.endswith("diff")
        elif block is not None and line.strip() == "```":
            last = _patched(last, block) if is_diff else "".join(f"{b}\n" for b in block)
            yield heading, last
            block = None
        elif block is not None:
            block.append(line[4:])


def _patched(text: str, diff: Iterable[str]) -> str:
    """A text after a diff without line numbers: each line to keep or to remove is the next one that is equal."""
    lines, result = re.sub(r" *#! [A-Z0-9, ]+$", "", text, flags=re.MULTILINE).splitlines(), list[str]()
    for mark, line in ((each[:1], each[1:]) for each in diff):
        if mark != "+":
            assert line in lines, f"the diff has {line!r}, which is not in the rest of the example"
            at = lines.index(line)
            result += lines[:at]
            del lines[: at + 1]
        if mark != "-":
            result.append(line)
    return "".join(f"{line}\n" for line in (*result, *lines))


def check_code(code: Code, *, registry: Registry | None = None) -> None:
    """Assert that the explanation of a code is complete and correct.

    Its examples must have exactly the findings that they mark, those under ``Instead`` none, and the sections Why and
    Source must exist.
    """
    for heading in ("Why:", "Example:", "Instead:", "Source:"):
        assert heading in code.doc, f"{code.id} has no section {heading}"
    for heading, text in examples(code):
        marks = expected(text, registry=registry)
        findings = diagnose(text, registry=registry)

        assert marks == findings, f"{code.id}, {heading}: {sorted(marks)} is marked, {sorted(findings)} is reported"
        assert heading != "Instead" or not marks, f"{code.id}: an example of what to write instead has findings"


def check_rule(rule: Rule, *, registry: Registry | None = None) -> None:
    """Assert that the explanation of a rule is correct; the rule need not be part of a plugin.

    Args:
        rule: The rule.
        registry: The kinds and other rules; default: the rules of trnspec and of the plugin that has this one, and the
            kinds of all installed plugins.
    """
    if registry is None:
        plugins = installed().plugins
        owner = next((p for p in plugins if rule in p.rules), Plugin(name="rule-under-test", api=API, rules=(rule,)))
        plugins = tuple(p if p.name in (CORE[0], owner.name) else evolve(p, rules=()) for p in plugins)
        registry = Registry.of(dict.fromkeys((*plugins, owner)))
    check_code(rule.code, registry=registry)


class PluginConformance:
    """Tests that every plugin must pass: subclass it in a test module, name the plugin, run pytest.

    ```python
    class TestPlugin(PluginConformance):
        plugin = plugin
    ```

    Attributes:
        plugin: The plugin under test.
    """

    plugin: Plugin

    @property
    def registry(self) -> Registry:
        """The registry of trnspec and the plugin, without other plugins."""
        return Registry.of([builtin, self.plugin])

    def test_fits_beside_trnspec(self) -> None:
        """Check that a plugin was written for this API, has valid values and kinds, and redefines nothing of trnspec."""
        registry = self.registry
        entry = EntryPoint(self.plugin.name, self.plugin.name, GROUP)

        assert [*invalid_values(entry, self.plugin), *invalid_kinds(self.plugin, registry.units)] == []
        assert [p.name for p in registry.plugins] == ["trnspec", self.plugin.name]

    def test_is_installed_and_used(self) -> None:
        """Its distribution has an entry point, and its status is ``ok``."""
        findings = {r.name: (r.status, r.message) for r in plugins().records}

        assert findings.get(self.plugin.name, "not installed: run pip install --editable .") == ("ok", "")

    def test_catalogs_have_no_findings(self) -> None:
        """Its documents have no findings when checked with those of trnspec; each catalog has documents."""
        for folder in self.plugin.catalogs:
            findings = validate([str(folder)], registry=self.registry).report

            assert [f"{d.where.file}: {d.code} {d.message}" for d in findings.diagnostics] == []
            assert findings.files > 0, f"{folder} has no documents"

    def test_trnspec_has_no_findings_beside_it(self) -> None:
        """Its rules and documents cause no findings in the shipped catalog."""
        findings = validate(registry=self.registry).report

        assert [f"{d.where.file}: {d.code} {d.message}" for d in findings.diagnostics] == []

    def test_explanations_tell_the_truth(self) -> None:
        """Every example has the findings that it marks."""
        for code in (*self.plugin.codes, *(r.code for r in self.plugin.rules)):
            check_code(code, registry=self.registry)

    def test_functions_return_what_is_expected(self) -> None:
        """Its functions can be imported, commands are click commands, and what can be called returns the right class.

        An evaluator whose inputs all have defaults is called; of others the return annotation counts, and
        :class:`~trnspec.testing.conformance.EvaluatorConformance` calls them. An exporter is called for each
        document of the plugin, or of the shipped catalog where it has none, until one can be exported.
        """
        plugin, registry = self.plugin, self.registry
        for reporter in plugin.reporters:
            text = called(reporter.name, plugin.name, reporter.load(), str, Report((), {}, 0), **_REPORT_OPTIONS)
            assert not text.endswith("\n"), f"{reporter.name}: the text ends in a newline, which trnspec adds"
        for command in plugin.commands:
            of = type(command.load()).__name__
            assert isinstance(command.load(), click.Command), (
                f"{command.name} is of type {of}; a click.Command is expected"
            )
        for evaluator in plugin.evaluators:
            function = evaluator.load()
            returns = inspect.signature(function).return_annotation
            expected = (inspect.Signature.empty, Evaluation, Evaluation.__name__)
            assert returns in expected, f"{evaluator.name} returns {returns}; an Evaluation is expected"
            if not any(each.required for each in inputs(function, evaluator.name)):
                with contextlib.suppress(RefusalError):
                    run(evaluator, plugin.name, Catalog(graph(registry=registry)), {})
        for exporter in plugin.exporters:
            documents = graph(registry=registry)
            own = [n for n in documents if any(n.is_of(kind.spec) for kind in plugin.kinds)]
            for name, export in exporter.functions.items():
                for arguments in [(documents,)] if name == "all" else [(node, documents) for node in own or documents]:
                    with contextlib.suppress(ExportError):
                        called(exporter.name, plugin.name, loaded(exporter.name, export), Export, *arguments)
                        break


_REPORT_OPTIONS: dict[str, Any] = {"color": False, "width": 80, "texts": {}, "docs": "", "when": None}
