"""The energy of a run, for trnspec: one evaluator."""

from trnspec import Evaluator, Plugin

plugin = Plugin(
    name="energy",
    api=1,
    evaluators=(
        Evaluator(
            "energy",
            "The energy that the chips of a system take in a run, and with --pue that of the building.",
            "trnspec_energy.evaluate:energy",
        ),
    ),
)
