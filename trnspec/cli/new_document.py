"""``trnspec new KIND``: a document of any kind from options or prompts, those of plugins included."""

from __future__ import annotations

import sys
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve

from trnspec.cli.help import GroupedCommand, GroupedOption
from trnspec.errors import UsageError
from trnspec.model.form import Entry, entries, missing, nested, value

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trnspec.plugins.api import Kind, Registry

_METADATA = ("name", "title", "source", "where")
_RESERVED = frozenset({*_METADATA, "output", "out", "catalog", "help"})


def kind_command(kind: Kind, known: Registry) -> click.Command:
    """The command that writes a document of a kind; its options are the fields of its class."""
    from trnspec.atomic_write import write
    from trnspec.model.reflection import summary

    listed = tuple(entries(kind.spec))
    required = frozenset(missing(kind.spec, frozenset()))
    params: list[click.Parameter] = [
        _option("--name", "The name of the document; by default that of the file.", group="Document", metavar="NAME"),
        _option("--title", "Its title; by default the name.", group="Document", metavar="TEXT"),
    ]
    if _is_sourced(kind):
        params += [
            _option("--source", "The source document that states the figures.", group="Document", metavar="NAME"),
            _option("--where", "The place in the source.", group="Document", metavar="TEXT"),
        ]
    params += [_entry_option(entry, n, entry.path in required) for n, entry in enumerate(listed)]
    params += [
        _option("--output", "Write to this file; it must not exist.", "--out", group="Output", metavar="FILE"),
        _option("--catalog", "Also resolve names in this catalog.", group="Output", metavar="DIR"),
    ]

    def callback(output: str | None, catalog: str | None, **given: Any) -> None:
        metadata = {key: given.pop(key) for key in _METADATA if given.get(key)}
        file = None if output is None else FilePath(output)
        if file is not None and file.exists():
            raise UsageError(f"{output} exists; remove it, or name another file")
        if file is not None:
            metadata.setdefault("name", file.stem)
        text = _text(kind, known, metadata, given)
        if _has_errors(text, output or f"{kind.folder}/{metadata['name']}.yaml", kind, known, catalog):
            raise click.exceptions.Exit(1)
        if file is None:
            sys.stdout.write(text)
            return
        write({file: text.encode()})
        click.echo(f"{output}: written. Next: trnspec validate {output}")

    example = [f"trnspec new {kind.name.lower()} --name NAME"]
    example += ["--source NAME"] if _is_sourced(kind) else []
    example += [f"--{_flag(e)} '{e.example or (*e.words, e.type)[0]}'" for e in listed if e.path in required]
    return GroupedCommand(
        kind.name.lower(),
        params=params,
        callback=callback,
        help=(
            f"Write a document of the kind {kind.name}.\n\n{summary(kind.spec)} On a terminal, what is missing is prompted"
            " for. Values that are not known are left out. A document with an error is not written."
        ),
        short_help=summary(kind.spec),
        examples=((" ".join(example), "The fields that are required:"),),
    )


def _option(flag: str, text: str, *other: str, group: str, metavar: str) -> GroupedOption:
    return GroupedOption([flag, *other], help=text, group=group, metavar=metavar)


def _is_sourced(kind: Kind) -> bool:
    """Whether figures of this kind have a source: those of a source itself have none."""
    return bool(getattr(kind.spec, "SOURCED", True))


def _flag(entry: Entry) -> str:
    return f"spec.{entry.path}" if entry.path in _RESERVED else entry.path


def _entry_option(entry: Entry, number: int, required: bool) -> GroupedOption:  # noqa: FBT001  # of this module
    such = f" Such as {entry.example}." if entry.example and not entry.words else ""
    words = entry.type.upper() if len(entry.type) <= 20 else "VALUE"
    group = entry.path.partition(".")[0] if "." in entry.path else "Fields"
    flag = f"--{_flag(entry)}"
    return GroupedOption(
        # The name of the field, and as other options are written.
        [*dict.fromkeys([flag, flag.replace("_", "-")]), f"field_{number}"],
        help=f"{entry.description}{such}{' Required.' if required else ''}".strip(),
        group="Required" if required else group,
        type=click.Choice(entry.words) if entry.words else str,
        metavar=None if entry.words else f"NAME={words}" if entry.named else words,
        multiple=entry.named,
    )


def _text(kind: Kind, known: Registry, metadata: dict[str, str], given: Mapping[str, Any]) -> str:
    """The document of some values, with those that are required and were not given."""
    from trnspec.model.document_text import document_text

    listed = tuple(entries(kind.spec))
    values = {
        e.path: _parsed(e, v, known) for n, e in enumerate(listed) if (v := given[f"field_{n}"]) not in (None, ())
    }
    values = _completed(kind, known, metadata, values)
    metadata.setdefault("title", metadata["name"])
    ordered = {key: metadata[key] for key in _METADATA if key in metadata}
    return document_text(kind.name, ordered, nested({e.path: values[e.path] for e in listed if e.path in values}))


