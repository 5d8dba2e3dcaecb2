"""Errors of computed values against measurements: those that the calibrations of the catalog state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from trnspec.site.document_values import DocumentValue, Entry

_TIMES = {"training": "step time", "inference": "TPOT", "collectives": "collective", "kernels": "kernel"}
"""The time that ``spread`` describes, by kind of measurement."""
_GROUP = ("phase", "scale", "models")
"""Fields that name a group of rows."""
COLUMNS = ("rows", "mean", "median", "worst", "coverage")


@frozen
class Score:
    """The errors of one part of a calibration.

    Attributes:
        name: The calibration.
        chip: The chip that was measured.
        part: What was measured: ``step time``, ``TTFT``, ``collective, server``.
        values: The figures by the last step of their path; those of :data:`COLUMNS` that are known.
    """

    name: str
    chip: str
    part: str
    values: dict[str, DocumentValue]


def scores(entries: Iterable[Entry]) -> list[Score]:
    """Every group of figures of a calibration that has a mean error."""
    result: list[Score] = []
    for each in entries:
        if each.node.kind != "Calibration":
            continue
        texts = {v.at: v.text for v in each.stated}
        groups: dict[str, dict[str, DocumentValue]] = {}
        for value in each.stated:
            group, _, last = value.at.rpartition(".")
            if last in COLUMNS:
                groups.setdefault(group, {})[last] = value
        result += [
            Score(each.node.name, texts["chip"], _part(group, texts), values)
            for group, values in groups.items()
            if "mean" in values
        ]
    return result


def _part(group: str, texts: Mapping[str, str]) -> str:
    named = {"first": "TTFT", "spread": _TIMES[texts["of"]]}
    return named.get(group) or ", ".join(texts[f"{group}.{name}"] for name in _GROUP if f"{group}.{name}" in texts)
