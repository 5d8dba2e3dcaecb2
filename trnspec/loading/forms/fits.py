"""Fits of a chip and a framework in one document: read as a Calibration for each, and written from such documents."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from trnspec.loading.forms.part import metadata_of, part
from trnspec.model.calibration import Calibration
from trnspec.model.document_text import document_text, entry_text
from trnspec.model.reflection import fields_of
from trnspec.yaml import Document, Path

_OF_METADATA = ("name", "source", "note")
"""The keys of a fit that are metadata of its calibration."""

_OF_COMMAND = ("models", "tables", "fitted_on", "spread", "groups")
"""The keys whose values are equal in fits that one command makes, for several eras."""

_SCHEMA = re.compile(r"\A# yaml-language-server: \$schema=(.*)calibration(\.schema\.json)$", re.MULTILINE)


def calibration_documents(document: Document, rejected: Collection[int | str]) -> Iterator[Document]:
    """The Calibration documents of the fits in a document of the kind CalibrationList, at the positions of the fits.

    Args:
        document: The document.
        rejected: The indices of fits that are invalid.
    """
    data: Any = document.data
    of_all = {key: value for key, value in data["spec"].items() if key != "fits"}
    inherited = {key: value for key, value in metadata_of(document).items() if key in ("source", "where")}
    own, of_all_paths = _paths(document)
    for index, fit in enumerate(data["spec"]["fits"]):
        if index not in rejected:
            spec = _with_shared(of_all, {key: value for key, value in fit.items() if key not in _OF_METADATA})
            metadata = {"name": fit["name"], "title": _title(spec)} | inherited
            metadata |= {key: fit[key] for key in _OF_METADATA if key in fit}
            parts = {"metadata": metadata, "spec": spec}
            yield part(document, "Calibration", parts, [*own[index], *of_all_paths])


def list_name(chip: str, framework: str | None) -> str:
    """The name of the list of a chip and a framework."""
    return "-".join(filter(None, (chip, framework, "calibrations")))


def _title(spec: Mapping[str, Any]) -> str:
    return f"{spec.get('software')}, {spec.get('of')}"


def _with_shared(of_all: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a fit, and those of all fits that it does not state; of a prior likewise."""
    spec = {**of_all, **own}
    if isinstance(inner := of_all.get("prior"), dict) and isinstance(mine := own.get("prior"), dict):
        spec["prior"] = inner | mine
    return spec


def _paths(document: Document) -> tuple[dict[int | str, list[tuple[Path, Path]]], list[tuple[Path, Path]]]:
    """The paths of calibrations, each with that of its value in the list: those in each fit, and those of all fits."""
    own: dict[int | str, list[tuple[Path, Path]]] = defaultdict(list)
    of_all: list[tuple[Path, Path]] = []
    for path in document.places:
        if path[:2] != ("spec", "fits"):
            of_all.append((path, path))
        elif len(path) > 3:
            own[path[2]].append((("metadata" if path[3] in _OF_METADATA else "spec", *path[3:]), path))
        elif len(path) == 3:
            own[path[2]] += [(each, path) for each in (("spec",), ("metadata", "title"))]
    return own, of_all


def fits_text(calibrations: Sequence[Mapping[str, Any]], schema: str) -> str:
    """The list of some calibrations of a chip and a framework, as plain data; values that all of them have are written once.

    What a list cannot have is left out: a caller compares the calibrations that it is read as.

    Args:
        calibrations: The calibrations.
        schema: The path of the JSON Schema, for editors.
    """
    first = calibrations[0]
    metadata = [each["metadata"] for each in calibrations]
    name = list_name(first["spec"]["chip"], first["spec"].get("framework"))
    software = dict.fromkeys(each["spec"]["software"] for each in calibrations)
    head = {"name": name, "title": f"{', '.join(software)} on {first['spec']['chip']}"} | _shared(
        metadata, ("source", "where")
    )
    specs = [{key: each["spec"][key] for key in fields_of(Calibration) if key in each["spec"]} for each in calibrations]
    # Of one calibration all values would be shared.
    of_all = _shared(specs, first["spec"] if len(specs) > 1 else ("chip", "software", "framework"))
    of_all |= _shared(specs, _OF_COMMAND, least=2)
    if len(specs) > 1 and (prior := _shared([spec.get("prior", {}) for spec in specs], ("calibration", "values"))):
        of_all["prior"] = prior
    text = document_text("CalibrationList", head, {key: of_all[key] for key in specs[0] if key in of_all}, schema)
    text += "  fits:\n"
    for one, spec in zip(metadata, specs, strict=True):
        fit = {key: one[key] for key in _OF_METADATA if key in one and one[key] != head.get(key)}
        fit |= {key: value for key, value in spec.items() if key not in of_all or of_all[key] != value}
        if prior := {k: v for k, v in spec.get("prior", {}).items() if k not in of_all.get("prior", {})}:
            fit["prior"] = prior
        lines = [*entry_text(fit, "      ")]
        text += "\n".join(["    - " + lines[0].lstrip(), *lines[1:]]) + "\n"
    return text


def _shared(mappings: Sequence[Mapping[str, Any]], keys: Collection[str], least: int | None = None) -> dict[str, Any]:
    """The values that some mappings share, of keys that all have: of the commonest at least some, by default all."""
    shared = {}
    for key in keys:
        values = [mapping.get(key) for mapping in mappings]
        commonest = max(values, key=values.count)
        if None not in values and values.count(commonest) >= (least or len(values)):
            shared[key] = commonest
    return shared


def list_schema(text: str) -> str:
    """The path of the JSON Schema of lists, from that of a calibration in its text; empty without one."""
    schema = _SCHEMA.search(text)
    return f"{schema[1]}calibrationlist{schema[2]}" if schema else ""
