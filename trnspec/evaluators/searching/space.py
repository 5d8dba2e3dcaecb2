"""The configurations of a search, numbered from 0, and what is kept of any range of them, in this process or by an executor."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, as_completed
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import attrs
from attrs import evolve, field, frozen

from trnspec._version import __version__
from trnspec.catalog.catalog import Catalog
from trnspec.errors import UsageError, library
from trnspec.evaluation.progress import current, report
from trnspec.evaluators import training
from trnspec.evaluators.deployment_grid import DeploymentGrid, grid_of
from trnspec.evaluators.layouts import divisors, pieces_of
from trnspec.evaluators.prices import chip_power, rent
from trnspec.evaluators.searching.measures import MEASURES, condition, goal
from trnspec.evaluators.searching.question import BATCHES, SearchQuestion
from trnspec.graph.graph import Graph, names_used
from trnspec.model.document import Node
from trnspec.model.transformers.counting import dimensions
from trnspec.perf.lowering.lower import lower, model_named
from trnspec.perf.sweep.pieces import TIMED, TrainingPiece
from trnspec.perf.sweep.reductions import BOUND, Candidates, ConfigurationSelection, Selected, TimeLimit
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.transformer import model_flops_per_token

LAYOUT = (
    *("tp", "pp", "dp", "cp", "ep", "expert_tp", "microbatch"),
    *("schedule", "interleave", "uneven", "zero", "recompute", "sequence_parallel"),
)
"""Inputs that describe a layout; each has the name of an input of the evaluator training."""
DEPLOYMENT = ("tp", "pp", "dp", "ep", "batch", "chunk", "dtype", "weight_dtype", "kv_dtype")
"""Inputs that describe a deployment; each has the name of an input of the evaluator inference."""

FORMAT = "trnspec-search/1"
"""The format of results, in their headers."""


@frozen
class Search:
    """The configurations of a search.

    Attributes:
        question: The inputs.
        edition: The edition of the catalog; empty for the working edition.
        pieces: The configurations, in the order of their numbers.
        selection: What is kept of them.
    """

    question: SearchQuestion
    edition: str
    pieces: tuple[TrainingPiece | DeploymentGrid, ...] = field(repr=False)
    selection: ConfigurationSelection

    @property
    def noun(self) -> str:
        """What the configurations are."""
        return "layouts" if self.question.of == "training" else "deployments"

    @property
    def size(self) -> int:
        """Number of configurations."""
        return self.pieces[-1].offset + self.pieces[-1].size if self.pieces else 0

    def piece(self, number: int) -> Any:
        """The piece with a configuration."""
        return next(p for p in self.pieces if number < p.offset + p.size)

    def part(self, number: int, parts: int) -> tuple[int, int]:
        """The first number of a part, from 1 to ``parts``, and the number after its last."""
        return self.size * (number - 1) // parts, self.size * number // parts

    def kept(
        self, first: int, last: int, done: Callable[[int], None] | None = None, into: Selected | None = None
    ) -> Selected:
        """Selection from the configurations from ``first`` to before ``last``.

        Args:
            first: The first number.
            last: The number after the last.
            done: Called with numbers of configurations as they are evaluated.
            into: What was kept before; evaluation may be interrupted, and this then has what was found.
        """
        result = self.selection.empty() if into is None else into

        def take(some: Candidates) -> None:
            result.take(some)
            if done is not None:
                done(len(some.code))

        what = self.selection
        # Nothing depends on the times of other layouts of a system than the fastest.
        only_fastest = what.goal.name in TIMED and what.top > 0 and not what.front and what.where is None
        limits: dict[tuple[int, float], TimeLimit] = {}
        for piece in self.pieces:
            low, high = max(first, piece.offset), min(last, piece.offset + piece.size)
            if low < high:
                if only_fastest and isinstance(piece, TrainingPiece):
                    limit = limits.setdefault((id(piece.estimator), piece.tokens), TimeLimit(what.top))
                    piece.search(low, high, take, limit)
                else:
                    piece.search(low, high, take)
        return result

    @cached_property
    def header(self) -> dict[str, Any]:
        """Identity of a result: inputs, edition, engine, and a hash of all numbers that the search uses."""
        about = {
            "format": FORMAT,
            "engine": __version__,
            "edition": self.edition,
            "inputs": {name: _plain(value) for name, value in self.question.given().items()},
            "size": self.size,
        }
        numbers = {"pieces": _plain(self.pieces), "selection": _plain(self.selection)}
        text = json.dumps([about, numbers], sort_keys=True, separators=(",", ":"))
        return {**about, "key": hashlib.sha256(text.encode()).hexdigest()}


def _plain(value: Any) -> Any:
    """Data that JSON can write, the same for equal values; documents are those that the numbers are computed from."""
    if attrs.has(type(value)):
        named = {f.name: _plain(getattr(value, f.name)) for f in attrs.fields(type(value)) if f.eq}
        return {"": type(value).__name__, **named}
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(one) for one in value]
    if value is None or isinstance(value, (str, bool, int)):
        return value
    return repr(value)


def training_question(question: Any, layout: Layout, **values: Any) -> training.TrainingQuestion:
    """The question of the evaluator training about one layout.

    Args:
        question: The inputs of a search or a plan.
        layout: The layout.
        values: Inputs that the search has not.
    """
    of_layout = {name: getattr(layout, name) for name in (*LAYOUT, "seq", "global_batch")}
    return training.TrainingQuestion(**question.common(training.TrainingQuestion) | values | of_layout)


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


def search_of(catalog: Catalog, question: SearchQuestion) -> Search:
    """The search of a question.

    Raises:
        UsageError: An input is missing, wrong, or of the other mode.
        RefusalError: A figure is not published, or there is no such price or power.
    """
    q = question.checked()
    mode = q.of
    default = "step_time" if mode == "training" else "tokens_per_s_per_chip"
    best = goal(q.objective or default, mode, "objective")
    test = None if q.where is None else condition(q.where, mode, catalog.graph.units)
    front = tuple(goal(name, mode, "pareto") for name in q.pareto or ())
    if q.pareto is not None and not 2 <= len(set(q.pareto)) == len(q.pareto) <= 3:
        what = "two or three different measures are expected, such as time,cost"
        raise UsageError(f"pareto: {what}; not {','.join(q.pareto)}")
    tested = () if test is None else test.names()
    kinds = {name: MEASURES[mode].get(name) for name in tested if name != BOUND}
    ranged = tuple(n for n, kind in kinds.items() if kind is not None and not (kind.text or kind.flag))
    selection = ConfigurationSelection(best, q.top, front, test, ranged)
    wanted = (*selection.columns, *tested)
    pieces = training_pieces(catalog, q) if mode == "training" else serving_pieces(catalog, q, wanted)
    return Search(q, catalog.edition or "", tuple(pieces), selection)


def reduced(search: Search, first: int = 0, last: int | None = None) -> Selected:
    """Selection from a range of a search, by default all of it, evaluated as :func:`trnspec.evaluation.progress.distributed` says.

    Raises:
        UsageError: The executor lost its workers.
    """
    how, done = current(), 0
    kept = search.selection.empty()
    end = search.size if last is None else last

    def advance(count: int) -> None:
        nonlocal done
        done += count
        report(done, end - first)

    try:
        if how.executor is None:
            search.kept(first, end, advance, kept)
        else:
            for part, size in _parts(search, (first, end), how.executor, how.parts):
                kept.merge(part)
                advance(size)
    except KeyboardInterrupt:
        if not how.interruptible:
            raise
        how.interrupted = True
    return kept


def _parts(search: Search, ends: tuple[int, int], executor: Executor, parts: int) -> Iterator[tuple[Selected, int]]:
    """Selections from parts of a range, as an executor completes them, each with the number of its configurations."""
    first, size = ends[0], ends[1] - ends[0]
    count = max(1, min(parts, size))
    cuts = [first + size * number // count for number in range(count + 1)]
    futures = {executor.submit(search.kept, *ends): ends for ends in itertools.pairwise(cuts)}
    try:
        for future in as_completed(futures):
            low, high = futures[future]
            try:
                part = future.result()
            except (OSError, RuntimeError) as error:
                raise UsageError(f"a worker failed: {type(error).__name__}: {error}") from error
            except TypeError:
                # That of Dask raises one if the worker of a finished part ends while its result is read.
                part = executor.submit(search.kept, low, high).result()
            yield part, high - low
    finally:
        for future in futures:
            future.cancel()


RETRIES = 10
"""Times that a part is evaluated again if its worker is lost."""
TIMEOUT = "30s"
"""For the connection to the scheduler."""


@contextmanager
def executor(address: str) -> Iterator[tuple[Executor, int]]:
    """An executor of the workers of a scheduler, and their number.

    Raises:
        UsageError: Dask is not installed, or there is no scheduler at the address.
    """
    distributed = library("distributed", "dask")
    try:
        client = distributed.Client(address, timeout=TIMEOUT)
    except (OSError, ValueError, TimeoutError) as error:
        raise UsageError(f"there is no Dask scheduler at {address}: {error}") from error
    with client:
        yield client.get_executor(retries=RETRIES), max(1, len(client.scheduler_info()["workers"]))
