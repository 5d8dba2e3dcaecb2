"""Published measurements as cases: which rows become one, why the others do not, and files that are none."""

import math

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.perf.calibration.measured.conftest import ROWS, changed, one
from tests.support.engine import everything, shipped
from trnspec.errors import UsageError
from trnspec.loading.files import shipped as folder
from trnspec.model.calibration import Calibration
from trnspec.perf.calibration.measured import cells
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.perf.calibration.measured.cells import records
from trnspec.perf.calibration.measured.training import TrainingCase, training_cases
from trnspec.perf.work.validity import check

DATA = folder() / "measured"
CASES = {
    "training_a100_vtrain.csv": (774, 0), "training_h100.csv": (12, 0), "training_korthikanti.csv": (8, 0),
    "training_megatron_bridge.csv": (120, 4), "training_megatron_sc21.csv": (22, 0), "training_mpt.csv": (102, 0),
    "training_torchtitan.csv": (17, 1), "training_trn1.csv": (7, 8), "training_mlperf.csv": (23, 20),
    "training_simumax.csv": (27, 0),
}  # fmt: skip
"""The cases and the skipped rows of each file with training."""


def test_rows_excluded_from_every_fit():
    fitted = {each.table for n in everything().of(Calibration) for each in n.spec.tables}
    assert {"training_korthikanti.csv"} == {*CASES} - fitted


@pytest.mark.parametrize("name", sorted(f.name for f in DATA.glob("*.csv")))
def test_rows(name):
    rows = records(DATA / name)
    found = list(training_cases(everything(), rows))
    cases = [c for c in found if isinstance(c, TrainingCase)]
    assert CASES.get(name, (0, 0)) == (len(cases), len(found) - len(cases))
    assert sum(row["kind"] == "train" for row in rows) == len(found)
    for case in cases[:: max(1, len(cases) // 40)]:
        check(case.layout, case.dims, int(case.system.ranks))
        assert 1e-3 < case.seconds < 1e3
        assert case.dtype in case.system.rates


def test_without_the_catalogs_of_plugins():
    """Each row says which document it would need."""
    found = list(training_cases(shipped().graph, records(DATA / "training_torchtitan.csv")))
    assert {True} == {isinstance(s, Skipped) and "grand-teton-h100" in s.reason for s in found}


def test_a_link_without_a_rate_is_no_reason_to_fit():
    """It would pass for a link that takes no time."""
    row = changed("training", {"hardware": "B200", "n_chips": 16, "tp": 8, "dp": 2, "global_batch": 64})
    (known,) = training_cases(everything(), [row])
    assert isinstance(known, TrainingCase)
    renamed = [(p, ("hgx-b200",)) if "b200" in p and "gb200" not in p else (p, names) for p, names in cells.HARDWARE]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cells, "HARDWARE", tuple(renamed))
        patch.setattr(cells, "_hardware", cells._hardware.__wrapped__)
        (unknown,) = training_cases(everything(), [row])
    assert isinstance(unknown, Skipped)
    assert "a link of hgx-b200*2 whose rate is not published" in unknown.reason


CELLS = st.one_of(
    st.sampled_from(
        ["", "0", "-1", "1e309", "nan", "inf", "-inf", "1e-320", "1e300", "0x10", "1_0", "\u0661", "n/a", "*", "\x00"]
    ),
    st.text(max_size=8),
    st.floats().map(str),
    st.integers(-5, 5000).map(str),
)


@given(st.dictionaries(st.sampled_from(sorted(set(ROWS["training"]["row"]) - {"kind", "id"})), CELLS, max_size=6))
@example({"n_chips": "1e15"})
@example({"tokens_per_s_per_chip": "1e-11", "step_time_s": ""})
@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
def test_no_row_breaks_the_reader(edit):
    """A case with a time that is a number, or a reason in words."""
    found = one("training", **edit)
    if isinstance(found, Skipped):
        assert len(found.reason.split()) > 2
    else:
        assert 0.0 < found.seconds < math.inf


def written(tmp_path, text: str | bytes):
    file = tmp_path / "rows.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


HOSTILE = {
    "empty": (b"", "rows.csv:1: the first line has no names of columns"),
    "only a header": ("kind,id\n", "no measurements"),
    "another table": ("a,b\n1,2\n", "a column named kind"),
    "binary": (bytes(range(256)) * 4, "cannot be read"),
    "utf-16": ("kind,id\ntrain,a\n".encode("utf-16"), "cannot be read"),
    "too few cells": ("kind,id\ntrain\n", "rows.csv:2: fewer cells than columns"),
    "too many cells": ("kind,id\ntrain,a\ntrain,a,b\n", "rows.csv:3: more cells than columns"),
    "a cell without end": ('kind,id\n"' + "x" * 200_000 + "\n", "cannot be read"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_malformed_tables_are_rejected(tmp_path, case):
    text, stated = HOSTILE[case]
    with pytest.raises(UsageError, match=stated) as refused:
        records(written(tmp_path, text))
    assert "rows.csv" in str(refused.value)


def test_table_path_that_is_not_a_file(tmp_path):
    for place in (tmp_path, tmp_path / "nowhere.csv"):
        with pytest.raises(UsageError, match="cannot be read"):
            records(place)


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    assert [{"kind": "train", "id": "a"}] == records(written(tmp_path, "\ufeffkind,id\ntrain,a\n"))


def test_columns_and_cells_that_are_missing(tmp_path):
    rows = records(written(tmp_path, "kind,id,model\ntrain,a,\ntrain,,\ninfer,b,m\n"))
    found = list(training_cases(shipped().graph, rows))
    assert [Skipped("a", "the row states no n_chips"), Skipped("line 3", "the row states no n_chips")] == found


def test_rejected_rows_and_cells_are_not_read() -> None:
    """Of the tables of the catalog, as their documents state."""
    file = DATA / "inference_neuron.csv"
    published, used = ({r["id"]: r for r in rows} for rows in (records(file), records(file, everything())))
    rejected = {i for i, row in published.items() if used[i] != row}

    assert 3 == len(rejected)
    assert {("", True)} == {(used[i]["out_tok_s"], bool(published[i]["out_tok_s"])) for i in rejected}
    table = DATA / "collectives_nccom.csv"
    assert ["nccom-591"] == sorted({r["id"] for r in records(table)} - {r["id"] for r in records(table, everything())})


def test_kind_and_name_of_a_table_without_them(tmp_path) -> None:
    """The kind is that of the columns, and a row is named by its line."""
    (tmp_path / "mine.csv").write_text(
        "model,hardware,n_chips,global_batch,seq,step_time_s\nllama-3.1-8b,trn1,16,8,4096,2\n"
    )
    (tmp_path / "either.csv").write_text("model,hardware,global_batch,isl,osl\na,b,1,2,3\n")

    (row,) = records(tmp_path / "mine.csv")

    assert ("train", "line 2", "2") == (row["kind"], row["id"], row["step_time_s"])
    with pytest.raises(UsageError, match="a column named kind"):
        records(tmp_path / "either.csv")


def test_the_kind_of_a_table_follows_from_columns_that_no_other_kind_has(tmp_path):
    for kind, needed in cells._KINDS:
        table = tmp_path / f"{kind}.csv"
        table.write_text(f"{','.join(sorted(needed))}\n{','.join('1' for _ in needed)}\n", "utf-8")
        assert [kind] == [row["kind"] for row in records(table)]
