"""Share of slips in the shipped catalog that are detected: each test changes one figure and looks for a finding."""

from __future__ import annotations

import multiprocessing
import random
import shutil
from collections import Counter, defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import evolve, frozen

from tests.checks.quote_changes import power_changes, price_changes
from tests.support.mutations import (
    KINDS,
    Change,
    Outcome,
    Statement,
    changed,
    changes,
    claimed,
    counts,
    determined,
    edited,
    findings,
    first_findings,
    outcome,
    sites,
    statement_changes,
)
from tests.support.programs import ROOT
from trnspec.api import graph as load
from trnspec.api import registry, validate
from trnspec.graph.graph import Graph
from trnspec.loading.files import shipped
from trnspec.model.reflection import dotted
from trnspec.model.source import Source
from trnspec.model.transformers.model import Model

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trnspec.diagnostics import Diagnostic
    from trnspec.plugins.api import Rule

LEAST = 0.95
"""The share of changes that must be reported."""

SEED = 20260801
EACH = 18
"""Changes of each kind in the sample."""

IN_FILES = 27

HARDWARE, MODELS = 4, 40
"""Of the changes of hardware, and of those of models, one in this many is made."""

FIRST = ("TRN402", "TRN303")
"""The rules that notice most; the exhaustive run asks them first."""


@pytest.fixture(scope="module")
def graph() -> Graph:
    return load()


@pytest.fixture(scope="module")
def by_kind(graph: Graph) -> dict[str, list[Change]]:
    """Every change that must be noticed."""
    known = determined(graph)
    found: dict[str, list[Change]] = {kind: [] for kind in KINDS}
    for change in changes(graph):
        if counts(change, known):
            found[change.kind].append(change)
    return found


def _sample(by_kind: dict[str, list[Change]], each: int) -> list[Change]:
    chosen = random.Random(SEED)
    return [c for some in by_kind.values() for c in chosen.sample(some, min(each, len(some)))]


def _rate(outcomes: Iterable[Outcome], sizes: dict[str, int]) -> float:
    """The share that was reported, every kind weighted by how many changes of it there are."""
    reported: dict[str, list[bool]] = defaultdict(list)
    for each in outcomes:
        reported[each.change.kind].append(each.reported)
    share = sum(sizes[kind] * sum(some) / len(some) for kind, some in reported.items())
    return share / sum(sizes[kind] for kind in reported)


def _told(outcomes: list[Outcome], sizes: dict[str, int]) -> Iterator[str]:
    yield f"{'change':20} {'possible':>8} {'made':>6} {'reported':>9} {'at its place':>13} {'or named':>9}"
    for kind, size in sizes.items():
        some = [o for o in outcomes if o.change.kind == kind]
        if some:
            shares = [sum(getattr(o, what) for o in some) / len(some) for what in ("reported", "laid", "named")]
            yield f"{kind:20} {size:8} {len(some):6} {shares[0]:9.1%} {shares[1]:13.1%} {shares[2]:9.1%}"
    yield f"{'all, by their number':20} {sum(sizes.values()):8} {len(outcomes):6} {_rate(outcomes, sizes):9.1%}"


