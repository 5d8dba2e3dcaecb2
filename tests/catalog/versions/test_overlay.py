"""trnspec.catalog.versions.overlay: a YAML file applied to a catalog."""

import pytest

from tests.catalog.versions.conftest import CHIP, PAGE, SERVER
from tests.support.rules import document, graph
from trnspec.catalog.catalog import Catalog
from trnspec.errors import UsageError
from trnspec.yaml import Place

GOOD = """\
change:
  part: {memory.capacity: 64 GiB}
  mine: {chips.count: 3}
add:
  - api_version: trnspec/v1
    kind: Server
    metadata: {name: mine, title: Mine}
    spec: {chips: {chip: other, count: 2}}
  - api_version: trnspec/v1
    kind: Chip
    metadata: {name: other, title: Other}
    spec: {peak: {}, memory: {capacity: 10 GiB}}
"""

BAD = """\
change:
  part: {memory.capcity: 64 GiB, peak.dense.bf16: 3 GB, peak: {}}
  whole:
    chips.chip: prt
  prt: {memory.capacity: 1 GiB}
  page: 3
add:
  - api_version: trnspec/v1
    kind: Server
    metadata: {name: mine, title: Mine}
    spec: {chips: {chip: prt, count: 2}}
  - kind: Server
  - {api_version: trnspec/v1, kind: Chip, metadata: {name: part, title: T}, spec: {peak: {}, memory: {capacity: 1 GiB}}}
  - {api_version: trnspec/v1, kind: Chip, metadata: {name: odd, title: T}, spec: {peak: {}, memory: {capacity: 1 GB/s}}}
  - {api_version: trnspec/v1, kind: Chip, metadata: {name: mine, title: T}, spec: {peak: {}, memory: {capacity: 1 GiB}}}
  - nothing
  - *alias
  - {api_version: trnspec/v1, kind: Chip, metadata: {name: page, title: T}, spec: {peak: {}, memory: {capacity: 1 GiB}}}
chnge: {}
"""

MISTAKES = {
    ("2:10", "a Chip has no memory.capcity; did you mean 'capacity'"),
    ("2:51", "measures information"),
    ("2:57", "peak replaces another change of this document"),
    ("4:17", "no Chip is named 'prt'; did you mean 'part'"),
    ("5:3", "no document is named 'prt'; did you mean 'part'"),
    ("6:9", "a mapping from paths to values"),
    ("11:26", "TRN201 no Chip is named 'prt'"),
    ("12:5", "TRN102 the document has no 'api_version'"),
    ("12:5", "TRN102 the document has no 'metadata' and no 'spec'"),
    ("13:60", "the name 'part' is taken already; change the document under change:"),
    ("14:112", "measures bandwidth"),
    ("15:60", "the name 'mine' is taken already; remove one of them"),
    ("16:5", "a document is a mapping"),
    ("17:5", "alias"),
    ("18:60", "the name 'page' is taken already; change the document under change:"),
    ("19:1", "'chnge' is not a key of an overlay; did you mean 'change'"),
}


@pytest.fixture
def catalog() -> Catalog:
    return Catalog(graph(PAGE, CHIP, SERVER))


def lay(catalog: Catalog, tmp_path, text: str) -> Catalog:
    file = tmp_path / "my.yaml"
    file.write_text(text, encoding="utf-8")
    return catalog.overlay(file)


def test_one_document_by_two_names(tmp_path) -> None:
    chip = document("Chip", "part", "spec: {peak: {}, memory: {capacity: 1 GiB}}", "aliases: [piece]")
    text = "change:\n  part: {memory.capacity: 2 GiB}\n  piece: {memory.capacity: 3 GiB}\n"
    with pytest.raises(UsageError, match=r"my.yaml:3:3: piece is part, which is changed above"):
        lay(Catalog(graph(PAGE, chip)), tmp_path, text)


def test_changes_and_additions(catalog, tmp_path) -> None:
    """What is added may refer to other additions and be changed; the catalog before is as it was."""
    made = lay(catalog, tmp_path, GOOD)

    assert (256, 30) == tuple(made[name].total("memory.capacity").to("GiB") for name in ("whole", "mine"))
    assert 128 == catalog["whole"].total("memory.capacity").to("GiB")
    assert {"mine", "other"} == set(made.graph.nodes) - set(catalog.graph.nodes)


def test_added_documents_have_their_places(catalog, tmp_path) -> None:
    document = lay(catalog, tmp_path, GOOD)["mine"].node.document

    assert Place(8, 26) == document.place(("spec", "chips", "chip"))
    assert document.place(("metadata", "name")) == Place(7, 22)


def said(catalog: Catalog, tmp_path, text: str) -> set[str]:
    """The lines of the error, without the name of the file."""
    with pytest.raises(UsageError) as caught:
        lay(catalog, tmp_path, text)
    return {line.removeprefix(f"{tmp_path / 'my.yaml'}:") for line in str(caught.value).splitlines()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("add: {}\n", "1:6: add is a list of documents; start each document with '- '"),
        ("change: []\n", "1:9: change is a mapping from names to changes; write NAME: {memory.capacity: 128 GiB}"),
    ],
)
def test_wrong_forms(catalog, tmp_path, text, expected) -> None:
    assert {expected} == said(catalog, tmp_path, text)


def test_every_mistake_has_its_line(catalog, tmp_path) -> None:
    lines = said(catalog, tmp_path, BAD)
    found = {(at, word) for line in lines for at, word in MISTAKES if line.startswith(f"{at}: ") and word in line}

    assert MISTAKES == found
    assert len(MISTAKES) == len(lines)
