"""Help texts with groups of options and examples, for any command, and groups of commands."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, TypeVar

import click

from trnspec.text_table import folded

F = TypeVar("F", bound=Callable[..., Any])

OTHER = "Options"
"""The group of options that name none."""

_INDENT = 2


class NamedPath(click.Path):
    """A path that is not empty; ``pathlib`` would make the current folder of an empty one."""

    def __init__(self, *, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(path_type=FilePath, file_okay=file_okay, dir_okay=dir_okay)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The path; ``BadParameter`` for an empty text."""
        if value == "":
            self.fail(_NO_NAME, param, ctx)
        return super().convert(value, param, ctx)


_GIVEN = "trnspec.cli.given"
"""Key of the context for the options that were given."""
_NO_NAME = "the name of a file or a folder is empty"


def _is_path(param: click.Parameter) -> bool:
    return isinstance(param.type, click.Path) or any(w in (param.metavar or "") for w in ("FILE", "DIR", "PATH"))


class GroupedOption(click.Option):
    """An option that is listed under the heading of a group."""

    def __init__(self, *args: Any, group: str = OTHER, **more: Any) -> None:
        super().__init__(*args, **more)
        self.group = group


def new_option(usage: str, group: str, text: str, **more: Any) -> click.Option:
    """An option.

    Args:
        usage: How it is written, and the name of its parameter in lower case where that is another one:
            ``--verdict VERDICT verdicts``; a choice has no metavar, an option without both is a flag.
        group: The heading under which it is listed.
        text: Its help; a default is added.
        more: Other arguments of :class:`click.Option`.
    """
    names, described = _described(usage, text, more)
    return GroupedOption(names, group=group, **described)


def option(usage: str, group: str, text: str, **more: Any) -> Callable[[F], F]:
    """Decorator of a command that adds an option; the arguments are those of :func:`new_option`."""
    names, described = _described(usage, text, more)
    return click.option(*names, cls=GroupedOption, group=group, **described)


def _described(usage: str, text: str, more: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """The names of an option and of its parameter, and what it is."""
    words = usage.split()
    names = [word for word in words if word.startswith("-") or (word.isidentifier() and word.islower())]
    metavar = " ".join(word for word in words if word not in names) or None
    default = more.get("default")
    about = {"help": text, "metavar": metavar, "show_default": default is not None and not isinstance(default, bool)}
    return names, {**about, **({"is_flag": True} if metavar is None and "type" not in more else {}), **more}


def documented(
    name: str, *examples: tuple[str, str], of: Any = click, cls: type[GroupedCommand] | None = None, **more: Any
) -> Callable[[Callable[..., Any]], GroupedCommand]:
    """Decorator that makes a command, of :func:`click.command` or of a group, with examples in its help."""
    command: Callable[[Callable[..., Any]], GroupedCommand] = of.command(
        name, cls=cls or GroupedCommand, examples=examples, **more
    )
    return command


def former_brief() -> GroupedOption:
    """The hidden flag ``--brief`` of an earlier release, which is accepted without effect; a hint goes to standard error."""

    def report(ctx: click.Context, _: click.Parameter, value: object) -> None:
        if value and not ctx.resilient_parsing:
            click.echo("trnspec: --brief has no effect: the page fits a screen; --full prints all of it", err=True)

    return GroupedOption(["--brief"], hidden=True, expose_value=False, callback=report, is_flag=True)


class GroupedCommand(click.Command):
    """A command whose help lists its options by group, and ends with examples.

    Groups come in the order of their first options; :data:`OTHER` is the last.

    Args:
        examples: Command and explanation of each example.
        only_with: Groups that are listed only in the help with another option: ``--framework NAME --help``.
    """

    def __init__(
        self,
        *args: Any,
        examples: Sequence[tuple[str, str]] = (),
        only_with: Mapping[str, str] = {},
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.examples = tuple(examples)
        self.only_with = only_with

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; a file or a folder with an empty name is an error, and not the current folder."""
        ctx.meta[_GIVEN] = {arg.partition("=")[0] for arg in args}
        rest = super().parse_args(ctx, args)
        for param in self.params:
            value = ctx.params.get(param.name or "")
            given = value if isinstance(value, tuple) else (value,)
            if _is_path(param) and "" in given:
                raise click.BadParameter(_NO_NAME, ctx, param)
        return rest

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes one section per group, then the examples."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                groups.setdefault(getattr(param, "group", OTHER), []).append(record)
        for group in sorted(groups, key=OTHER.__eq__):
            with formatter.section(group):
                flag = self.only_with.get(group)
                if flag is None or flag in ctx.meta.get(_GIVEN, ()):
                    formatter.write_dl(groups[group])
                else:
                    formatter.write_text(f"{len(groups[group])} options; {flag} NAME --help lists them.")
        write_examples(formatter, self.examples)


def write_examples(formatter: click.HelpFormatter, examples: Sequence[tuple[str, str]]) -> None:
    """Write the section of examples: the explanation of each, then its command."""
    if examples:
        with formatter.section("Examples"):
            for number, (command, explanation) in enumerate(examples):
                if number:
                    formatter.write_paragraph()
                if explanation:
                    formatter.write_text(explanation)
                indent = " " * (formatter.current_indent + _INDENT)
                for line in folded(command, formatter.width - len(indent)):
                    formatter.write(f"{indent}{line}\n")


_MOST_EXAMPLES = 4
"""Commands of a group of which ``--help`` of the group has an example."""


class CommandGroup(click.Group):
    """A group of commands: an unknown name is an error with the nearest names, and ``--help`` has examples."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name; a usage error with a suggestion for an unknown one."""
        name = args[0]
        if not name.startswith("-") and self.get_command(ctx, name) is None and not ctx.resilient_parsing:
            from trnspec.diagnostics import did_you_mean

            known = self.list_commands(ctx)
            hint = did_you_mean(name, known) or f"there are {', '.join(known)}"
            raise click.UsageError(f"No such command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands, each with its full first sentence, and the first example of some of them."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [
            (name, one.get_short_help_str(sys.maxsize)) for name, one in commands if one is not None and not one.hidden
        ]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)
        found = [one.examples[0] for _, one in commands if isinstance(one, GroupedCommand) and one.examples]
        write_examples(formatter, found[:_MOST_EXAMPLES])


def renamed(former: str, present: str) -> None:
    """Print the present name of a command that was called by its former name."""
    click.echo(f"trnspec {former} is now trnspec {present}", err=True)
