"""The command line; each command is a module of its own and is imported when it is called."""

from __future__ import annotations

import atexit
import gc
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from trnspec._version import __version__
from trnspec.errors import TrnspecError

COMMANDS = {
    "validate": "Check catalog files and everything they take part in.",
    "audit": "Print every disagreement of the catalog, recorded or found.",
    "list": "List the documents of a kind, or of all kinds.",
    "show": "Print every figure of a document with source, date and rivals.",
    "compare": "Print documents side by side, with ratios.",
    "source": "Print everything that rests on a source.",
    "tree": "Print what a system is built of, down to the engines.",
    "diff": "Tell what changed from A to B: documents, figures, counts, words, and why.",
    "edition": "Freeze the catalog, list its editions, verify that none was altered.",
    "query": "Print the documents of a kind that fulfil a condition.",
    "sql": "Ask the tables of the catalog in SQL.",
    "export": "Print a document in the form of another program, or as a picture.",
    "plugin": "List the installed plugins and what became of them; start a new one.",
    "explain": "Tell what a code means, why it matters and what to write instead.",
    "completion": "Print the completion script of a shell.",
}
"""The commands with what ``--help`` says of each, so that it need not import them."""


_GARBAGE = 100_000
"""How many more objects there may be before the collector looks."""

_INTERRUPTED = 130
"""128 and the number of SIGINT."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click passes it
        """The names of the commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click passes it
        """The command of that name."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"trnspec.cli.{cmd_name}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; ``Ctrl-C`` ends it with the status that shells use for that."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("trnspec: interrupted", err=True)
            ctx.exit(_INTERRUPTED)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # the same
        """The commands in ``--help``, without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="trnspec", message="%(prog)s %(version)s")
@click.option("--plugin", "only", multiple=True, metavar="NAME", help="Use only this plugin; may be repeated.")
@click.option("--no-plugins", "none", is_flag=True, help="Use no plugins.")
@click.pass_context
def group(ctx: click.Context, only: tuple[str, ...], *, none: bool) -> None:
    """A checked catalog of AWS Trainium hardware.

    Every figure has a source, a date and a precision; where two disagree, trnspec says why.
    """
    if only and none:
        raise click.UsageError("--no-plugins does not go with --plugin")
    from trnspec.cli.session import plugins

    ctx.with_resource(plugins(None if not (only or none) else only))


def _leave_garbage() -> None:
    # DuckDB complains aloud of what is not taken away.
    if "duckdb" not in sys.modules:
        gc.freeze()


def main() -> None:
    """Run the command line: exit status 0 clean, 1 findings, 2 misuse."""
    # A command lives for a moment; looking for garbage while it starts, and in all there is when it ends, would take a
    # fifth of that.
    gc.set_threshold(_GARBAGE)
    atexit.register(_leave_garbage)
    # A terminal or a file that cannot hold a character gets its number; it is no reason to fail.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        group(standalone_mode=True, complete_var="_TRNSPEC_COMPLETE")
    except TrnspecError as error:
        click.echo(f"trnspec: {error}", err=True)
        sys.exit(2)
    except OSError as error:
        # Click takes care of a reader who has gone; what is left is a full disk, for instance.
        click.echo(f"trnspec: {error}", err=True)
        sys.exit(2)
