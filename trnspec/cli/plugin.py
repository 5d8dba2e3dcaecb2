"""``trnspec plugin``: what is installed, and the start of a new one."""

from __future__ import annotations

import json
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trnspec.plugins.api import Command, Evaluator, Exporter, Plugin
    from trnspec.plugins.discovery import Discovery, Record

_SHOWN = 3
"""How many faults of a plugin the table shows; JSON has all of them."""


@click.group("plugin")
def command() -> None:
    """List the installed plugins and what became of them; start a new one."""


@command.command("list")
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
def list_(format_: str) -> None:
    """List the installed plugins: which are used, and why the others are not.

    Of those that are used, what they name is imported and their catalogs are checked: one is faulty where something
    cannot be imported or a document has an error.
    """
    from attrs import asdict

    from trnspec.api import plugins

    records = _looked_into(plugins())
    if format_ == "json":
        click.echo(json.dumps({"version": 1, "plugins": [asdict(r) for r in records]}, indent=2, ensure_ascii=False))
        return
    if not records:
        click.echo("No plugins are installed.")
        return
    rows = [(r.name, f"{r.distribution} {r.version}", r.status, f"{1000 * r.seconds:.0f} ms") for r in records]
    heads = ("plugin", "distribution", "status", "import")
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(4)]
    for row, message in zip((heads, *rows), ("", *(r.message for r in records)), strict=True):
        cells = [*(cell.ljust(width) for cell, width in zip(row[:3], widths, strict=False)), row[3].rjust(widths[3])]
        click.echo("  ".join([*cells, " ".join(message.split())]).rstrip())


def _looked_into(found: Discovery) -> list[Record]:
    """What became of the plugins, with what is wrong with those that are used."""
    from attrs import evolve

    from trnspec.plugins.discovery import FAULTY, OK

    used = {p.name: p for p in found.plugins[1:]}
    wrong = _of_documents(found)
    records: list[Record] = []
    for record in found.records:
        faults = (*_of_functions(record, used[record.name]), *wrong[record.name]) if record.status == OK else ()
        more = [f"and {len(faults) - _SHOWN} more"] if len(faults) > _SHOWN else []
        message = "; ".join([*faults[:_SHOWN], *more])
        records.append(evolve(record, status=FAULTY, message=message, faults=faults) if faults else record)
    return records


def _of_functions(record: Record, plugin: Plugin) -> Iterator[str]:
    """What cannot be imported of all that a plugin names, or is not what it should be."""
    from trnspec.errors import UsageError
    from trnspec.evaluation.inputs import inputs
    from trnspec.plugins.discovery import limit, told
    from trnspec.plugins.entry_points import EntryPoint, imported

    named: list[tuple[str, Evaluator | Exporter | Command]] = [("evaluator", e) for e in plugin.evaluators]
    named += [("exporter", e) for e in plugin.exporters]
    named += [("command", c) for c in plugin.commands]
    elsewhere = [f for _, f in named if isinstance(f.run, str)]
    places = [EntryPoint(f.name, record.distribution, record.version, str(f.run)) for f in elsewhere]
    outcomes = dict(zip(map(id, elsewhere), imported(places, limit()), strict=True))
    for what, each in named:
        outcome = outcomes.get(id(each))
        if outcome is not None and (outcome.late or outcome.error is not None):
            why = "it took longer than TRNSPEC_PLUGIN_SECONDS" if outcome.error is None else told(outcome.error)
            yield f"the {what} {each.name}: {each.run} cannot be imported: {' '.join(why.split())}"
            continue
        try:
            value = each.load()
            if what == "evaluator":
                inputs(value, each.name)
        except UsageError as error:
            yield f"the {what} {error}" if str(error).startswith(each.name) else f"the {what} {each.name}: {error}"
            continue
        if not (isinstance(value, click.Command) if what == "command" else callable(value)):
            expected = "a click.Command" if what == "command" else "a function"
            yield f"the {what} {each.name} is of type {type(value).__name__}; {expected} is expected"
    yield from (f"the rule {r.code.id} {r.code.name} is no function" for r in plugin.rules if not callable(r.check))


def _of_documents(found: Discovery) -> Mapping[str, list[str]]:
    """By the name of each plugin, the errors in its documents, and its rules that fail; settings hide none of them."""
    from trnspec.api import validate
    from trnspec.diagnostics import Severity
    from trnspec.errors import UsageError
    from trnspec.loading.files import documents_in

    used = found.plugins[1:]
    roots = [(c.resolve(), p.name) for p in used for c in p.catalogs]
    rules = {r.code.id: p.name for p in used for r in p.rules}
    wrong: dict[str, list[str]] = {p.name: [] for p in used}
    for root, name in roots:
        try:
            list(documents_in(root))
        except UsageError as error:
            wrong[name].append(str(error))
    if any(wrong.values()) or not (roots or rules):
        return wrong
    for each in validate(registry=found.registry, every=True).report.diagnostics:
        message = " ".join(each.message.split())
        if each.code == "TRN900":
            # "rule ACME001 name failed: ...": it is a fault of who wrote the rule, and not of the document.
            name, told = rules.get(message.split()[1], ""), message
        else:
            file = FilePath(each.where.file).resolve()
            name = next((n for root, n in roots if file.is_relative_to(root)), "")
            told = f"{each.where}: {each.code} {each.name}: {message}"
        if name and each.severity is Severity.ERROR and told not in wrong[name]:
            wrong[name].append(told)
    return wrong


@command.command("new")
@click.argument("name")
@click.option(
    "--kind",
    type=click.Choice(["generation", "rules", "evaluator"]),
    default="generation",
    show_default=True,
    help="What it adds: documents of new hardware, cross-checks, or something that computes.",
)
@click.option("--into", metavar="DIR", default=".", show_default=True, help="The folder to make it in.")
def new(name: str, kind: str, into: str) -> None:
    """Write a working distribution, NAME and its tests, to start a plugin from.

    The folder must not exist yet. NAME is made of lower-case letters, digits and hyphens: acme-tpu.
    """
    from trnspec.plugins.scaffold.writer import write

    folder = write(name, kind, FilePath(into))
    click.echo(f"{folder}: a plugin with its own tests. Next:\n")
    click.echo(f"  pip install --editable {folder}\n  python -m pytest {folder}\n  trnspec plugin list")
