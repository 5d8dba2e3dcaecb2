"""trnspec.catalog.frames: Arrow, pandas, polars, Parquet and SQL, with the real libraries."""

import json
import re
import subprocess
import sys
from fractions import Fraction

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import trnspec
from tests.support.programs import ROOT
from tests.support.small_catalog import CAT
from tests.support.tables import tables
from trnspec.errors import UsageError

TABLES = CAT._tables()
ARROW = CAT.to_arrow()


def test_arrow() -> None:
    """The values are those of the tables, whatever their type."""
    assert list(TABLES) == list(ARROW)
    for name, table in TABLES.items():
        made = ARROW[name]
        assert [c.name for c in table.columns] == made.column_names
        rows = [tuple(list(v) if isinstance(v, tuple) else v for v in row) for row in table.rows]
        assert rows == [tuple(r.values()) for r in made.to_pylist()]


def test_metadata() -> None:
    chips = ARROW["chips"]
    reported = chips.schema.field("links.bandwidth.both").metadata

    sources = json.loads(reported[b"sources"])
    assert (b"B/s", b"bandwidth", {"full": "old"}) == (reported[b"unit"], reported[b"dimension"], sources)
    about = chips.schema.metadata
    assert (b"chips", trnspec.__version__.encode()) == (about[b"table"], about[b"trnspec"])
    assert pa.float64() == chips.schema.field("memory.capacity").type
    assert pa.int64() == chips.schema.field("dies").type
    assert pa.list_(pa.field("element", pa.int64())) == ARROW["servers"].schema.field("fabric.topology.dimensions").type


def test_pandas() -> None:
    frames = CAT.to_pandas()
    chips = frames["chips"].set_index("name")

    assert list(TABLES) == list(frames)
    assert (600e12, 2) == (chips.loc["full", "peak.dense.bf16"], chips.loc["full", "dies"])
    assert pd.isna(chips.loc["bare", "peak.dense.bf16"])
    assert pd.isna(chips.loc["bare", "dies"])
    assert str(chips["dies"].dtype) == "Int64"
    assert (chips["memory.capacity"] / 2**30).to_dict() == {"bare": 50.0, "full": 100.0}
    reported = frames["chips"].attrs["columns"]["links.bandwidth.both"]
    assert ("B/s", {"full": "old"}, "chips") == (reported["unit"], reported["sources"], frames["chips"].attrs["table"])


def test_parquet(tmp_path) -> None:
    """What is written is read again with all its metadata, by this library and by others."""
    CAT.write_parquet(tmp_path / "out")

    assert {f"{name}.parquet" for name in TABLES} == {f.name for f in (tmp_path / "out").iterdir()}
    for name, table in ARROW.items():
        read = pq.read_table(tmp_path / "out" / f"{name}.parquet")
        assert table.equals(read, check_metadata=True)
    file = tmp_path / "out" / "chips.parquet"
    assert pl.read_parquet(file)["dies"].to_list() == [None, 2]
    assert duckdb.sql(f"SELECT dies FROM '{file}' ORDER BY name").fetchall() == [(None,), (2,)]


@pytest.mark.parametrize(("text", "rows"), tables(__file__)["sql"])
def test_sql(text, rows) -> None:
    assert rows == CAT.sql(text).to_pylist()


def test_sql_error_lists_tables_and_columns() -> None:
    assert sorted(TABLES) == sorted(r["name"] for r in CAT.sql("SHOW TABLES").to_pylist())
    described = CAT.sql("DESCRIBE chips").to_pylist()
    assert [c.name for c in TABLES["chips"].columns] == [r["column_name"] for r in described]


def test_sql_and_queries_agree() -> None:
    """The same question in both languages, of the shipped catalog."""
    cat = trnspec.load()
    asked = cat.query("server where peak.dense.bf16 >= 3 PFLOPS and memory.capacity > 1 TiB")
    found = cat.sql(
        'SELECT name FROM servers WHERE "peak.dense.bf16" >= 3e15 AND "memory.capacity" > 1024.0^4 ORDER BY name'
    )

    assert len(asked) > 1
    assert [b.name for b in asked] == found["name"].to_pylist()


