"""``trnspec plan``: the evaluators that plan a run, by what is planned."""

from __future__ import annotations

import click

from trnspec.cli.eval import evaluator_command
from trnspec.cli.help import Group
from trnspec.evaluation.result import COMMANDS

PLANS = {words[1]: evaluator for evaluator, words in COMMANDS.items() if words[0] == "plan"}
"""The evaluator of each plan."""


class _Plans(Group):
    """The kinds of plans; the evaluator of one is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click passes it
        """What can be planned."""
        return list(PLANS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002  # click passes it
        """The command of one kind of plan."""
        from trnspec.api import evaluator

        return evaluator_command(*evaluator(PLANS[cmd_name])) if cmd_name in PLANS else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click passes it
        """Lists the kinds of plans in ``--help`` without importing any."""
        from trnspec.api import registry

        known = registry().evaluators
        with formatter.section("Plans"):
            formatter.write_dl([(name, known[evaluator].summary) for name, evaluator in PLANS.items()])


@click.group("plan", cls=_Plans)
def command() -> None:
    """Plan a run: which system, how many, how long, at what cost.

    Each plan is an evaluator: trnspec.evaluate("plan-train", ...) in Python.
    """
