"""Errors of computed values against measurements: those that the calibrations of the catalog state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.site.document_values import DocumentValue

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trnspec.site.document_values import Entry

COLUMNS = ("rows", "mean", "median", "worst", "coverage")


@frozen
class Score:
    """The errors of one part of a calibration.

    Attributes:
        name: The calibration.
        chip: The chip that was measured.
        part: The group of figures: ``spread``, ``first``.
        values: The figures by the last step of their path; those of :data:`COLUMNS` that are known.
    """

    name: str
    chip: str
    part: str
    values: dict[str, DocumentValue]


def scores(entries: Iterable[Entry]) -> list[Score]:
    """Every group of figures of a calibration that has the number of rows and their mean error."""
    result: list[Score] = []
    for each in entries:
        if each.node.kind != "Calibration":
            continue
        groups: dict[str, dict[str, DocumentValue]] = {}
        for value in each.stated:
            group, _, last = value.at.rpartition(".")
            if last in COLUMNS and group:
                groups.setdefault(group, {})[last] = value
        chip = next((v.text for v in each.stated if v.at == "chip"), "")
        result += [Score(each.node.name, chip, g, v) for g, v in groups.items() if "rows" in v and "mean" in v]
    return result
