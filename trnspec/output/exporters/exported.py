"""The result of an exporter: a text, the assumptions made, and the catalog figures used."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from trnspec.errors import TrnspecError
from trnspec.text_table import in_markdown

Reason = Literal["unknown-figure", "no-chips", "no-fabric", "not-expressible"]


class ExportError(TrnspecError):
    """A document cannot be exported: the catalog lacks a figure, or the format cannot express the document.

    Attributes:
        reason: For programs: ``unknown-figure``, ``no-chips``, ``no-fabric`` or ``not-expressible``.
    """

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@frozen
class ExportAssumption:
    """A value or convention that is not in the catalog and was chosen for an export.

    Attributes:
        field: The field of the export; empty for the whole export.
        says: The assumption and its reason.
    """

    field: str
    says: str

    def __str__(self) -> str:
        return f"{self.field}: {self.says}" if self.field else self.says


@frozen
class Used:
    """A catalog figure that an export uses.

    Attributes:
        field: The field of the export.
        text: The figure as printed.
        of: The document that states it.
        at: Its path in the document.
        source: The source; empty for a derived figure.
        as_of: The date of the source.
    """

    field: str
    text: str
    of: str
    at: str
    source: str
    as_of: str

    def __str__(self) -> str:
        who = f"{self.source}, {self.as_of}" if self.source else "derived"
        return f"{self.field}: {self.text} ({self.of} {self.at}; {who})"


@frozen
class Export:
    """A document in another format.

    Attributes:
        text: The content of the file.
        assumptions: The assumptions made, each with its reason.
        used: The catalog figures used.
    """

    text: str
    assumptions: tuple[ExportAssumption, ...] = ()
    used: tuple[Used, ...] = ()


def markdown(export: Export, title: str) -> str:
    """The assumptions of an export and the figures it uses, as a Markdown page to store next to it."""
    lines = [f"# {title}", "", "## Assumptions", ""]
    lines += [f"- {f'`{a.field}`: ' if a.field else ''}{in_markdown(a.says)}" for a in export.assumptions] or ["None."]
    lines += ["", "## Figures", "", "| field | figure | document | at | source | date |", "|---|---|---|---|---|---|"]
    lines += [
        f"| `{u.field}` | {u.text} | {u.of} | {u.at} | {u.source or 'derived'} | {u.as_of} |" for u in export.used
    ]
    return "\n".join([*lines, ""])
