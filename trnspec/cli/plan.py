"""``trnspec plan``: the evaluators that plan a run, by what is planned."""

from __future__ import annotations

import click

from trnspec.cli.eval import Evaluators
from trnspec.evaluation.result import COMMANDS

PLANS = {words[1]: evaluator for evaluator, words in COMMANDS.items() if words[0] == "plan"}
"""The evaluator of each plan."""


@click.group(
    "plan",
    cls=Evaluators,
    title="Plans",
    names=PLANS,
    examples=(
        (
            "trnspec plan train --model llama-3.1-70b --tokens 2T --deadline 180d --on trn1.32xlarge,trn2.48xlarge",
            "Train a model within 180 days:",
        ),
        (
            "trnspec plan serve --model llama-3.1-70b --rate 5 --ttft 2s --tpot 60ms --on trn2.48xlarge",
            "Serve a model within limits:",
        ),
        ("trnspec plan train --help", "All inputs of a plan, and further examples:"),
    ),
)
def command() -> None:
    """Plan a run: which system, how many, how long, at what cost.

    Each plan is an evaluator: trnspec.evaluate("plan-train", ...) in Python.
    """
