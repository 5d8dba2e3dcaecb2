"""``trnspec export``: documents in the formats of other programs."""

from __future__ import annotations

from pathlib import Path as FilePath
from typing import Any

import click

from trnspec.atomic_write import write
from trnspec.cli.common import catalog_options, graph_for, load_catalog
from trnspec.cli.complete import documents
from trnspec.cli.formats import FormatName
from trnspec.cli.help import GroupedCommand, NamedPath, documented, option
from trnspec.errors import UsageError
from trnspec.output.exporters import export, export_all, exporter
from trnspec.output.exporters.exported import markdown

_FORMAT = FormatName(exports=True)


class _ExportCommand(GroupedCommand):
    """Lists the formats below the options, those of plugins included."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The formats with their summaries."""
        with formatter.section("Formats"):
            formatter.write_dl([(f.name, f.summary) for f in _FORMAT.formats(ctx).values()])


def _pairs(ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    """The path of a figure by field of the export: ``vector.tflops=peak.dense.fp32``."""
    pairs = {text: text.partition("=")[::2] for text in texts}
    for text, pair in pairs.items():
        if not all(part.strip() for part in pair):
            raise click.BadParameter(f"{text!r} is not FIELD=PATH, such as vector.tflops=peak.dense.fp32", ctx, param)
    return {field.strip(): path.strip() for field, path in pairs.values()}


@documented(
    "export",
    ("trnspec export svg trn2-ultraserver --output fabric.svg", "The fabric of a system as a picture:"),
    ("trnspec export astra-sim trn1.32xlarge", "A network for astra-sim:"),
    (
        "trnspec export calculon p5.48xlarge --use 'vector.tflops=peak.dense.fp32'",
        "A system of calculon, with another published rate for one that is not known:",
    ),
    ("trnspec export json --output catalog.json", "The whole catalog:"),
    cls=_ExportCommand,
)
@click.argument("format_", metavar="FORMAT", type=_FORMAT)
@click.argument("name", required=False, metavar="[NAME]", shell_complete=documents())
@option("--output FILE", "Output", "Write to FILE.", type=NamedPath(dir_okay=False))
@option(
    "--use FIELD=PATH",
    "Figures",
    "Where FIELD lacks its figure, use the published figure at PATH of the same document.",
    callback=_pairs,
    multiple=True,
)
@catalog_options
def command(format_: str, name: str | None, output: FilePath | None, use: dict[str, str], **options: Any) -> None:
    """Print the document NAME in another format; without NAME, the whole catalog (json).

    Where a format needs a value that the catalog does not have, an assumption is made and reported: in the file if the
    format allows it, else on standard error, or with --output in NAME.assumptions.md next to FILE. A figure that cannot
    be assumed is an error that lists published alternatives for --use; --overlay can supply it. See
    docs/reference/exports.md.
    """
    if name is None:
        if use:
            raise UsageError("--use needs the NAME of a document")
        result = export_all(format_, load_catalog(**options).graph)
    else:
        graph = graph_for(name, **options)
        result = export(format_, graph.named(name), graph, use=use)
    files = {output: result.text}
    if not exporter(format_).inline:
        title = f"{name or 'catalog'}, exported to {format_}"
        files[(output or FilePath()).parent / f"{name or 'catalog'}.assumptions.md"] = markdown(result, title)
    if output is None:
        click.echo(result.text, nl=False)
        for assumption in result.assumptions if len(files) > 1 else ():
            click.echo(f"assumed: {assumption}", err=True)
        return
    write({file: text.encode() for file, text in files.items() if file is not None})
    click.echo(f"wrote {' and '.join(map(str, files))}", err=True)
