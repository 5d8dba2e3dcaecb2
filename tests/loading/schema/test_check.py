"""trnspec.loading.schema.check: for each mistake one problem, at the right place, in words that a person can act on."""

import json
import re
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.support.schema import KINDS, Sampler, damaged, documents, normal, unplaced
from tests.support.tables import tables
from trnspec._version import __version__
from trnspec.api import registry
from trnspec.loading.forms.lists import list_problems
from trnspec.loading.pipeline import load_document
from trnspec.loading.renamed import upgrade_data
from trnspec.loading.schema.check import check
from trnspec.loading.schema.prune import prune
from trnspec.loading.structure import StructureError, plain, structure
from trnspec.model.document import Node
from trnspec.model.json_schema import document_schema
from trnspec.model.kinds import LISTS
from trnspec.model.link import Link
from trnspec.plugins.api import Kind, Plugin, Registry
from trnspec.yaml import read_text
from trnspec.yaml.edits import apply

KNOWN = registry()
HEAD = "api_version: trnspec/v1\nkind: Link\n"
NAME = "a name of lower-case letters, digits, '.' and '-', such as trn2.48xlarge"
Found = tuple[str, int, int, str, str]
"""Code, line, column, message, hint."""
NAMED = HEAD + "metadata: {name: example, title: Example}\n"


def found(text: str) -> list[Found]:
    """Code, line, column, message and hint of every problem, in the order in which they are reported."""
    problems = load_document(read_text(text, "example.yaml"), KNOWN).problems
    places = [(p.place.line, p.place.column) if p.place else (0, 0) for p in problems]
    return [(p.code, *at, p.message, p.hint) for p, at in zip(problems, places, strict=True)]


CASES = tables(__file__)


@pytest.mark.parametrize("name", CASES)
def test_findings_of_small_documents(name):
    case = CASES[name]
    text = (case["document"] if "document" in case else NAMED + case["text"]) + "\n"
    rows = [f"{code} {line}:{column} {message} | {hint}" for code, line, column, message, hint in found(text)]
    assert [row.replace(__version__, "VERSION") for row in rows] == case["finds"]
    for problem in load_document(read_text(text), KNOWN).problems:
        if problem.edit is not None:  # nothing is left to find where it is applied
            again = load_document(read_text(apply(text, [problem.edit])[0]), KNOWN).problems
            assert problem.path not in {p.path for p in again}


DATE = "a date such as 2024-02-13, 2024-02 or 2024"


@pytest.mark.parametrize(
    ("as_of", "reported"),
    [
        ("2025", None), ('"2025"', None), ("2025-13", ("TRN105", "'2025-13'", f"write {DATE}")),
        ("October 2025", ("TRN105", "'October 2025'", "write 2025-10")),
        ("2025/3/1", ("TRN105", "'2025/3/1'", "write 2025-03-01")), ("999", ("TRN105", "999", f"write {DATE}")),
        ("20250301", ("TRN105", "20250301", f"write {DATE}")), ("2025.5", ("TRN103", "2025.5", f"write {DATE}")),
        ("true", ("TRN103", "true", f"write {DATE}")),
    ],
)  # fmt: skip
def test_dates(as_of, reported):
    """A whole number of four digits is a year, with or without quotes."""
    text = f"api_version: trnspec/v1\nkind: Source\nmetadata: {{name: page, title: T}}\nspec:\n  publisher: P\n  as_of: {as_of}\n"
    reading = load_document(read_text(text + "  rank: third-party\n", "page.yaml"), KNOWN)

    assert reading.node is None or reading.node.spec.as_of == "2025"
    expected = [] if reported is None else [(reported[0], f"{reported[1]} at spec.as_of is not {DATE}", reported[2])]
    assert expected == [(p.code, p.message, p.hint) for p in reading.problems]


