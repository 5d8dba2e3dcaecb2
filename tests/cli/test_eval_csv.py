"""trnspec eval: bounds, tables that fit the page, and a CSV whose columns depend on the inputs alone."""

import csv
import io
import re
import shlex

import pytest

from tests.support.evaluations import install
from tests.support.programs import Here
from trnspec.cli.eval_csv import REFUSED
from trnspec.evaluation.page import BOUNDS, IDEAL
from trnspec.evaluation.sweeps import MIXED
from trnspec.text_table import in_markdown

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


def test_a_sweep_of_training(here) -> None:
    done = here(*TRAINING, "--tp", "32", "--calibration", "auto,none")
    words = done.out.splitlines()
    auto, none = (next(line for line in words if line.startswith(word)) for word in ("auto", "none"))

    assert (0, "") == (done.status, done.err)
    assert (">=" in auto, ">=" in none) == (False, True)
    assert " ".join(words).endswith(f"{BOUNDS} {IDEAL} {MIXED}")
    text = here(*TRAINING, "--tp", "32", "--calibration", "auto,none", "--format", "markdown").out
    assert text.endswith("\n\n" + in_markdown(f"{BOUNDS} {IDEAL} {MIXED}") + "\n")
    assert text.startswith("training: 2 combinations, model llama-3.1-8b, seq 8,192, ")


def test_a_range_of_sizes(here) -> None:
    asked = ("eval", "collective", "--kind", "all-reduce", "--on", "trn2.48xlarge", "--size", "1MiB..4MiB:x2")

    assert [row["size"] for row in rows(here(*asked, "--format", "csv").out)] == ["1 MiB", "2 MiB", "4 MiB"]


def test_refused_row_has_no_defaulted_inputs(here) -> None:
    first, second = rows(here(*TRAINING, "--tp", "24,32", "--format", "csv").out)
    reversed_ = rows(here(*TRAINING, "--tp", "32,24", "--format", "csv").out)

    assert ("rank-count", "", "24") == (first["refused"], first["calibration"], first["tp"])
    assert ("", "trainium1-neuron", "32") == (second["refused"], second["calibration"], second["tp"])
    assert [second, first] == reversed_
    assert list(first) == list(reversed_[0])


def test_a_table_of_a_sweep(here) -> None:
    args = ("--chip", "trainium2", "--times", "1,2,65", "--format", "csv", "--table", "reads")
    done = here("eval", "sweep", *args)

    # The input that varies is words apart from the column of the table, where both have one name.
    assert ["times", "read", "time [s]", *REFUSED] == heads(done.out)
    found = [("1", "0", ""), ("2", "0", ""), ("2", "1", ""), ("65", "", "does-not-fit")]
    assert found == [(r["times"], r["read"], r["refused"]) for r in rows(done.out)]


@pytest.mark.parametrize("more", [(), ("--calibration", "none", "--no-flash", "--dtype", "fp32")])
def test_the_best_layout_can_be_pasted(here, monkeypatch, more) -> None:
    printed = here(*SEARCH, "--top", "1", *more, "--full").out
    monkeypatch.setenv("COLUMNS", "300")
    data = here(*SEARCH, "--top", "1", *more, "--format", "json").data
    answers = {a["name"]: a for a in data["answers"]}
    lines_ = printed.partition("\nNext command: ")[2].partition("\n\n")[2].partition("\n\n")[0]
    # A shell joins the lines; shlex does not.
    _, *words = shlex.split(lines_.replace("\\\n", ""))
    again = {a["name"]: a for a in here(*words, "--format", "json").data["answers"]}

    assert 1 < len(lines_.splitlines())
    assert max(map(len, lines_.splitlines())) <= 80
    (suggestion,) = data["suggestions"]
    assert shlex.split(suggestion["command"]) == ["trnspec", *words]
    for name in ("value", "low", "high"):
        assert {n: again[n][name] for n in ("step_time", "mfu")} == {n: answers[n][name] for n in ("step_time", "mfu")}
    assert lines_.replace(" \\\n ", "") in here(*SEARCH, "--top", "1", *more, "--full").out, "a wide page has one line"
    assert (answers["step_time"]["high"] is None) == ("none" in more)


