"""``trnspec plugin``: the status of the installed plugins, and new ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint
from os.path import realpath
from pathlib import Path as FilePath
from typing import Any

import click
from attrs import asdict, evolve

from trnspec.api import plugins, validate
from trnspec.checks.runner import failed_rule
from trnspec.cli.help import CommandGroup, documented, option
from trnspec.cli.render import formats, show, versioned_json
from trnspec.diagnostics import Severity
from trnspec.errors import UsageError
from trnspec.evaluation.inputs import inputs
from trnspec.loading.files import documents_in
from trnspec.plugins.api import Function, Plugin, loaded
from trnspec.plugins.discovery import FAULTY, OK, Discovery, Record, limit, summary
from trnspec.plugins.entry_points import imported
from trnspec.plugins.failures import described
from trnspec.plugins.scaffold.writer import KINDS, write
from trnspec.text_table import Column, table


@click.group("plugin", cls=CommandGroup)
def command() -> None:
    """List the installed plugins and their status; create a new one."""


@documented(
    "list",
    ("trnspec plugin list", "The installed plugins:"),
    ("trnspec plugin list --format json", "For programs:"),
    of=command,
)
@formats("text", "json")
def list_(format_: str) -> None:
    """List the installed plugins with their status, and why those that are not used are left out.

    For the plugins that are used, every function they name is imported and their catalogs are checked. The status is
    faulty where an import fails or a document has an error.
    """
    records = _examined(plugins())
    if format_ == "json":
        click.echo(versioned_json({"plugins": [asdict(r) for r in records]}))
        return
    columns: list[str | Column] = [
        *("plugin", "distribution", Column("status", keep=True)),
        *(Column("import", right=True), Column("message", wrap=True, keep=True)),
    ]
    rows = [
        (r.name, f"{r.distribution} {r.version}", r.status, f"{1000 * r.seconds:.0f} ms", " ".join(r.message.split()))
        for r in records
    ]
    listed = table(columns, rows)
    short = listed if any(r.message for r in records) else listed.selected("plugin,distribution,status,import")
    show([short if records else "No plugins are installed."])


def _examined(discovery: Discovery) -> list[Record]:
    """The records, with the faults that only an import of every function and a check of every document can find."""
    used = {p.name: p for p in discovery.plugins[1:]}
    of_documents = _faults_of_documents(discovery)
    records: list[Record] = []
    for record in discovery.records:
        if record.status != OK:
            records.append(record)
            continue
        faults = (*_faults_of_functions(used[record.name]), *of_documents[record.name])
        records.append(evolve(record, status=FAULTY, message=summary(faults), faults=faults) if faults else record)
    return records


def _faults_of_functions(plugin: Plugin) -> Iterator[str]:
    """The functions a plugin names that cannot be imported, or are not what they should be."""
    functions: list[tuple[str, str, Function]] = [
        (what, each.name, function)
        for what, values in (
            ("evaluator", plugin.evaluators),
            ("exporter", plugin.exporters),
            ("reporter", plugin.reporters),
            ("command", plugin.commands),
        )
        for each in values
        for function in each.functions.values()
    ]
    places = dict.fromkeys(f for _, _, f in functions if isinstance(f, str))
    outcomes = {place: imported(EntryPoint(place, place, ""), limit()) for place in places}
    for what, name, function in functions:
        outcome = outcomes.get(function) if isinstance(function, str) else None
        if outcome is not None and outcome.error is not None:
            reason = "it took longer than TRNSPEC_PLUGIN_SECONDS" if outcome.is_late else described(outcome.error)
            yield f"the {what} {name}: {function} cannot be imported: {reason}"
            continue
        try:
            value: Any = loaded(name, function)
            if what == "evaluator":
                inputs(value, name)
        except UsageError as error:
            yield f"the {what} {error}" if str(error).startswith(name) else f"the {what} {name}: {error}"
            continue
        if what == "command" and not isinstance(value, click.Command):
            yield f"the {what} {name} is of type {type(value).__name__}; a click.Command is expected"


def _faults_of_documents(discovery: Discovery) -> Mapping[str, list[str]]:
    """By plugin, the errors in its documents and its rules that raise; settings hide none of them."""
    used = discovery.plugins[1:]
    roots = [(c.resolve(), p.name) for p in used for c in p.catalogs]
    rules = {r.code.id: p.name for p in used for r in p.rules}
    faults: dict[str, list[str]] = {p.name: [] for p in used}
    for root, name in roots:
        try:
            list(documents_in(root))
        except UsageError as error:
            faults[name].append(str(error))
    if any(faults.values()) or not (roots or rules):
        return faults
    for each in validate(registry=discovery.registry, every=True).report.diagnostics:
        message = " ".join(each.message.split())
        if each.code == "TRN900":
            name, fault = rules.get(failed_rule(each), ""), message
        else:
            file = FilePath(realpath(each.where.file))
            name = next((n for root, n in roots if file.is_relative_to(root)), "")
            fault = f"{each.where}: {each.code} {each.name}: {message}"
        if name and each.severity is Severity.ERROR and fault not in faults[name]:
            faults[name].append(fault)
    return faults


@documented(
    "new",
    ("trnspec plugin new acme-tpu", "A hardware generation:"),
    ("trnspec plugin new acme-rack --kind kind", "A kind of document:"),
    ("trnspec plugin new acme-checks --kind rules", "Rules, with their tests:"),
    ("trnspec plugin new acme-model --kind evaluator", "An evaluator:"),
    of=command,
)
@click.argument("name")
@option(
    "--kind",
    "Output",
    "What the plugin adds first: " + "; ".join(f"{k}: {s}" for k, s in KINDS.items()) + ".",
    type=click.Choice([*KINDS]),
    default="generation",
)
@option("--into DIR", "Output", "The parent folder of the new one.", default=".")
def new(name: str, kind: str, into: str) -> None:
    """Write a working distribution with tests, to start a plugin from.

    NAME consists of lower-case letters, digits and hyphens. The new folder is DIR/trnspec-NAME; it must not exist.
    """
    folder = write(name, kind, FilePath(into))
    click.echo(f"{folder}: a plugin with tests. Next:\n")
    click.echo(f"  pip install --editable '{folder}[test]'\n  python -m pytest {folder}\n  trnspec plugin list")
