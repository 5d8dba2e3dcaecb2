"""trnspec.catalog.tables: one table for each kind, figures and claims; as CSV and JSON."""

import csv
import json
import math

import trnspec
from tests.support.small_catalog import GRAPH
from trnspec.catalog.tables import tables
from trnspec.model.kinds import BUILTIN

MADE = tables(GRAPH)


def test_names() -> None:
    folders = dict.fromkeys(folder for folder, _ in BUILTIN.values() if folder != "measured")  # tables already

    assert [*folders, "figures", "claims"] == list(MADE)
    assert all(t.name == name for name, t in MADE.items())


MAPPINGS = ("other.", "hourly.", "observed.")


def test_columns_do_not_depend_on_known_values() -> None:
    """Two dates have the same columns, the keys of mappings apart."""
    now, then = (trnspec.load(as_of=as_of)._tables() for as_of in (None, "2023-03"))

    assert {"chips", "figures", "links"} <= set(now)
    for name, table in now.items():
        fixed = [c.name for c in table.columns if not c.name.startswith(MAPPINGS)]
        assert fixed == [c.name for c in then[name].columns if not c.name.startswith(MAPPINGS)]


def test_claims_of_the_shipped_catalog_are_all_there() -> None:
    assert sum(len(r) for b in SHIPPED for r in b.claims.values()) == len(SHIPPED._tables()["claims"].rows)


SHIPPED = trnspec.load()


def test_csv(tmp_path) -> None:
    """Numbers come back as they were, to the last digit; gaps are empty; the other file reports the units."""
    SHIPPED.write_csv(tmp_path / "out")
    reported = json.loads((tmp_path / "out" / "tables.json").read_text(encoding="utf-8"))["tables"]

    assert {f"{name}.csv" for name in reported} | {"tables.json"} == {f.name for f in (tmp_path / "out").iterdir()}
    for name, table in SHIPPED._tables().items():
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
    assert set(capacity["sources"]) == {name for name in SHIPPED.chips if name != "trainium4"}


def test_json(tmp_path) -> None:
    file = tmp_path / "all.json"
    SHIPPED.write_json(file)
    found = json.loads(file.read_text(encoding="utf-8"))

    assert (1, None, None) == (found["version"], found["edition"], found["as_of"])
    assert {t: len(v.rows) for t, v in SHIPPED._tables().items()} == {
        t: len(v["rows"]) for t, v in found["tables"].items()
    }
    chip = next(r for r in found["tables"]["chips"]["rows"] if r["name"] == "trainium2")
    assert SHIPPED.chips["trainium2"].memory.capacity.to("B") == chip["memory.capacity"]
    assert all(math.isfinite(r["value"]) for r in found["tables"]["figures"]["rows"])
