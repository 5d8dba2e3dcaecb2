"""trnspec eval: bounds told apart, tables that fit the page, and a CSV whose columns hang on the question alone."""

from __future__ import annotations

import csv
import io
import json
import shlex

import pytest
from evaluator_samples import install
from running import Here

from trnspec.cli.eval import Asking
from trnspec.cli.eval_csv import REFUSED, many
from trnspec.cli.eval_page import marked, page, swept
from trnspec.cli.render import Table as Shown
from trnspec.cli.render import lines
from trnspec.evaluation.result import Answer, Evaluation, RefusalError, Table
from trnspec.plugins.api import Evaluator

SEARCH = ("eval", "search", "--model", "llama-3.2-1b", "--on", "trn1.2xlarge*2", "--seq", "1024", "--global-batch", "8")
TRAINING = (
    *("eval", "training", "--model", "llama-3.1-8b", "--on", "trn1.32xlarge*32", "--seq", "8192"),
    *("--global-batch", "1024", "--zero", "1"),
)


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    monkeypatch.delenv("COLUMNS", raising=False)
    install(tmp_path / "site", monkeypatch)
    return Here(tmp_path, monkeypatch, capsys)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def heads(text: str) -> list[str]:
    return text.splitlines()[0].split(",")


# Bounds.


def estimate(time: float, **more: object) -> Evaluation:
    answers = (Answer("time", time, "s", 0.9 * time, 1.1 * time), Answer("rate", 1 / time, "%", 0.9 / time, 1.1 / time))
    return Evaluation(evaluator="x", title="x", answers=answers, inputs={"calibration": "good"}, **more)  # type: ignore[arg-type]


def bound(time: float, name: str = "none", **more: object) -> Evaluation:
    answers = (Answer("time", time, "s", low=time), Answer("rate", 1 / time, "%", high=1 / time))
    return Evaluation(evaluator="x", title="x", answers=answers, inputs={"calibration": name}, **more)  # type: ignore[arg-type]


def test_a_bound_does_not_look_like_an_estimate() -> None:
    some = [({"on": "a"}, estimate(2.0)), ({"on": "b"}, bound(1.0)), ({"on": "c"}, RefusalError("no", "never"))]

    assert [
        "on  calibration    time    rate  refused",
        "--  -----------  ------  ------  ---------",
        "a   good            2 s   0.5 %",
        "b   none         >= 1 s  <= 1 %",
        "c   -                 -       -  no: never",
    ] == lines(swept(some), 80)
    assert marked(some).startswith(">= (at least) and <= (at most) stand before bounds")
    assert marked(some).endswith(" Without a calibration nothing is lost.")


def test_where_all_are_alike_nothing_is_added() -> None:
    both = [({"on": "a"}, estimate(2.0)), ({"on": "b"}, estimate(1.0))]

    assert ["on", "time", "rate"] == [c.name for c in swept(both).columns]
    assert "" == marked(both)
    # Of bounds with a calibration nobody says that nothing is lost.
    assert marked([({"on": "a"}, bound(1.0, "good"))]).endswith("their other end is not known.")


def test_a_calibration_that_varies_is_a_column_once() -> None:
    both = [({"calibration": "auto"}, estimate(2.0)), ({"calibration": "none"}, bound(1.0))]

    assert ["calibration", "time", "rate"] == [c.name for c in swept(both).columns]


def test_a_table_of_bounds_is_marked() -> None:
    """Its columns that are called as an answer are what the answer is."""
    held = Table("each", ("name", "time", "other"), (("a", 1.0, 2.0), ("b", None, 2.0)), ("", "s", "s"))
    _, _, _, shown, note = page(bound(1.0, tables=(held,)), 80)
    _, _, _, plain, *rest = page(estimate(1.0, tables=(held,)), 80)

    assert isinstance(shown, Shown)
    assert isinstance(plain, Shown)
    assert (("a", ">= 1 s", "2 s"), ("b", "-", "2 s")) == shown.rows
    assert "their other end is not known" in " ".join(str(note).split())
    assert ((("a", "1 s", "2 s"), ("b", "-", "2 s")), []) == (plain.rows, rest)


def test_a_sweep_of_training(here) -> None:
    done = here(*TRAINING, "--tp", "32", "--calibration", "auto,none")
    told = done.out.splitlines()
    auto, none = (next(line for line in told if line.startswith(word)) for word in ("auto", "none"))

    assert (0, "") == (done.status, done.err)
    assert (">=" in auto, ">=" in none) == (False, True)
    assert " ".join(told).endswith("is not known. Without a calibration nothing is lost.")
    in_markdown = here(*TRAINING, "--tp", "32", "--calibration", "auto,none", "--format", "markdown").out
    assert in_markdown.endswith("\n\n>= (at least) and <= (at most) stand before bounds: their other end is not known. "
                                "Without a calibration nothing is lost.\n")  # fmt: skip


