"""A log with the numbers of its lines, rows of a measurement table, and errors that name a line."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.loading import measured
from trnspec.short_repr import ShortRepr

Cells = dict[str, str]
"""The cells of one row by column; columns that the file does not state are missing."""

_COLOR = re.compile(r"\x1b\[[0-9;]*m")


@frozen(repr=False)
class Log(ShortRepr):
    """A file as text.

    Attributes:
        file: The file, as messages name it.
        text: Its contents.
    """

    file: str
    text: str = field(repr=False)

    def lines(self) -> Iterator[tuple[int, str]]:
        """Every line with its number, from 1, without the codes of colors.

        Progress bars write several states into one line, separated by carriage returns: each is a line here.
        """
        for number, line in enumerate(self.text.split("\n"), 1):
            for part in line.rstrip("\r").split("\r"):
                yield number, _COLOR.sub("", part)

    def json(self) -> dict[str, Any]:
        """The JSON object of the file.

        Raises:
            UsageError: It is not one.
        """
        try:
            value = json.loads(self.text)
        except json.JSONDecodeError as error:
            raise self.problem(error.lineno, f"{error.msg}; expected a JSON object") from error
        if not isinstance(value, dict):
            raise self.problem(1, f"the value is of type {type(value).__name__}; expected a JSON object")
        return value

    def line_of(self, key: str) -> int:
        """The line of the first occurrence of a key of a JSON file; 1 where it does not occur."""
        before, found, _ = self.text.partition(f'"{key}"')
        return before.count("\n") + 1 if found else 1

    def problem(self, line: int, message: str, hint: str = "") -> UsageError:
        """The error for a line."""
        return UsageError(f"{self.file}:{line}: {message}" + (f"\nhint: {hint}" if hint else ""))


def number(log: Log, line: int, name: str, text: str) -> float:
    """A number of a log that is not negative, with commas between thousands or without.

    Raises:
        UsageError: It is not one.
    """
    try:
        value = measured.number(text.replace(",", ""))
    except ValueError:
        value = math.nan
    if not 0.0 <= value < math.inf:
        raise log.problem(line, f"{name} is {text!r}; expected a number, 0 or more")
    return value


def shown(value: float) -> str:
    """A number as a cell: integers in full, others to six digits."""
    return f"{value:.0f}" if value == int(value) else f"{value:.6g}"


def whole(name: str, value: float, notes: list[str]) -> str:
    """The mean of a number of tokens as an integer; a note has the mean where it is not one."""
    if value != round(value):
        notes.append(f"{name} is the mean {value:.6g}, rounded")
    return str(round(value))
