"""The figure that is most likely wrong when several relations fail at once.

One wrong figure of a chip breaks the totals of every server that uses it, and every source that agreed with it seems to
contradict it.  Reports of all of them would name correct figures; so the failing relations are grouped, and each group is
attributed to the one figure whose correction would fix most of them and that the fewest other relations use.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from itertools import accumulate
from math import ceil
from typing import Any

from attrs import define, field, fields, frozen, has

from trnspec.checks.reconcile.lookalikes import relatives_agree
from trnspec.checks.reconcile.relations import agrees_with_formula, failing, relations
from trnspec.checks.reconcile.sites import Relation, Site
from trnspec.graph.graph import Graph, cached_by_graph, figure_at
from trnspec.graph.provenance import source_of
from trnspec.model.document import Node
from trnspec.model.ref import Ref
from trnspec.model.source import RANKS
from trnspec.quantities.quantity import Interval, Quantity
from trnspec.yaml import Path

Key = tuple[str, Path, int | None]
"""The identity of a site."""

Rank = tuple[int, bool, bool, bool, int, str, str]
"""The position of a candidate among others."""


@frozen
class Suspect:
    """A figure or count, and the relations that fail because of it.

    Attributes:
        site: The figure or count.
        failing: The relations that it breaks, at least one; sums before claims.
    """

    site: Site
    failing: tuple[Relation, ...]

    @property
    def is_claim(self) -> bool:
        """True if only claims of other sources contradict it, or if it is itself such a claim."""
        return all(r.is_claim for r in self.failing)

    @property
    def expected(self) -> list[Interval]:
        """The value that each failing relation requires, in base units."""
        return [e for r in self.failing if (e := r.expects(self.site)) is not None]


@cached_by_graph
def blamed(graph: Graph) -> tuple[Suspect, ...]:
    """The suspects of a graph. Several rules use them, so they are cached for the lifetime of the graph."""
    keys = {site.key for relation in failing(graph) for site in relation.sites}
    # The relations of other figures have no part in it.
    concerned = [r for r in relations(graph) if any(s.key in keys for s in r.sites)] if keys else []
    doubted = {site.node.name: site.node for relation in failing(graph) for site in relation.sites}
    return tuple(suspects(concerned, _with_formula(doubted.values(), graph), graph))


def _with_formula(nodes: Iterable[Node[Any]], graph: Graph) -> Iterator[Key]:
    """The figures that agree with a formula of their own."""
    for node in nodes:
        yield from ((node.name, path, None) for path in graph.figures(node) if agrees_with_formula(node, path, graph))


def suspects(relations: Iterable[Relation], formulas: Iterable[Key] = (), graph: Graph | None = None) -> list[Suspect]:
    """One suspect for each independent cause, the one with the most failing relations first.

    The suspect is the site of which one other value would fix the most failing relations, minus the correct ones that
    use it.  A formula of its own that holds counts as one.  Among equal sites, a count comes first that would then be that
    of most documents of its kind or with the same parts; then one in a document that is checked, if not all are; then a
    total before its parts, since it is stated as a check; then the site with fewer correct relations; then the last one by
    name, so that the result does not depend on the order of files.
    """
    relations = list(relations)
    failing = [r for r in relations if not r.holds]
    if not failing:
        return []
    sound = Counter(key for r in relations if r.holds for key in {s.key for s in r.sites})
    sound.update(formulas)
    contested = _contested(relations, failing)
    sound.subtract(contested)
    candidates: dict[Key, _Suspect] = {}
    for number, relation in enumerate(failing):
        doubted = _doubted(relation, graph, contested).key
        for key, site in {s.key: s for s in relation.sites}.items():
            if key not in candidates:
                candidates[key] = _Suspect(site, sound[key])
            candidates[key].add(number, relation, doubted=key == doubted)
    ranks = {key: rank for key, candidate in candidates.items() if (rank := candidate.rank(graph)) is not None}
    result: list[Suspect] = []
    while ranks:
        candidate = candidates[max(ranks, key=ranks.__getitem__)]
        explained = candidate.fixed()
        result.append(Suspect(candidate.site, tuple(sorted(explained.values(), key=lambda r: r.is_claim))))
        changed: set[Key] = set()
        for number, relation in explained.items():
            for key in {s.key for s in relation.sites}:
                changed.add(key)
                candidates[key].remove(number)
        for key in changed:  # no other candidate has another rank
            ranks.pop(key, None)
            if (rank := candidates[key].rank(graph)) is not None:
                ranks[key] = rank
    return result


@define(eq=False)
class _Suspect:
    """A site of failing relations.

    Attributes:
        site: The figure or count.
        sound: The number of relations that use it and hold.
        failing: The relations that another value would fix, by number, under the interval of that value.
        doubted: The numbers of the failing relations whose doubted site it is.
        numbers: The interval of each relation in ``failing``.
        ranges: For each interval, widened by the digits of the site: where it begins among the starts of all intervals, in
            ascending order, and which of them it contains. Known from the first ranking on.
    """

    site: Site
    sound: int
    failing: dict[Interval, dict[int, Relation]] = field(factory=dict)
    doubted: set[int] = field(factory=set)
    numbers: dict[int, Interval] = field(factory=dict)
    ranges: dict[Interval, tuple[int, int, int]] = field(factory=dict)

    def add(self, number: int, relation: Relation, *, doubted: bool) -> None:
        """Add a failing relation."""
        if doubted:
            self.doubted.add(number)
        expected = relation.expects(self.site)
        if expected is not None:
            self.failing.setdefault(expected, {})[number] = relation
            self.numbers[number] = expected

    def remove(self, number: int) -> None:
        """Remove a failing relation that is explained."""
        self.doubted.discard(number)
        expected = self.numbers.pop(number, None)
        if expected is not None:
            group = self.failing[expected]
            del group[number]
            if not group:
                del self.failing[expected]

    def _ranges(self) -> dict[Interval, tuple[int, int, int]]:
        """The intervals as ranges of whole numbers: a site may contradict thousands of claims, one after another."""
        value = self.site.value
        half = value.ulp * value.unit.factor / 2 if isinstance(value, Quantity) else Fraction(0)
        low = {e: max(e.low - half, Fraction(0)) for e in self.failing}
        start = {e: at if isinstance(value, Quantity) else Fraction(ceil(at)) for e, at in low.items()}
        starts = sorted(set(start.values()))
        ranges = {}
        for each in self.failing:
            high = None if each.high is None else each.high + half
            # A single number contains itself, any other interval not its upper end.
            end = len(starts) if high is None else (bisect_right if high == low[each] else bisect_left)(starts, high)
            ranges[each] = bisect_left(starts, start[each]), bisect_left(starts, low[each]), end
        return ranges

    def _fitting(self) -> list[Interval]:
        """The expected values that one other value of the site, with as many digits, would meet: most relations."""
        self.ranges = self.ranges or self._ranges()
        steps = [0] * (len(self.ranges) + 1)
        for each, group in self.failing.items():
            _, begin, end = self.ranges[each]
            steps[begin] += len(group)
            steps[end] -= len(group)
        # The number of overlapping intervals is largest at the start of one of them.
        counts = list(accumulate(steps))
        starts = [self.ranges[each][0] for each in self.failing]
        most = max((counts[start] for start in starts), default=0)
        if most <= 0:
            return []
        best = next(start for start in starts if counts[start] == most)
        return [each for each in self.failing if self.ranges[each][1] <= best < self.ranges[each][2]]

    def fixed(self) -> dict[int, Relation]:
        """The most relations that one other value would fix, by number in ascending order."""
        return dict(sorted((n, r) for e in self._fitting() for n, r in self.failing[e].items()))

    def rank(self, graph: Graph | None) -> Rank | None:
        """The present rank, the highest for the likeliest; ``None`` where no value fixes any relation."""
        fitting = self._fitting()
        if not fitting:
            return None
        gain = sum(len(self.failing[e]) for e in fitting) - self.sound
        majority = graph is not None and _is_majority(self.site, fitting, graph)
        name, *rest = self.site.key
        edited = graph is not None and graph.focus is not None and name in graph.focus
        return gain, majority, edited, bool(self.doubted), -self.sound, name, str(tuple(rest))


def _contested(relations: list[Relation], failing: list[Relation]) -> Counter[Key]:
    """The adopted figures that a claim contradicts, each with the number of sums that agree far better with the claim.

    Coarse sums also agree with a figure whose last digits are wrong: 144 x 144 GiB is 20,736 GiB, as a claim states, and
    within rounding also 20,763 GiB.  Such a sum does not support the figure.
    """
    claims = {r.terms[0].part.key: r for r in failing if r.is_claim}
    found: Counter[Key] = Counter()
    for relation in relations if claims else ():
        if relation.is_claim or not relation.holds:
            continue
        for key, site in {s.key: s for s in relation.sites if s.key in claims}.items():
            claimed, adopted, expected = claims[key].total.value, site.value, relation.expects(site)
            if not isinstance(claimed, Quantity) or not isinstance(adopted, Quantity):
                continue
            if expected is None or expected.high is None:
                continue
            found[key] += FAR_BETTER * abs(claimed.value - expected.middle) <= abs(adopted.value - expected.middle)
    return +found


FAR_BETTER = 10
"""Factor by which a claim is closer to a sum than the adopted figure, if the sum supports the claim."""


def _doubted(relation: Relation, graph: Graph | None, contested: Collection[Key]) -> Site:
    """The site of a failing relation that is doubted first where nothing else decides.

    A total is stated as a check.  Of a claim and the adopted figure it is the one whose source has the lower precedence:
    an older claim needs a verdict, and a figure that a claim of the same source or a later date contradicts was probably
    copied wrongly.  It is the adopted figure too where the sums support the claim, and the part where other
    documents of the family have the value of the total or of the claim.
    """
    claim = relation.total
    if graph is None:
        return claim
    adopted = relation.terms[0].part
    is_alone = relatives_agree(claim, graph) and not relatives_agree(adopted, graph)
    if not relation.is_claim or claim.claim is None:
        return adopted if len(relation.terms) == 1 and is_alone else claim
    if adopted.key in contested or is_alone:
        return adopted
    return claim if precedence(claim, graph) < precedence(adopted, graph) else adopted


def precedence(site: Site, graph: Graph) -> tuple[bool, str, int]:
    """The precedence of the source of a value; the lowest if it has none or an invalid one, which is reported elsewhere."""
    ref = source_of(site.node, site.path) if site.claim is None else site.node.claims[site.claim].source
    source = graph.find(ref)
    return (False, "", -len(RANKS)) if source is None else source.spec.precedence


def _is_majority(site: Site, expected: list[Interval], graph: Graph) -> bool:
    """Whether a count would be fixed by the value of most documents of the kind, or of those with the same parts."""
    if not isinstance(site.value, int):
        return False
    own = figure_at(site.node, site.path)
    parts = _parts_at(site.node, site.path)
    for same in (parts, None) if parts else (None,):
        counts = _counts_at(graph, type(site.node.spec), site.path, same)
        if isinstance(own, int):
            counts = counts - Counter([int(own)])
        fitting = sum(n for value, n in counts.items() if all(Fraction(value) in e for e in expected))
        # Of the documents with the same parts, all must agree.
        is_most = 2 * fitting > counts.total() if same is None else fitting == counts.total() > 1
        if is_most and site.value not in counts:
            return True
    return False


def _parts_at(node: Node[Any], path: Path) -> tuple[Any, ...]:
    """The documents that the holder of a count refers to, such as the link of ``fabric.links_per_chip``."""
    holder = figure_at(node, path[:-1])
    return (
        tuple(v for f in fields(type(holder)) if isinstance(v := getattr(holder, f.name), Ref))
        if has(type(holder))
        else ()
    )


@cached_by_graph
def _counts_at(graph: Graph, spec: type, path: Path, parts: tuple[Any, ...] | None) -> Counter[int]:
    """Number of documents of a kind, or of those with the same parts, by their count at a path."""
    every: tuple[Node[Any], ...] = graph.of(spec)
    nodes = [n for n in every if parts is None or _parts_at(n, path) == parts]
    return Counter(int(v) for n in nodes if isinstance(v := figure_at(n, path), int))
