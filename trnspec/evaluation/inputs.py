"""The inputs of an evaluator: name, type, choices, unit and help text.

An evaluator declares its inputs as the fields of a question, an attrs class (see :mod:`trnspec.evaluation.questions`),
or as keyword-only parameters with an ``Args:`` section in the docstring. Both give the same :class:`Input` objects, from
which the Python call, the options of the command line and their help are made.
"""

from __future__ import annotations

import inspect
import itertools
import math
import re
import sys
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

import attrs
from attrs import field, frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import UsageError
from trnspec.evaluation.amounts import OF_UNIT, suffixed

RESERVED = (
    *("catalog", "edition", "as_of", "overlay", "help"),
    *("format", "format_", "table", "columns", "sort", "brief", "full"),
    *("assume", "set", "use_claims", "sensitivity", "target", "vary", "trace"),
)
"""Names that the command line uses itself."""

GROUPS = ("Workload", "Goal", "System", "Parallelism", "Precision", "Schedule", "Reliability", "Price")
"""Groups of inputs, in the order in which help shows them; other groups follow."""

_NOUNS = {str: "a text", int: "a whole number", float: "a finite number", bool: "true or false"}
_INTEGER = re.compile(r"[+-]?\d{1,19}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,4})?", re.ASCII)
# Digits without a point before them: 0.096 is a number like any other.
_AFTER_THOUSANDS = re.compile(r"0\d\d(\.\d*)?\s*[A-Za-z]*", re.ASCII)
_AMOUNTS = ("TOKENS", "USD")
_MAX_SHOWN = 64


_COUNTER = itertools.count()


@frozen(kw_only=True)
class Axis:
    """The description of an input in addition to its type and default; kept in the metadata of the field.

    Attributes:
        help: The help text: one sentence or two.
        metavar: The unit or kind of the value in help: ``TOKENS``, ``RANKS``, ``FILE``; empty for the name of the type.
        group: The group of options: one of :data:`GROUPS`, or another name.
        unset: What is used instead of ``None``, for help: ``ranks / (tp x pp x cp)``.
        minimum: The smallest number allowed.
        maximum: The largest number allowed.
        order: The position among the fields of its group: that of the definition in the source.
    """

    help: str = ""
    metavar: str = ""
    group: str = ""
    unset: str = ""
    minimum: float | None = None
    maximum: float | None = None
    order: int = field(factory=lambda: next(_COUNTER), eq=False, repr=False)


@frozen
class Input(Axis):
    """One input of an evaluator, with its description.

    Attributes:
        name: The name of the field or parameter: ``global_batch``.
        type: ``str``, ``int``, ``float`` or ``bool``; of each value, if there may be several.
        choices: The allowed values; empty if any value of the type is allowed.
        many: True for a tuple of values.
        optional: True if it may be ``None``.
        required: True if it must be given.
        default: The value if it is not given.
    """

    name: str
    type: type
    choices: tuple[Any, ...] = ()
    many: bool = False
    optional: bool = False
    required: bool = False
    default: Any = None

    @property
    def expected(self) -> str:
        """The expected value in words, for messages: ``a whole number``, ``one of bf16, fp8``."""
        return f"a tuple, each of it {self._one}" if self.many else self._one

    @property
    def _one(self) -> str:
        if self.choices:
            return f"one of {', '.join(map(str, self.choices))}"
        noun = _NOUNS[self.type]
        if self.minimum is not None and self.maximum is not None:
            return f"{noun} from {self.minimum:g} to {self.maximum:g}"
        return noun if self.minimum is None else f"{noun} of at least {self.minimum:g}"

    def check(self, value: Any) -> Any:
        """Checks a value given by a program; a list becomes a tuple, and a whole number a float where one is expected.

        One value is a tuple where several are possible.

        Raises:
            UsageError: It has another type (``True`` is not 1, ``"8"`` is not 8), is not one of the choices, or is out
                of range.
        """
        if value is None and self.optional:
            return None
        if not self.many:
            return self._check(value)
        if isinstance(value, (list, tuple)):
            return tuple(self._check(v) for v in value)
        return (self._check(value),)

    def _check(self, value: Any) -> Any:
        of_type = isinstance(value, self.type) and (self.type is bool or not isinstance(value, bool))
        if self.type is float and not of_type and isinstance(value, int) and not isinstance(value, bool):
            value, of_type = float(value) if abs(value) <= sys.float_info.max else math.inf, True
        # A text that begins with a number may be given as one.
        is_amount = self.type is str and self.metavar in _AMOUNTS
        if is_amount and isinstance(value, (int, float)) and not isinstance(value, bool):
            value, of_type = suffixed(value), True
        valid = of_type and (
            value in self.choices
            if self.choices
            else not (isinstance(value, float) and not math.isfinite(value))
            and (self.minimum is None or value >= self.minimum)
            and (self.maximum is None or value <= self.maximum)
        )
        if not valid:
            near = did_you_mean(value, map(str, self.choices)) if self.choices and isinstance(value, str) else ""
            message = f"{self.name}: {self._one} is expected, not {_shown(value)}"
            if isinstance(value, (list, tuple, range)):
                near = "trnspec.sweep() and --" + self.name.replace("_", "-") + " evaluate several values"
            raise UsageError(f"{message}; {near}" if near else message)
        return value

    def read(self, text: str) -> Any:
        """Reads one value given on the command line.

        Numbers in some units may have a suffix or a unit: ``8k`` tokens; see :mod:`trnspec.evaluation.amounts`.

        Raises:
            UsageError: The text is not a value: ``1_024`` is not a whole number, and ``096`` is what the comma between
                values leaves of ``4,096``.
        """
        is_number = self.type in (int, float) or (self.type is str and self.metavar in _AMOUNTS)
        if is_number and _AFTER_THOUSANDS.fullmatch(text):
            raise UsageError(
                f"{self.name}: {text!r} is not a number; a comma separates values here, so write 4096 for 4,096"
            )
        if self.type is int and _INTEGER.fullmatch(text):
            return self._check(int(text))
        if self.type is float and _DECIMAL.fullmatch(text):
            return self._check(float(text))
        if self.type is bool and text in ("true", "false"):
            return text == "true"
        if (number := OF_UNIT.get((self.type, self.metavar))) is not None and text:
            return self._check(number(text, self.name))
        return self._check(text)


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001  # the repr of a foreign object may raise anything
        text = "a value without a repr"
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 3]}..."


