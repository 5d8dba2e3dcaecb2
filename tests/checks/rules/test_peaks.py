"""trnspec.checks.rules.peaks: widths of data types; the rules are tested by tables of edits."""

from trnspec.checks.rules.peaks import WIDTHS


def test_widths_are_those_in_the_names():
    """But TF32 has 19 bits."""
    assert {name: int("".join(filter(str.isdigit, name.removeprefix("mx")))) for name in WIDTHS} | {
        "tf32": 19
    } == WIDTHS
