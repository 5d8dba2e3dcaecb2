"""trnspec.loading.index: the shipped catalog read on demand gives the results of the full graph."""

import shutil

import pytest

from tests.support.programs import ROOT
from trnspec.api import graph
from trnspec.graph.facts import facts
from trnspec.graph.graph import Graph
from trnspec.graph.totals import sums
from trnspec.loading import index
from trnspec.loading.index import shipped_graph
from trnspec.loading.precedence import CatalogWarning
from trnspec.model.kinds import BUILTIN, spec_of

FULL = graph()


def content(known: Graph, name: str) -> list[object]:
    node = known.named(name)
    return [node.kind, node.metadata, node.spec, node.claims, facts(known, node), [s.text for s in sums(known, node)]]


@pytest.fixture(scope="module")
def single() -> Graph:
    """The shipped catalog on demand; reading all of it fails the test."""
    return shipped_graph(lambda: pytest.fail("the whole catalog is read"))


@pytest.mark.parametrize("name", sorted(FULL.nodes))
def test_same_content_without_reading_all(single, name) -> None:
    assert content(FULL, name) == content(single, name)


@pytest.mark.parametrize("alias", ["u-trn2x64", "trainium", "trn2-16.48xlarge"])
def test_alias(alias) -> None:
    assert FULL.named(alias).metadata == shipped_graph(graph).named(alias).metadata


def test_kinds_without_reading_all(single) -> None:
    for spec in map(spec_of, BUILTIN):
        assert [n.name for n in FULL.of(spec)] == [n.name for n in single.of(spec)]


def test_iteration_reads_all_and_keeps_the_objects() -> None:
    known = shipped_graph(graph)
    chip = known.named("trainium2")

    assert set(FULL.nodes) == {n.name for n in known}
    assert (len(FULL), dict(FULL.aliases)) == (len(known), dict(known.aliases))
    assert known.named("trainium2") is chip
    assert next(n for n in known if n.name == "trainium2") is chip


@pytest.fixture
def copy(tmp_path, monkeypatch):
    """A copy of the catalog in the place of the shipped one."""
    folder = tmp_path / "catalog"
    shutil.copytree(ROOT / "catalog", folder)
    monkeypatch.setattr(index, "shipped", lambda: folder)
    return folder


def test_a_document_with_errors_reads_all_and_warns(copy) -> None:
    file = copy / "chips" / "trainium2.yaml"
    file.write_text(file.read_text().replace("\nspec:\n", "\nspec:\n  dies: 2\n  dies: 3\n", 1))
    known = shipped_graph(lambda: graph([str(copy)]))

    assert "trainium1" == known.named("trainium1").name
    with pytest.warns(CatalogWarning, match=f"^{file}:"):
        assert str(file) == known.named("trainium2").document.file


def test_a_name_that_is_not_the_name_of_the_file(copy) -> None:
    file = copy / "links" / "efa.yaml"
    file.write_text(file.read_text().replace("name: efa", "name: other"))
    file.rename(copy / "links" / "elastic.yaml")

    assert shipped_graph(lambda: graph([str(copy)])).named("other").document.file.endswith("elastic.yaml")


def test_one_document_reads_a_few_files(monkeypatch) -> None:
    """The chip, its parts and its sources."""
    opened = []
    monkeypatch.setattr(index, "read_file", lambda file, read=index.read_file: opened.append(file.stem) or read(file))
    content(shipped_graph(graph), "trainium2")

    assert {"trainium2"} < set(opened)
    assert len(opened) == len(set(opened)) < len(FULL) / 5