def test_missing_blocks_are_one_finding_with_the_skeleton_to_write():
    """The skeleton itself, with the words for its values replaced, is a valid document."""
    text = "api_version: trnspec/v1\nkind: Server\n"
    [(code, line, _, message, hint)] = found(text)
    metadata, spec = "{name: trainium1, title: AWS Trainium}", "{chips: {chip: trainium1, count: 16}}"

    assert (code, line, message) == ("TRN102", 1, "the document has no 'metadata' and no 'spec'")
    assert hint == f"add metadata: {metadata} and spec: {spec}"
    assert found(f"{text}metadata: {metadata}\nspec: {spec}\n") == []


@pytest.mark.parametrize(
    ("text", "key", "meant"),
    [
        ("kind: Source\nspec: {date: 2024-01-01}", "date", "as_of"),
        ("kind: Source\nspec: {url: 'https://example.com'}", "url", "address"),
        ("kind: Chip\nspec: {hbm: 96 GiB}", "hbm", "memory.capacity"),
        ("kind: Chip\nspec: {vram: 96 GiB}", "vram", "memory.capacity"),
        ("kind: Chip\nspec: {peak: {bf16: 100 TFLOPS}}", "bf16", "dense.bf16"),
        ("kind: Server\nspec: {hbm: 96 GiB}", "hbm", None),
    ],
)
def test_words_of_authors(text, key, meant):
    hints = [
        hint for *_, message, hint in found(f"api_version: trnspec/v1\n{text}\n") if f"unknown key {key!r}" in message
    ]
    assert len(hints) == 1
    assert (hints[0] == f"did you mean {meant!r}?") == (meant is not None)


def test_every_code_of_the_form_is_in_the_tables():
    reported = {finding.split()[0] for case in CASES.values() for finding in case["finds"]} | {"TRN109"}
    assert reported == {c for c in KNOWN.codes if "TRN101" <= c <= "TRN113"}


@pytest.mark.parametrize(
    "text",
    [
        "spec: {connects: &a chips}",
        "spec: {connects: chips, lanes: {count: 8, rate: !!str 5}}",
        "spec: {connects: chips, lanes: {<<: {count: 8}}}",
        "spec: {connects: chips, latency: {<<: {value: 15 us}, note: x}}",
        "spec: {connects: chips}\nclaims: [!!str x]",
    ],
)
def test_rejected_value_is_not_missing(text):
    """One mistake, one sentence: the reader has reported it already."""
    rows = found(NAMED + text + "\n")
    assert rows
    assert {code for code, *_ in rows} <= {f"TRN0{n:02}" for n in range(1, 60)}


def told_of_sampler(spec: dict[str, Any]) -> list[tuple[str, str, str]]:
    data = {
        "api_version": "trnspec/v1",
        "kind": "Sampler",
        "metadata": {"name": "x", "title": "X"},
        "spec": {"flag": True, "figure": "5 GB/s", **spec},
    }
    problems = [u.problem for u in check("Sampler", Sampler, unplaced(data), data)]
    return [(p.code, p.message, p.hint) for p in problems]


@pytest.mark.parametrize(
    ("spec", "reported"),
    [
        ({"maybe": "yes"}, ("TRN103", "'yes' at spec.maybe is not true or false", "write true or false")),
        ({"maybe": 1}, ("TRN103", "1 at spec.maybe is not true or false", "write true or false")),
        ({"share": True}, ("TRN103", "true at spec.share is not a number", "write a number")),
        ({"shares": 1.5}, ("TRN103", "1.5 at spec.shares is not a list", "write a list in brackets, also with one item")),
        ({"least": 8.0}, ("TRN103", "8.0 at spec.least is not a whole number", "write 8")),
        ({"least": 3.9}, ("TRN103", "3.9 at spec.least is not a whole number", "write a whole number")),
        ({"least": -4}, ("TRN106", "-4 at spec.least is not at least -3", "write a number of at least -3")),
        ({"nested": [[1], [0]]}, ("TRN106", "0 at spec.nested.1.0 is not at least 1", "write a number of at least 1")),
        ({"names": {"value": 5}}, ("TRN103", "5 at spec.names.value is not the name of a Source", "write it in quotes")),
        ({"names": {"value": "X"}}, ("TRN105", f"'X' at spec.names.value is not {NAME}", "write 'x'")),
        ({"part": {"inner": {}, "size": 1}}, ("TRN102", "spec.part.inner has no 'size'", "add size: How large it is.")),
        ({"either": [1]}, ("TRN103", "a list at spec.either is not a whole number or a text", "write a whole number or a text")),
        ({"figures": ["5 GB/s", "5 s"]}, ("TRN112", None, "units of bandwidth: GB/s, B/s, kB/s, MB/s, TB/s, PB/s, EB/s, KiB/s, ...")),
        ({"by_name": {"value": 5}}, ("TRN103", "5 at spec.by_name.value is not a mapping", "write keys such as inner:, size:")),
    ],
    ids=str,
)  # fmt: skip
def test_findings_of_plugin_shapes(spec, reported):
    ((code, message, hint),) = told_of_sampler(spec)
    assert (code, message if reported[1] else None, hint) == reported


