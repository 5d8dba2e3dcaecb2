"""The exceptions of trnspec: all are subclasses of :class:`TrnspecError`; and the import of libraries that may be missing.

Errors in catalog files are not raised; they are reported as diagnostics. Exceptions report misuse of the program: an
invalid argument, a name that does not exist, an inconsistent setting.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class TrnspecError(Exception):
    """Base class of the exceptions that trnspec raises.

    A traceback shows the hint below the message; ``str(error)`` is the message alone.

    Attributes:
        hint: What to do, or an empty text.
    """

    def __init__(self, *args: object, hint: str = "") -> None:
        super().__init__(*args)
        self.hint = hint
        if hint:
            self.add_note(f"hint: {hint}")


class UsageError(TrnspecError):
    """Invalid arguments: an unknown code, a path that does not exist, a setting of the wrong type."""


class QuantityError(TrnspecError, ValueError):
    """A text that is not a quantity, or operands that cannot be combined or compared.

    The hint is the suggested correction.

    Attributes:
        reason: An identifier for programs: ``malformed``, ``no-unit``, ``unknown-unit``, ``dimension`` or ``bounds``.
        unit: The spelling of an unknown unit, or an empty text.
    """

    def __init__(self, reason: str, message: str, hint: str = "", unit: str = "") -> None:
        super().__init__(message, hint=hint)
        self.unit = unit
        self.reason = reason


class EditionError(TrnspecError):
    """A frozen edition was altered, cannot be read, or must not be overwritten."""


class UnknownNameError(TrnspecError, KeyError):
    """A name that does not exist; the message lists the nearest names."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which would put the message in quotes.
        return " ".join(map(str, self.args))


class RefusalError(TrnspecError):
    """There is no answer: the inputs contradict each other, or a figure is not published.

    Attributes:
        reason: One word for programs, in kebab case: ``rank-count``, ``does-not-fit``, ``unknown-figure``.
        place: The input (``tp``) or the figure (``trainium1 spec.peak.dense.fp8``) at fault.
        hint: How to fix it, or an empty text.
        suggestions: Evaluations to run instead, see :class:`trnspec.evaluation.result.Suggestion`.
    """

    def __init__(
        self, reason: str, message: str, *, place: str = "", hint: str = "", suggestions: tuple[Any, ...] = ()
    ) -> None:
        super().__init__(message, hint=hint)
        self.reason = reason
        self.place = place
        self.suggestions = suggestions


def library(module: str, extra: str = "tables") -> Any:
    """A module of a library that an extra installs.

    Raises:
        UsageError: It is not installed, or cannot be imported.
    """
    try:
        return import_module(module)
    except ImportError as error:
        name = module.removeprefix("google.").partition(".")[0]  # a namespace of several distributions
        why = "is not installed" if getattr(error, "name", None) in {name, module} else f"cannot be imported ({error})"
        raise UsageError(f"{name} {why}; pip install 'trnspec[{extra}]'") from error
