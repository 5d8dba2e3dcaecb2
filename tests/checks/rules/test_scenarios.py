"""trnspec.checks.rules.scenarios: each scenario is one that the installed evaluators can run."""

from tests.support.rules import KNOWN, rule
from trnspec.testing.helpers import check_code, diagnose


def test_the_example() -> None:
    """One that is based on no other, one with a wrong input, and several that are right."""
    check_code(rule("TRN820").code, registry=KNOWN)


def test_what_a_rejected_value_leaves_out_is_not_missing() -> None:
    text = "kind: Scenarios\nmetadata: {name: a, title: A}\nspec:\n scenarios:\n  a: {evaluatr: roofline}\n  b: {evaluator: .inf}"

    assert {(c, n) for _, c, n in diagnose(f"api_version: trnspec/v1\n{text}\n")} == {("TRN101", 6), ("TRN010", 7)}
