"""``trnspec explain``: the manual page of a code."""

from __future__ import annotations

import click

from trnspec.api import registry
from trnspec.builtin import plugin
from trnspec.errors import UsageError
from trnspec.plugins.api import Registry


@click.command("explain")
@click.argument("code", required=False)
def command(code: str | None) -> None:
    """Tell what a code means, why it matters and what to write instead; without one, list all codes."""
    if code is None:
        for each in registry().codes.values():
            click.echo(f"{each.id}  {each.severity.label:<7}  {each.name:<26}  {each.summary}")
        return
    try:
        # A code of trnspec itself is explained without importing any plugin.
        found = Registry.of([plugin]).code(code)
    except UsageError:
        found = registry().code(code)
    click.echo(f"{found.id} {found.name} ({found.severity.label})\n\n{found.doc.strip()}")
