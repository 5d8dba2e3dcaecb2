"""What a program that uses trnspec may catch: one class, one moment.

Mistakes in catalog files are never raised; they are reported as diagnostics.  What is raised here is misuse of
the program: an argument that cannot be meant, a name that does not exist, a setting that makes no sense.
"""

from __future__ import annotations


class TrnspecError(Exception):
    """The root of everything trnspec raises on purpose."""


class UsageError(TrnspecError):
    """The call itself is wrong: an unknown code, a path that is not there, a setting of the wrong type."""


class QuantityError(TrnspecError, ValueError):
    """A text that is not a quantity, or two quantities that cannot be compared.

    Attributes:
        reason: One word for programs: ``malformed``, ``no-unit``, ``unknown-unit`` or ``dimension``.
        hint: What to write instead, or an empty text.
    """

    def __init__(self, reason: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.reason = reason
        self.hint = hint


class EditionError(TrnspecError):
    """A frozen edition was altered, cannot be read, or must not be written over."""


class UnknownNameError(TrnspecError, KeyError):
    """No document of that name; the message lists the nearest names."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which would put the sentence in quotes.
        return str(self.args[0]) if self.args else ""
