"""trnspec.catalog.tables: one table for each kind, figures and claims; as CSV and JSON."""

from __future__ import annotations

import csv
import json
import math
import subprocess
import sys

import pytest

import trnspec
from tests.support.small_catalog import CAT, GRAPH
from trnspec.catalog.tables import Table, tables
from trnspec.model.kinds import BUILTIN

MADE = tables(GRAPH)


def records(table: Table) -> list[dict[str, object]]:
    return [dict(zip((c.name for c in table.columns), row, strict=True)) for row in table.rows]


def record(table: str, name: str) -> dict[str, object]:
    """The known values of one document."""
    (found,) = [r for r in records(MADE[table]) if r["name"] == name]
    return {path: value for path, value in found.items() if value is not None}


def column(table: str, name: str):
    return next(c for c in MADE[table].columns if c.name == name)


def test_names() -> None:
    folders = dict.fromkeys(folder for folder, _ in BUILTIN.values() if folder != "measured")  # tables already

    assert [*folders, "figures", "claims"] == list(MADE)
    assert all(t.name == name for name, t in MADE.items())


def test_a_chip() -> None:
    """Base units, counts, words; nothing where nothing is known."""
    assert record("chips", "bare") == {
        "name": "bare", "title": "T", "source": "page", "aliases": (), "memory.capacity": 50.0 * 1024**3,
        "other.share": 10.0,
    }  # fmt: skip
    assert record("chips", "full") == {
        "name": "full", "title": "T", "source": "page", "aliases": ("whole",), "launched": "2022-10", "dies": 2,
        "cores.core": "core", "cores.count": 8, "peak.dense.bf16": 600e12, "peak.dense.fp8": 1.2e15,
        "peak.sparse.bf16": 1.2e15, "memory.capacity": 100.0 * 1024**3, "memory.bandwidth": 3e12,
        "memory.technology": "HBM", "links.link": "wire", "links.ports": 4, "links.bandwidth.both": 1e12,
        "other.share": 30.0, "other.extra": 5e-6,
    }  # fmt: skip


def test_totals() -> None:
    """A path of a chip is a total in the table of a system; a count is resolved to a name, never to an alias."""
    box, rack = record("servers", "box"), record("ultraservers", "rack")

    assert (400.0 * 1024**3, 32, "full", (2, 2)) == (
        box["memory.capacity"], box["cores.count"], box["chips.chip"], box["fabric.topology.dimensions"],
    )  # fmt: skip
    assert (1200.0 * 1024**3, 12, 96) == (rack["memory.capacity"], rack["chips.count"], rack["host.vcpus"])
    assert (0.4e12,) == (box["stated.memory.capacity"],)


def test_columns_tell_unit_and_sources() -> None:
    fp8, links = column("chips", "peak.dense.fp8"), column("chips", "links.bandwidth.both")

    assert ("number", "FLOPS", "floating-point rate", {"full": "derived"}) == (
        fp8.type, fp8.unit, fp8.dimension, dict(fp8.sources),
    )  # fmt: skip
    assert {"full": "old"} == dict(links.sources)
    assert {"box": "page", "tin": "page"} == dict(column("servers", "memory.capacity").sources)
    assert column("servers", "memory.capacity").description.endswith("The total over all parts, computed.")
    assert ("integer", "", {}) == (
        column("chips", "dies").type,
        column("chips", "dies").unit,
        dict(column("chips", "dies").sources),
    )


def test_a_column_of_mixed_dimensions_is_text() -> None:
    """One link says GB, the other us: neither is in base units of the column, so both stand as printed."""
    assert ("string", "") == (column("links", "other.odd").type, column("links", "other.odd").unit)
    assert {"1 GB", "1 us"} == {r["other.odd"] for r in records(MADE["links"])}


MAPPINGS = ("other.", "hourly.", "observed.")


def test_columns_do_not_depend_on_known_values() -> None:
    """Two dates have the same columns, the keys of mappings apart."""
    now, then = (trnspec.load(as_of=as_of)._tables() for as_of in (None, "2023-03"))

    assert {"chips", "figures", "links"} <= set(now)
    for name, table in now.items():
        fixed = [c.name for c in table.columns if not c.name.startswith(MAPPINGS)]
        assert fixed == [c.name for c in then[name].columns if not c.name.startswith(MAPPINGS)]


