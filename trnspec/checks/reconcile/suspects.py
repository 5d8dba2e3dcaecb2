"""The figure that is most likely wrong when several relations fail at once.

One wrong figure of a chip breaks the totals of every server that uses it, and every source that agreed with it seems to
contradict it.  Reports of all of them would name correct figures; so the failing relations are grouped, and each group is
attributed to the one figure whose correction would fix most of them and that the fewest other relations use.
"""

from __future__ import annotations

import weakref
from collections import Counter
from fractions import Fraction
from math import ceil
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.checks.reconcile.relations import relations
from trnspec.checks.reconcile.sites import Relation, Site
from trnspec.graph.formulas import value_of
from trnspec.graph.graph import figure_at
from trnspec.graph.provenance import source_of
from trnspec.quantities.formula import FormulaError
from trnspec.quantities.quantity import Interval, Quantity
from trnspec.yaml import Path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trnspec.graph.graph import Graph

Key = tuple[str, Path, int | None]
"""The identity of a site."""


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


_known: weakref.WeakKeyDictionary[Graph, tuple[Suspect, ...]] = weakref.WeakKeyDictionary()


def blamed(graph: Graph) -> tuple[Suspect, ...]:
    """The suspects of a graph. Several rules use them, so they are cached for the lifetime of the graph."""
    cached = _known.get(graph)
    if cached is None:
        cached = _known[graph] = tuple(suspects(relations(graph), _with_formula(graph), graph))
    return cached


def _with_formula(graph: Graph) -> Iterator[Key]:
    """The figures that agree with a formula of their own, which supports them as another source would."""
    for node in graph:
        for path, figure in graph.figures(node).items():
            for formula in (figure.derived, figure.check):
                if formula is None:
                    continue
                try:
                    if value_of(formula, node, graph).overlaps(figure.value.interval):
                        yield node.name, path, None
                except FormulaError:
                    continue  # reported by TRN404


def suspects(relations: Iterable[Relation], formulas: Iterable[Key] = (), graph: Graph | None = None) -> list[Suspect]:
    """One suspect for each independent cause, the one with the most failing relations first.

    The suspect is the site of which one other value would fix the most failing relations, minus the correct ones that
    use it.  A formula of its own that holds counts as one.  Among equal sites, a count comes first that would then be that
    of most documents of its kind; then a total before its parts, since it is stated as a check; then the site with fewer
    correct relations; then the last one by name, so that the result does not depend on the order of files.
    """
    relations = list(relations)
    failing = [r for r in relations if not r.holds]
    sound = Counter(key for r in relations if r.holds for key in {s.key for s in r.sites})
    if failing:
        sound.update(formulas)
    result: list[Suspect] = []
    while failing:
        broken: dict[Key, list[Relation]] = {}
        for relation in failing:
            for key in {site.key for site in relation.sites}:
                broken.setdefault(key, []).append(relation)
        sites = {s.key: s for r in failing for s in r.sites}
        fixed = {key: m for key, site in sites.items() if (m := _fixed(site, broken[key]))}
        totals = {_doubted(r, graph).key for r in failing}
        gains = {k: len(fixed[k]) - sound[k] for k in fixed}
        most = max(gains.values())
        usual = {
            k
            for k, gain in gains.items()
            if gain == most and graph is not None and _is_usual(sites[k], fixed[k], graph)
        }
        key = max(fixed, key=lambda k: (gains[k], k in usual, k in totals, -sound[k], k[0], str(k[1:])))
        result.append(Suspect(sites[key], tuple(sorted(fixed[key], key=lambda r: r.is_claim))))
        failing = [r for r in failing if r not in fixed[key]]
    return result


def _doubted(relation: Relation, graph: Graph | None) -> Site:
    """The site of a failing relation that is doubted first where nothing else decides.

    A total is stated as a check.  Of a claim and the adopted figure it is the one of the older source: an older claim
    needs a verdict, and a figure that a claim of the same or a later date contradicts was probably copied wrongly.
    """
    claim = relation.total
    if not relation.is_claim or graph is None or claim.claim is None:
        return claim
    adopted = relation.terms[0].part
    dates = []
    for ref in (claim.node.claims[claim.claim].source, source_of(adopted.node, adopted.path)):
        node = None if ref is None else graph.find(ref)
        dates.append("" if node is None else str(getattr(node.spec, "as_of", "")))
    return claim if dates[0] < dates[1] else adopted


def _is_usual(site: Site, failing: list[Relation], graph: Graph) -> bool:
    """Whether a count would be fixed by the value that most other documents of the kind have at its path."""
    if not isinstance(site.value, int):
        return False
    others = [figure_at(n, site.path) for n in graph.of(type(site.node.spec)) if n.name != site.node.name]
    counts = Counter(int(other) for other in others if isinstance(other, int))
    wanted = [e for r in failing if (e := r.expects(site)) is not None]
    fitting = sum(n for value, n in counts.items() if all(Fraction(value) in w for w in wanted))
    return len(counts) > 0 and site.value not in counts and 2 * fitting > counts.total()


def _fixed(site: Site, failing: list[Relation]) -> list[Relation]:
    """The most of these relations that one other value of the site, with as many digits, would fix."""
    value = site.value
    expected: list[tuple[Relation, Interval]] = []
    for relation in failing:
        wanted = relation.expects(site)
        if wanted is not None:
            half = value.ulp * value.unit.factor / 2 if isinstance(value, Quantity) else Fraction(0)
            low = max(wanted.low - half, Fraction(0))
            expected.append((relation, Interval(low, None if wanted.high is None else wanted.high + half)))
    best: list[Relation] = []
    # The number of overlapping intervals is largest at the lower end of one of them.
    for start in {e.low if isinstance(value, Quantity) else Fraction(ceil(e.low)) for _, e in expected}:
        fitting = [r for r, e in expected if start in e]
        if len(fitting) > len(best):
            best = fitting
    return best
