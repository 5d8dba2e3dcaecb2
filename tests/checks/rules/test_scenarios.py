"""trnspec.checks.rules.scenarios: each scenario is one that the installed evaluators can run."""

from tests.support.rules import KNOWN, rule
from trnspec.testing.helpers import check_code


def test_the_example() -> None:
    """One that is based on no other, one with a wrong input, and several that are right."""
    check_code(rule("TRN820").code, registry=KNOWN)
