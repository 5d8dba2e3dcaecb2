"""trnspec.checks.rules.provenance: sources, claims, verdicts, dates, and pages that contradict themselves."""

import attrs
import pytest

from tests.support.rules import SOURCE, bare, beside, findings, found
from trnspec.graph.graph import Graph
from trnspec.model.document import Claim
from trnspec.model.ref import Ref

# TRN403.

PAGE = """\
# file: sources/a-page.yaml
api_version: trnspec/v1
kind: Source
metadata: {name: a-page, title: A page, aliases: [the-page]}
spec: {publisher: Somebody, as_of: 2023-02-28, rank: third-party}
# file: chips/part.yaml
api_version: trnspec/v1
kind: Chip
metadata: {name: part, title: Part, source: neuron-trainium-2026-08}
spec:
  peak: {dense: {bf16: 190 TFLOPS}}
  memory: {capacity: 32 GiB}
claims:
  - {at: spec.peak.dense.bf16, says: 210 TFLOPS, source: SOURCE, verdict: superseded, reason: It is older.}
# file: servers/whole.yaml
api_version: trnspec/v1
kind: Server
metadata: {name: whole, title: Whole, source: neuron-trainium-2026-08}
spec:
  chips: {chip: part, count: 16}
claims:
  - {at: spec.stated.peak.dense.bf16, says: "TOTAL", source: a-page, verdict: VERDICT, reason: It is older.}
"""


def page(total: str, verdict: str = "superseded", source: str = "a-page") -> Graph:
    return beside(PAGE.replace("TOTAL", total).replace("VERDICT", verdict).replace("SOURCE", source))


@pytest.mark.parametrize("source", ["a-page", "the-page"])
def test_a_page_that_contradicts_itself(source):
    graph = page("3,380 TFLOPS", source=source)
    (finding,) = findings("TRN403", graph)

    assert {("whole", "claims.0.says")} == found("TRN403", graph)
    assert finding.message == "a-page has 3,380 TFLOPS for stated.peak.dense.bf16, but also 16 x 210 TFLOPS of part"


@pytest.mark.parametrize(
    ("total", "verdict"),
    [
        ("3,360 TFLOPS", "superseded"),
        ("3.4 PFLOPS", "superseded"),
        ("3,380 TFLOPS", "rejected"),
        ("3,380 TFLOPS", "unresolved"),
        ("3,380 TFLOPS", "other-scope"),
    ],
)
def test_a_page_that_closes_or_was_judged(total, verdict):
    assert set() == found("TRN403", page(total, verdict))


def test_a_total_after_others_of_its_page_that_close_or_were_judged():
    """All servers of the page are compared, also after one that closes and one that was judged."""
    text = PAGE.replace("SOURCE", "a-page")
    server = text[text.index("# file: servers/whole.yaml") :]
    cases = (
        ("aa", "3,360 TFLOPS", "superseded"),
        ("bb", "3,380 TFLOPS", "rejected"),
        ("zz", "3,380 TFLOPS", "superseded"),
    )
    more = "".join(
        server.replace("whole", name).replace("TOTAL", total).replace("VERDICT", verdict)
        for name, total, verdict in cases
    )
    rest = text[: text.index("# file: servers/whole.yaml")]

    assert {("zz", "claims.0.says")} == found("TRN403", beside(rest + more))


def test_an_adopted_mismatch_does_not_end_the_comparison():
    """What contradicts itself among adopted figures is TRN402; the claims of the page are still compared."""
    text = PAGE.replace("SOURCE", "a-page").replace("TOTAL", "3,380 TFLOPS").replace("VERDICT", "superseded")
    own = """# file: servers/NAME.yaml
api_version: trnspec/v1
kind: Server
metadata: {name: NAME, title: Adopted, source: a-page}
spec:
  chips: {chip: chip-of-NAME, count: 2}
  stated: {memory: {capacity: 100 GiB}}
# file: chips/chip-of-NAME.yaml
api_version: trnspec/v1
kind: Chip
metadata: {name: chip-of-NAME, title: Own, source: a-page}
spec: {memory: {capacity: 32 GiB}}
"""

    around = [own.replace("NAME", name) for name in ("aa", "zz")]

    assert {("whole", "claims.0.says")} == found("TRN403", beside(around[0] + text + around[1]))


def test_many_claims_are_compared_with_one_and_explained_in_part(monkeypatch):
    """Sixty claims have 1,770 pairs; each but the best is reported once, and the causes of the first ones are named."""
    monkeypatch.setattr("trnspec.checks.reconcile.hints.MOST_EXPLAINED", 5)
    node = bare().named("trainium1")
    claims = tuple(Claim(at="spec.power", says=f"{n + 1} W", source=Ref(SOURCE), where=f"line {n}") for n in range(60))
    reported = findings("TRN303", Graph({**bare().nodes, node.name: attrs.evolve(node, claims=claims)}))

    assert 59 == len({d.where.path for d in reported}) == len(reported)
    assert 54 == sum("causes were searched for the first ones" in d.hint for d in reported)