# Fields of a question.


AXIS = "trnspec.axis"
"""The key of an :class:`Axis` in the metadata of a field."""


@lru_cache(256)
def fields_of(question: type[attrs.AttrsInstance]) -> tuple[Input, ...]:
    """The inputs that the fields of a question make, by group, then in the order of their definition.

    Raises:
        UsageError: A field has a type that the command line cannot give, or one that cannot be evaluated.
    """
    try:
        hints = typing.get_type_hints(question)
    except Exception as error:
        raise UsageError(f"the fields of {question.__name__} cannot be evaluated: {error}") from error
    inputs_: list[Input] = []
    for attribute in attrs.fields(question):
        axis: Axis = attribute.metadata.get(AXIS) or Axis()
        required = attribute.default is attrs.NOTHING
        default: Any = None if required else attribute.default
        if isinstance(default, attrs.Factory):  # type: ignore[arg-type]  # a class, whatever its stub says
            default = default.factory()
        where = f"the field {attribute.name} of {question.__name__}"
        hint, more = hints[attribute.name], attrs.asdict(axis)
        inputs_.append(_input(attribute.name, hint, where, required=required, default=default, **more))
    places = {group: place for place, group in enumerate(GROUPS)}
    return tuple(sorted(inputs_, key=lambda one: (places.get(one.group, len(GROUPS)), one.order)))


def question_of(function: Callable[..., Any]) -> type[attrs.AttrsInstance] | None:
    """The question class of ``run(catalog, question: TrainingQuestion)``; ``None`` if it takes keywords."""
    inner = inspect.unwrap(function)
    try:
        parameters = list(inspect.signature(inner).parameters.values())[1:]
        if len(parameters) != 1 or parameters[0].kind is _P.KEYWORD_ONLY:
            return None
        hint = _resolved(inner, parameters[0].annotation)
    except Exception:  # noqa: BLE001  # reading the parameters as keywords reports what is wrong
        return None
    return hint if isinstance(hint, type) and attrs.has(hint) else None


def call(function: Callable[..., Any], catalog: Any, values: Mapping[str, Any]) -> Any:
    """Calls the function of an evaluator with a catalog and values by name, as a question or as keywords."""
    question = question_of(function)
    return function(catalog, **values) if question is None else function(catalog, question(**values))


# Keyword-only parameters.


def inputs(function: Callable[..., Any], name: str) -> tuple[Input, ...]:
    """The inputs of an evaluator: the fields of its question, or its keyword parameters in their order.

    Args:
        function: ``run(catalog, question: Question)`` or ``run(catalog, *, model: str, tp: int = 1)``.
        name: The name of the evaluator, for messages.

    Raises:
        UsageError: An input has no type, a type that the command line cannot give, or a reserved name.
    """
    question = question_of(function)
    result = _parameters(function, name) if question is None else fields_of(question)
    for one in result:
        if one.name in RESERVED:
            raise UsageError(f"the evaluator {name} has an input named {one.name}, which the command line uses itself")
    return result


_P = inspect.Parameter
_SCALARS = (str, int, float, bool)


