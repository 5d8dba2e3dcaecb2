"""The command line; each command is a module of its own and is imported when it is called."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import TYPE_CHECKING, Any

import click

from trnspec._version import __version__
from trnspec.errors import TrnspecError, UsageError
from trnspec.plugins.builtin_commands import COMMANDS

if TYPE_CHECKING:
    from trnspec.plugins.api import Command

_GARBAGE = 100_000
"""How many more objects there may be before the collector looks."""

_PLUGINS = "trnspec.plugins"
"""The group of entry points; the module that names it for everybody takes longer to import than ``--help`` does."""

_PROVIDER = "trnspec.cli.provider"
"""Where the context keeps the name of the command of a plugin that runs, and of the plugin."""

_INTERRUPTED = 130
"""128 and the number of SIGINT."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click passes it
        """The names of the commands."""
        return [*COMMANDS]  # list is a command here, once it is imported

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name: that of trnspec, else that of an installed plugin."""
        if cmd_name not in COMMANDS:
            return _added(ctx, cmd_name)
        command: click.Command = import_module(f"trnspec.cli.{cmd_name}").command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; ``Ctrl-C`` ends it with the status that shells use for that."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            click.echo("trnspec: interrupted", err=True)
            ctx.exit(_INTERRUPTED)
        except (click.ClickException, click.exceptions.Exit, click.Abort, TrnspecError, OSError):
            raise
        except Exception as error:
            if _PROVIDER not in ctx.meta:
                raise  # a defect of trnspec itself
            from trnspec.plugins.failures import described, print_traceback

            print_traceback(error)
            raise UsageError(f"{ctx.meta[_PROVIDER]} failed: {described(error)}") from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands in ``--help``, without importing any; those of plugins apart."""
        with formatter.section("Commands"):
            formatter.write_dl([*COMMANDS.items()])
        added = _of_plugins(ctx)
        if added:
            with formatter.section("Commands of plugins"):
                formatter.write_dl([(str(name), str(command.summary)) for name, command in added.items()])


def _of_plugins(ctx: click.Context) -> dict[str, Command]:
    """The commands of the installed plugins that may be used, by name; nothing is imported where there are none.

    Click asks for them before the options take effect, so what these say is looked up here.
    """
    from trnspec.plugins.entry_points import installed

    if ctx.params.get("none") or {f.name for f in installed(_PLUGINS)} <= {"trnspec"}:
        return {}
    from trnspec.cli.formats import known

    return {c.name: c for plugin in known(ctx).plugins[1:] for c in plugin.commands}


def _added(ctx: click.Context, name: str) -> click.Command | None:
    """The command of that name that a plugin has, imported now.

    Raises:
        UsageError: It cannot be imported, or is no click command.
    """
    if ctx.resilient_parsing:
        return None  # a shell that completes a word waits for no plugin
    found = _of_plugins(ctx).get(name)
    if found is None:
        return None
    from trnspec.cli.formats import known
    from trnspec.plugins.api import loaded

    ctx.meta[_PROVIDER] = provider = f"the command {name} of {known(ctx).provider(found)}"
    command = loaded(provider, found.run)
    if not isinstance(command, click.Command):
        raise UsageError(f"{provider}: {found.run} is of type {type(command).__name__}; a click.Command is expected")
    return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="trnspec", message="%(prog)s %(version)s")
@click.option(
    "--plugin", "only", multiple=True, is_eager=True, metavar="NAME", help="Use only this plugin; may be repeated."
)
@click.option("--no-plugins", "none", is_flag=True, is_eager=True, help="Use no plugins.")
@click.option("--traceback", is_flag=True, help="Print the traceback of an error in a plugin.")
@click.pass_context
def group(ctx: click.Context, only: tuple[str, ...], *, none: bool, traceback: bool) -> None:
    """A checked catalog of AWS Trainium hardware.

    Every figure has a source, a date and a precision; where two disagree, trnspec says why.
    """
    if only and none:
        raise click.UsageError("--no-plugins does not go with --plugin")
    from trnspec.cli.session import plugins

    ctx.with_resource(plugins(None if not (only or none) else only, traceback=traceback or None))


def _leave_garbage() -> None:
    # DuckDB complains aloud of what is not taken away.
    if "duckdb" not in sys.modules:
        gc.freeze()


def _drop_output() -> None:
    """Let go of what could not be written: Python would try again at the end, fail, and exit with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _told(error: OSError) -> str:
    """What could not be used and why, in words: a file by its name, else standard output where click was writing."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {reason}"
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    writing = trace is not None and trace.tb_frame.f_globals.get("__name__") == click.utils.__name__
    return f"cannot write to standard output: {reason}" if writing else reason


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
        click.echo(f"trnspec: {_told(error)}", err=True)
        _drop_output()
        sys.exit(2)
