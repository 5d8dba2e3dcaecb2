"""``trnspec fmt``: documents in their canonical layout."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import click

from trnspec.api import registry
from trnspec.cli.common import check_options, here, rewrite
from trnspec.cli.help import documented
from trnspec.errors import UsageError
from trnspec.loading.rewriting import documents_of, formatted
from trnspec.plugins.api import Kind
from trnspec.yaml import ReadingLimits, read_text
from trnspec.yaml.layout import LayoutError


@documented(
    "fmt",
    ("trnspec fmt my-catalog", "Format the documents of a folder:"),
    ("trnspec fmt --check my-catalog", "List those that are not formatted, with exit status 1:"),
    ("trnspec fmt --diff chips/acme-1.yaml", "Show what would change in a file:"),
    ("trnspec fmt .", "Format all documents of this folder:"),
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(readable=False))
@check_options
def command(paths: tuple[str, ...], check: bool, diff: bool) -> None:  # noqa: FBT001  # click passes them by name
    """Format documents: order of keys, indentation and spacing.

    Keys have the order of trnspec explain KIND. Comments, the text of every value, line ends and permissions are kept;
    data types and names that authors choose keep their order. PATH is a file, a folder, or - for standard input, which
    is printed. YAML files of other programs are skipped. Exit status: 0, or 1 if --check or
    --diff finds a file to change, or if a file cannot be formatted.
    """
    kinds = registry().kinds
    if "-" in paths:
        if len(paths) > 1 or check or diff:
            raise UsageError("- is formatted alone, without --check and --diff")
        sys.exit(_stream(kinds))
    failed = False
    changed = []
    files = documents_of(paths, kinds, here().catalogs)
    for file in files:
        try:
            text = file.with_line_ends(formatted(file.text, kinds))
        except LayoutError as error:
            failed = True
            click.echo(_reason(str(file.file), file.text, error), err=True)
            continue
        if text != file.text:
            changed.append((file, text))
    if rewrite(changed, "reformat", check=check, diff=diff):
        for file, _ in changed:
            click.echo(f"reformatted {file.file}")
    sys.exit(1 if failed or ((check or diff) and changed) else 0)


def _reason(name: str, text: str, error: LayoutError) -> str:
    """The first error of a file that cannot be formatted, with place, code and hint."""
    problem = next((p for p in read_text(text, name).problems if p.code < "TRN050"), None)
    if problem is None:
        return f"{name}: not formatted: {error}"
    place = f":{problem.place.line}:{problem.place.column}" if problem.place is not None else ""
    return f"{name}{place}: error {problem.code}: {problem.message} Not formatted. ({problem.hint})"


def _stream(kinds: Mapping[str, Kind]) -> int:
    """Format standard input; the exit status."""
    text = sys.stdin.buffer.read(ReadingLimits().bytes + 1).decode("utf-8", "replace") if sys.stdin is not None else ""
    try:
        click.echo(formatted(text, kinds), nl=False)
    except LayoutError as error:
        click.echo(_reason("<stdin>", text, error), err=True)
        return 1
    return 0
