"""trnspec.checks.rules.measurements: changes of shipped tables are found at their line and column."""

import shutil
from pathlib import Path
from typing import Any

import attrs
import pytest

from tests.support.engine import everything
from trnspec.checks.rules import measured_rates, measurements
from trnspec.checks.runner import run
from trnspec.graph.graph import Graph
from trnspec.loading.files import shipped
from trnspec.model.measurements import Measurements, RejectedRow
from trnspec.plugins.api import Rule
from trnspec.yaml import read_text

ROWS = read_text(Path(__file__).with_name("measurements.yaml").read_text("utf-8"), "measurements.yaml").data
RULES = tuple(r for m in (measured_rates, measurements) for r in vars(m).values() if isinstance(r, Rule))


def findings(folder: Path, name: str, **changes: Any) -> dict[tuple[str, str, int, int], str]:
    """The hints of findings in the copy of a shipped set, by code, file, line and column.

    Args:
        folder: The folder of the copy.
        name: The name of the table.
        changes: Attributes of the document that are replaced.
    """
    everyone = everything()
    node = everyone.named(name.replace("_", "-"))
    copied = attrs.evolve(
        node,
        document=attrs.evolve(node.document, file=str(folder / f"{node.name}.yaml")),
        spec=attrs.evolve(node.spec, **changes),
    )
    others = {n.name: n for n in everyone if not isinstance(n.spec, Measurements)}
    return {
        (d.code, Path(d.where.file).name, d.where.place.line, d.where.place.column): d.hint
        for d in run(RULES, Graph({**others, node.name: copied}))
        if d.where.place is not None
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(shipped() / "measured", tmp_path / "measured")
    return tmp_path / "measured"


def change(folder: Path, name: str, line: int, old: str, new: str) -> int:
    """Replace a text of a line of a table; its column."""
    file = folder / f"{name}.csv"
    lines = file.read_text("utf-8").split("\n")
    assert 1 == lines[line - 1].count(old), lines[line - 1]
    column = lines[line - 1].index(old) + 1
    lines[line - 1] = lines[line - 1].replace(old, new)
    file.write_text("\n".join(lines), "utf-8")
    return column


@pytest.mark.parametrize(("name", "changes", "code", "shift"), ROWS["changes"])
def test_a_changed_table(folder: Path, name: str, changes: list[list[Any]], code: str | None, shift: int) -> None:
    """What is found, if anything, at the last of the changes: a line, a text in it, and what is written instead."""
    columns = [change(folder, name, *each) for each in changes]

    expected = {(code, f"{name}.csv", changes[-1][0], columns[-1] + shift)} if code else set()
    assert findings(folder, name).keys() == expected


def test_a_run_that_another_set_holds(folder: Path) -> None:
    rows = (folder / "training_mpt.csv").read_text("utf-8").split("\n")
    copy = rows[1].replace("mpt-70b", "copy-70b", 1)
    (folder / "training_mpt.csv").write_text("\n".join([*rows[:2], copy, *rows[2:]]), "utf-8")

    assert {("TRN703", "training_mpt.csv", 3, 7)} == findings(folder, "training_mpt").keys()


def test_a_rejected_row_is_not_checked(folder: Path) -> None:
    change(folder, "training_mpt", 2, ",408,", ",1408,")
    row = (folder / "training_mpt.csv").read_text("utf-8").split("\n")[1].split(",")[1]

    assert not findings(folder, "training_mpt", rejected=(RejectedRow(row=row, reason="above the peak"),))


def test_a_rejected_row_that_does_not_exist(folder: Path) -> None:
    rejected = (RejectedRow(row="no-such-row", reason="-"),)

    assert {("TRN701", "training-mpt.yaml")} == {
        (c, f) for c, f, *_ in findings(folder, "training_mpt", rejected=rejected)
    }


def test_a_missing_table(folder: Path) -> None:
    (folder / "training_mpt.csv").unlink()

    assert {("TRN701", "training-mpt.yaml")} == {(c, f) for c, f, *_ in findings(folder, "training_mpt")}


def test_a_renamed_column(folder: Path) -> None:
    change(folder, "training_mpt", 1, ",step_time_s,", ",step_s,")

    assert {("TRN701", "training-mpt.yaml")} == {(c, f) for c, f, *_ in findings(folder, "training_mpt")}


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"rejected": (RejectedRow(row="ROW", reason="-", column="mfu_pc"),)}, "did you mean 'mfu_pct' or 'hfu_pct'?"),
        ({"hardware": {"A100": "trainum1"}}, "did you mean 'trainium1'?"), ({"hardware": {"A100": "nvlink-3"}}, "name a chip or a server"),
    ],
)  # fmt: skip
def test_a_changed_document(folder: Path, changes: dict[str, Any], hint: str) -> None:
    change(folder, "training_mpt", 2, "mpt-70b-2048-512-h100_80gb-amp_bf16-mb8", "ROW")

    assert hint in findings(folder, "training_mpt", **changes).values()


