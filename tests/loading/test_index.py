"""trnspec.loading.index: a graph that reads what it is asked for, and answers as the whole graph does."""

from __future__ import annotations

import shutil
import time

import pytest
from running import ROOT

from trnspec.api import graph, graph_of
from trnspec.errors import UnknownNameError, UsageError
from trnspec.graph.facts import facts
from trnspec.graph.graph import Graph
from trnspec.graph.totals import sums
from trnspec.loading.index import on_demand
from trnspec.loading.precedence import CatalogWarning
from trnspec.loading.settings import Settings

WHOLE = graph()


def reported(found: Graph, name: str) -> list[object]:
    node = found.named(name)
    return [node.kind, node.metadata, node.spec, node.claims, facts(found, node), [s.text for s in sums(found, node)]]


@pytest.fixture
def forbidden():
    """The shipped catalog on demand; reading all of it fails the test."""

    def everything() -> Graph:
        pytest.fail("everything is read")

    return on_demand([], Settings(), everything)


@pytest.mark.parametrize("name", sorted(WHOLE.nodes))
def test_same_answers_without_reading_all(forbidden, name) -> None:
    assert reported(forbidden, name) == reported(WHOLE, name)


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(ROOT / "catalog", tmp_path / "catalog")
    return tmp_path / "catalog"


@pytest.mark.parametrize("alias", ["u-trn2x64", "trainium", "trn2-16.48xlarge"])
def test_alias(alias) -> None:
    assert graph_of().named(alias).metadata == WHOLE.named(alias).metadata


def test_unknown_name_lists_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'trainium2'"):
        graph_of().named("trainum2")


def test_walking_through_it() -> None:
    found = graph_of()
    chip = found.named("trainium2")

    assert {n.name for n in found} == set(WHOLE.nodes)
    assert len(found) == len(WHOLE)
    assert dict(found.aliases) == dict(WHOLE.aliases)
    assert found.named("trainium2") is chip
    assert next(n for n in found if n.name == "trainium2") is chip


def test_the_shipped_document_stays_where_a_nearer_one_is_broken(copy) -> None:
    """As in the whole graph, and it is reported."""
    file = copy / "chips" / "trainium2.yaml"
    file.write_text("kind: [")
    found = graph_of([str(copy)])

    with pytest.warns(CatalogWarning, match=f"^{file}:1:7: TRN004 .* not closed; the document is left out"):
        assert (ROOT / "catalog/chips/trainium2.yaml").samefile(found.named("trainium2").document.file)
    with pytest.warns(CatalogWarning, match=f"^{file}:1:7: "):
        assert found.named("trainium2").spec == graph([str(copy)]).named("trainium2").spec


def test_an_error_beside_what_can_be_used_is_told(copy) -> None:
    """The document is used; that a part of it is not there is reported where it is read."""
    file = copy / "chips" / "trainium2.yaml"
    file.write_text(file.read_text().replace("\nspec:\n", "\nspec:\n  dies: 2\n  dies: 3\n", 1))
    found = graph_of([str(copy)])

    assert "trainium1" == found.named("trainium1").name
    with pytest.warns(CatalogWarning, match=f"^{file}:.*; the rest of the document is used"):
        assert str(file) == found.named("trainium2").document.file


def test_catalogs_of_the_settings_come_before_the_shipped_one(copy) -> None:
    """On demand as in the whole graph."""
    file = copy / "chips" / "trainium1.yaml"
    file.write_text(file.read_text().replace("bf16: 190 TFLOPS", "bf16: 210 TFLOPS"))
    settings = Settings(catalogs=(copy,))
    found, whole = graph_of(settings=settings), graph(settings=settings)

    assert {str(file)} == {g.named("trainium1").document.file for g in (found, whole)}
    assert set(WHOLE.nodes) == set(whole.nodes)


def test_name_that_is_not_the_files(copy) -> None:
    file = copy / "links" / "efa.yaml"
    file.write_text(file.read_text().replace("name: efa", "name: other"))
    file.rename(copy / "links" / "elastic.yaml")

    assert graph_of([str(copy)]).named("other").document.file.endswith("elastic.yaml")


def test_edited_copy_wins_over_the_shipped_catalog(copy) -> None:
    file = copy / "chips" / "trainium1.yaml"
    file.write_text(file.read_text().replace("bf16: 190 TFLOPS", "bf16: 210 TFLOPS"))
    found = graph_of([str(copy)])

    assert str(found.named("trainium1").spec.peak.dense.bf16) == "210 TFLOPS"
    assert str(graph_of().named("trainium1").spec.peak.dense.bf16) == "190 TFLOPS"


def test_what_if() -> None:
    found = graph_of()
    other = found.replace("trainium2", found.named("trainium1").spec)

    assert other.named("trainium2").spec is found.named("trainium1").spec
    assert found.named("trainium2").spec is not other.named("trainium2").spec
    assert len(other) == len(WHOLE)


def test_path_that_is_not_there() -> None:
    with pytest.raises(UsageError, match="does not exist"):
        graph_of(["nowhere"])


def test_one_document_is_quicker_than_all() -> None:
    """At least three times; it reads a fifth of the files."""

    def seconds(make) -> float:
        times = []
        for _ in range(3):
            began = time.perf_counter()
            make().named("trainium2")
            times.append(time.perf_counter() - began)
        return min(times)

    assert 3 * seconds(graph_of) < seconds(graph)
