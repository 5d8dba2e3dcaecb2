"""Command groups that list their commands in full, and suggest the nearest name for one that does not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Iterable


_WHOLE = 1000
"""More characters than the first sentence of any command has."""


class Group(click.Group):
    """A group whose error for an unknown command has the nearest names, and whose summaries are not cut."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name; a usage error with a suggestion for an unknown one."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            raise unknown(ctx, "command", name, self.list_commands(ctx))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands in ``--help``, each with its whole first sentence: long ones are wrapped and not cut."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, one.get_short_help_str(_WHOLE)) for name, one in commands if one is not None and not one.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)


def unknown(ctx: click.Context, what: str, name: str, names: Iterable[str]) -> click.UsageError:
    """The error for an unknown command or evaluator."""
    from trnspec.diagnostics import did_you_mean

    known = list(names)
    hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
    return click.UsageError(f"No such {what} {name!r}; {hint}", ctx)


def renamed(former: str, present: str) -> None:
    """Print the present name of a command that was called by its former name."""
    click.echo(f"trnspec {former} is now trnspec {present}", err=True)
