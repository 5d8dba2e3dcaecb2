"""Which figure is most likely wrong, when several relations fail at once.

One wrong figure of a chip breaks the totals of every server that uses it, and every source that agreed with it seems to
contradict it.  Reporting each of them would point at figures that are right; so the failing relations are grouped, and
each group is laid at the one figure that most of them share and that the fewest sound ones need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from attrs import frozen

from trnspec.quantity import Interval
from trnspec.rules.sites import Relation, Site


@frozen
class Suspect:
    """A figure or count, and the relations that fail because of it.

    Attributes:
        site: Where it stands.
        failing: The relations that it breaks, at least one; sums before claims.
    """

    site: Site
    failing: tuple[Relation, ...]

    @property
    def is_claim(self) -> bool:
        """True when nothing but what other sources say is against it, or when it is itself such a claim."""
        return all(r.is_claim for r in self.failing)

    @property
    def expected(self) -> list[Interval]:
        """What each broken relation expects of it, in base units."""
        return [e for r in self.failing if (e := r.expects(self.site)) is not None]


def suspects(relations: Iterable[Relation]) -> list[Suspect]:
    """One suspect for each independent cause, the one that breaks most first."""
    relations = list(relations)
    failing = [r for r in relations if not r.holds]
    if not failing:
        return []
    sound = Counter(s.key for r in relations if r.holds for s in r.sites)
    found: list[Suspect] = []
    while failing:
        broken = Counter(s.key for r in failing for s in r.sites)
        sites = {s.key: s for r in failing for s in r.sites}
        # A total is stated to be checked, so it is the first to doubt when nothing else tells the two apart.
        totals = {r.total.key for r in failing}
        key = max(broken, key=lambda k: (broken[k] - sound[k], k in totals, -sound[k], k[0], str(k[1:])))
        caused = [r for r in failing if any(s.key == key for s in r.sites)]
        found.append(Suspect(sites[key], tuple(sorted(caused, key=lambda r: r.is_claim))))
        failing = [r for r in failing if r not in caused]
    return found
