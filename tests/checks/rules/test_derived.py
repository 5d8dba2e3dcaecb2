"""trnspec.checks.rules.derived: what formulas mean, and which figures they do not give."""

from fractions import Fraction
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rules import bare, beside, findings, put, shipped
from trnspec.checks.reconcile.hints import Budget
from trnspec.checks.reconcile.sites import CLAIM
from trnspec.checks.reconcile.suspects import blamed
from trnspec.checks.rules.derived import disagreement
from trnspec.quantities.formula import MOST_BRACKETS, MOST_CHARACTERS, FormulaError, evaluate
from trnspec.quantities.quantity import Interval, parse
from trnspec.testing import report
from trnspec.yaml import read_text

FORMULAS = read_text(Path(__file__).with_name("formulas.yaml").read_text("utf-8"), "formulas.yaml").data


def exact(text: str) -> Fraction:
    value = evaluate(text)

    assert value.is_point
    return value.low


@pytest.mark.parametrize(("text", "expected"), FORMULAS["values"])
def test_numbers_are_exact(text, expected):
    assert Fraction(expected) == exact(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("384 GB/s", parse("384 GB/s").interval),
        ("384 GB/s / 4 links", parse("384 GB/s").interval.scaled(Fraction(1, 4))),
        ("27,648 GiB / 36", parse("27,648 GiB").interval.scaled(Fraction(1, 36))),
        ("2 x 64 GB/s", parse("64 GB/s").interval.scaled(2)),
        ("64 GB/sec x 2", parse("64 GB/s").interval.scaled(2)),
        ("1 us + 2 us", parse("1 us").interval + parse("2 us").interval),
        ("(1 us + 2 us) / 2", (parse("1 us").interval + parse("2 us").interval).scaled(Fraction(1, 2))),
        ("1,024 B / 50 Gbps", parse("1,024 B").interval.ratio(parse("50 Gbps").interval)),
        ("~2 GB/s x 3", parse("~2 GB/s").interval.scaled(3)),
        ("~5 x 2", Interval(Fraction(8), Fraction(12))),
    ],
)
def test_rounding_is_carried_through(text, expected):
    assert expected == evaluate(text)


@pytest.mark.parametrize(("text", "word"), FORMULAS["errors"])
def test_garbage_is_refused_with_a_reason(text, word):
    with pytest.raises(FormulaError, match=r".") as raised:
        evaluate(text)

    assert word in str(raised.value)


@pytest.mark.parametrize("depth", [MOST_BRACKETS, MOST_BRACKETS + 1, 100_000])
def test_depth_of_brackets_is_limited(depth):
    text = "(" * depth + "1" + ")" * depth
    if depth == MOST_BRACKETS:
        assert exact(f"{text} + {text}") == 2
        return
    with pytest.raises(FormulaError, match=r"brackets|characters"):
        evaluate(f"(1) + {text}")


def test_a_long_formula_is_refused():
    with pytest.raises(FormulaError, match="at most"):
        evaluate(" + ".join(["1"] * MOST_CHARACTERS))


@st.composite
def formulas(draw, depth=3):
    """A formula with what Python's exact arithmetic makes of it."""
    if depth == 0 or draw(st.integers(0, 3)) == 0:
        number = draw(st.integers(0, 10_000))
        decimals = draw(st.integers(0, 3))
        value = Fraction(number, 10**decimals)
        text = f"{number // 10**decimals:,}" + (f".{number % 10**decimals:0{decimals}d}" if decimals else "")
        return text + draw(st.sampled_from(["", " links", " active lanes"])), value, 3
    left, a, left_rank = draw(formulas(depth=depth - 1))
    right, b, right_rank = draw(formulas(depth=depth - 1))
    sign = draw(st.sampled_from(["+", "x", "*", "/"]))
    if sign == "/" and b == 0:
        sign = "+"
    rank = 1 if sign == "+" else 2
    # A product on the right of a sign of its own rank needs brackets; elsewhere they are drawn.
    if left_rank < rank or draw(st.booleans()):
        left = f"({left})"
    if right_rank <= rank or draw(st.booleans()):
        right = f"({right})"
    value = {"+": a + b, "x": a * b, "*": a * b, "/": a / b if b else Fraction(0)}[sign]
    return f"{left} {sign} {right}", value, rank


@given(formulas())
def test_it_is_the_arithmetic_of_fractions(drawn):
    text, value, _ = drawn
    if len(text) <= MOST_CHARACTERS:
        assert value == exact(text)


@given(st.text(alphabet="0123456789.,e+-*/x() ~GBTiabs\u00d7", max_size=60))
def test_any_text_gives_a_value_or_a_reason(text):
    try:
        reported = evaluate(text).low >= 0
    except FormulaError as error:
        reported = bool(str(error))

    assert reported


