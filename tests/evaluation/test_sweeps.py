"""Sweeps from Python: ranges, figures as axes, and the tables that libraries read."""

import sys
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

import trnspec
from tests.support.tables import tables
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation.page import BOUNDS, IDEAL
from trnspec.evaluation.result import Answer, Evaluation
from trnspec.evaluation.sweeps import MOST, Sweep, expanded, from_options, sections, sweep_note, sweep_table
from trnspec.evidence import Evidence
from trnspec.text_table import lines, sections_in_markdown

CAT = trnspec.load()
TABLES = tables(__file__)
NETWORK = "trn2.48xlarge.network.bandwidth"
INPUTS = {
    "model": "llama-3.1-8b", "on": "trn2.48xlarge*2", "seq": 4096, "global_batch": 64, "pp": 2, "calibration": "none",
}  # fmt: skip
SWEEP = trnspec.sweep("training", CAT, **INPUTS, tp="8..24:+8", vary={NETWORK: "1.6..3.2Tbps:x2"})


def test_every_row_is_the_single_call() -> None:
    """Bit for bit; 24 ranks divide no server, which is a refusal in both."""
    expected = []
    for tp in (8, 16, 24):
        for text in ("1.6 Tbps", "3.2 Tbps"):
            try:
                found = trnspec.evaluate("training", CAT, **INPUTS, tp=tp, assume={NETWORK: text})
                expected.append(({"tp": tp, NETWORK: text}, found["step_time"]))
            except trnspec.RefusalError as refusal:
                expected.append(({"tp": tp, NETWORK: text}, refusal.reason))

    assert expected == [(c, r.reason if isinstance(r, trnspec.RefusalError) else r["step_time"]) for c, r in SWEEP]
    assert "rank-count" in {answer for _, answer in expected}
    assert expected[0][1] > expected[1][1]


def test_records_are_in_base_units() -> None:
    records = SWEEP.records()

    assert [2e11, 4e11] * 3 == [record[NETWORK] for record in records]
    assert {"B/s", "s"} == {SWEEP.units[NETWORK], SWEEP.units["step_time"]}
    assert 1 == len({tuple(record) for record in records})


def test_frames(tmp_path) -> None:
    """pandas, polars and Parquet have the records, and the units where the format has a place for them."""
    parquet = pytest.importorskip("pyarrow.parquet")
    SWEEP.to_parquet(tmp_path / "sweep.parquet")
    table = parquet.read_table(tmp_path / "sweep.parquet")
    pandas = SWEEP.to_pandas()

    assert SWEEP.records() == SWEEP.to_polars().to_dicts() == table.to_pylist()
    assert [record["tp"] for record in SWEEP.records()] == list(pandas["tp"])
    assert ("training", INPUTS, SWEEP.units) == tuple(pandas.attrs[k] for k in ("evaluator", "inputs", "units"))
    assert b"s" == table.schema.field("step_time").metadata[b"unit"]
    assert b"training" == table.schema.metadata[b"evaluator"]


def test_grid() -> None:
    pytest.importorskip("xarray")
    grid = SWEEP.to_xarray()
    records = SWEEP.records()

    assert {"tp": 3, NETWORK: 2} == dict(grid.sizes)
    assert ("s", "B/s") == (grid["step_time"].attrs["units"], grid[NETWORK].attrs["units"])
    assert [r["step_time"] or "" for r in records][:4] == [float(x) for x in grid["step_time"].values.ravel()][:4]
    assert [[False] * 2, [False] * 2, [True] * 2] == grid["step_time"].isnull().values.tolist()
    assert [r["refusal"] or "" for r in records] == grid["refusal"].values.ravel().tolist()
    assert "llama-3.1-8b" == grid.attrs["model"]