def test_figures() -> None:
    found = {(r["document"], r["path"]): r for r in records(MADE["figures"])}

    assert {(b.name, p) for b in CAT for p in b.figures} == set(found)
    assert found["full", "memory.bandwidth"] == {
        "document": "full", "kind": "Chip", "path": "memory.bandwidth", "scope": "per chip", "value": 3e12,
        "unit": "B/s", "printed": "~3 TB/s", "printed_unit": "TB/s", "low": 2e12, "high": 4e12, "digits": 1,
        "qualifier": "~", "source": "page", "as_of": "2024-02", "where": None, "derived": None, "note": None,
    }  # fmt: skip
    assert ("old", "2023", "line 3", "a note") == tuple(
        found["full", "links.bandwidth.both"][k] for k in ("source", "as_of", "where", "note")
    )
    assert (None, "twice the bf16") == tuple(found["full", "peak.dense.fp8"][k] for k in ("source", "derived"))
    peak = found["box", "network.peak"]
    assert (0.0, "up to") == (peak["low"], peak["qualifier"])


def test_query_table_has_no_row_limit() -> None:
    changed = CAT.replace("bare", {"memory.capacity": ">= 50 GiB"})
    (row,) = [
        r
        for r in records(tables(changed.graph)["figures"])
        if (r["document"], r["path"]) == ("bare", "memory.capacity")
    ]

    assert row["high"] is None


def test_claims() -> None:
    found = {r["path"]: r for r in records(MADE["claims"])}

    assert found["peak.dense.bf16"] == {
        "document": "full", "kind": "Chip", "path": "peak.dense.bf16", "says": "610 TFLOPS", "value": 610e12,
        "unit": "FLOPS", "low": 609.5e12, "high": 610.5e12, "verdict": "superseded", "reason": "It was more.",
        "source": "old", "as_of": "2023", "where": None, "adopted": "600 TFLOPS", "adopted_value": 600e12,
    }  # fmt: skip
    dies, pool = found["dies"], found["memory_pool"]
    assert (3.0, None, "2", 2.0) == (dies["value"], dies["unit"], dies["adopted"], dies["adopted_value"])
    assert (None, None, None) == (pool["value"], pool["adopted"], pool["adopted_value"])


def test_claims_of_the_shipped_catalog_are_all_there() -> None:
    cat = trnspec.load()

    assert sum(len(r) for b in cat for r in b.claims.values()) == len(cat._tables()["claims"].rows)


# As files.


@pytest.fixture(scope="module")
def shipped():
    return trnspec.load()


def test_csv(shipped, tmp_path) -> None:
    """Numbers come back as they were, to the last digit; gaps are empty; the other file reports the units."""
    shipped.write_csv(tmp_path / "out")
    reported = json.loads((tmp_path / "out" / "tables.json").read_text(encoding="utf-8"))["tables"]

    assert {f"{name}.csv" for name in reported} | {"tables.json"} == {f.name for f in (tmp_path / "out").iterdir()}
    for name, table in shipped._tables().items():
        with (tmp_path / "out" / reported[name]["file"]).open(encoding="utf-8", newline="") as stream:
            head, *rows = csv.reader(stream)
        assert [c.name for c in table.columns] == head == [c["name"] for c in reported[name]["columns"]]
        assert len(table.rows) == len(rows)
        for made, read in zip(table.rows, rows, strict=True):
            for column_, value, text in zip(table.columns, made, read, strict=True):
                if value is None:
                    assert text == ""
                elif column_.type == "number":
                    assert value == float(text)
    (capacity,) = [c for c in reported["chips"]["columns"] if c["name"] == "memory.capacity"]
    assert ("B", "information") == (capacity["unit"], capacity["dimension"])
    assert set(capacity["sources"]) == {name for name in shipped.chips if name != "trainium4"}


def test_json(shipped, tmp_path) -> None:
    file = tmp_path / "all.json"
    shipped.write_json(file)
    found = json.loads(file.read_text(encoding="utf-8"))

    assert (1, None, None) == (found["version"], found["edition"], found["as_of"])
    assert {t: len(v.rows) for t, v in shipped._tables().items()} == {
        t: len(v["rows"]) for t, v in found["tables"].items()
    }
    chip = next(r for r in found["tables"]["chips"]["rows"] if r["name"] == "trainium2")
    assert shipped.chips["trainium2"].memory.capacity.to("B") == chip["memory.capacity"]
    assert all(math.isfinite(r["value"]) for r in found["tables"]["figures"]["rows"])


def test_the_same_catalog_gives_the_same_bytes(tmp_path) -> None:
    for name in ("one", "two"):
        trnspec.load().write_csv(tmp_path / name)

    names = {"tables.json", *(f"{name}.csv" for name in MADE)}
    assert names == {file.name for file in (tmp_path / "one").iterdir()}
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_files_need_no_extra(tmp_path) -> None:
    """CSV and JSON are written without any of the libraries for tables."""
    code = (
        "import sys, trnspec; sys.argv.pop(0); cat = trnspec.load(); cat.write_csv('.'); cat.write_json('all.json');"
        "print(sorted({m.partition('.')[0] for m in sys.modules} & {'pyarrow', 'pandas', 'polars', 'duckdb'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=True, text=True, timeout=60
    )

    assert done.stdout == "[]\n"
    assert (tmp_path / "all.json").exists()