def test_a_comma_that_ends_a_formula():
    wire = "{connects: chips, bandwidth: {both: {value: 12800 Gbps, derived: 4 x 3,200 Gbps}}}"
    text = f"api_version: trnspec/v1\nkind: Link\nmetadata: {{name: wire, title: Wire}}\nspec: {wire}\n"
    (found,) = findings("TRN404", beside(text))

    assert (found.where.path[-1], 'quote it: "4 x 3,200 Gbps"' in found.hint) == ("derived", True)


@pytest.mark.parametrize(
    ("figure", "key", "formula", "place"),
    [
        ("1 GB/s", "derived", "9 GB/s + 1 GB/s", "value"), ("10 GB/s", "derived", "0 GB/s + 1 GB/s", "value"),
        ("41 GB/s", "derived", "19 GB/s + 31 GB/s", "derived"),
        ("26.9 GB/s", "check", "10 x 1.5 GB/s", "value"), ("27 GB/s", "check", "10 x 1.5 GB/s", "check"),
        ("12 GB/s", "derived", "3 x 4 GB", "derived"), ("12 GB/s", "derived", "24 / 4 GB", "value"),
    ],
)  # fmt: skip
def test_place_of_a_figure_that_differs_from_its_formula(figure, key, formula, place):
    """Another digit in the formula gives each; a wrong decimal point is likelier, and 26.9 is only near to 27."""
    wire = f"{{connects: chips, bandwidth: {{both: {{value: {figure}, {key}: {formula}}}}}}}"
    text = f"api_version: trnspec/v1\nkind: Link\nmetadata: {{name: wire, title: Wire}}\nspec: {wire}\n"
    (found,) = findings("TRN404", beside(text))

    assert place == found.where.path[-1]


def one(graph, code="TRN402"):
    (shown,) = findings(code, graph)
    return shown


def test_the_other_places_are_named_but_not_all_of_them():
    graph = put(shipped(), "trainium1", "peak.dense.bf16", "290 TFLOPS")
    shown = one(graph)

    assert "more total" in shown.message
    assert len(shown.see) == 6
    assert len(set(shown.see)) == len(shown.see)
    assert shown.where.path not in {s.path for s in shown.see if s.file == shown.where.file}


@pytest.mark.parametrize(
    ("totals", "sources", "words"),
    [
        (0, 0, ""),
        (1, 0, "; 1 more total disagrees with it"),
        (2, 0, "; 2 more totals disagree with it"),
        (0, 1, "; 1 more source disagrees with it"),
        (1, 1, "; 1 more total and 1 more source disagree with it"),
        (0, 3, "; 3 more sources disagree with it"),
    ],
)
def test_the_relations_that_disagree_are_counted(totals, sources, words):
    graph = put(bare(), "trn1.32xlarge", "stated.memory.capacity", "480 GiB")
    (suspect,) = blamed(graph)
    (relation,) = suspect.failing
    claims = [attrs.evolve(relation, level=CLAIM)] * sources
    finding = disagreement(attrs.evolve(suspect, failing=(relation, *[relation] * totals, *claims)), graph, Budget())

    assert finding.message.partition(" (chips of a server)")[2] == words


@pytest.mark.parametrize(
    ("rates", "files"),
    [
        (("1307.4 TFLOPS", "1307.4 TFLOPS"), {"servers/acme-1-box.yaml", "servers/acme-2-box.yaml"}),
        (("1307.4 TFLOPS", "1300 TFLOPS"), {"chips/acme-1.yaml"}),
    ],
)
def test_truncated_totals_of_equal_chips(rates, files):
    """The totals of both are doubted, and the first cause is the right one; of one chip alone it is the chip."""
    head = "api_version: trnspec/v1\nkind: {}\nmetadata: {{name: {}, title: Acme, source: neuron-trn1-2026-08}}\n"
    texts = {}
    for number, rate in enumerate(rates, 1):
        chip, box = f"acme-{number}", f"acme-{number}-box"
        texts[f"chips/{chip}.yaml"] = head.format("Chip", chip) + (
            f"spec: {{memory: {{capacity: 192 GiB}}, peak: {{dense: {{bf16: {rate}}}}}}}\n"
        )
        texts[f"servers/{box}.yaml"] = head.format("Server", box) + (
            f"spec: {{chips: {{chip: {chip}, count: 8}}, stated: {{peak: {{dense: {{bf16: 10.4 PFLOPS}}}}}}}}\n"
        )
    shown = [d for d in report(texts, plugins=()).diagnostics if d.code == "TRN402"]

    assert {d.where.file for d in shown} == files
    if len(files) > 1:
        assert all("gap: truncation: digits after 10.4 PFLOPS were cut off, not rounded" in d.hint for d in shown)
