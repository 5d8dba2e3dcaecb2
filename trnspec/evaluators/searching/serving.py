"""The deployments of a search for inference."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from trnspec.evaluators.deployment_grid import COMPUTED, DeploymentGrid, grid_of
from trnspec.evaluators.layouts import divisors
from trnspec.evaluators.planning.system_cost import chip_watts, rent
from trnspec.evaluators.searching.question import BATCHES
from trnspec.evidence import rank_class
from trnspec.graph.graph import Graph, names_used
from trnspec.model.transformers.counting import dimensions
from trnspec.perf.lowering.lower import lower, model_named
from trnspec.perf.sweep.blocks import blocks
from trnspec.perf.sweep.reductions import BOUND, EXCESS, Candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluators.deployment import InferenceQuestion
    from trnspec.evaluators.searching.question import SearchQuestion
    from trnspec.model.document import Node

HOUR = 3600.0
DEPLOYMENT = ("tp", "pp", "dp", "ep", "batch", "chunk", "dtype", "weight_dtype", "kv_dtype")
"""Inputs that describe a deployment; each has the name of an input of the evaluator inference."""


def serving_pieces(catalog: Catalog, q: SearchQuestion, measures: tuple[str, ...]) -> Iterator[ServingPiece]:
    """The deployments on all systems.

    Args:
        catalog: The catalog.
        q: The inputs.
        measures: What is computed of each.

    Raises:
        RefusalError: A figure is not published.
    """
    graph = catalog.graph
    d = dimensions(model_named(graph, q.model).spec)
    roots = (
        q.model,
        *filter(None, (q.draft,)),
        *(_COUNT.sub("", on) for on in (*q.on, *filter(None, (q.prefill_on,)))),
    )
    used = _used(graph, roots)
    offset = 0
    for on in q.on:
        ranks = int(lower(graph, on, lnc=q.lnc, chips=q.chips).ranks)
        base = q.inference(on=on)
        axes: dict[str, tuple[Any, ...]] = {
            "prompt": (base.prompt,),
            "output": (base.output,),
            "weight_dtype": q.weight_dtype or (None,),
            "kv_dtype": q.kv_dtype or (None,),
            "chunk": q.chunk or (None,),
            "tp": q.tp or tuple(n for n in divisors(ranks) if n <= d.heads),
            "pp": q.pp or tuple(n for n in divisors(int(d.layers)) if n <= ranks),
            "ep": q.ep or tuple(divisors(max(1, int(d.experts)))),
            "dp": q.dp or (None,),
            "batch": tuple(sorted(q.batch or BATCHES)),
        }
        axes = {name: tuple(dict.fromkeys(values)) for name, values in axes.items()}
        price = rent(catalog, on, type=q.price_type, region=q.region, price=q.price)
        for dtype in dict.fromkeys(q.dtype):
            # Figures are those of the whole catalog; an evaluation needs no others than of the documents used.
            grid = evolve(grid_of(graph, evolve(base, dtype=dtype), axes), graph=used)
            piece = ServingPiece(
                grid=grid, hourly=None if price is None else price.hourly, watts=chip_watts(catalog, on), offset=offset,
                measures=measures,
            )  # fmt: skip
            offset += piece.size
            yield piece


_COUNT = re.compile(r"\s*[*x]\s*[0-9]+\s*\Z")
"""The count of a system."""


def _used(graph: Graph, names: Iterable[str]) -> Graph:
    """The documents of some names with all that they refer to: little to send to another process."""
    nodes: dict[str, Node[Any]] = {}
    queue = [graph.named(name) for name in names]
    while queue:
        node = queue.pop()
        if node.name not in nodes:
            nodes[node.name] = node
            queue += [other for name in names_used(node) if (other := graph.nodes.get(name)) is not None]
    return Graph(nodes)


@frozen(kw_only=True)
class ServingPiece:
    """The deployments on one system with one compute dtype.

    Attributes:
        grid: The deployments.
        hourly: Price of the system per hour [USD]; ``None`` if unknown.
        watts: Power of its chips [W]; ``None`` if unknown.
        offset: The number of the first in the search.
        measures: The measures that are computed.
    """

    grid: DeploymentGrid
    hourly: float | None
    watts: float | None
    offset: int = 0
    measures: tuple[str, ...] = field(default=(), eq=False)

    @property
    def size(self) -> int:
        """Number of deployments."""
        return self.grid.size

    @property
    def on(self) -> str:
        """The system as it is given."""
        return self.grid.base.on

    def inputs(self, number: int) -> dict[str, Any]:
        """The inputs of the evaluator inference that a configuration has of its own."""
        values = {"dtype": self.grid.base.dtype} | self.grid.inputs(number - self.offset)
        return {name: values[name] for name in DEPLOYMENT}

    def question(self, number: int) -> InferenceQuestion:
        """The question of the evaluator inference about a configuration."""
        return self.grid.question(number - self.offset)

    def search(self, first: int, last: int, take: Callable[[Candidates], None]) -> None:
        """Evaluate the deployments with some numbers of the search, from ``first`` to before ``last``."""
        grid, setup = self.grid, self.grid.setup
        pools = () if setup is None else (setup.pool, *(() if setup.before is None else (setup.before,)))
        constants = {
            BOUND: float(max((rank_class(p.known.evidence.kind) for p in pools), default=0)),
            "fits": True, "system": self.on, "dtype": grid.base.dtype,
            # A plan with two systems has no one price and power.
            "usd": None if self.hourly is None or len(pools) > 1 else self.hourly / HOUR,
            "energy": None if len(pools) > 1 else self.watts,
        }  # fmt: skip
        names = {"tokens_per_s" if name in _PER_TOKEN else name for name in self.measures}
        computed = tuple(sorted((names & COMPUTED) | {EXCESS}))
        ends = first - self.offset, last - self.offset
        for start, code, columns in blocks(grid, grid.columns, *ends, computed):

            def measure(name: str, places: Any, start: int = start, columns: Mapping[str, Any] = columns) -> Any:
                if name in _PER_TOKEN:
                    # More tokens per second cost less.
                    rate = constants[name]
                    return None if rate is None else rate * (1e6 / columns["tokens_per_s"][places])
                if name in constants:
                    return constants[name]
                if name in columns:
                    return columns[name][places]
                return grid.values(name, start + places)

            take(Candidates(self.offset + start, grid.reasons, code, measure))


_PER_TOKEN = ("usd", "energy")
"""Measures of a million output tokens."""
