"""The group of commands, and the entry point that runs one of them."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from importlib import import_module
from io import StringIO
from typing import TYPE_CHECKING

import click

from trnspec._version import __version__
from trnspec.cli import prepare
from trnspec.cli.help import CommandGroup, renamed, write_examples
from trnspec.errors import TrnspecError, UsageError
from trnspec.plugins.builtin_commands import COMMANDS, FORMER, GROUPS

if TYPE_CHECKING:  # the list of commands needs no plugins
    from trnspec.plugins.api import Command

_PROVIDER = "trnspec.cli.provider"
"""Key of the context for the command of a plugin that runs, and the plugin."""

_COMPLETE = "_TRNSPEC_COMPLETE"
"""The variable with which a shell requests completions from click."""

_EXAMPLES = (
    ("trnspec show trainium2", "The figures of a chip, with intervals and disputed values:"),
    ("trnspec compare trainium2 trainium3", "Two chips side by side:"),
    (
        "trnspec check trn2.48xlarge memory.bandwidth '46 TB/s'",
        "Whether a figure from a slide agrees with the catalog:",
    ),
    (
        "trnspec plan train --model llama-3.1-8b --tokens 1T --deadline 60d --on trn2.48xlarge",
        "Number of systems, run time and cost of a training run:",
    ),
    ("trnspec validate my-catalog", "Validate your own documents:"),
)

_INTERRUPTED = 130
"""128 plus the number of SIGINT."""


class LazyGroup(CommandGroup):
    """A group whose commands are imported when they are called."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the options of the group; ``--no-plugins`` is one of them also behind the command."""
        end = args.index("--") if "--" in args else len(args)
        if "--no-plugins" in args[:end]:
            args = ["--no-plugins", *(a for a in args[:end] if a != "--no-plugins"), *args[end:]]
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands."""
        if ctx.resilient_parsing:
            return [*COMMANDS]  # completion does not import plugins
        return [*COMMANDS, *_of_plugins(ctx)]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name; by a former name, with a hint on standard error."""
        name, *rest = args
        if name in FORMER and not ctx.resilient_parsing:
            if name == "completion":
                from click.shell_completion import shell_complete

                instruction = f"{''.join(rest[:1]) or 'bash'}_source"
                click.echo(f"trnspec completion is now {_COMPLETE}={instruction} trnspec", err=True)
                ctx.exit(shell_complete(self, {}, "trnspec", _COMPLETE, instruction))
            renamed(name, FORMER[name])
            args = [*FORMER[name].split(), *rest]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name: a built-in one, else that of an installed plugin."""
        if cmd_name not in COMMANDS:
            return _added(ctx, cmd_name)
        command: click.Command = import_module(f"trnspec.cli.{cmd_name}").command
        return command

    def invoke(self, ctx: click.Context) -> None:
        """Run a command, without its value; ``Ctrl-C`` ends it with the status that shells use for that."""
        try:
            super().invoke(ctx)
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
        """The commands in ``--help`` by group, without importing any; those of plugins extend trnspec."""
        for group, commands in GROUPS.items():
            rows = [*commands.items()]
            if group == "Extend":
                rows += [(str(name), str(command.summary)) for name, command in _of_plugins(ctx).items()]
            with formatter.section(group):
                formatter.write_dl(rows)
        write_examples(formatter, _EXAMPLES)


def _of_plugins(ctx: click.Context) -> dict[str, Command]:
    """The commands of the plugins in use, by name; nothing is imported where no plugin is installed.

    Click calls this before the options take effect, so that they are read from the context here.
    """
    from trnspec.plugins.entry_points import installed

    if ctx.params.get("none") or not installed():
        return {}
    from trnspec.cli.formats import known

    return {c.name: c for plugin in known(ctx).plugins[1:] for c in plugin.commands}


def _added(ctx: click.Context, name: str) -> click.Command | None:
    """The command of a plugin, imported now; ``None`` where there is none of that name.

    Raises:
        UsageError: It cannot be imported, or is not a click command.
    """
    if ctx.resilient_parsing:
        return None  # completion does not import plugins
    entry = _of_plugins(ctx).get(name)
    if entry is None:
        return None
    from trnspec.cli.formats import known
    from trnspec.plugins.api import loaded

    ctx.meta[_PROVIDER] = provider = f"the command {name} of {known(ctx).provider(entry)}"
    command = loaded(provider, entry.run)
    if not isinstance(command, click.Command):
        raise UsageError(f"{provider}: {entry.run} is of type {type(command).__name__}; a click.Command is expected")
    return command


def _print_version(ctx: click.Context, _: click.Parameter, value: bool) -> None:  # noqa: FBT001 click's signature
    """Print the version and the newest edition of the shipped catalog, and exit."""
    if not value or ctx.resilient_parsing:
        return
    from trnspec.catalog.versions.editions import FOLDER, names
    from trnspec.loading.files import shipped

    click.echo(f"trnspec {__version__}, catalog edition {names(shipped() / FOLDER)[-1]}")
    ctx.exit()


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Show the version and the newest edition of the catalog, and exit.",
)
@click.option(
    "--plugin", "only", multiple=True, is_eager=True, metavar="NAME", help="Use only this plugin; may be repeated."
)
@click.option("--no-plugins", "none", is_flag=True, is_eager=True, help="Use no plugins.")
@click.option("--traceback", is_flag=True, help="Print the traceback of an error in a plugin.")
@click.pass_context
def group(ctx: click.Context, only: tuple[str, ...], *, none: bool, traceback: bool) -> None:
    """A checked catalog of accelerator hardware, and performance models that use it.

    Every figure has a source, a date and a precision; where two sources disagree, trnspec reports why. The evaluators
    estimate step times, serving latency, memory and cost from the catalog: trnspec eval.
    """
    if only and none:
        raise click.UsageError("--no-plugins and --plugin exclude each other")
    from trnspec.cli.formats import plugins

    ctx.with_resource(plugins(None if not (only or none) else only, traceback=traceback or None))


def drop_output() -> None:
    """Discard output that cannot be written: Python would try again at exit, fail, and exit with 120."""
    try:
        sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: OSError) -> str:
    """The file that failed and why; standard output where click was writing."""
    reason = error.strerror or str(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {reason}"
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    writing = trace is not None and trace.tb_frame.f_globals.get("__name__") == click.utils.__name__
    return f"cannot write to standard output: {reason}" if writing else reason


class _Closed(StringIO):
    """Standard output that was closed; Python would drop what is written to it."""

    def write(self, text: str) -> int:
        """Raise an error instead of losing the text."""
        if text:
            raise OSError(errno.EBADF, "it is closed", "standard output")
        return 0


def main() -> None:
    """Run the command line: exit status 0 clean, 1 findings, 2 wrong usage."""
    if sys.stdout is None:
        sys.stdout = _Closed()
    prepare()
    try:
        # The status of an early exit, such as that of --help.
        status = group(standalone_mode=False, complete_var=_COMPLETE)
    except click.ClickException as error:
        message = error.format_message()
        # A group without a command prints its help.
        click.echo(message if message.startswith("Usage: ") else f"trnspec: {message}", err=True)
        context = error.ctx if isinstance(error, click.UsageError) else None
        if context is not None and not message.startswith("Usage: "):
            usage = context.get_usage().removeprefix("Usage: ")
            click.echo(f"hint: {usage}; {context.command_path} --help", err=True)
        sys.exit(error.exit_code)
    except click.Abort:
        click.echo("trnspec: aborted", err=True)
        sys.exit(1)
    except TrnspecError as error:
        from trnspec.text_table import visible

        click.echo(f"trnspec: {visible(str(error))}", err=True)
        for note in getattr(error, "__notes__", ()):
            click.echo(visible(note), err=True)
        sys.exit(2)
    except OSError as error:
        # Click handles a closed pipe; what remains is a full disk, for instance.
        click.echo(f"trnspec: {_message(error)}", err=True)
        drop_output()
        sys.exit(2)
    sys.exit(status)