@pytest.mark.parametrize(
    ("text", "hint"),
    [("HEAD\n", "remove the document, or add the rows"), ("a,b\n1,2\n", "write the names of the columns in it")],
)
def test_a_table_without_rows_or_columns(folder: Path, text: str, hint: str) -> None:
    file = folder / "training_mpt.csv"
    file.write_text(text.replace("HEAD", file.read_text("utf-8").partition("\n")[0]), "utf-8")

    assert {("TRN701", "training_mpt.csv", 1, 1): hint} == findings(folder, "training_mpt")


def of_rows(folder: Path, *rows: dict[str, str]) -> list[tuple[str, int]]:
    """What is found in a table of these rows alone: code and line."""
    every = [{"kind": "train", "id": f"row-{number}", "source": "page"} | row for number, row in enumerate(rows, 1)]
    columns = list(dict.fromkeys(column for row in every for column in row))
    lines = [",".join(columns), *(",".join(row.get(column, "") for column in columns) for row in every)]
    (folder / "training_mpt.csv").write_text("\n".join(lines) + "\n", "utf-8")
    return sorted(
        (code, line) for code, file, line, _ in findings(folder, "training_mpt") if line > 1 and ".csv" in file
    )


STEP = {"n_chips": "2", "global_batch": "8", "seq": "1024"}


@pytest.mark.parametrize(("row", "reported"), ROWS["throughputs"])
def test_a_throughput_fits_the_time(folder: Path, row: dict[str, str], *, reported: bool) -> None:
    assert [code for code, _ in of_rows(folder, STEP | row) if code == "TRN705"] == ["TRN705"] * reported


@pytest.mark.parametrize(("row", "reported"), ROWS["cells"])
def test_the_values_of_a_cell(folder: Path, row: dict[str, str], *, reported: bool | str) -> None:
    """Whether it is reported, or the hint."""
    assert of_rows(folder, {"id": "other"}, row) == [("TRN702", 3)] * bool(reported)
    if isinstance(reported, str):
        assert reported in findings(folder, "training_mpt").values()


@pytest.mark.parametrize(("name", "unit", "known", "expected"), ROWS["units of columns"])
def test_a_column_that_is_named_after_its_unit(name: str, unit: str | None, known: bool, expected: str) -> None:
    found = [f.hint for f in measurements._named_after(name, unit, is_known=known)]
    assert found == [f"write {expected}, or rename the column"] * bool(expected)


RUN = {"model": "MPT-70b", "n_chips": "512", "step_time_s": "16.3", "recompute": "full"}


@pytest.mark.parametrize(("row", "reported"), ROWS["runs"])
def test_one_run_in_two_rows(folder: Path, row: dict[str, str], *, reported: bool) -> None:
    """The second row is reported. A copy may name the model in another way; on other hardware it is another run."""
    first, other = {"hardware": ""} | RUN, RUN | {"seq": "2048"} | row

    assert of_rows(folder, first, {"step_time_s": "1.5"}, other) == [("TRN703", 4)] * reported


@pytest.mark.parametrize(
    ("result", "reported"), [("16.3", True), ("163", True), ("160", False), ("16", False), ("0.0016", False)]
)
def test_results_of_two_digits_may_be_equal(folder: Path, result: str, *, reported: bool) -> None:
    row = RUN | {"step_time_s": result}

    assert of_rows(folder, row, row, row) == [("TRN703", 3), ("TRN703", 4)] * reported
