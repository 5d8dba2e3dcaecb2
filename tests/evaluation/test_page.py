"""The page of an evaluation: summary, headings, units, the same text in Python."""

import re
from html import escape as escape_html

import pytest
from attrs import evolve

from tests.support.tables import tables
from trnspec.errors import UsageError
from trnspec.evaluation.page import BOUNDS, cell, html_page, markdown_page, page
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, Table
from trnspec.evaluation.summary import (
    COMMAND,
    bottleneck_label,
    evidence_details,
    evidence_lines,
    shortened,
    summary_items,
    uncertain,
)
from trnspec.evidence import Evidence, GroupError, Nearest, Outside, UsedFigure
from trnspec.text_table import Heading, TextTable, fit, lines, rendered

TABLES = tables(__file__)

FOUND = Evaluation(
    evaluator="training",
    title="a model on some chips",
    inputs={"model": "m", "tp": 8, "calibration": "neuron"},
    answers=(
        Answer("step_time", 22.6, "s", 15.5, 29.8, "80% of measurements"), Answer("throughput", 371e3, "tokens/s"),
        Answer("mfu", 19.6, "%", 14.9, 28.7), Answer("hfu", 25.0, "%"), Answer("memory", 2.5 * 2**30, "B"),
        Answer("capacity", 16 * 2**30, "B"), Answer("fits", True),
    ),
    parts=(Part("step_time", "compute", 15.0), Part("step_time", "tensor", 7.6)),
    bottleneck="compute-bound: matrix multiplication (66% of the step)",
    assumptions=(Assumption("calibration", "neuron", "7 rows"),),
    evidence=Evidence(kind="estimate", reason="7 rows"),
    figures_used=(
        UsedFigure("chip", "memory.bandwidth", "2.9 TB/s", "paper", "2024", ("2 TB/s, rejected", "2.9, agrees")),
    ),
    tables=(Table("each layer", ("name", "step_time"), (("a", 1e-3), ("b", 2.5)), ("", "s")),),
)  # fmt: skip


def headings(found: Evaluation) -> list[str]:
    return [str(block) for block in page(found, full=True) if isinstance(block, Heading)]


PLANS = Table(
    "plans", ("tp", "memory", "step_time"), ((8, 2.5 * 2**30, 22.6), (16, 3.0, 30.0)), ("", "B", "s"), first_rows=1
)


@pytest.mark.parametrize(
    ("plans", "answers", "shown"),
    [
        (PLANS, (), ["  layout      tp 8", "Plans, after the best"]),
        (PLANS, (Answer("layout", "tp 8"),), ["  layout      tp 8", "Plans, after the best"]),
        (evolve(PLANS, rows=PLANS.rows[:1]), (), ["  layout      tp 8"]),
        (evolve(PLANS, rows=PLANS.rows[::-1]), (), ["Plans (first 1 of 2 rows)"]),
        (evolve(PLANS, columns=("tp", "x", "y")), (), ["Plans (first 1 of 2 rows)"]),
        (evolve(PLANS, first_rows=0), (), []),
        (evolve(PLANS, rows=()), (), []),
    ],
)
def test_the_best_plan_is_in_the_summary(plans, answers, shown) -> None:
    found = evolve(FOUND, answers=(*FOUND.answers, *answers), tables=(plans,))
    assert shown == [x for x in rendered(page(found), 80).splitlines() if x.strip().startswith(("layout", "Plans"))]


def test_a_value_without_a_sign_is_rounded_to_the_nearest() -> None:
    assert ["12.3", "~12.3", ">= 12.3", "<= 12.4"] == [
        cell(0.0123123, "s", (1e-3, "ms"), sign).text for sign in ("", "~", ">=", "<=")
    ]


def test_summary() -> None:
    assert (
        [
            "training: a model on some chips",
            "  evidence    estimate: 7 rows",
            "  step time   23 s [16, 30] s (80% of measurements)",
            "  MFU         20 % [15, 29] %",
            "  throughput  371 k tokens/s",
            "  fits        yes, 2.5 GiB of 16 GiB per rank",
            "  bottleneck  compute-bound: matrix multiplication",  # the breakdown has its share
        ]
        == rendered(page(FOUND)[:1], 80).splitlines()
    )


def test_summary_of_memory_that_is_not_judged() -> None:
    some = Evaluation(evaluator="x", title="x", answers=(FOUND.answers[1], *FOUND.answers[4:6]))

    assert summary_items(some)[1:] == [("memory", "2.5 GiB of 16 GiB per rank")]
    assert not summary_items(Evaluation(evaluator="x", title="x"))


