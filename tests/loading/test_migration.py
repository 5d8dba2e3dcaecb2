"""Fixes of documents of an older format: they become present ones, and lose neither values nor comments."""

import gzip
import io
import json

import pytest
from ruamel.yaml import YAML

from tests.support.programs import ROOT
from tests.support.tables import tables
from trnspec.api import registry
from trnspec.checks.fixes import fix
from trnspec.loading.pipeline import load_document
from trnspec.loading.settings import Settings
from trnspec.loading.structure import plain
from trnspec.yaml import read_text

KNOWN = registry()
HEAD = "api_version: trnspec/v1alpha1\nkind: Server\nmetadata: {name: box, title: Box, source: neuron-trn1-2026-08}\n"
SPEC = "spec:\n  chips: {chip: trainium1, count: 16}\n"


def fixed(text: str) -> tuple[str, list[tuple[str, int]]]:
    """The text after the fixes, and the findings of the format that are left, with their lines."""
    done = fix([load_document(read_text(text, "<box>"), KNOWN)], KNOWN, Settings())
    left = [d for d in done.checked.report.diagnostics if d.code in {"TRN004", "TRN057", "TRN058", "TRN109"}]
    return done.texts.get("<box>", text), [(d.code, d.where.place.line) for d in left if d.where.place is not None]


# The change from the first format: `efa` became `network`, its `cards` `nics`, and a bandwidth of a fabric a group.
CHANGES = tables(__file__)["changes"]


@pytest.mark.parametrize(("before", "after"), CHANGES)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_changes_of_paths(before, after, line_end) -> None:
    """The rest of the text stays, and the document means the same."""
    before, after = ((HEAD + SPEC + t).replace("\n", line_end) for t in (before, after))
    after = after.replace("v1alpha1", "v1")
    nodes = [load_document(read_text(t, "box.yaml"), KNOWN).node for t in (before, after)]

    assert (after, []) == fixed(before)
    assert (after, []) == fixed(after)
    assert None not in nodes
    assert plain(nodes[0]) == plain(nodes[1])


@pytest.mark.parametrize(
    ("text", "expected"),
    [("  efa: {cards: 8}\n  network: {nics: 4}\n", [("TRN109", 6)]), ("  efa: {cards: 8\n", [("TRN004", 6)])],
)
def test_changes_left_to_the_author(text, expected) -> None:
    """Nothing is guessed, and no comment is lost."""
    text = HEAD.replace("v1alpha1", "v1") + SPEC + text

    assert (text, expected) == fixed(text)


def test_the_documents_of_the_first_edition() -> None:
    """Those with former paths become present ones, in block style and in braces."""
    edition = json.loads(gzip.decompress((ROOT / "catalog" / "editions" / "2026.11.json.gz").read_bytes()))
    former = 0
    for entry in edition["documents"]:
        data = entry["document"]
        if data["kind"] not in {"Server", "UltraServer"}:
            continue
        stream = io.StringIO()
        yaml = YAML(typ="safe", pure=True)
        yaml.default_flow_style = False
        yaml.width = 10_000
        yaml.dump(data, stream)
        for text in (stream.getvalue(), json.dumps(data, ensure_ascii=False)):
            before = load_document(read_text(text), KNOWN)
            fresh, left = fixed(text)
            after = load_document(read_text(fresh), KNOWN)
            former += any(p.code == "TRN057" for p in before.problems)

            assert [] == left
            assert not [p for p in after.problems if p.code == "TRN057"]
            assert in_any_order(plain(before.node)) == in_any_order(plain(after.node))
    assert 2 * 11 == former


def in_any_order(document):
    """A document with its claims sorted: those that differ in their source alone are joined."""
    return {**document, "claims": sorted(document.get("claims", []), key=repr)}


def test_the_command(here) -> None:
    (here.folder / "servers").mkdir()
    file = here.folder / "servers" / "box.yaml"
    file.write_bytes((HEAD + SPEC + "  efa: {cards: 8}  # a\n").replace("\n", "\r\n").encode())
    before = file.read_bytes()

    check, diff = here("fix", "--check", "."), here("fix", "--diff", ".")

    assert (1, "would fix servers/box.yaml\n") == (check.status, check.out)
    assert (1, "+  network: {nics: 8}  # a\r") == (diff.status, next(x for x in diff.out.split("\n") if "nics" in x))
    assert before == file.read_bytes()

    done = here("migrate", "servers")

    assert (0, "trnspec migrate is now trnspec fix") == (done.status, done.err.splitlines()[0])
    assert before.replace(b"v1alpha1", b"v1").replace(b"efa: {cards", b"network: {nics") == file.read_bytes()
    assert (0, "") == ((again := here("fix", "--check", ".")).status, again.out)
