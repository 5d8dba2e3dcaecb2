"""``trnspec export``: documents in the forms of other programs."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import click

from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.complete import documents
from trnspec.cli.names import graph_for
from trnspec.diagnostics import did_you_mean
from trnspec.errors import TrnspecError, UsageError
from trnspec.output.exporters import FORMATS, export, export_all

if TYPE_CHECKING:
    from collections.abc import Mapping

    from click.shell_completion import CompletionItem

    from trnspec.output.exporters.exported import Export


def _formats(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  # click passes it
    from click.shell_completion import CompletionItem

    return [CompletionItem(f.name, help=f.summary) for f in FORMATS.values() if f.name.startswith(incomplete)]


def _help() -> str:
    widest = max(map(len, FORMATS))
    return "\n".join(["\b", "Formats:", *(f"  {f.name:<{widest}}  {f.summary}" for f in FORMATS.values())])


@click.command("export", epilog=_help())
@click.argument("format_", metavar="FORMAT", shell_complete=_formats)
@click.argument("name", required=False, metavar="[NAME]", shell_complete=documents())
@click.option("--output", type=click.Path(path_type=FilePath, dir_okay=False), metavar="FILE", help="Write it there.")
@catalog_options
def command(format_: str, name: str | None, output: FilePath | None, **options: Any) -> None:
    """Print the document NAME in another form; json prints the whole catalog when NAME is left out.

    What a form needs and the catalog does not know is assumed, and told: within the file where the form has room for
    it; else on standard error, and with --output in NAME.assumptions.md beside the file. A figure that cannot be
    assumed is an error; an overlay can give it. docs/reference/exports.md tells the forms.
    """
    if format_ not in FORMATS:
        _write(output, _of_plugin(format_, name, options), {})
        return
    if name is None:
        made = export_all(format_, load_catalog(**options).graph)
    else:
        graph = graph_for(name, **options)
        made = export(format_, graph, graph.named(name))
    beside = "" if FORMATS[format_].tells else _page(made, format_, str(name))
    _write(output, made.text, {f"{name}.assumptions.md": beside} if beside else {})
    if beside and output is None:
        for assumption in made.assumptions:
            click.echo(f"assumed: {assumption}", err=True)


def _page(made: Export, format_: str, name: str) -> str:
    from trnspec.output.exporters.exported import markdown

    return markdown(made, f"{name}, exported to {format_}")


def _of_plugin(format_: str, name: str | None, options: dict[str, Any]) -> str:
    """What a plugin writes of the whole catalog."""
    from trnspec.api import registry

    known = registry().exporters
    if format_ not in known:
        every = [*FORMATS, *known]
        hint = did_you_mean(format_, every) or f"there are {', '.join(every)}"
        raise UsageError(f"there is no export format {format_!r}; {hint}")
    if name is not None:
        raise UsageError(f"{format_}, which a plugin adds, writes the whole catalog; leave out {name}")
    catalog = load_catalog(**options)
    try:
        made = known[format_].load()(catalog)
    except TrnspecError:
        raise
    except Exception as error:  # code of others must not break this
        raise UsageError(f"{format_}, which a plugin adds, failed: {type(error).__name__}: {error}") from error
    if not isinstance(made, str):
        raise UsageError(f"{format_}, which a plugin adds, gave no text")
    return made


def _write(output: FilePath | None, text: str, beside: Mapping[str, str]) -> None:
    if output is None:
        click.echo(text, nl=False)
        return
    from trnspec.atomic_write import write

    write({output: text.encode(), **{output.parent / n: t.encode() for n, t in beside.items()}})
    told = [str(output), *(str(output.parent / n) for n in beside)]
    click.echo(f"wrote {' and '.join(told)}", err=True)
