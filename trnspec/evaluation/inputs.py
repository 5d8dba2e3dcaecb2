"""What an evaluator asks for: its inputs, told by the signature and the docstring of its function.

The same inputs are checked strictly when a program gives them, and read from text when the command line does.
"""

from __future__ import annotations

import inspect
import math
import re
import types
import typing
from typing import TYPE_CHECKING, Any, Literal

from attrs import frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

RESERVED = ("catalog", "edition", "as_of", "overlay", "format", "format_", "table", "help")
"""Names that the command line needs for itself."""

_WORDS = {str: "a text", int: "a whole number", float: "a finite number", bool: "true or false"}
_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
# Digits and no point before it: 0.096 is a number like any other.
_AFTER_THOUSANDS = re.compile(r"0\d\d(\.\d*)?", re.ASCII)
_MOST = 64


@frozen
class Input:
    """One input of an evaluator.

    Attributes:
        name: The parameter of the function: ``global_batch``.
        type: ``str``, ``int``, ``float`` or ``bool``: of each value, where there may be several.
        choices: The values it may have; nothing where any will do.
        many: True where it is a tuple of values.
        optional: True where it may be ``None``.
        required: True where it must be given.
        default: What it is when it is not given.
        help: What the docstring says of it.
    """

    name: str
    type: type
    choices: tuple[Any, ...] = ()
    many: bool = False
    optional: bool = False
    required: bool = False
    default: Any = None
    help: str = ""

    @property
    def expected(self) -> str:
        """What is expected, in words: ``a whole number``, ``one of bf16, fp8``."""
        one = f"one of {', '.join(map(str, self.choices))}" if self.choices else _WORDS[self.type]
        return f"a tuple, each of it {one}" if self.many else one

    def check(self, value: Any) -> Any:
        """The value that a program gives, as the function takes it.

        Raises:
            UsageError: It is of another type (``True`` is not 1, ``"8"`` is not 8) or none of the choices.
        """
        if value is None and self.optional:
            return None
        if not self.many:
            return self._check(value)
        if isinstance(value, (list, tuple)):
            return tuple(self._check(v) for v in value)
        raise UsageError(f"{self.name}: {self.expected} is expected, not {_shown(value)}")

    def _check(self, value: Any) -> Any:
        fits = isinstance(value, self.type) and (self.type is bool or not isinstance(value, bool))
        if self.type is float and not fits and isinstance(value, int) and not isinstance(value, bool):
            value, fits = _as_float(value), True
        if not fits or (isinstance(value, float) and not math.isfinite(value)) or (
            self.choices and value not in self.choices
        ):  # fmt: skip
            near = did_you_mean(value, map(str, self.choices)) if self.choices and isinstance(value, str) else ""
            one = f"one of {', '.join(map(str, self.choices))}" if self.choices else _WORDS[self.type]
            raise UsageError(f"{self.name}: {one} is expected, not {_shown(value)}" + (f"; {near}" if near else ""))
        return value

    def read(self, text: str) -> Any:
        """One value that the command line gives.

        Raises:
            UsageError: The text is not one: ``8k`` and ``1_024`` are no whole numbers, and ``096`` is not what anybody
                means, but what the comma between values leaves of ``4,096``.
        """
        if self.type in (int, float) and _AFTER_THOUSANDS.fullmatch(text):
            raise UsageError(
                f"{self.name}: {text!r} is no number; commas stand between values here, so write 4096 for 4,096"
            )
        if self.type is int and _INTEGER.fullmatch(text):
            return self._check(int(text))
        if self.type is float and _DECIMAL.fullmatch(text):
            return self._check(float(text))
        if self.type is bool and text in ("true", "false"):
            return text == "true"
        return self._check(text)


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # the repr of a stranger's object need not be sound
        text = "something that cannot be shown"
    return text if len(text) <= _MOST else f"{text[: _MOST - 3]}..."