@pytest.mark.parametrize("args", [SEARCH, ("eval", "roofline", "--on", "trainium1", "--model", "llama-3.1-8b")])
def test_hidden_columns_can_be_chosen(here, monkeypatch, args) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    words = " ".join(here(*args).out.split())
    hidden = re.findall(
        r"hidden columns: ([\w, ]+?)(?:, \.\.\. \d+ more)? \(use --columns or a wider terminal\)", words
    )

    assert hidden
    for names in hidden:
        name = names.split(", ")[-1]
        page = here(*args, "--columns", name).out
        assert name not in {n for names in re.findall(r"hidden columns: ([^(]+) \(", page) for n in names.split(", ")}


def test_csv_ranks_bounds_by_themselves(here) -> None:
    options = (*TRAINING, "--tp", "8,16", "--calibration", "none,auto", "--no-must-fit", "--format", "csv")
    for sort, order in (("step_time", 1), ("-mfu", -1)):
        found = rows(here(*options, "--sort", sort).out)
        name = sort.removeprefix("-")
        kinds = [row[f"{name} kind"] == "ideal" for row in found]
        column = next(head for head in found[0] if head.startswith(f"{name} ["))
        values = [order * float(row[column]) for row in found]
        assert [False, False, True, True] == kinds
        assert "" not in {row[f"{name} kind"] for row in found}
        assert values[:2] == sorted(values[:2])
        assert values[2:] == sorted(values[2:])


@pytest.mark.parametrize("format_", ["csv", "text", "markdown"])
@pytest.mark.parametrize("columns", ["mfu", "step_time,tp", "memory,zero,mfu"])
def test_selected_sweep_columns_include_varying_ones(here, format_, columns) -> None:
    """Inputs and figures, first or where they are named; otherwise no row shows what it is about."""
    network = "trn1.32xlarge.network.bandwidth"
    done = here(
        *TRAINING, "--tp", "16,32", "--zero", "0", "--vary", f"{network}=800..1600Gbps:x2",
        "--columns", columns, "--format", format_,
    )  # fmt: skip
    named = columns.split(",")
    first = {"tp", "zero", network} - {*named}
    if format_ == "csv":
        found = [head.partition(" [")[0] for head in heads(done.out)]
        assert len({(r["tp"], r["zero"], r[f"{network} [B/s]"]) for r in rows(done.out)}) == len(rows(done.out)) == 8
    else:
        lines = done.out.splitlines()
        split = re.compile(r" \| " if format_ == "markdown" else "  +")
        at = next(i for i, line in enumerate(lines) if re.match(r"[| ]*-", line))
        found = [head.partition(" [")[0] for head in split.split(lines[at - 1].strip("| "))]
        named = [{"mfu": "MFU", "step_time": "step time"}.get(name, name) for name in named]

    assert (done.status, done.err) == (0, "")
    assert (first, named) == ({*found[: len(first)]}, found[len(first) :])


def test_a_table_by_its_title(here) -> None:
    for wanted in ("Reads", "reads", "ead"):
        done = here("eval", "sweep", "--chip", "trainium2", "--times", "2", "--format", "csv", "--table", wanted)
        found = rows(done.out)

        assert (0, ["0", "1"]) == (done.status, [r["read"] for r in found])
        assert 1 == len({float(r["time [s]"]) for r in found})


def test_brief_has_no_effect(here) -> None:
    done = here("eval", "roofline", "--on", "trainium2", "--brief")

    assert here("eval", "roofline", "--on", "trainium2").out == done.out
    assert done.err == "trnspec: --brief has no effect: the page fits a screen; --full prints all of it\n"
