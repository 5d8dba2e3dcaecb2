"""What the codes mean that no rule gives: those of reading, of form, of names, and of the run itself.

The explanation of a rule is its docstring; these are explained here, in the same form and under the same test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.checks.codes.doubts import DOUBTS
from trnspec.checks.codes.figures import FIGURES
from trnspec.checks.codes.form import FORM
from trnspec.checks.codes.linking import LINKING
from trnspec.checks.codes.reading import READING
from trnspec.checks.codes.running import RUNNING
from trnspec.checks.codes.syntax import SYNTAX

if TYPE_CHECKING:
    from trnspec.diagnostics import Code

_GROUPS = (READING, SYNTAX, DOUBTS, FORM, FIGURES, LINKING, RUNNING)

CODES: tuple[Code, ...] = tuple(sorted((code for group in _GROUPS for code in group), key=lambda code: code.id))
"""Every code that is not that of a rule, by id."""
