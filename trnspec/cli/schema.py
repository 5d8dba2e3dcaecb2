"""``trnspec schema``: the JSON Schemas of the kinds, those of plugins included."""

from __future__ import annotations

import json
from pathlib import Path as FilePath
from typing import Any

import click

from trnspec.api import registry
from trnspec.atomic_write import write
from trnspec.cli.complete import offering
from trnspec.cli.formats import known as registry_of
from trnspec.cli.help import NamedPath, documented, option
from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.loading.files import schemas
from trnspec.model.json_schema import combined_schema, document_schema
from trnspec.model.kinds import BUILTIN
from trnspec.plugins.api import Kind, Registry


@documented(
    "schema",
    ("trnspec schema Chip", "The schema of one kind:"),
    ("trnspec schema --combined", "One schema for documents of all kinds:"),
    ("trnspec schema --all schemas", "The schemas of all kinds, as files:"),
    ("trnspec schema Server --modeline", "The comment with which editors find the schema:"),
)
@click.argument("kind", required=False, shell_complete=offering(lambda ctx, _: registry_of(ctx).kinds))
@option(
    "--all DIR folder",
    "Output",
    "Write the schema of every kind to DIR/KIND.schema.json.",
    type=NamedPath(file_okay=False),
)
@option("--modeline", "Output", "Print the first line of a document, which names its schema to an editor.")
@option("--combined", "Output", "Print one schema for documents of all kinds, those of plugins included.")
def command(kind: str | None, folder: FilePath | None, *, modeline: bool, combined: bool) -> None:
    """Print the JSON Schema of a kind of document; without KIND, list the kinds.

    For an editor, --modeline prints a first line that names the schema of this installation. For documents that others edit,
    write the schemas to a folder and name one there:
    "# yaml-language-server: $schema=../schemas/chip.schema.json". trnspec lsp needs neither.
    """
    known = registry()
    if combined:
        if kind is not None or folder is not None or modeline:
            raise UsageError("--combined is for all kinds; leave out KIND, --all and --modeline")
        specs = {name: (each.spec, each.api_versions) for name, each in known.kinds.items()}
        click.echo(_json(combined_schema(specs, known.units)), nl=False)
    elif modeline:
        if kind is None or folder is not None:
            raise UsageError("--modeline is of one KIND, without --all")
        click.echo(_modeline(_kind(known, kind)))
    elif folder is not None:
        if kind is not None:
            raise UsageError("--all writes every kind; leave out KIND")
        _write(folder, known)
    elif kind is None:
        width = max(map(len, known.kinds))
        for each in known.kinds.values():
            click.echo(f"{each.name:<{width}}  {each.folder}/")
    else:
        click.echo(_text(_kind(known, kind), known), nl=False)


def _kind(known: Registry, name: str) -> Kind:
    by_name = {k.lower(): kind for k, kind in known.kinds.items()}
    if name.lower() not in by_name:
        hint = did_you_mean(name, [*known.kinds, *by_name]) or f"kinds: {', '.join(known.kinds)}"
        raise UsageError(f"there is no kind {name!r}; {hint}")
    return by_name[name.lower()]


def _text(kind: Kind, known: Registry) -> str:
    return _json(document_schema(kind.name, kind.spec, known.units, kind.api_versions))


def _json(schema: dict[str, Any]) -> str:
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def _modeline(kind: Kind) -> str:
    if kind.name not in BUILTIN:
        name = kind.name.lower()
        raise UsageError(
            f"the schema of {kind.name} is not a file of trnspec; write it with --all DIR and name {name}.schema.json"
        )
    return f"# yaml-language-server: $schema={(schemas() / 'v1' / f'{kind.name.lower()}.schema.json').as_uri()}"


def _write(folder: FilePath, known: Registry) -> None:
    files = {folder / f"{kind.name.lower()}.schema.json": _text(kind, known).encode() for kind in known.kinds.values()}
    write(files)
    click.echo(f"wrote {len(files)} schemas to {folder}", err=True)