@pytest.mark.parametrize("kind", ["ideal", ""])
def test_the_first_page_explains_bounds(kind) -> None:
    rows = Table("t", ("name", "time"), tuple((f"r{n}", 1.0) for n in range(60)), ("", "s"), kind=kind, first_rows=3)
    long = Evaluation(evaluator="x", title="x", answers=(Answer("time", 1.0, "s"),), tables=(rows,))
    assert (BOUNDS in " ".join(rendered(page(long), 80).split())) is (kind == "ideal")


def test_a_first_page_has_up_to_forty_lines() -> None:
    lengths = []
    for number in range(20, 40):
        rows = Table("t", ("name",), (("a",),) * number, first_rows=99)
        long = Evaluation(evaluator="x", title="x", answers=(Answer("time", 1.0, "s"),), tables=(rows,))
        first, whole = (rendered(page(long, full=full), 80).splitlines() for full in (False, True))
        assert (first == whole) == (len(whole) <= 40)
        lengths.append(len(first))

    assert (lengths[:6], lengths[-9:]) == ([*range(35, 41)], [40] * 9)


@pytest.mark.parametrize(("number", "shown"), [(11, []), (12, []), (13, ["2"]), (40, ["29"])])
def test_the_first_page_counts_the_assumptions_that_it_leaves_out(number, shown) -> None:
    every = tuple(Assumption(f"a{n}", "1", "unknown", first=True) for n in range(number))
    found = uncertain(Evaluation(evaluator="x", title="x", assumptions=(*every, Assumption("b", "2", "stated"))))
    assert shown == [text.partition(" ")[0] for name, text in found if name == "more"]
    assert len(found) == min(number, 12)


def test_the_evidence_of_a_calibration() -> None:
    """What is not known is left out; the first page does not repeat the difference that the reason states."""
    known = Evidence(
        kind="extrapolated", reason="seq 16 is 2x above 8; far", calibration="fit", rows=1200, software="s"
    )
    near = Nearest(id="r", set="t", differences=(Outside(input="seq", value=16.0, low=8.0, high=8.0, factor=2.0),))
    errors = (GroupError(phase="step", rows=7, mean=0.05, median=0.04),)
    found = evolve(known, chip="a", framework="f", era="2025", nearest=near, errors=errors, page="p")

    assert [] == [*evidence_details(evolve(found, calibration=""))]
    assert [("fitted on", "1,200 rows, s")] == [*evidence_details(known)]
    assert [*evidence_details(found)] == [
        ("fitted on", "1,200 rows, a, f, 2025"), ("nearest row", "r of t; seq 16 is 2x above 8"),
        ("mean error", "step 5.0% on 7 rows"), ("errors of all rows", "p"),
    ]  # fmt: skip
    lines_ = [("nearest row", "r of t"), ("mean error", "step 5.0% on 7 rows")]
    assert lines_ == evidence_lines(evolve(FOUND, evidence=found))


def test_a_summary_has_six_lines() -> None:
    long = Evaluation(
        evaluator="x",
        title="x",
        answers=(*FOUND.answers, Answer("depth", 1, note="note " * 60)),
        bottleneck="word " * 60,
        evidence=Evidence(kind="estimate", reason="why " * 60),
    )
    summary = rendered(page(long)[:1], 80).splitlines()[1:]

    assert [True] * 6 == [line[2] != " " for line in summary]
    assert max(map(len, summary)) <= 80
    assert "..." not in " ".join(summary)
    assert ("word " * 60).split() == [
        word for word in rendered(page(long, full=True), 80).split("Bottleneck")[1].split() if word == "word"
    ]
    assert 60 == rendered(page(long, full=True), 80).split("Evidence")[1].count("why")
    assert 60 == rendered(page(long, full=True), 80).split().count("note") - 1


@pytest.mark.parametrize(("text", "size", "short"), TABLES["a text ends with a clause"])
def test_a_text_ends_with_a_clause(text, size, short) -> None:
    assert short == shortened(text, size)


def test_a_table_without_losses_has_bounds() -> None:
    """Also where the answers are estimates; cells are rounded away from the value, estimates to three digits."""
    answers = (Answer("time", 1.0, "s", 0.5, 2.0, kind="estimate"), Answer("rate", 2e5, "tokens/s", kind="estimate"))
    columns, units = ("name", "time", "rate"), ("", "s", "tokens/s")
    rows = (("a", 0.261999, 213_613.4), ("b", 1.0, 1e5))
    tables = (Table("ideal", columns, rows, units, kind="ideal"), Table("found", columns, rows, units))
    found = Evaluation(evaluator="x", title="x", answers=answers, tables=tables)
    text = str(found)

    assert ["a", ">=", "0.261", "<=", "214"] == text.split("Ideal")[1].splitlines()[4].split()
    assert ["a", "~0.262", "~214"] == text.split("Found")[1].splitlines()[4].split()
    assert BOUNDS in " ".join(text.split())
    assert Evaluation.from_dict(found.to_dict()).tables == found.tables


