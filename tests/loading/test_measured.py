"""trnspec.loading.measured: tables of measurements with the place of every cell."""

import csv
import io
import os
import tempfile
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from trnspec.errors import UsageError
from trnspec.loading.files import shipped
from trnspec.loading.measured import TableError, is_stated, read_table, table_of, used_rows
from trnspec.model.measurements import Measurements, RejectedRow
from trnspec.yaml import Place

SPEC = Measurements(data="table.csv", of="op", framework="-", licence="-", columns={})
CELL = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp", "Cs")), max_size=8)


def written(folder: Path, text: str) -> Path:
    file = folder / "table.csv"
    file.write_text(text, "utf-8")
    return file


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('id,a\none,"b\n', 2), ('id,a\n1,2\none,"b"c\n', 3), ("id\none,two\n", 2), ("id,a\none\n", 2), ("id,a,id\n1,2,3\n", 1),
        ("", 1), ("\n", 1), ("id;a\n1;2\n", 1), ("id\ta\n", 1), ("id, a\n1,2\n", 1),
        ("id\n1\n\x1b\n", 3),
    ],
)  # fmt: skip
def test_invalid_tables(tmp_path: Path, text: str, line: int) -> None:
    with pytest.raises(TableError, match=rf"table\.csv:{line}: "):
        read_table(written(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "latin.csv").write_bytes("id\ncaf\xe9\n".encode("latin-1"))
    os.mkfifo(tmp_path / "pipe.csv")
    reasons = {
        "absent.csv": "no such file",
        "": "it is a folder; name a file in it",
        f"{'x' * 300}.csv": "File name too long",
    }
    for name in (*reasons, "latin.csv", "pipe.csv"):
        with pytest.raises(UsageError, match=f"cannot be read.*{reasons.get(name, '')}"):
            table_of(evolve(SPEC, data=name), str(tmp_path / "table.yaml"))


@given(st.lists(st.tuples(CELL, CELL, CELL), min_size=1, max_size=4))
def test_the_place_of_a_cell_is_where_its_text_begins(rows: list[tuple[str, str, str]]) -> None:
    """For cells with commas, quotes and any other characters of one line."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerows([("a", "b", "c"), *rows])
    with tempfile.TemporaryDirectory() as folder:
        table = read_table(written(Path(folder), stream.getvalue()))
    lines = stream.getvalue().split("\n")

    assert [list(r) for r in rows] == [list(r.cells.values()) for r in table.rows]
    for row in table.rows:
        for column, text in row.cells.items():
            place = table.place(row, column)
            before, rest = lines[place.line - 1][: place.column - 1], lines[place.line - 1][place.column - 1 :]
            assert (text, True) == ((next(csv.reader([rest]), None) or [""])[0], before[-1:] in (",", ""))


def test_stated_cells() -> None:
    assert [False] * 5 == [is_stated(t) for t in ("", " ", "n/a", "NaN", "-")]
    assert [True] * 3 == [is_stated(t) for t in ("0", "no", "none")]


def test_rejected_rows_and_cells(tmp_path: Path) -> None:
    """A byte order mark belongs to no column."""
    table = read_table(written(tmp_path, "\ufeffid,time_us,rate\none,1,2\ntwo,3,4\nthree,5,6\n"))
    rejected = RejectedRow(row="one", reason="-"), RejectedRow(row="two", column="rate", reason="-")
    spec = evolve(SPEC, rejected=rejected)

    assert [("two", "3", ""), ("three", "5", "6")] == [tuple(r.cells.values()) for r in used_rows(spec, table)]
    assert 3 == len(table.rows)
    assert Place(3, 1) == table.place(table.rows[1], "absent")


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    written(tmp_path, "id\none\n")
    before = table_of(SPEC, str(tmp_path / "table.yaml"))
    written(tmp_path, "id\none\ntwo\n")

    assert (1, 2) == (len(before.rows), len(table_of(SPEC, str(tmp_path / "table.yaml")).rows))


def test_every_shipped_table_has_a_document() -> None:
    folder = shipped() / "measured"

    assert {f.stem.replace("_", "-") for f in folder.glob("*.csv")} == {f.stem for f in folder.glob("*.yaml")}
