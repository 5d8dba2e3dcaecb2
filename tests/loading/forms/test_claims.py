"""trnspec.loading.forms.claims: a claim with several sources is read as one for each, and written as one again."""

import pytest

from tests.support.rules import KNOWN
from trnspec.checks.fixes import fix
from trnspec.checks.runner import check
from trnspec.loading.forms.claims import joined_sources
from trnspec.loading.pipeline import load_document
from trnspec.loading.settings import Settings
from trnspec.yaml import Place, read_text

HEAD = """api_version: trnspec/v1
kind: Chip
metadata: {name: example, title: Example}
spec: {memory: {capacity: 32 GiB}}
claims:
"""
AT = "at: spec.memory.capacity, says: 32 GiB"


def problems(claims: str) -> list[tuple[str, Place | None, str]]:
    reading = load_document(read_text(HEAD + claims, "chips/example.yaml"), KNOWN)
    return [(p.code, p.place, p.message) for p in reading.problems]


def test_each_source_is_a_claim_at_the_position_of_its_name() -> None:
    text = HEAD + f"  - {{{AT}, sources: [a, b], where: line 1}}\n  - {{{AT}, source: c}}\n"
    node = load_document(read_text(text), KNOWN).node

    assert node is not None
    assert [(c.source.name, c.where) for c in node.claims] == [("a", "line 1"), ("c", None), ("b", "line 1")]
    lines = text.splitlines()
    for index, claim in enumerate(node.claims):
        place = node.document.place((*node.claim_path(index), "source"))
        assert lines[place.line - 1][place.column - 1 :].startswith(claim.source.name)


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        ("sources: [a, b], source: c", ("TRN101", Place(6, 63), "claims.0 has both 'source' and 'sources'")),
        ("sources: a", ("TRN103", Place(6, 55), "claims.0.sources is not a list of names")),
        ("sources: []", ("TRN103", Place(6, 55), "claims.0.sources is not a list of names")),
        ("sources: [a, b, a]", ("TRN105", Place(6, 62), "'a' is twice in the sources")),
        ("sources: [a, 5]", ("TRN103", Place(6, 59), "5 at claims.1.source is not the name of a Source")),
        ("where: x", ("TRN102", Place(6, 5), "claims.0 has no 'source'")),
    ],
)
def test_one_error_for_each_mistake(claim: str, expected: tuple[str, Place, str]) -> None:
    assert problems(f"  - {{{AT}, {claim}}}\n") == [expected]


def test_an_error_of_the_claim_is_reported_once() -> None:
    """Whether the schema or a rule finds it."""
    assert problems("  - {says: 32 GiB, sources: [a, b]}\n") == [("TRN102", Place(6, 5), "claims.0 has no 'at'")]
    text = HEAD + "  - {at: spec.memory.size, says: 32 GiB, sources: [a, b]}\n"
    other = text.replace("name: example", "name: other")
    results = [load_document(read_text(each, file), KNOWN) for file, each in (("one.yaml", text), ("two.yaml", other))]
    checked = check(results, KNOWN, Settings(select=("TRN302",)))

    found = [(d.where.file, d.where.place) for d in checked.report.diagnostics]
    assert found == [("one.yaml", Place(6, 10)), ("two.yaml", Place(6, 10))]


def test_fix_joins_claims_that_differ_in_their_sources_alone() -> None:
    same, other = f"{AT}, where: x", f"{AT}, where: y"
    before = HEAD + "".join(
        f"  - {{{claim}}}\n"
        for claim in (f"source: a, {same}", f"source: b, {other}", f"source: c, {same}", f"sources: [d, e], {same}")
    )
    after = HEAD + f"  - {{sources: [a, c, d, e], {same}}}\n  - {{source: b, {other}}}\n"
    fixed = fix([load_document(read_text(before, "example.yaml"), KNOWN)], KNOWN, Settings(select=("TRN1",)))

    assert fixed.texts == {"example.yaml": after}
    assert joined_sources(after) == after


@pytest.mark.parametrize(
    "claims",
    [
        f"  - {{{AT}, source: a}}\n  # Why.\n  - {{{AT}, source: b}} # why\n",
        f"  - {{{AT}, source: a}}\n  - {{{AT}, source: a}}\n",
        f"  - {{{AT}, source: a}}\n  - {{at: spec.memory.capacity, says: 32.0 GiB, source: b}}\n",
        f"  - {{{AT}, source: a, verdict: agrees}}\n  - {{{AT}, source: b}}\n",
        f"  - {{{AT}}}\n  - 5\n",
    ],
    ids=["comment", "same source", "other digits", "verdict", "no source"],
)
def test_claims_that_stay_apart(claims: str) -> None:
    assert joined_sources(HEAD + claims) == HEAD + claims


def test_more_claims_than_calls_can_be_nested() -> None:
    claims = "".join(
        f"  - {{at: spec.latency, says: {i} us, source: {name}}}\n" for i in range(1, 1200) for name in ("a", "b")
    )
    head = "api_version: trnspec/v1\nkind: Link\nmetadata: {name: x, title: X}\nspec: {connects: chips}\nclaims:\n"
    expected = "".join(f"  - {{at: spec.latency, says: {i} us, sources: [a, b]}}\n" for i in range(1, 1200))

    assert joined_sources(head + claims) == head + expected
