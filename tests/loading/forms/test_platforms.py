"""trnspec.loading.forms.platforms: names of a driver as servers."""

import pytest

from tests.support.programs import written
from trnspec.api import graph, validate
from trnspec.catalog.newest import is_driver_name

HEAD = "api_version: trnspec/v1\nkind: Platforms\nmetadata: {name: trainium1-platforms, title: Example, source: neuron-driver-9cc489e}\n"
GOOD = "    - {names: [trn1x.4xlarge, trn1y.4xlarge], chips: 2, cores: {value: 4, where: a line}, where: a table, note: B.}\n"


def checked(tmp_path, text, name="trainium1-platforms"):
    file = written(tmp_path / "servers" / f"{name}.yaml", text)
    return validate([str(file)])


def test_each_name_is_a_server(tmp_path) -> None:
    result = checked(
        tmp_path, HEAD.replace("source:", "note: A., source:") + f"spec:\n  chip: trainium1\n  platforms:\n{GOOD}"
    )
    nodes = [result.graph.named(name) for name in ("trn1x.4xlarge", "trn1y.4xlarge")]

    assert result.report.diagnostics == ()
    for node in nodes:
        assert (node.kind, node.spec.family.name, node.metadata.note) == ("Server", node.name.split(".")[0], "A. B.")
        assert (node.spec.chips.chip.name, node.spec.chips.count, node.spec.stated.cores) == ("trainium1", 2, 4)
        assert (node.metadata.source.name, node.metadata.where) == ("neuron-driver-9cc489e", "a table")


@pytest.mark.parametrize(
    ("head", "body", "code", "line"),
    [
        (HEAD, GOOD.replace("cores: {value: 4", "cores: {value: 8"), "TRN402", 7),  # 2 chips have 4 cores
        (HEAD, GOOD.replace("trn1x", "trn2x"), "TRN206", 5),  # a family of another generation
        (HEAD, GOOD.replace("trn1y", "trn1x"), "TRN204", 7),
        (HEAD, GOOD.replace("chips: 2", "chips: two"), "TRN103", 7),
        (HEAD, GOOD.replace("chips: 2, ", ""), "TRN102", 7),
        (HEAD.replace("trainium1-platforms", "another"), GOOD, "TRN205", 3),
        (HEAD.replace("title:", "aliases: [a], title:"), GOOD, "TRN101", 3),
        (HEAD, GOOD + "claims: []\n", "TRN101", 8),
    ],
)
def test_platforms_that_are_wrong(tmp_path, head, body, code, line) -> None:
    found = checked(tmp_path, f"{head}spec:\n  chip: trainium1\n  platforms:\n{body}").report.diagnostics

    assert (code, line) in {(d.code, d.where.place.line) for d in found}


def test_shipped_names() -> None:
    known = graph()
    names = {node.name for node in known if is_driver_name(known, node)}

    assert names == {
        *("trn3.48xlarge", "trn3e.24xlarge", "trn3pd98.3xlarge"),
        *(f"{family}.{size}xlarge" for family in ("trn3s-es", "trn3sn", "trn3sn-es") for size in (3, 48)),
    }