# The columns of a CSV.


@pytest.mark.parametrize("times", ["1,2", "1,65", "65,1"])
def test_columns_do_not_hang_on_what_is_refused(here, times) -> None:
    done = here("eval", "sweep", "--chip", "trainium2", "--times", times, "--format", "csv")

    assert [
        *("chip", "times", "share", "dtype", "double", "label", "extra"),
        *("time [s]", "time low [s]", "time high [s]", "read [B]", "fits", "chips", *REFUSED),
    ] == heads(done.out)


def test_refused_rows_have_a_hint(here, tmp_path) -> None:
    (tmp_path / "gap.yaml").write_text("change:\n  trainium2: {memory.bandwidth: null}\n")
    args = ("--chip", "trainium1,trainium2", "--overlay", "gap.yaml", "--format", "csv")
    first, second = rows(here("eval", "sweep", *args).out)

    assert ["", "", "", ""] == [first[name] for name in REFUSED]
    assert "unknown-figure,trainium2 states no bandwidth,trainium2 spec.memory.bandwidth,add it" == (
        ",".join(second[name] for name in REFUSED)
    )


def test_what_was_left_to_the_evaluator_is_not_told_where_it_refused(here) -> None:
    first, second = rows(here(*TRAINING, "--tp", "24,32", "--format", "csv").out)
    reversed_ = rows(here(*TRAINING, "--tp", "32,24", "--format", "csv").out)

    assert ("rank-count", "", "24") == (first["refused"], first["calibration"], first["tp"])
    assert ("", "trainium1-neuron", "32") == (second["refused"], second["calibration"], second["tp"])
    assert [second, first] == reversed_
    assert list(first) == list(reversed_[0])


def test_an_answer_that_is_called_as_one_of_the_last_columns() -> None:
    found = Evaluation(evaluator="x", title="x", answers=(Answer("hint", 1.0, "s"), Answer("place", 2)))

    asking = Asking(Evaluator("x", "x", lambda catalog: found), "x", None, {}, {})
    made = many(asking, [({}, found)])
    assert ["hint [s]", "asked or answered place", *REFUSED] == [c.name for c in made.columns]
    assert ((1.0, 2, "", "", "", ""),) == made.rows


# Tables in CSV.


def test_a_table_by_its_title(here) -> None:
    for wanted in ("Reads", "reads", "ead"):
        done = here("eval", "sweep", "--chip", "trainium2", "--times", "2", "--format", "csv", "--table", wanted)
        found = rows(done.out)

        assert (0, ["0", "1"]) == (done.status, [r["read"] for r in found])
        assert 1 == len({float(r["time [s]"]) for r in found})


def test_a_table_of_a_sweep(here) -> None:
    args = ("--chip", "trainium2", "--times", "1,2,65", "--format", "csv", "--table", "reads")
    done = here("eval", "sweep", *args)

    # The input that varies is told apart from the column of the table, where both have one name.
    assert ["times", "read", "time [s]", *REFUSED] == heads(done.out)
    found = [("1", "0", ""), ("2", "0", ""), ("2", "1", ""), ("65", "", "does-not-fit")]
    assert found == [(r["times"], r["read"], r["refused"]) for r in rows(done.out)]


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--table", "writes", "--format", "csv"), "--table: no table has 'writes' in the title; there are 'Reads'\n"),
        (("--table", "reads"), "--table chooses the table of --format csv; the other formats have all tables\n"),
    ],
)
def test_a_table_that_is_not_there(here, args, told) -> None:
    done = here("eval", "sweep", "--chip", "trainium2", *args)

    assert (2, "") == (done.status, done.out)
    assert f"trnspec: {told}" == done.err


def test_titles_that_share_a_word(here) -> None:
    args = ("--on", "trainium2", "--model", "llama-3.1-8b", "--format", "csv", "--table")
    done = here("eval", "roofline", *args, "of")

    assert (2, True) == (done.status, "several tables have 'of' in the title; there are 'Parts of " in done.err)
    assert heads(here("eval", "roofline", *args, "Ridge points of trainium2").out)[:2] == ["dtype", "peak [FLOP/s]"]


def test_a_search_is_its_table(here) -> None:
    found = rows(here(*SEARCH, "--top", "3", "--format", "csv").out)
    data = json.loads(here(*SEARCH, "--top", "3", "--format", "json").out)
    (layouts,) = data["tables"]

    assert [[str(v) for v in row] for row in layouts["rows"]] == [list(r.values()) for r in found]
    assert ["step_time [s]", "mfu [%]", "memory [B]", "tp"] == list(found[0])[:4]
    swept_ = rows(here(*SEARCH, "--dtype", "bf16,fp32", "--top", "2", "--format", "csv").out)
    assert ["bf16", "bf16", "fp32", "fp32"] == [r["dtype"] for r in swept_]
    assert [r["step_time [s]"] for r in found[:2]] == [r["step_time [s]"] for r in swept_[:2]]
    assert REFUSED == tuple(swept_[0])[-4:]


