"""trnspec.ondemand: a graph that reads what it is asked for, and answers as the whole graph does."""

from __future__ import annotations

import shutil
import time

import pytest
from running import ROOT

from trnspec.api import graph, graph_of
from trnspec.errors import UnknownNameError, UsageError
from trnspec.facts import facts
from trnspec.graph import Graph
from trnspec.ondemand import on_demand
from trnspec.settings import Settings
from trnspec.totals import sums

WHOLE = graph()


def told(found: Graph, name: str) -> list[object]:
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
    assert told(forbidden, name) == told(WHOLE, name)


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


def test_broken_document_is_not_there(copy) -> None:
    """As in the whole graph: what refers to it finds nothing."""
    (copy / "chips" / "trainium2.yaml").write_text("kind: [")
    found = graph_of([str(copy)])

    # The shipped catalog is context, and does not hide that the nearer document is broken.
    assert "trainium2" not in graph([str(copy)])
    assert "trainium2" not in found


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