def _escaped(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """What was not noticed, by place."""
    grouped: dict[str, list[str]] = defaultdict(list)
    for each in outcomes:
        if not each.reported:
            reported = str(each.change).removeprefix(f"{each.change.kind}: {each.change.name} ")
            paths = " and ".join(dotted(path) for _, path in each.change.places)
            grouped[f"{each.change.name} {paths}"].append(f"{each.change.kind} ({reported.rsplit(' -> ', 1)[1]})")
    for place, some in sorted(grouped.items(), key=lambda item: (-len(item[1]), item[0])):
        yield f"  escaped: {place}: {', '.join(some)}"


def test_no_findings_in_the_unchanged_catalog(graph: Graph) -> None:
    assert findings(graph, registry().rules) == []


def test_every_kind_of_change_is_made(by_kind: dict[str, list[Change]]) -> None:
    """A rate over no changes would say nothing."""
    assert [kind for kind, some in by_kind.items() if len(some) < 10] == []


def test_share_without_a_rival(graph: Graph, tell) -> None:
    """Reports how many figures nothing determines; a catalog in which most stand alone would check little."""
    known = determined(graph)
    reported: list[str] = []
    alone, every, how = Counter[str](), Counter[str](), Counter[str]()
    for node in graph:
        if isinstance(node.spec, Source):
            continue
        mine = [(node.name, path) for path in sites(node)]
        lonely = [path for name, path in mine if (name, path) not in known]
        every[node.kind] += len(mine)
        alone[node.kind] += len(lonely)
        how.update(reason for place in mine for reason in known.get(place, ()))
        if lonely:
            reported.append(f"  {node.name}: {', '.join(dotted(path[1:]) for path in lonely)}")
    share = alone.total() / every.total()
    # What determines the dimensions of a model is its parameter count, where somebody prints one.
    models = alone["Model"] / every["Model"]
    # A calibration is fitted to measurements; tests fit those of it again.
    others = ("Model", "Calibration")
    hardware = (alone.total() - sum(alone[k] for k in others)) / (every.total() - sum(every[k] for k in others))
    by_node = ", ".join(f"{kind} {alone[kind]} of {every[kind]}" for kind in every)
    tell(
        "figures that no other figure determines",
        [
            f"{alone.total()} of {every.total()} figures and counts, {share:.1%}: {by_node}",
            "the others are determined by " + ", ".join(f"{reason} {n}" for reason, n in how.most_common()),
            *reported,
        ],
    )

    assert hardware < 0.3
    assert models < 0.35


RATES = {"number": 0.95, "date": 0.90, "source": 0.90, "verdict": 0.90, "model": 0.80, "price": 0.95, "power": 0.95}
"""The share of changes of each kind that must be reported."""

QUICK = {"number": 24, "date": 12, "source": 12, "verdict": 12, "model": 45, "price": 24, "power": 12}
"""Changes of each kind in the quick sample."""

MODEL_KINDS = ("x2", "/2", "off by one", "another's value", "swapped row")


@frozen
class Population:
    """The changes of one kind, the part of the catalog that they are made in, and the rules that report them."""

    graph: Graph
    rules: tuple[Rule, ...]
    changes: tuple[Any, ...]

    def missed(self, changes: Iterable[Any]) -> list[str]:
        """The changes that no rule reports."""
        made = ((c, c.made(self.graph) if isinstance(c, Statement) else changed(self.graph, c)) for c in changes)
        return [str(change) for change, graph in made if not first_findings(graph, self.rules)]


def _populations() -> dict[str, Population]:
    hardware, models = _half(models=False), _half(models=True)
    every = sorted(registry().rules, key=lambda r: r.code.id not in FIRST)
    about_models = tuple(r for r in every if r.over is Model or r.code.id in FIRST)
    of_figures = tuple(r for r in every if r.over is not Model and not r.code.id.startswith("TRN7"))
    of_prices = tuple(r for r in every if r.code.id.startswith("TRN8"))
    of_statements = tuple(r for r in every if r.code.id.startswith("TRN3"))
    # Only sources of NVIDIA print the power of chips and servers.
    nvidia = load([str(ROOT / "plugins/trnspec-nvidia/src/trnspec_nvidia/catalog")])
    powered = Graph({name: evolve(node, target=True) for name, node in nvidia.nodes.items()})
    known = determined(hardware)
    stated: dict[str, list[Statement]] = defaultdict(list)
    for statement in statement_changes(hardware):
        stated[statement.kind].append(statement)
    # Not only what something determines: every dimension of every model.
    dimensions: dict[str, list[Change]] = defaultdict(list)
    for change in changes(models):
        if change.beyond and change.kind in MODEL_KINDS:
            dimensions[change.kind].append(change)
    fewest = min(map(len, dimensions.values()))
    chosen = random.Random(SEED)
    equally = [c for some in dimensions.values() for c in chosen.sample(some, fewest)]
    numbers = tuple(c for c in changes(hardware) if counts(c, known))
    return {
        "number": Population(hardware, of_figures, numbers),
        **{kind: Population(hardware, of_statements, tuple(some)) for kind, some in stated.items()},
        "model": Population(models, about_models, tuple(equally)),
        "price": Population(hardware, of_prices, tuple(price_changes(hardware))),
        "power": Population(powered, of_prices, tuple(power_changes(powered))),
    }


def test_quick_sample_of_every_kind(tell) -> None:
    """Numbers, dates, sources, verdicts and dimensions of models; each kind has a rate of its own."""
    rates: dict[str, float] = {}
    lines: list[str] = []
    for kind, population in _populations().items():
        # A sample of one kind does not depend on the documents of another.
        sample = random.Random(f"{SEED} {kind}").sample(population.changes, min(QUICK[kind], len(population.changes)))
        missed = population.missed(sample)
        rates[kind] = 1 - len(missed) / len(sample)
        lines += [
            f"{kind}: {rates[kind]:.1%} of {len(sample)}, of {len(population.changes)}",
            *(f"  {m}" for m in missed),
        ]
    tell(f"changes of every kind, a quick sample (seed {SEED})", lines)

    assert rates.keys() == RATES.keys()
    assert {kind: rate for kind, rate in rates.items() if rate < RATES[kind]} == {}


@pytest.mark.slow
def test_many_statements_and_dimensions(tell) -> None:
    """The same of 60 dates, sources and verdicts each, and of 600 dimensions of models."""
    rates: dict[str, float] = {}
    lines: list[str] = []
    for kind, population in _populations().items():
        if kind != "number":
            most = 600 if kind == "model" else 60
            sample = random.Random(f"{SEED + 1} {kind}").sample(population.changes, min(most, len(population.changes)))
            missed = population.missed(sample)
            rates[kind] = 1 - len(missed) / len(sample)
            lines += [f"{kind}: {rates[kind]:.1%} of {len(sample)}", *(f"  {m}" for m in missed)]
    tell(f"changes of statements and of dimensions (seed {SEED + 1})", lines)

    assert {kind: rate for kind, rate in rates.items() if rate < RATES[kind]} == {}


@pytest.mark.slow
def test_claims_where_nothing_is_adopted(graph: Graph, tell) -> None:
    """Every change of one of two claims is reported, wherever a document can do without the figure they speak of."""
    possible: dict[str, list[Change]] = defaultdict(list)
    for change in changes(graph):
        if change.beyond and len(change.edits) == 1 and change.kind != "dropped dimension":
            possible[change.kind].append(change)
    rules = [r for r in registry().rules if r.code.id in FIRST]
    tally, silent = Counter[str](), []
    for change in _sample(possible, EACH):
        made = claimed(graph, change)
        if made is not None:
            reported = [d for d in findings(made, rules) if d.code in FIRST]
            tally[change.kind] += 1
            silent += [] if reported else [str(change)]
    tell(f"two claims, one of them changed (seed {SEED})", [f"{kind}: {n}" for kind, n in tally.items()])

    assert silent == []
    assert tally.total() > EACH


_shared: dict[bool, Graph] = {}


def _half(*, models: bool) -> Graph:
    """The models of the catalog, or its hardware: neither has anything to say of the other; the sources with both."""
    whole = load()
    kinds = ("Model", "Source")
    kept = {n.name: n for n in whole if n.kind == "Source" or (n.kind in kinds) == models}
    return Graph(kept)


def _try(change: Change) -> Outcome:
    """In a process of its own, which reads the catalog once."""
    if not _shared:
        _shared.update({models: _half(models=models) for models in (False, True)})
    graph = next(half for half in _shared.values() if change.name in half)
    rules = sorted(registry().rules, key=lambda r: r.code.id not in FIRST)
    return outcome(graph, change, first_findings(changed(graph, change), rules))


@pytest.mark.slow
def test_every_change(graph: Graph, by_kind: dict[str, list[Change]], tell) -> None:
    """At least 95 in 100 changes of what another figure determines are reported, by all rules together.

    Made is every fourth change of hardware, and fewer of models, which are many and alike. Of each kind by itself no less
    than two thirds are reported.
    """
    models = {n.name for n in graph if n.kind == "Model"}
    made = {
        kind: [c for i, c in enumerate(some) if i % (MODELS if c.name in models else HARDWARE) == 0]
        for kind, some in by_kind.items()
    }
    sizes = {kind: len(some) for kind, some in made.items()}
    with multiprocessing.get_context("spawn").Pool() as pool:
        outcomes = pool.map(_try, [c for some in made.values() for c in some], 32)
    tell("changes of one figure, all of them", [*_told(outcomes, sizes), *_escaped(outcomes)])
    rates = {kind: _rate([o for o in outcomes if o.change.kind == kind], sizes) for kind in sizes}

    assert _rate(outcomes, sizes) >= LEAST
    assert [kind for kind, rate in rates.items() if rate < 2 / 3] == []


def _placed(found: Iterable[Diagnostic], file: str, lines: set[int], change: Change) -> str:
    """How near to the edited lines the nearest finding is laid."""
    found = list(found)
    if any(d.where.file == file and d.where.place and d.where.place.line in lines for d in found):
        return "at the line"
    paths = [d.where.path for d in found if d.where.file == file]
    if any(p == path[: len(p)] for p in paths for _, path in change.places):
        return "at the list or mapping that holds it"
    if any(s.file == file and s.place and s.place.line in lines for d in found for s in d.see):
        return "named beside"
    return "elsewhere" if found else "escaped"


@pytest.mark.slow
def test_changes_in_files(graph: Graph, by_kind: dict[str, list[Change]], tmp_path: Path, tell) -> None:
    """Edits of the files are found at the very line as a rule, and otherwise that line is named beside the finding."""
    root = tmp_path / "catalog"
    shutil.copytree(shipped(), root)

    assert validate([str(root)]).report.diagnostics == ()

    reported: list[str] = []
    tally = Counter[str]()
    for change in _sample(by_kind, IN_FILES // len(KINDS)):
        node = graph.named(change.name)
        file = root / Path(node.document.file).relative_to(shipped())
        before = file.read_text()
        after, lines = edited(before, node, change)
        file.write_text(after)
        found = validate([str(root)]).report.diagnostics
        file.write_text(before)

        assert not [d for d in found if d.code < "TRN300" or d.code == "TRN900"], (change, found)

        kind = _placed(found, str(file), lines, change)
        tally[kind] += 1
        if kind != "at the line":
            laid = ", ".join(sorted(f"{Path(d.where.file).name}:{d.where.place.line}" for d in found if d.where.place))
            reported.append(f"  {kind}: {change}" + (f"; found at {laid}" if laid else ""))
    total = tally.total()
    parts = ", ".join(f"{n} {kind} ({n / total:.0%})" for kind, n in tally.most_common())
    tell(f"edits of files (seed {SEED})", [f"{total} edits: {parts}", *reported])

    assert tally["elsewhere"] == 0
    assert tally["at the line"] >= 0.75 * total
    assert tally["escaped"] <= (1 - LEAST) * total + 1
