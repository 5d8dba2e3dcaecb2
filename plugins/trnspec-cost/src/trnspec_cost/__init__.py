"""The cost of a run, for trnspec: one evaluator, which computes with the prices of the catalog."""

from trnspec import Evaluator, Plugin

plugin = Plugin(
    name="cost",
    api=1,
    evaluators=(
        Evaluator(
            "cost", "Cost of the servers of a run, with source and date of the price.", "trnspec_cost.evaluate:cost"
        ),
    ),
)
