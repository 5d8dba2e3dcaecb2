"""``trnspec migrate``: documents in the present version of the format."""

from __future__ import annotations

import sys

import click

from trnspec.cli.common import check_options, here
from trnspec.cli.help import GroupedCommand


@click.command(
    "migrate",
    cls=GroupedCommand,
    examples=(
        ("trnspec migrate --diff my-catalog", "Show what would change in a folder:"),
        ("trnspec migrate my-catalog", "Migrate its documents:"),
        ("trnspec migrate --check my-catalog", "List those of an older format, with exit status 1:"),
    ),
)
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", type=click.Path(readable=False))
@check_options
def command(paths: tuple[str, ...], check: bool, diff: bool) -> None:  # noqa: FBT001  # click passes them by name
    """Write documents of an older api_version, or with former paths, in the present format.

    The present version is trnspec/v1. Attributes get their present paths, also in claims, waivers and overrides; comments,
    the text of every value, line ends and permissions are kept. Documents of older versions can be read without it. YAML
    files of other programs are skipped. Exit status: 0, or 1 if --check or --diff finds a file to change, or if something
    has to be changed by hand.
    """
    from trnspec.api import registry
    from trnspec.loading.migration import migrated
    from trnspec.loading.rewriting import documents_of, write_texts

    kinds = registry().kinds
    changed, by_hand = [], False
    for file in documents_of(paths, kinds, here().catalogs):
        text, problems = migrated(file.text, kinds)
        for problem in problems:
            by_hand = True
            place = f":{problem.place.line}:{problem.place.column}" if problem.place is not None else ""
            hint = f" ({problem.hint})" if problem.hint else ""
            click.echo(f"{file.file}{place}: {problem.code}: {problem.message}; change it by hand{hint}", err=True)
        if text != file.text:
            changed.append((file, text))
    if diff:
        for file, text in changed:
            click.echo(file.diff(text), nl=False)
    elif check:
        for file, _ in changed:
            click.echo(f"would migrate {file.file}")
    else:
        write_texts(changed)
        for file, _ in changed:
            click.echo(f"migrated {file.file}")
    sys.exit(1 if by_hand or ((check or diff) and changed) else 0)
