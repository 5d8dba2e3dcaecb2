"""The configurations of a search on its systems: layouts of training, or deployments for serving."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from attrs import evolve

from trnspec.evaluators import training
from trnspec.evaluators.deployment_grid import grid_of
from trnspec.evaluators.layouts import divisors, pieces_of
from trnspec.evaluators.planning.system_cost import chip_power, rent
from trnspec.evaluators.searching.question import BATCHES
from trnspec.graph.graph import Graph, names_used
from trnspec.model.transformers.counting import dimensions
from trnspec.perf.lowering.lower import lower, model_named
from trnspec.perf.work.transformer import model_flops_per_token

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluators.deployment_grid import DeploymentGrid
    from trnspec.evaluators.searching.question import SearchQuestion
    from trnspec.model.document import Node
    from trnspec.perf.sweep.pieces import TrainingPiece
    from trnspec.perf.work.layout import Layout

LAYOUT = (
    *("tp", "pp", "dp", "cp", "ep", "expert_tp", "microbatch"),
    *("schedule", "interleave", "uneven", "zero", "recompute", "sequence_parallel"),
)
"""Inputs that describe a layout; each has the name of an input of the evaluator training."""
DEPLOYMENT = ("tp", "pp", "dp", "ep", "batch", "chunk", "dtype", "weight_dtype", "kv_dtype")
"""Inputs that describe a deployment; each has the name of an input of the evaluator inference."""


def training_question(question: Any, layout: Layout, **values: Any) -> training.TrainingQuestion:
    """The question of the evaluator training about one layout.

    Args:
        question: The inputs of a search or a plan.
        layout: The layout.
        values: Inputs that the search has not.
    """
    same = question.common(training.TrainingQuestion)
    return training.TrainingQuestion(**same | values | {name: getattr(layout, name) for name in LAYOUT})


def _rates(catalog: Catalog, q: SearchQuestion, on: str) -> dict[str, Any]:
    """The price of a system per hour [USD] and the power of its chips [W]; ``None`` where one is not known."""
    price, power = rent(catalog, on, type=q.price_type, region=q.region, price=q.price), chip_power(catalog, on)
    return {"hourly": None if price is None else price.hourly, "watts": None if power is None else power.watts}


def training_pieces(catalog: Catalog, q: SearchQuestion) -> Iterator[TrainingPiece]:
    """The layouts on all systems.

    Raises:
        RefusalError: A figure is not published.
    """
    assert q.seq is not None
    assert q.global_batch is not None
    rate = training.host_rate(q.host_link) if q.host_link is not None or set(q.offload) - {"none"} else 0.0
    convention: Any = "megatron" if q.attention == "causal" else "matmul-full"
    offset = 0
    for on in q.on:
        rates = _rates(catalog, q, on)
        for dtype in q.dtype:
            estimator = training.estimator_of(catalog, q, on=on, dtype=dtype)
            work = model_flops_per_token(estimator.dims, float(q.seq), convention)
            for what in dict.fromkeys(q.offload):
                for piece in pieces_of(
                    estimator, q.choices(dtype), seq=q.seq, global_batch=q.global_batch, offset=offset,
                    overlap=q.overlap, on=on, work=work, **rates,
                ):  # fmt: skip
                    yield evolve(piece, offload=what, rate=rate)
                    offset += piece.size


def serving_pieces(catalog: Catalog, q: SearchQuestion, measures: tuple[str, ...]) -> Iterator[DeploymentGrid]:
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
        rates = _rates(catalog, q, on)
        for dtype in dict.fromkeys(q.dtype):
            # Figures are those of the whole catalog; an evaluation needs no others than of the documents used.
            piece = evolve(
                grid_of(graph, evolve(base, dtype=dtype), axes), graph=used, measures=measures, offset=offset,
                **rates,
            )  # fmt: skip
            offset += piece.size
            yield piece


_COUNT = re.compile(r"\s*\*\s*[0-9]+\s*\Z")
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
