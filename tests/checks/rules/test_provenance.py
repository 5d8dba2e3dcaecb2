"""trnspec.checks.rules.provenance: sources, claims, verdicts, dates, and pages that contradict themselves."""

from __future__ import annotations

import attrs
import pytest

from tests.support.rules import SOURCE, bare, beside, claim, findings, found, put
from trnspec.graph.graph import Graph
from trnspec.model.document import Claim
from trnspec.model.ref import Ref

REASON = "For a reason."


# TRN303.


# TRN303 where nothing is adopted: claims are compared with each other.

OLD, NEW = "neuron-trn1-2023-02", "neuron-trn1-2026-08"
STACK, DIRECTION = "spec.memory.stacks.capacity", "spec.bandwidth.per_direction"
TOTAL, ONE = "spec.stated.network.bandwidth", "spec.network.bandwidth"


def open_() -> Graph:
    """The catalog with nothing at the paths above, and nothing there to be computed; no claims."""
    graph = put(put(bare(), "trainium1", "memory.stacks", None), "trainium1", "cores", None)
    graph = put(put(graph, "trn2u.48xlarge", "network", None), "trn2-ultraserver", "stated.network", None)
    graph = put(put(graph, "neuronlink-v2", "bandwidth.both", None), "trainium1", "memory.technology", None)
    return put(graph, "neuronlink-v2", "lanes", None)


def said(name: str, *claims: tuple[str, str | int, str]) -> Graph:
    """The open catalog with claims on one document: path, what is said, source."""
    graph = open_()
    for at, says, source in claims:
        graph = claim(graph, name, at, says, source=source)
    return graph


@pytest.mark.parametrize(
    ("name", "at", "older", "newer", "cause"),
    [
        ("trainium1", STACK, "16 GB", "16 GiB", "a decimal for a binary unit or the reverse: 16 GiB was meant"),
        ("trainium1", "spec.cores.count", 4, 2, "a wrong count: 2 closes every gap"),
        ("neuronlink-v2", DIRECTION, "48 Gb/s", "48 GB/s", "bits for bytes or the reverse: 48 GB/s was meant"),
        ("neuronlink-v2", DIRECTION, "48 GB/s", "96 GB/s", "one direction instead of both: 2 x 48 GB/s closes the gap"),
        ("neuronlink-v2", DIRECTION, "up to 96 MB/s", "96 GB/s", "a wrong unit prefix: up to 96 GB/s was meant"),
        ("neuronlink-v2", DIRECTION, "31 GB/s", "97 GB/s", "none of the known causes closes the gap"),
        ("neuronlink-v2", DIRECTION, "1.3 TB/s", "1.38 TB/s", "truncation: digits after 1.3 TB/s were cut off"),
        ("neuronlink-v2", DIRECTION, "1.38 TB/s", "1.3 TB/s", "truncation: digits after 1.3 TB/s were cut off"),
        ("trn2-ultraserver", TOTAL, "3,200 Gbps", "12,800 Gbps", "of one part, 3,200 Gbps, was used for the whole"),
        ("trn2-ultraserver", TOTAL, "12,800 Gbps", "3,200 Gbps", "of one part, 3,200 Gbps, was used for the whole"),
        ("trn2u.48xlarge", ONE, "12,800 Gbps", "3,200 Gbps", "the total, 12,800 Gbps, was used for one part"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_claims_that_exclude_each_other(name, at, older, newer, cause, turned):
    claims = [(at, older, OLD), (at, newer, NEW)]
    graph = said(name, *(reversed(claims) if turned else claims))
    (finding,) = findings("TRN303", graph)

    assert ("claims", int(turned), "says") == finding.where.path
    assert [("claims", int(not turned), "says")] == [s.path for s in finding.see]
    assert finding.message == (
        f"{at.removeprefix('spec.')} of {name} is {older} according to {OLD} (2023-02-24), "
        f"but {newer} according to {NEW} (2026-08-21), and no figure is adopted"
    )
    assert finding.hint.startswith("add a verdict and a reason to one of them; ")
    assert cause in finding.hint


@pytest.mark.parametrize(
    ("at", "says", "other"),
    [
        (STACK, "16 GiB", "~17 GB"),
        (STACK, "16 GiB", "up to 32 GiB"),
        (STACK, "<= 32 GiB", "16 GiB"),
        (STACK, "16 GiB", "over 10 GiB"),
        (STACK, "16 GiB", "plenty"),
        (STACK, "16 GiB", "16 GB/s"),
        ("spec.cores.count", 2, 2),
        ("spec.cores.count", 2, "four"),
        ("spec.memory.technology", "HBM2", "HBM2E"),
        ("spec.memory.technology", "16 GiB", "16 GB"),
        ("spec.cores", "2", "N/A"),
    ],
)
def test_claims_that_do_not_exclude_each_other(at, says, other):
    assert set() == found("TRN303", said("trainium1", (at, says, OLD), (at, other, NEW)))


@pytest.mark.parametrize("verdict", ["rounded", "superseded", "rejected", "other-scope", "unresolved"])
@pytest.mark.parametrize("judged", [OLD, NEW])
def test_a_verdict_on_either_settles_it(verdict, judged):
    other = NEW if judged == OLD else OLD
    graph = claim(open_(), "trainium1", STACK, "16 GB", source=judged, verdict=verdict, reason=REASON)

    assert set() == found("TRN303", claim(graph, "trainium1", STACK, "16 GiB", source=other))
    assert set() == found("TRN303", claim(graph, "trainium1", STACK, "16 GiB", source=other, verdict="agrees"))


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
