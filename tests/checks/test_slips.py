"""Share of slips in the shipped catalogs that are found, at their place, and with the right first hint.

``pytest -m slow -v tests/checks/test_slips.py`` prints the figures by kind of slip, and the slips whose first hint is not right.
"""

from collections import Counter, defaultdict

import pytest

from tests.checks.conftest import CAUSES, Result, determined, findings, result_of, sampled, sites, slips
from tests.support.programs import ROOT
from trnspec.api import graph as load
from trnspec.api import registry
from trnspec.graph.graph import Graph
from trnspec.model.source import Source

SEED, EACH = 271828, 3
"""The hints were developed with other seeds."""

FOUND, RIGHT, MISLEADING, LOCATED = 0.95, 0.85, 0.03, 0.90
UNDETERMINED = {"Model": 0.35, "hardware": 0.3}
"""The largest share of figures that no other figure determines; a catalog of such figures would check little."""


@pytest.fixture(scope="module")
def catalogs() -> Graph:
    return load([str(folder) for folder in (ROOT / "plugins").glob("*/src/*/catalog")])


def test_no_findings_without_slips(catalogs: Graph) -> None:
    assert findings(catalogs, registry().rules) == []


def test_share_of_figures_that_others_determine() -> None:
    graph = load()
    known = determined(graph)
    alone, every = Counter[str](), Counter[str]()
    for node in graph:
        if not isinstance(node.spec, Source) and node.kind != "Calibration":  # calibrations are fitted to measurements
            group = "Model" if node.kind == "Model" else "hardware"
            every[group] += len(sites(node))
            alone[group] += sum((node.name, path) not in known for path in sites(node))

    assert {group: alone[group] / n for group, n in every.items() if alone[group] > UNDETERMINED[group] * n} == {}


@pytest.mark.slow
def test_slips_of_every_kind(catalogs: Graph, tell) -> None:
    """At least 95 % are found, 90 % at the changed place; 85 % of first hints are right, and at most 3 % misleading."""
    # Tables of measurements are large, and no slip is made in them.
    rules = [rule for rule in registry().rules if not rule.code.id.startswith("TRN7")]
    results = [result_of(catalogs, slip, rules) for slip in sampled(slips(catalogs), EACH, SEED)]
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for result in results:
        kinds[result.slip.kind][result.verdict] += 1
    rows = [f"{kind:18} {', '.join(f'{verdict} {n}' for verdict, n in c.items())}" for kind, c in kinds.items()]
    rows += [f"  {r.slip}: {r.cause or 'no finding'}" for r in results if r.verdict != "right"]
    tell(f"first hints of {len(results)} slips: {_figures(results)}", rows)

    verdicts = sum(kinds.values(), Counter())
    assert set(kinds) == set(CAUSES)
    assert sum(result.cause != "" for result in results) >= FOUND * len(results)
    assert sum(result.location for result in results) >= LOCATED * len(results)
    assert verdicts["right"] >= RIGHT * len(results)
    assert verdicts["misleading"] <= MISLEADING * len(results)


def _figures(results: list[Result]) -> str:
    verdicts = Counter(result.verdict for result in results)
    shares = ", ".join(f"{verdict} {n / len(results):.1%}" for verdict, n in verdicts.most_common())
    return f"{shares}, at the changed place {sum(r.location for r in results) / len(results):.1%}"