@pytest.mark.parametrize(("text", "words"), tables(__file__)["wrong_sql"])
def test_wrong_sql(text, words) -> None:
    with pytest.raises(UsageError, match=words):
        CAT.sql(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * FROM '{file}'", "SELECT * FROM read_csv('{file}')", "SELECT * FROM read_text('{file}')",
        "SELECT * FROM glob('{folder}/*')", "COPY chips TO '{folder}/new.csv'", "EXPORT DATABASE '{folder}/new'",
        "EXPLAIN ANALYZE SELECT * FROM '{file}'", "SELECT * FROM secret_variable",
        "SELECT * FROM query('SELECT * FROM read_text(''{file}'')')",
    ],
)  # fmt: skip
def test_sql_cannot_read_other_files(tmp_path, text) -> None:
    """Neither a file nor a variable of the program is read, and nothing is written."""
    secret_variable = pa.table({"a": [1]})
    file = tmp_path / "secret.csv"
    file.write_text("a,b\n1,2\n")
    # The file is there and the variable is one that DuckDB would read, were it let.
    assert duckdb.sql("SELECT a FROM secret_variable").fetchall() == [(1,)]
    assert duckdb.sql(f"SELECT a FROM '{file}'").fetchall() == [(1,)]
    with pytest.raises(UsageError):
        CAT.sql(text.format(file=file, folder=tmp_path))

    assert secret_variable.num_rows == 1
    assert [file] == list(tmp_path.iterdir())


def test_the_sql_of_the_page() -> None:
    """Every example gives an answer, of the shipped catalog."""
    page = (ROOT / "docs" / "reference" / "tables.md").read_text(encoding="utf-8")
    found = re.findall(r"^```sql\n(.*?)^```$", page, flags=re.MULTILINE | re.DOTALL)
    found += [t.replace('\\"', '"') for t in re.findall(r'^trnspec sql "(.*)"$', page, flags=re.MULTILINE)]
    cat = trnspec.load()

    assert len(found) == 3
    for text in found:
        assert cat.sql(text).num_rows > 1


def test_the_largest_result(monkeypatch) -> None:
    """Exactly the limit is allowed, one byte more is not."""
    query = "SELECT i FROM range(30000) AS t(i)"
    size = CAT.sql(query).nbytes
    monkeypatch.setattr("trnspec.catalog.frames.SQL_RESULT", Fraction(size, 1_000_000))
    assert 30_000 == CAT.sql(query).num_rows

    monkeypatch.setattr("trnspec.catalog.frames.SQL_RESULT", Fraction(size - 1, 1_000_000))
    with pytest.raises(UsageError, match=r"the result has more than .* MB; add LIMIT 1000, for instance"):
        CAT.sql(query)


def test_query_time_limit(monkeypatch) -> None:
    monkeypatch.setattr("trnspec.catalog.frames.SQL_SECONDS", 0.05)

    with pytest.raises(UsageError, match=r"the query took longer than 0\.05 s"):
        CAT.sql("SELECT count(*) FROM range(10000000000) AS a(i) WHERE i % 7 = 3")


@pytest.mark.slow
def test_missing_library_is_named(tmp_path) -> None:
    """In a process that can import none of them at first, and writes CSV and JSON, and then all but one, which the error names."""
    calls = [
        ("pyarrow", "cat.to_arrow()"),
        ("pyarrow", "cat.write_parquet('out')"),
        ("pandas", "cat.to_pandas()"),
        ("polars", "cat.to_polars()"),
        ("duckdb", "cat.sql('SELECT 1')"),
    ]
    code = (
        "import sys\nlibraries = ['pyarrow', 'pandas', 'polars', 'duckdb']\n"
        "sys.modules |= dict.fromkeys(libraries)\nimport trnspec; cat = trnspec.load()\n"
        "cat.write_csv('csv'); cat.write_json('all.json')\n"
        f"for missing, call in {calls!r}:\n"
        "    for name in libraries:\n        sys.modules.pop(name, None)\n"
        "    sys.modules[missing] = None\n"
        "    try:\n        eval(call)\n    except trnspec.UsageError as error:\n        print(error)\n"
    )
    # Without a timeout: an import takes more than a minute on a machine that is busy enough.
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True, text=True)

    expected = [f"{missing} is not installed; pip install 'trnspec[tables]'" for missing, _ in calls]
    assert expected == done.stdout.splitlines()
    assert {"csv", "all.json"} == {file.name for file in tmp_path.iterdir()}


def test_polars() -> None:
    frames = CAT.to_polars()

    assert frames["chips"].filter(pl.col("memory.capacity") > 60 * 2**30)["name"].to_list() == ["full"]
    assert frames["servers"]["fabric.topology.dimensions"].to_list() == [[2, 2], None]
    assert len(TABLES["claims"].rows) == frames["claims"].height