def test_non_mapping_is_reported_at_the_top():
    (unsound,) = check("Link", Link, unplaced([]), [])  # type: ignore[arg-type]  # what is tested
    assert (unsound.problem.code, unsound.problem.message) == ("TRN103", "the document is not a mapping")


ROUNDED_ZERO = re.compile(r'"[~ ]*0[0.,]* ?[KMBT]"')
EACH = pytest.mark.parametrize("kind", KINDS)
WITH_SAMPLER = Registry.of(
    [*registry().plugins, Plugin(name="test", api=1, kinds=(Kind("Sampler", "samplers", Sampler),))]
)
quick = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def faults(kind: str, data: Any) -> list[Any]:
    return check(kind, KINDS[kind], unplaced(data), data)


def structured(kind: str, data: Any) -> Node[Any] | None:
    try:
        return structure(kind, KINDS[kind], unplaced(data), upgrade_data(KINDS[kind], data))
    except StructureError:
        return None


@pytest.mark.slow
@EACH
@quick
@given(data=st.data())
def test_schema_documents_round_trip(kind, data):
    document = data.draw(documents(kind))
    # The pattern of a rounded count allows 0, which its minimum does not.
    assume(not ROUNDED_ZERO.search(json.dumps(document)))
    assert faults(kind, document) == []
    assert Draft202012Validator(document_schema(kind, KINDS[kind])).is_valid(document)
    node = structured(kind, document)
    assert node is not None
    again = plain(node)
    assert normal(kind, again) == normal(kind, document)
    assert faults(kind, again) == []
    assert json.loads(json.dumps(again)) == again
    second = structured(kind, again)
    assert second is not None
    assert (second.metadata, second.spec, second.claims) == (node.metadata, node.spec, node.claims)
    assert plain(second) == again


@pytest.mark.slow
@EACH
@quick
@given(data=st.data())
def test_a_damaged_document_is_reported_and_its_rest_is_sound(kind, data):
    """Schema and classes agree; no mistake is reported in the words of the classes (TRN190), none goes unsaid."""
    document = data.draw(damaged(kind))
    found = faults(kind, document)
    event("sound" if not found else "unsound")
    assert (structured(kind, document) is None) == bool(found), found
    document = upgrade_data(KINDS[kind], document)
    found = faults(kind, document)
    rest, positions = prune(KINDS[kind], document, [u.drop for u in found])
    reading = load_document(unplaced(document), WITH_SAMPLER)
    of_list = list(list_problems(reading.node)) if kind in LISTS and reading.node is not None else []
    codes = {p.code for p in reading.problems if p not in of_list}
    assert codes <= {f"TRN{n}" for n in (101, 102, 103, 104, 105, 106, 107, 108, 110, 111, 112, 113)}
    assert all(p.message for p in reading.problems)
    if rest is None:
        assert codes
        return
    if document.get("api_version") == "trnspec/v1" and document.get("kind") == kind:
        assert bool(codes) == bool(found)
        assert faults(kind, rest) == []
        assert structured(kind, rest) is not None
        assert reading.node is not None
        kept = rest.get("claims", [])
        assert len(kept) == len(positions)
        assert list(positions) == sorted(set(positions))
        for claim, position in zip(kept, positions, strict=True):
            assert claim.items() <= document["claims"][position].items()
