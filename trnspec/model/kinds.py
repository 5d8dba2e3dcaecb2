"""The built-in kinds of documents, listed without importing them."""

from __future__ import annotations

import functools
from importlib import import_module

BUILTIN = {
    "Core": ("cores", "core"),
    "Chip": ("chips", "chip"),
    "Link": ("links", "link"),
    "Platforms": ("servers", "platforms"),
    "Server": ("servers", "server"),
    "UltraServer": ("ultraservers", "ultraserver"),
    "Cluster": ("clusters", "cluster"),
    "PriceList": ("prices", "quotes"),
    "Price": ("prices", "quotes"),
    "Quota": ("quotas", "quota"),
    "Power": ("power", "quotes"),
    "Software": ("software", "software"),
    "Model": ("models", "transformers.model"),
    "CalibrationList": ("calibrations", "calibration"),
    "Calibration": ("calibrations", "calibration"),
    "Measurements": ("measured", "measurements"),
    "Scenarios": ("scenarios", "scenarios"),
    "Source": ("sources", "source"),
}
"""The folder of a catalog that holds the documents of a kind, and the module here that holds its class."""

LISTS = {"PriceList": "Price", "Platforms": "Server", "CalibrationList": "Calibration"}
"""The kinds whose documents are lists, each with the kind of the documents that a list is read as."""


@functools.cache
def spec_of(kind: str) -> type:
    """The class of the specs of one of these kinds, imported on demand."""
    spec: type = getattr(import_module(f"trnspec.model.{BUILTIN[kind][1]}"), kind)
    return spec


@functools.cache
def kind_of(spec: type) -> str | None:
    """The kind whose class this is; ``None`` for a class of another kind, or a base of several."""
    name = spec.__name__
    return name if name in BUILTIN and spec.__module__ == f"trnspec.model.{BUILTIN[name][1]}" else None
