"""The command line of a suggested evaluation."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trnspec.evaluation.result import Suggestion


def command(suggestion: Suggestion, options: Mapping[str, str]) -> str:
    """The command that runs a suggestion, for a shell.

    Args:
        suggestion: The evaluator and its inputs.
        options: The options that chose the catalog, by name.
    """
    words = ["trnspec", "eval", suggestion.evaluator]
    for name, value in (*suggestion.inputs.items(), *options.items()):
        if value is None:
            continue
        option = name.replace("_", "-")
        if isinstance(value, bool):
            words.append(f"--{'' if value else 'no-'}{option}")
            continue
        values = value if isinstance(value, (list, tuple)) else (value,)
        # A comma separates values; one within a value has a backslash.
        separated = name in options
        words += [f"--{option}", ",".join(str(v) if separated else str(v).replace(",", "\\,") for v in values)]
    return shlex.join(words)
