"""``trnspec new``: documents from values by path and prompts, and from files of other programs."""

from __future__ import annotations

import re
import sys
from pathlib import Path as FilePath
from typing import Any

import click

from trnspec.cli.formats import known
from trnspec.cli.help import GroupedCommand, option
from trnspec.cli.suggest import Group
from trnspec.errors import UsageError


class Kinds(Group):
    """A command for each kind of document, those of plugins included, and those that read other files."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the kinds in lower case, in the order of the catalog."""
        return list(dict.fromkeys([name.lower() for name in known(ctx).kinds] + super().list_commands(ctx)))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a kind; one of this module takes precedence."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        registry = known(ctx)
        kind = next((k for name, k in registry.kinds.items() if name.lower() == cmd_name), None)
        if kind is None:
            return None
        from trnspec.cli.new_document import kind_command

        return kind_command(kind, registry)


@click.group("new", cls=Kinds)
def command() -> None:
    """Write a new document of the catalog.

    Values are given by path: trnspec new chip NAME --source NAME --set memory.capacity='96 GiB'.
    """


@command.command(
    "model",
    cls=GroupedCommand,
    examples=(
        ("trnspec new model my-model --from config.json", "A model of the Hugging Face Hub, printed:"),
        ("trnspec new model my-model --from config.json --output models/my-model.yaml", "Written to a file:"),
        ("trnspec eval memory --model config.json --on trn2.48xlarge --seq 4096", "Without a document:"),
    ),
)
@click.argument("name", required=False)
@option(
    "--from",
    "file",
    group="Input",
    metavar="FILE",
    required=True,
    help="The config.json of the model; - for standard input.",
)
@option(
    "--name",
    "named",
    metavar="NAME",
    hidden=True,
)
@option("--title", group="Input", metavar="TEXT", help="Its title; by default the name.")
@option(
    "--source",
    group="Input",
    metavar="NAME",
    help="The source document that the figures are taken from.",
)
@option(
    "--output",
    "--out",
    "out",
    group="Output",
    metavar="FILE",
    help="Write to this file; it must not exist.",
)
def model_(  # the options above
    name: str | None, file: str, named: str | None, title: str | None, source: str | None, out: str | None
) -> None:
    """Write the document of a model from the config.json of the Hugging Face Hub.

    NAME is by default the name in config.json, where it states one.

    The language model of a multimodal model is imported alone. Keys that are missing take the default of their class, and
    the note of the document says so. A key that may matter and is not known is an error.
    """
    from trnspec.atomic_write import write
    from trnspec.model.transformers.document import model_document
    from trnspec.model.transformers.huggingface.config import read_config
    from trnspec.model.transformers.huggingface.registry import imported

    text = sys.stdin.read() if file == "-" else None
    config = read_config(file, text)
    model = imported(config)
    name, title = _named(config, name or named, title)
    document = model_document(model.model, name=name, title=title, source=source, notes=model.notes)
    if out is None:
        sys.stdout.write(document)
        return
    if FilePath(out).exists():
        raise UsageError(f"{out} exists; remove it, or name another file")
    write({FilePath(out): document.encode()})
    click.echo(f"{out}: written. Next: trnspec validate {out}")


def _named(config: dict[str, Any], name: str | None, title: str | None) -> tuple[str, str]:
    """Name and title of the document.

    Raises:
        UsageError: No name was given, and config.json states none.
    """
    stated = str(config.get("_name_or_path") or "").rstrip("/").rpartition("/")[2]
    if name is None:
        if not stated:
            raise UsageError("config.json states no name; name the document: trnspec new model NAME")
        name = re.sub(r"[^a-z0-9.]+", "-", stated.lower()).strip("-.")
        title = title or stated
    return name, title or name
