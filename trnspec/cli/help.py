"""Help texts with groups of options and examples, for any command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from trnspec.text_table import folded

if TYPE_CHECKING:
    from collections.abc import Sequence

OTHER = "Options"
"""The group of options that name none."""

_INDENT = 2


class GroupedOption(click.Option):
    """An option that is listed under the heading of a group."""

    def __init__(self, *args: Any, group: str = OTHER, **more: Any) -> None:
        super().__init__(*args, **more)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help lists its options by group, and ends with examples.

    Groups come in the order of their first options; :data:`OTHER` is the last.

    Args:
        examples: Command and explanation of each example.
    """

    def __init__(self, *args: Any, examples: Sequence[tuple[str, str]] = (), **more: Any) -> None:
        super().__init__(*args, **more)
        self.examples = tuple(examples)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes one section per group, then the examples."""
        groups: dict[str, list[tuple[str, str]]] = {}
        for param in self.get_params(ctx):
            record = param.get_help_record(ctx)
            if record is not None and isinstance(param, click.Option):
                groups.setdefault(getattr(param, "group", OTHER), []).append(record)
        for group in sorted(groups, key=OTHER.__eq__):
            with formatter.section(group):
                formatter.write_dl(groups[group])
        if self.examples:
            with formatter.section("Examples"):
                for number, (command, explanation) in enumerate(self.examples):
                    if number:
                        formatter.write_paragraph()
                    if explanation:
                        formatter.write_text(explanation)
                    indent = " " * (formatter.current_indent + _INDENT)
                    for line in folded(command, formatter.width - len(indent)):
                        formatter.write(f"{indent}{line}\n")
