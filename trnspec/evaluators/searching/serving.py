"""The deployments of a search for inference."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from attrs import evolve, field, frozen

from trnspec.evaluation.evidence import rank_class
from trnspec.evaluation.result import RefusalError
from trnspec.evaluators.deployment import InferenceQuestion, check, memory, prepare
from trnspec.evaluators.inference import case_values
from trnspec.evaluators.layouts import divisors
from trnspec.evaluators.planning.system_cost import chip_watts, rent
from trnspec.evaluators.searching.question import BATCHES
from trnspec.graph.graph import Graph, names_used
from trnspec.model.transformers.counting import dimensions
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.lowering.calibrated import Calibrated, calibrated
from trnspec.perf.lowering.lookup import model_named
from trnspec.perf.lowering.lower import lower
from trnspec.perf.lowering.system import System
from trnspec.perf.searching.selection import BOUND, EXCESS, UNFIT, Candidates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluators.deployment import Setup
    from trnspec.evaluators.searching.question import SearchQuestion
    from trnspec.model.document import Node

HOUR = 3600.0
DEPLOYMENT = ("tp", "pp", "dp", "ep", "batch", "chunk", "dtype", "weight_dtype", "kv_dtype")
"""What describes a deployment; each has the name of an input of the evaluator inference."""


def serving_pieces(catalog: Catalog, q: SearchQuestion) -> Iterator[ServingPiece]:
    """The deployments on all systems.

    Raises:
        RefusalError: A figure is not published.
    """
    graph = catalog.graph
    d = dimensions(model_named(graph, q.model).spec)

    def known(chip: str) -> Calibrated:
        return calibrated(
            graph, chip, "inference", q.calibration, q.framework or "", q.era or "", experts=d.experts > 0
        )

    roots = (
        q.model,
        *filter(None, (q.draft,)),
        *(_COUNT.sub("", on) for on in (*q.on, *filter(None, (q.prefill_on,)))),
    )
    used = _used(graph, roots)
    elsewhere = None if q.prefill_on is None else known(lower(graph, q.prefill_on).chip)
    offset = 0
    for on in q.on:
        system = lower(graph, on, lnc=q.lnc, chips=q.chips)
        ranks = int(system.ranks)
        axes: dict[str, tuple[Any, ...]] = {
            "dtype": q.dtype,
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
        piece = ServingPiece(
            graph=used, base=q.inference(on=on), axes=axes, system=system, dims=d, known=known(system.chip),
            elsewhere=elsewhere, hourly=None if price is None else price.hourly, watts=chip_watts(catalog, on), offset=offset,
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
    """The deployments on one system.

    Attributes:
        graph: The documents from which deployments are computed.
        base: The inputs that all have.
        axes: The values of the others; the last varies fastest.
        system: The system.
        dims: The model.
        known: The calibration.
        elsewhere: The calibration of the system that prefills, if it is another.
        hourly: Price of the system per hour [USD]; ``None`` if unknown.
        watts: Power of its chips [W]; ``None`` if unknown.
        offset: The number of the first in the search.
    """

    graph: Graph = field(repr=False, eq=False)
    base: InferenceQuestion
    axes: dict[str, tuple[Any, ...]]
    system: System = field(repr=False)
    dims: Dimensions = field(repr=False)
    known: Calibrated
    elsewhere: Calibrated | None
    hourly: float | None
    watts: float | None
    offset: int = 0

    @property
    def size(self) -> int:
        """Number of deployments."""
        size = 1
        for values in self.axes.values():
            size *= len(values)
        return size

    def inputs(self, number: int) -> dict[str, Any]:
        """The inputs of the evaluator inference that a configuration has of its own."""
        number -= self.offset
        values: dict[str, Any] = {}
        for name in reversed(self.axes):
            number, position = divmod(number, len(self.axes[name]))
            values[name] = self.axes[name][position]
        return {name: values[name] for name in DEPLOYMENT}

    def question(self, number: int) -> InferenceQuestion:
        """The question of the evaluator inference about a configuration."""
        return evolve(self.base, **self.inputs(number))

    def search(self, first: int, last: int, take: Callable[[Candidates], None]) -> None:
        """Evaluate the deployments with some numbers of the search, those that differ in their batch together."""
        batches = self.axes["batch"]
        for start in range(first - (first - self.offset) % len(batches), last, len(batches)):
            low, high = max(first, start), min(last, start + len(batches))
            rows = self._rows(self.question(start), batches[low - start : high - start])
            take(Candidates.of(low, [reason for reason, _ in rows], [measures for _, measures in rows]))

    def _rows(self, question: InferenceQuestion, batches: tuple[int, ...]) -> list[tuple[str, dict[str, Any]]]:
        """For each batch why the deployment is invalid, and its measures."""
        try:
            self._check(question)
            setup = prepare(self.graph, evolve(question, batch=batches[0]), self.known, self.elsewhere)
        except RefusalError as refusal:
            return [(refusal.reason, {})] * len(batches)
        return [self._row(setup, batch) for batch in batches]

    def _check(self, question: InferenceQuestion) -> None:
        """Rejects most invalid layouts before anything is computed."""
        ranks, tp = int(self.system.ranks), question.tp or 1
        check(evolve(question, dp=question.dp or max(1, ranks // (tp * question.pp))), self.dims, ranks)

    def _row(self, setup: Setup, batch: int) -> tuple[str, dict[str, Any]]:
        buckets = setup.software.batches
        if buckets and batch > buckets[-1]:
            return "no-bucket", {}
        one = setup.with_batch(batch)
        pool, before = one.pool, one.before
        held, capacity = float(memory(one, pool).total), pool.capacity
        if held > capacity:
            return UNFIT, {EXCESS: held / capacity}
        if before is not None and float(memory(one, before).total) > before.capacity:
            return UNFIT, {}
        try:
            values = case_values(one)
        except RefusalError as refusal:
            return refusal.reason, {}
        q, rate = one.question, values["throughput"]
        per_million = 1e6 / rate
        return "", {
            "ttft": values["time_to_first_token"],
            "tpot": values["time_per_output_token"],
            "latency": values["latency"],
            "tokens_per_s": rate,
            "tokens_per_s_per_chip": values["throughput_per_chip"],
            "usd": None if self.hourly is None or before is not None else self.hourly / HOUR * per_million,
            "energy": None if self.watts is None or before is not None else self.watts * per_million,
            "memory": held,
            "capacity": capacity,
            "fits": True,
            "chips": pool.chips + (0.0 if before is None else before.chips),
            "system": self.base.on,
            BOUND: float(max(rank_class(p.known.evidence.kind) for p in (pool, before) if p is not None)),
            **{name: getattr(q, name) for name in ("tp", "pp", "dp", "ep", "batch", "dtype")},
            "chunk": q.chunk or q.prompt,
            "weight_dtype": q.weight_dtype or q.dtype,
            "kv_dtype": q.kv_dtype or q.dtype,
        }