@pytest.mark.parametrize(("text", "parts", "shown"), TABLES["a bottleneck is more than half"])
def test_a_bottleneck_is_more_than_half(text, parts, shown) -> None:
    found = Evaluation(
        evaluator="x", title="x", bottleneck=text, parts=tuple(Part("t", str(i), v) for i, v in enumerate(parts))
    )

    assert shown == bottleneck_label(found)


def test_parts_that_take_away() -> None:
    """The first page has the largest first, and none that is zero."""
    parts = (Part("time", "none", 0.0), Part("time", "hidden", -1.0), Part("time", "all", 3.0))
    long = (Table("t", ("name",), (("a",),) * 60),)
    found = Evaluation(evaluator="x", title="x", answers=(Answer("time", 2.0, "s"),), parts=parts, tables=long)
    first, full = (next(b for b in page(found, full=full) if isinstance(b, TextTable) and b.columns[0].name == "part")
                   for full in (False, True))  # fmt: skip

    assert lines(first, 80) == [
        "part    value [s]  share",
        "------  ---------  -----  ---------------",
        "all             3  75.0%  ###############",
        "hidden         -1  25.0%  #####",
    ]
    assert [row[0] for row in full.rows] == ["none", "hidden", "all"]


def test_columns() -> None:
    text = rendered(page(FOUND, columns="step_time"), 80)

    assert "compute" in text
    assert "\nname " not in text
    with pytest.raises(UsageError, match="did you mean 'step_time'"):
        page(FOUND, columns="step_tim")


def test_long_texts_are_wrapped_before_columns_are_hidden() -> None:
    """At 60 columns nothing is hidden; in the end only what a reader needs least is."""
    long = "word " * 12
    found = evolve(
        FOUND,
        answers=(Answer("step_time", 22.6, "s", 15.5, 29.8, note=long), Answer("bound_by", long)),
        parts=(Part("step_time", long, 1.0, note=long),),
        assumptions=(Assumption(long, long, long),),
        figures_used=(UsedFigure("chip", long, long, long, "2024"),),
        tables=(Table("each layer", ("name", "text", "step_time"), (("a", long, 2.5),), ("", "", "s")),),
    )
    shown = [block for block in page(found, full=True) if isinstance(block, TextTable)]

    assert [()] * len(shown) == [fit(table, 60).hidden for table in shown]
    assert [fit(table, 1).hidden for table in shown] == [
        ("interval", "note"), ("", "note"), ("text", "step_time"), ("origin",), (),
    ]  # fmt: skip


def test_markdown() -> None:
    text = markdown_page(FOUND, full=True)

    assert text.startswith(
        "## training: a model on some chips\n\n- evidence: estimate: 7 rows\n- step time: 23 s [16, 30] s"
    )
    assert "### Step time breakdown\n\n| part | value [s] | share |" in text
    assert "### Inputs\n\nmodel `m`, tp `8`, calibration `neuron`\n" in text
    assert "Catalog: working edition.\n" in text
    dated = evolve(FOUND, edition="2026.11", as_of="2026-11-02")
    assert "Catalog: edition 2026.11, as of 2026-11-02.\n" in markdown_page(dated)


def test_html_has_what_markdown_has() -> None:
    command = Answer("launch", "trnspec plan <x>", COMMAND)
    found = evolve(FOUND, answers=(*FOUND.answers, command), bottleneck="a < b")
    html, markdown = html_page(found), markdown_page(found, full=True)

    assert re.findall("<h4>(.*?)</h4>", html) == re.findall("^### (.*)", markdown, re.MULTILINE)[:-1]  # no inputs
    assert re.findall("<li>(.*?)</li>", html) == [escape_html(x) for x in re.findall("^- (.*)", markdown, re.MULTILINE)]
    assert html.count("<table") == len(re.findall(r"^\|[- :|]+$", markdown, re.MULTILINE)) > 3
    assert "<pre>trnspec plan &lt;x&gt;</pre>" in html
    assert "<h3>training: a model on some chips</h3>" in html
    assert html.endswith(f"<p>{markdown.strip().splitlines()[-1]}</p>")