def _parsed(entry: Entry, given: str | tuple[str, ...], known: Registry) -> Any:
    """The value of an option; the values of a mapping are given one by one, each with its name.

    Raises:
        UsageError: It is not one; the message names the option.
    """
    try:
        return value(entry, given, known.units) if isinstance(given, str) else _mapping(entry, given, known)
    except UsageError as error:
        raise UsageError(f"--{_flag(entry)}: {error}") from None


def _mapping(entry: Entry, given: tuple[str, ...], known: Registry) -> dict[str, Any]:
    pairs = [text.partition("=") for text in given]
    if not all(name and sign for name, sign, _ in pairs):
        raise UsageError("expected NAME=VALUE")
    return {name: value(entry, text, known.units) for name, _, text in pairs}


def _completed(kind: Kind, known: Registry, metadata: dict[str, str], values: dict[str, Any]) -> dict[str, Any]:
    """The values with what is required and was not given, from prompts.

    Raises:
        UsageError: Something is missing, and standard input is not a terminal; the message names all of it.
    """
    by_path = {entry.path: entry for entry in entries(kind.spec)}
    asked = ("name", *(("source",) if _is_sourced(kind) else ()))
    wanted = [*(key for key in asked if key not in metadata), *missing(kind.spec, frozenset(values))]
    if wanted and not on_terminal():
        listed_texts = [f"--{w}" if w in asked else _described(by_path.get(w), w) for w in wanted]
        hint = f"trnspec new {kind.name.lower()} --help lists the fields, and has an example"
        if "source" in wanted:
            hint = "trnspec source lists the sources, trnspec new source writes one; " + hint
        raise UsageError(f"a {kind.name} requires {', '.join(listed_texts)}", hint=hint)
    for key in asked:
        if key not in metadata:
            metadata[key] = click.prompt(key.capitalize(), err=True)
    completed = dict(values)
    # The answers may begin a part that has required fields of its own.
    while remaining := [path for path in missing(kind.spec, frozenset(completed)) if path in by_path]:
        for path in remaining:
            completed[path] = _prompted(by_path[path], known)
    return completed


def on_terminal() -> bool:
    """Whether somebody can answer prompts."""
    return sys.stdin is not None and sys.stdin.isatty()


def _described(entry: Entry | None, path: str) -> str:
    if entry is None:
        return f"{path} (write it in a file)"
    return f"--{_flag(entry)} ({_expected(entry)})"


def _expected(entry: Entry) -> str:
    """The type of a value in words, with an example where it has one."""
    if entry.words:
        return f"one of {', '.join(entry.words)}"
    return entry.type + (f", such as {entry.example}" if entry.example else "")


def _prompted(entry: Entry, known: Registry) -> Any:
    """A value from a prompt, which is repeated until it is valid."""
    while True:
        answer = click.prompt(f"{entry.path} ({_expected(entry)})", err=True)
        try:
            return value(entry, answer, known.units)
        except UsageError as error:
            click.echo(f"{error}", err=True)


def _has_errors(text: str, file: str, kind: Kind, known: Registry, catalog: str | None) -> bool:
    """Check the document among those of the catalogs, and print what is found; true if that includes errors."""
    import os

    from trnspec.api import load_documents, select
    from trnspec.checks.runner import check
    from trnspec.cli.common import here
    from trnspec.diagnostics import Severity
    from trnspec.loading.pipeline import load_document
    from trnspec.output.reporters import render, use_color
    from trnspec.yaml import read_text

    folder = FilePath(file).parent
    roots = [FilePath(catalog)] if catalog else []
    # The catalog that the file is written into: the folder above that of its kind.
    if folder.name == kind.folder and folder.parent.is_dir() and any(folder.parent.glob("*/*.yaml")):
        roots.append(folder.parent)
    settings = here()
    settings = evolve(settings, catalogs=(*roots, *settings.catalogs))
    selection = evolve(select(["-"], known, settings), stdin=False)
    checked = check(
        [load_document(read_text(text.encode(), file), known), *load_documents(selection, known)], known, settings
    )
    found = checked.report.diagnostics
    if found:
        report = render(checked.report, "text", color=use_color(sys.stderr, os.environ), texts=checked.texts)
        click.echo(report, err=True)
    errors = any(d.severity is Severity.ERROR for d in found)
    if errors:
        click.echo("nothing was written", err=True)
    return errors
