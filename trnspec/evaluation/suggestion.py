"""The command line of a suggested evaluation."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trnspec.evaluation.result import Suggestion

COMMANDS = {"plan-train": ("plan", "train"), "plan-serve": ("plan", "serve"), "search": ("search",)}
"""The commands of evaluators that have one of their own."""

_FLAG = re.compile(r"\b([a-z][a-z_]*)=(True|False)\b")


def command(suggestion: Suggestion, options: Mapping[str, Any]) -> str:
    """The command that runs a suggestion, for a shell.

    Args:
        suggestion: The evaluator and its inputs.
        options: The options that chose the catalog, by name; one that was given several times is a tuple.
    """
    words = ["trnspec", *COMMANDS.get(suggestion.evaluator, ("eval", suggestion.evaluator))]
    for name, value in (*suggestion.inputs.items(), *options.items()):
        if value is None:
            continue
        if isinstance(value, bool):
            words.append(_flag(name, value=value))
            continue
        if name in options and isinstance(value, tuple):
            words += [word for text in value for word in (f"--{name.replace('_', '-')}", text)]
            continue
        values = value if isinstance(value, (list, tuple)) else (value,)
        # A comma separates values; one within a value has a backslash.
        separated = name in options
        words += [
            f"--{name.replace('_', '-')}",
            ",".join(plain(v) if separated else plain(v).replace(",", "\\,") for v in values),
        ]
    return shlex.join(words)


def plain(value: object) -> str:
    """A value of an option as one types it: 20 and not 20.0."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def hint(text: str) -> str:
    """A hint for a shell: ``must_fit=False``, as it is written in Python, is the option ``--no-must-fit``."""
    return _FLAG.sub(lambda m: _flag(m[1], value=m[2] == "True"), text)


def _flag(name: str, *, value: bool) -> str:
    return f"--{'' if value else 'no-'}{name.replace('_', '-')}"
