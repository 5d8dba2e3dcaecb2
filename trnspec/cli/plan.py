"""``trnspec plan``: the evaluators that plan a run, by what is planned."""

from __future__ import annotations

import click

from trnspec.cli.eval import Evaluators
from trnspec.evaluation.result import COMMANDS

PLANS = {words[1]: evaluator for evaluator, words in COMMANDS.items() if words[0] == "plan"}
"""The evaluator of each plan."""


@click.group("plan", cls=Evaluators, title="Plans", names=PLANS)
def command() -> None:
    """Plan a run: which system, how many, how long, at what cost.

    Each plan is an evaluator: trnspec.evaluate("plan-train", ...) in Python.
    """
