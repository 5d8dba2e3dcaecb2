"""The inputs of evaluators as JSON, and the command line of a call."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from trnspec.api import evaluator as find
from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.evaluation.inputs import Input, inputs
from trnspec.plugins.api import Evaluator

_ANALYSES = ("set", "vary", "target", "sensitivity", "use_claims")
"""Options of every evaluation that neither read nor write a file."""

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean"}


def declared(name: str) -> tuple[Evaluator, tuple[Input, ...]]:
    """An evaluator and its inputs.

    Raises:
        UsageError: There is none of that name, or it cannot be imported.
    """
    evaluator, _ = find(name)
    return evaluator, inputs(evaluator.load(), name)


def described(one: Input) -> dict[str, Any]:
    """An input as an agent reads it: type, allowed values, default and help text."""
    about: dict[str, Any] = {"name": one.name, "type": _TYPES[one.type], "help": one.help, "required": one.required}
    more = {
        "unit": one.metavar,
        "choices": list(one.choices),
        "many": one.many,
        "default": one.default if one.default is not None else one.unset,
        "minimum": one.minimum,
        "maximum": one.maximum,
    }
    return about | {key: value for key, value in more.items() if value not in ("", [], None, False)}


def options(known: tuple[Input, ...], given: Mapping[str, Any]) -> Iterator[str]:
    """The options of a command line for the values of a call.

    Args:
        known: The inputs of the evaluator.
        given: Values by name; a list is a sweep, or several values where the input takes several.

    Raises:
        UsageError: A name is not an input, or a value is an object.
    """
    names = {one.name for one in known} | set(_ANALYSES)
    for key, value in given.items():
        name = key.replace("-", "_")
        if name not in names:
            near = did_you_mean(name, sorted(names))
            raise UsageError(f"{key!r} is not an input" + (f"; {near}" if near else ""))
        option = f"--{name.replace('_', '-')}"
        if value is True:
            yield option
        elif value is False and name not in _ANALYSES:
            yield f"--no-{option[2:]}"
        elif value is None or value is False:
            continue
        elif name in {"set", "vary"} and isinstance(value, list):
            yield from (f"{option}={_text(key, one)}" for one in value)
        else:
            yield f"{option}={','.join(_text(key, v) for v in value) if isinstance(value, list) else _text(key, value)}"


def _text(key: str, value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, (int, float)):
        return json.dumps(value)
    raise UsageError(f"{key!r}: a text, a number, true, false or a list of them is expected")
