"""trnspec.checks.rules.calibrations: tables of measurements that have changed since a fit."""

import shutil
from pathlib import Path

import attrs
import pytest

from tests.support.engine import everything
from trnspec.checks.rules.calibrations import changed_table, impossible_fit
from trnspec.checks.runner import run
from trnspec.graph.graph import Graph
from trnspec.loading.files import shipped
from trnspec.model.calibration import Calibration
from trnspec.model.measurements import Measurements

TABLE = "training_mpt.csv"
FITTED = {n.name for n in everything().of(Calibration) if TABLE in {each.table for each in n.spec.tables}}


def findings(folder: Path, *, target: bool = False) -> list[tuple[str, str]]:
    """The calibrations with a finding, and the last key of its path, with the tables of a folder."""
    moved = {
        n.name: attrs.evolve(n, target=target, document=attrs.evolve(n.document, file=str(folder / f"{n.name}.yaml")))
        for n in everything().of(Measurements)
    }
    found = run([changed_table], Graph({**everything().nodes, **moved}))
    return sorted((d.where.file, str(d.where.path[-1])) for d in found)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda text: text, None),
        (lambda text: text.replace(b"\n", b"\r\n"), None),
        (lambda text: text.replace(b",16.2701,", b",16.2702,", 1), "hash"),
        (lambda text: text + text.splitlines()[-1] + b"\n", "hash"),
        (lambda text: b"\xff", "table"),
        (None, "table"),
    ],
    ids=["unchanged", "other line ends", "a cell", "another row", "not UTF-8", "no table"],
)
def test_changed_table(tmp_path, change, expected) -> None:
    shutil.copytree(shipped() / "measured", tmp_path / "measured")
    file = tmp_path / "measured" / TABLE
    if change is None:
        file.unlink()
    else:
        file.write_bytes(change(file.read_bytes()))
    files = sorted(everything().named(name).document.file for name in FITTED)

    assert findings(tmp_path / "measured") == [(file, expected) for file in files if expected]
    # A table that cannot be read is reported with a document that is checked.
    assert (findings(tmp_path / "measured", target=True) == []) == (expected in (None, "table"))


def test_a_chip_with_errors_is_known() -> None:
    """Its errors are reported; an unknown one of its family is reported where a fit names it."""
    nodes = {name: node for name, node in everything().nodes.items() if name != "trainium2"}
    found = [run([impossible_fit], Graph(nodes, broken)) for broken in ({}, {"trainium2": "chips/trainium2.yaml"})]

    assert [{d.message for d in each} for each in found] == [{"no chip is named 'trainium2'"}, set()]
