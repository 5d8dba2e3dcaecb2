"""The energy of a run, for trnspec: one evaluator."""

from trnspec.plugins.api import Evaluator, Plugin

plugin = Plugin(
    name="energy",
    api=1,
    evaluators=(
        Evaluator(
            "energy",
            "Energy of the chips of a system in a run, and of the facility.",
            "trnspec_energy.evaluate:energy",
        ),
    ),
)