def _parameters(function: Callable[..., Any], name: str) -> tuple[Input, ...]:
    inner = inspect.unwrap(function)
    try:
        parameters = list(inspect.signature(inner).parameters.values())
    except (TypeError, ValueError) as error:
        raise UsageError(f"the evaluator {name} has no signature: {error}") from error
    if not parameters or parameters[0].kind not in (_P.POSITIONAL_ONLY, _P.POSITIONAL_OR_KEYWORD):
        raise UsageError(f"the evaluator {name} must take the catalog as its first parameter")
    helps = docstring(inspect.getdoc(inner) or "").args
    inputs_ = []
    for parameter in parameters[1:]:
        if parameter.kind not in (_P.POSITIONAL_OR_KEYWORD, _P.KEYWORD_ONLY):
            raise UsageError(f"the evaluator {name} takes {parameter}; each input must have a name")
        where = f"the input {parameter.name} of the evaluator {name}"
        if parameter.annotation is _P.empty:
            raise UsageError(f"{where} has no annotation")
        try:
            hint = _resolved(inner, parameter.annotation)
        except Exception as error:
            raise UsageError(f"{where}: {parameter.annotation} cannot be evaluated: {error}") from error
        required = parameter.default is _P.empty
        default = None if required else parameter.default
        help = helps.get(parameter.name, "")
        inputs_.append(_input(parameter.name, hint, where, required=required, default=default, help=help))
    return tuple(inputs_)


def _resolved(function: Callable[..., Any], annotation: Any) -> Any:
    """The type of one annotation; those of other parameters may need what is imported for type checkers only."""
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    return typing.get_type_hints(holder, globalns=getattr(function, "__globals__", {}))["it"]


def _input(name: str, hint: Any, where: str, *, required: bool, default: Any, **more: Any) -> Input:
    optional = False
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        rest = [a for a in typing.get_args(hint) if a is not type(None)]
        optional = len(rest) < len(typing.get_args(hint))
        hint = rest[0] if len(rest) == 1 else hint
    many = typing.get_origin(hint) is tuple and typing.get_args(hint)[1:] == (...,)
    item = typing.get_args(hint)[0] if many else hint
    choices = typing.get_args(item) if typing.get_origin(item) is Literal else ()
    kinds = {type(c) for c in choices} if choices else {item}
    if len(kinds) != 1 or not kinds <= set(_SCALARS):
        raise UsageError(
            f"{where}: {inspect.formatannotation(hint)} is not a type of an input; use str, int, float, bool, Literal, "
            "Optional of these, or tuple[str, ...] and the like"
        )
    optional = optional or (default is None and not required)
    return Input(name, kinds.pop(), choices, many, optional, required, default, **more)


@frozen
class Docstring:
    """A Google docstring in parts.

    Attributes:
        text: What precedes the first section.
        args: The text of ``Args:`` by parameter.
        examples: Command and explanation of each example of ``Examples:``.
    """

    text: str
    args: Mapping[str, str]
    examples: tuple[tuple[str, str], ...] = ()


_SECTION = re.compile(
    r"^(Args|Returns|Raises|Yields|Source|Examples?|Notes?|Attributes):\n((?: .*\n|\n)*)", re.MULTILINE
)
_ARGUMENT = re.compile(r"^ {2,4}(\w+)(?: \([^)]*\))?:(.*(?:\n {5}.*)*)", re.MULTILINE)
_EXAMPLE = re.compile(r"(.*?)^ *(trnspec .*?)(?:\n *\n|\Z)", re.MULTILINE | re.DOTALL)


def docstring(doc: str) -> Docstring:
    """Splits a Google docstring. In ``Examples:`` a line that begins with ``trnspec`` is a command.

    The lines before a command explain it; a command ends at a blank line.
    """
    doc = doc.replace("``", "") + "\n"
    sections: dict[str, str] = dict(_SECTION.findall(doc))
    args = {name: " ".join(text.split()) for name, text in _ARGUMENT.findall(sections.get("Args", ""))}
    examples = _EXAMPLE.findall(sections.get("Examples", ""))
    commands = tuple((" ".join(command.split()), " ".join(text.split())) for text, command in examples)
    return Docstring(_SECTION.sub("", doc).strip(), args, commands)


def bound(expected: Sequence[Input], given: Mapping[str, Any], name: str) -> dict[str, Any]:
    """The values of one evaluation: those given, checked, and the defaults of the others.

    Raises:
        UsageError: An input is missing, unknown, of another type or out of range; the message names it and what is
            expected.
    """
    known = {i.name: i for i in expected}
    for one in given:
        if one not in known:
            hint = did_you_mean(one, known) or (f"it takes {', '.join(known)}" if known else "it takes none")
            raise UsageError(f"the evaluator {name} has no input {one!r}; {hint}")
    missing = [i for i in expected if i.required and i.name not in given]
    if missing:
        needed = ", ".join(f"{i.name} ({i.expected})" for i in missing)
        raise UsageError(f"the evaluator {name} needs {needed}")
    try:
        return {n: i.check(given[n]) if n in given else i.default for n, i in known.items()}
    except UsageError as error:
        raise UsageError(f"the evaluator {name}: {error}") from None