def inputs(function: Callable[..., Any], name: str) -> tuple[Input, ...]:
    """The inputs of an evaluator, in the order of its parameters.

    Args:
        function: ``run(catalog, *, model: str, tp: int = 1)``.
        name: The name of the evaluator, for messages.

    Raises:
        UsageError: A parameter has no type, one that the command line cannot give, or a reserved name.
    """
    inner = inspect.unwrap(function)
    try:
        parameters = list(inspect.signature(inner).parameters.values())
    except (TypeError, ValueError) as error:
        raise UsageError(f"the evaluator {name} has no signature: {error}") from error
    if not parameters or parameters[0].kind not in (_P.POSITIONAL_ONLY, _P.POSITIONAL_OR_KEYWORD):
        raise UsageError(f"the evaluator {name} must take the catalog as its first parameter")
    told = parts(inspect.getdoc(inner) or "")[1]
    found = []
    for parameter in parameters[1:]:
        if parameter.kind not in (_P.POSITIONAL_OR_KEYWORD, _P.KEYWORD_ONLY):
            raise UsageError(f"the evaluator {name} takes {parameter}; each input must have a name")
        if parameter.name in RESERVED:
            raise UsageError(f"the evaluator {name} has an input named {parameter.name}, which the command line needs")
        found.append(_input(inner, parameter, told.get(parameter.name, ""), name))
    return tuple(found)


_P = inspect.Parameter
_SCALARS = (str, int, float, bool)


def _input(function: Callable[..., Any], parameter: inspect.Parameter, help: str, name: str) -> Input:
    where = f"the input {parameter.name} of the evaluator {name}"
    if parameter.annotation is _P.empty:
        raise UsageError(f"{where} has no annotation")
    try:
        # This one alone: the others may need what is imported for type checkers only.
        holder = types.SimpleNamespace(__annotations__={"it": parameter.annotation})
        hint = typing.get_type_hints(holder, globalns=getattr(function, "__globals__", {}))["it"]
    except Exception as error:
        raise UsageError(f"{where}: {parameter.annotation} cannot be evaluated: {error}") from error
    optional = False
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        rest = [a for a in typing.get_args(hint) if a is not type(None)]
        optional = len(rest) < len(typing.get_args(hint))
        hint = rest[0] if len(rest) == 1 else hint
    many = typing.get_origin(hint) is tuple and typing.get_args(hint)[1:] == (...,)
    each = typing.get_args(hint)[0] if many else hint
    choices = typing.get_args(each) if typing.get_origin(each) is Literal else ()
    kinds = {type(c) for c in choices} if choices else {each}
    if len(kinds) != 1 or not kinds <= set(_SCALARS):
        raise UsageError(
            f"{where}: {inspect.formatannotation(hint)} is not a type of an input; use str, int, float, bool, Literal, "
            "Optional of these, or tuple[str, ...] and the like"
        )
    required = parameter.default is _P.empty
    default = None if required else parameter.default
    return Input(
        parameter.name,
        kinds.pop(),
        choices,
        many,
        optional or (default is None and not required),
        required,
        default,
        help,
    )


def parts(doc: str) -> tuple[str, dict[str, str]]:
    """A Google docstring as the text before its sections, and what ``Args:`` says of each parameter."""
    told: dict[str, list[str]] = {}
    text: list[str] = []
    section, current = "", ""
    for line in doc.splitlines():
        if re.fullmatch(r"(Args|Returns|Raises|Yields|Source|Example|Examples|Note|Notes|Attributes):", line):
            section = line[:-1]
        elif section == "Args" and (entry := re.match(r" {2,8}(\w+)(?: \([^)]*\))?:\s*(.*)", line)):
            current = entry[1]
            told[current] = [entry[2]]
        elif section == "Args" and line.startswith("  ") and current:
            told[current].append(line.strip())
        elif line and not line.startswith(" ") and section:
            section = ""
        if not section:
            text.append(line)
    plain = {name: " ".join(filter(None, lines)).replace("``", "") for name, lines in told.items()}
    return "\n".join(text).strip().replace("``", ""), plain


def bound(asked: Sequence[Input], given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The inputs of one evaluation: those that are given, checked, and the defaults of the others.

    Raises:
        UsageError: One is missing, unknown or of another type; the message names it and what is expected.
    """
    known = {i.name: i for i in asked}
    for each in given:
        if each not in known:
            hint = did_you_mean(each, known) or (f"it takes {', '.join(known)}" if known else "it takes none")
            raise UsageError(f"the evaluator {name} has no input {each!r}; {hint}")
    missing = [i for i in asked if i.required and i.name not in given]
    if missing:
        told = ", ".join(f"{i.name} ({i.expected})" for i in missing)
        raise UsageError(f"the evaluator {name} needs {told}")
    try:
        return {n: i.check(given[n]) if n in given else i.default for n, i in known.items()}
    except UsageError as error:
        raise UsageError(f"the evaluator {name}: {error}") from None
