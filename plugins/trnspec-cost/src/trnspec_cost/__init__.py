"""The cost of a run, for trnspec: the document kind ServerPrice, published prices, and one evaluator."""

from pathlib import Path

from trnspec.plugins.api import Evaluator, Kind, Plugin
from trnspec_cost.price import ServerPrice

plugin = Plugin(
    name="cost",
    api=1,
    kinds=(Kind("ServerPrice", "prices", ServerPrice),),
    catalogs=(Path(__file__).parent / "catalog",),
    evaluators=(
        Evaluator(
            "cost", "Cost of the servers of a run, with source and date of the price.", "trnspec_cost.evaluate:cost"
        ),
    ),
)
