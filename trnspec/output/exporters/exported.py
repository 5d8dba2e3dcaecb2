"""What an export is: a text, what was assumed to make it, and the figures it rests on."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from trnspec.errors import TrnspecError

Reason = Literal["unknown-figure", "no-chips", "no-fabric", "not-expressible"]


class ExportError(TrnspecError):
    """A document cannot be written in a form, because of what the catalog does not know or the form cannot say.

    Attributes:
        reason: One word for programs: ``unknown-figure``, ``no-chips``, ``no-fabric`` or ``not-expressible``.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@frozen
class Assumption:
    """What is not in the catalog, and was settled to write an export.

    Attributes:
        field: The field of the export that it is about; empty where it is about all of it.
        says: What was settled, and why.
    """

    field: str
    says: str

    def __str__(self) -> str:
        return f"{self.field}: {self.says}" if self.field else self.says


@frozen
class Used:
    """A figure of the catalog that an export rests on.

    Attributes:
        field: The field of the export.
        text: The figure as printed.
        of: The document that states it.
        at: Where in it.
        source: Who says so; empty for a derived figure.
        as_of: The date of the source.
    """

    field: str
    text: str
    of: str
    at: str
    source: str = ""
    as_of: str = ""

    def __str__(self) -> str:
        who = f"{self.source}, {self.as_of}" if self.source else "derived"
        return f"{self.field}: {self.text} ({self.of} {self.at}; {who})"


@frozen
class Export:
    """A document in another form.

    Attributes:
        text: The file.
        assumptions: What was settled to write it, each with its reason.
        used: The figures it rests on.
    """

    text: str
    assumptions: tuple[Assumption, ...] = ()
    used: tuple[Used, ...] = ()


def markdown(made: Export, title: str) -> str:
    """The assumptions of an export and the figures it rests on, as a page to lay beside it."""
    lines = [f"# {title}", "", "## Assumptions", ""]
    lines += [f"- {f'`{a.field}`: ' if a.field else ''}{a.says}" for a in made.assumptions] or ["None."]
    lines += ["", "## Figures", "", "| field | figure | document | at | source | date |", "|---|---|---|---|---|---|"]
    lines += [f"| `{u.field}` | {u.text} | {u.of} | {u.at} | {u.source or 'derived'} | {u.as_of} |" for u in made.used]
    return "\n".join([*lines, ""])
