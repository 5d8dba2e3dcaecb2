"""The cost of a run, for trnspec: a kind of document for prices, those that are known, and one evaluator."""

from pathlib import Path

from trnspec import Evaluator, Kind, Plugin
from trnspec_cost.price import ServerPrice

plugin = Plugin(
    name="cost",
    api=1,
    kinds=(Kind("ServerPrice", "prices", ServerPrice),),
    catalogs=(Path(__file__).parent / "catalog",),
    evaluators=(
        Evaluator("cost", "What the servers of a run cost, with source and date.", "trnspec_cost.evaluate:cost"),
    ),
)