@pytest.mark.parametrize(("inputs", "message"), TABLES["errors"])
def test_errors(inputs, message: str) -> None:
    with pytest.raises(trnspec.TrnspecError) as caught:
        trnspec.sweep("training", CAT, **INPUTS, **inputs)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("method", "module", "extra"),
    [("to_pandas", "pandas", "tables"), ("to_polars", "polars", "tables"), ("to_xarray", "xarray", "arrays")],
)
def test_missing_libraries(method: str, module: str, extra: str, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(UsageError) as caught:
        getattr(SWEEP, method)()

    assert f"{module} is not installed" in str(caught.value)
    assert f"trnspec[{extra}]" in str(caught.value)


def test_a_grid_has_different_values() -> None:
    pytest.importorskip("xarray")
    with pytest.raises(UsageError, match="tp has a value twice"):
        Sweep("x", {"tp": (1, 1)}, ()).to_xarray()


def estimate(time: float) -> Evaluation:
    answers = (Answer("time", time, "s", 0.9 * time, 1.1 * time), Answer("rate", 1 / time, "%", 0.9 / time, 1.1 / time))
    return Evaluation(evaluator="x", title="x", answers=answers, inputs={"calibration": "good"})


def bound(time: float, name: str = "none") -> Evaluation:
    answers = (Answer("time", time, "s", low=time), Answer("rate", 1 / time, "%", high=1 / time))
    return Evaluation(evaluator="x", title="x", answers=answers, inputs={"calibration": name})


SOME = [({"on": "a"}, estimate(2.0)), ({"on": "b"}, bound(1.0)), ({"on": "c"}, RefusalError("no", "never"))]


def test_a_bound_does_not_look_like_an_estimate() -> None:
    assert [
        "on  calibration  time [s]  rate [%]  refused",
        "--  -----------  --------  --------  ---------",
        "a   good                2       0.5",
        "b   none             >= 1      <= 1",
        "c   -                   -         -  no: never",
    ] == lines(sweep_table(SOME), 80)
    assert f"{BOUNDS} {IDEAL}" == sweep_note(SOME)


def test_long_reasons_are_printed_once_below_the_table() -> None:
    long, other = (RefusalError("no-plan", f"{word * 30}here") for word in ("why ", "how "))
    rows = [*SOME, ({"on": "d"}, long), ({"on": "e"}, other), ({"on": "f"}, long)]
    cells = [row.rpartition("  ")[2] for row in lines(sweep_table(rows), 80)[4:]]
    _, _, *notes, _ = (block for _, block in sections(rows, "x"))

    assert cells == ["no: never", "no-plan [1]", "no-plan [2]", "no-plan [1]"]
    assert notes == [f"[1] {long}", f"[2] {other}"]
    assert sections_in_markdown(sections(rows, "x")).count(str(long)) == 1


def test_columns_are_added_only_where_they_differ() -> None:
    both = [({"on": "a"}, estimate(2.0)), ({"on": "b"}, estimate(1.0))]

    assert ["on", "time", "rate"] == [c.label for c in sweep_table(both).columns]
    assert "" == sweep_note(both)
    # Bounds of a calibration are not ideal.
    assert BOUNDS == sweep_note([({"on": "a"}, bound(1.0, "good"))])


def test_columns_and_order() -> None:
    head, shown, _ = (b for _, b in sections(SOME, "x: 3 combinations", columns="on,time", sort="-time"))

    assert "x: 3 combinations" == head
    assert ["on  time [s]", "--  --------", "a          2", "b       >= 1", "c          -"] == lines(shown, 80)


def of_kind(kind: str, time: float) -> Evaluation:
    ends = {"low": 0.9 * time} if kind == "ideal" else {"low": 0.5 * time, "high": 2 * time}
    return Evaluation(
        evaluator="x",
        title="x",
        answers=(Answer("time", time, "s", **ends, kind=kind), Answer("memory", 1.0, "B")),
        evidence=Evidence(kind=kind, reason="a reason"),
    )


def test_bounds_are_not_ranked_with_estimates() -> None:
    rows = [
        ({"on": "d"}, RefusalError("no", "never")),
        ({"on": "a"}, of_kind("ideal", 1.0)),
        ({"on": "b"}, of_kind("transferred", 3.0)),
        ({"on": "c"}, of_kind("estimate", 2.0)),
    ]
    _, shown, note = (block for _, block in sections(rows, "x", sort="time"))

    assert [
        "on  evidence     time [s]  memory [B]  refused",
        "--  -----------  --------  ----------  ---------",
        "c   estimate           ~2           1",
        "b   transferred        ~3           1",
        "a   ideal          >= 0.9           1",
        "d                       -           -  no: never",
    ] == lines(shown, 80)
    assert "not comparable" in " ".join(note.split())
    assert "" == sweep_note(rows[2:])
    # One kind needs no column.
    assert ["on", "time", "memory"] == [c.label for c in sweep_table(rows[2:3] * 2).columns]


@pytest.mark.parametrize(("text", "values"), TABLES["ranges"].items())
def test_values(text: str, values: list[str]) -> None:
    assert values == expanded(text, "--x")


@pytest.mark.parametrize(("text", "message"), TABLES["not ranges"].items())
def test_errors_of_ranges(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=r"^--x: ") as caught:
        expanded(text, "--x")

    assert message in str(caught.value)


def test_texts_are_ranges_only_with_a_step() -> None:
    assert ["../a.json"] == expanded("../a.json", "--x", numeric=False)
    assert ["1..4"] == expanded("1..4", "--x", numeric=False)
    assert ["1 T", "2 T", "4 T"] == expanded("1T..4T:x2", "--x", numeric=False)


def test_values_of_options() -> None:
    assert {"a": ["1", "2", "4", "8", "1,000 GB"], "b": ["x"]} == from_options(
        ["a=1..4:x2, 8", "b = x", r"a=1\,000 GB"]
    )
    for text in ("a", "=2", "a=", "a=1,,2", "a=3,200 GB"):
        with pytest.raises(UsageError, match=r"^--vary: "):
            from_options([text])


@given(st.integers(0, 10**6), st.integers(0, 10**4), st.integers(1, 300))
def test_steps_are_those_of_arithmetic(first: int, span: int, step: int) -> None:
    values = expanded(f"{first / 10}..{(first + span) / 10}:+{step / 10}", "--x") if span // step < MOST else []

    assert [Fraction(n, 10) for n in range(first, first + span + 1, step)][: len(values)] == [
        Fraction(v) for v in values
    ]


def test_repr() -> None:
    axes = f"tp [8, 16, 24], {NETWORK} ['1.6 Tbps', '3.2 Tbps']"

    assert (f"<Sweep of training: 6 combinations, 2 refused; {axes}>", 6) == (repr(SWEEP), len(SWEEP))
    assert "<Sweep of x: 0 combinations, 0 refused; tp [1]>" in Sweep("x", {"tp": (1,)}, ())._repr_markdown_()


def test_inputs_and_refusals_stay_in_narrow_tables() -> None:
    columns = {column.name: column for column in sweep_table(SWEEP.rows).columns}

    assert {"tp", "refused"} < {name for name, column in columns.items() if column.keep}
    assert columns["tp"].identity
    assert columns["refused"].wrap