@pytest.mark.parametrize("more", [(), ("--calibration", "none", "--no-flash", "--dtype", "fp32")])
def test_the_best_layout_can_be_pasted(here, monkeypatch, more) -> None:
    """The lines of the page, joined as a shell does, give the time that the search told."""
    printed = here(*SEARCH, "--top", "1", *more).out
    monkeypatch.setenv("COLUMNS", "300")
    data = json.loads(here(*SEARCH, "--top", "1", *more, "--format", "json").out)
    answers = {a["name"]: a for a in data["answers"]}
    lines_ = printed.partition("\ncommand: ")[2].partition("\n\n")[2].partition("\n\n")[0]
    # A shell joins the lines; shlex does not.
    _, *words = shlex.split(lines_.replace("\\\n", ""))
    again = {a["name"]: a for a in json.loads(here(*words, "--format", "json").out)["answers"]}

    assert 1 < len(lines_.splitlines())
    assert max(map(len, lines_.splitlines())) <= 80
    (suggestion,) = data["suggestions"]
    assert shlex.split(suggestion["command"]) == ["trnspec", *words]
    for name in ("value", "low", "high"):
        assert {n: again[n][name] for n in ("step_time", "mfu")} == {n: answers[n][name] for n in ("step_time", "mfu")}
    assert lines_.replace(" \\\n ", "") in here(*SEARCH, "--top", "1", *more).out, "a wide page has one line"
    assert (answers["step_time"]["high"] is None) == ("none" in more)


def test_the_command_asks_the_same_catalog(here, tmp_path) -> None:
    (tmp_path / "fast.yaml").write_text("change:\n  trainium1: {memory.bandwidth: 5.8 TB/s}\n")
    data = json.loads(here(*SEARCH, "--top", "1", "--overlay", "fast.yaml", "--format", "json").out)
    told = {a["name"]: a["value"] for a in data["answers"]}
    command = data["suggestions"][0]["command"]
    again = json.loads(here(*shlex.split(command)[1:], "--format", "json").out)

    assert command.endswith(" --overlay fast.yaml")
    assert again["answers"][0]["value"] == told["step_time"]


def test_the_command_in_markdown(here) -> None:
    found = here(*SEARCH, "--top", "1", "--format", "markdown").out

    assert "### command: the fastest layout\n\n```sh\ntrnspec eval training --model llama-3.2-1b " in found
    assert 1 == found.count("trnspec eval training")


# What has no room.


def test_no_figure_is_folded(here) -> None:
    """Where figures with units are too wide, units go into the headings."""
    told = here("eval", "roofline", "--on", "trainium2").out.splitlines()
    at = told.index("Ridge points of trainium2")

    assert [
        "          peak  peak ridge   matmul  matmul ridge   sparse  sparse ridge",
        "dtype  PFLOP/s      FLOP/B  PFLOP/s        FLOP/B  PFLOP/s        FLOP/B",
        "-----  -------  ----------  -------  ------------  -------  ------------",
        "fp32     0.181        62.4    0.157          54.2        -             -",
    ] == told[at + 2 : at + 6]


def test_a_wide_page_has_units_beside_figures(here, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")

    assert "fp32   0.181 PFLOP/s  62.4 FLOP/B" in here("eval", "roofline", "--on", "trainium2").out


@pytest.mark.parametrize("args", [SEARCH, ("eval", "roofline", "--on", "trainium1", "--model", "llama-3.1-8b")])
def test_what_is_left_out_is_where_the_page_says(here, args) -> None:
    """Every option that the page names prints the columns that it leaves out."""
    told = " ".join(here(*args).out.split())
    tables = json.loads(here(*args, "--format", "json").out)["tables"]
    seen = 0
    for part in told.split("Left out for want of room: ")[1:]:
        names, _, rest = part.partition(". A wider page (COLUMNS) or ")
        options = shlex.split(rest.partition(" has all.")[0])
        assert options[:2] == ["--format", "csv"]
        printed = heads(here(*args, *options).out)
        assert {name.replace(" ", "_") for name in names.split(", ")} <= {head.partition(" [")[0] for head in printed}
        assert printed[0].partition(" [")[0] in {t["columns"][0] for t in tables}
        seen += 1

    assert seen


def test_what_csv_has_not_is_in_json(here, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    told = " ".join(here("eval", "sweep", "--chip", "trainium2").out.split())

    assert "A wider page (COLUMNS) or --format json has all." in told
    assert "or --format csv has all." not in told
