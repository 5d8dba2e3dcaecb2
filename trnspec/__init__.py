"""trnspec: a checked catalog of accelerator hardware, with the cause of every disagreement between its figures.

>>> import trnspec
>>> cat = trnspec.load()
>>> cat.chips["trainium2"].memory.capacity.to("GiB")
96.0

Every name of ``__all__`` is public; ``docs/reference/python.md`` lists them and states what stays stable.
"""

from __future__ import annotations

from trnspec._version import __version__

TYPE_CHECKING = False  # for type checkers it is true; `import trnspec` does not need typing
if TYPE_CHECKING:
    from typing import Any

    from trnspec.api import evaluate, load, search, sensitivity, solve, sweep, trace, validate
    from trnspec.catalog.catalog import Catalog
    from trnspec.catalog.query.run import Result
    from trnspec.catalog.query.tree import QueryError
    from trnspec.catalog.versions.diff import Differences
    from trnspec.catalog.views import DocumentView
    from trnspec.checks.runner import Checked
    from trnspec.diagnostics import Code, Diagnostic, Location, Report, Severity
    from trnspec.errors import EditionError, QuantityError, RefusalError, TrnspecError, UnknownNameError, UsageError
    from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, Table
    from trnspec.evaluation.sweeps import Sweep
    from trnspec.evidence import Evidence, GroupError, Nearest, Outside, UsedFigure
    from trnspec.graph.graph import Graph
    from trnspec.graph.provenance import Stated
    from trnspec.loading.precedence import CatalogWarning
    from trnspec.model.document import Node
    from trnspec.model.figure import ConflictingValue, Figure
    from trnspec.model.ref import Ref
    from trnspec.output.exporters.exported import ExportError
    from trnspec.plugins.api import (
        Command,
        Evaluator,
        Exporter,
        Finding,
        Kind,
        Plugin,
        Reporter,
        Rule,
        rule,
    )
    from trnspec.quantities.amount import Amount
    from trnspec.quantities.quantity import Interval, Quantity
    from trnspec.quantities.units import Dimension, Unit

__all__ = [
    "Amount", "Answer", "Assumption", "Catalog", "CatalogWarning", "Checked", "Code", "Command",
    "ConflictingValue", "Diagnostic", "Differences", "Dimension", "DocumentView", "EditionError", "Evaluation",
    "Evaluator", "Evidence", "ExportError", "Exporter", "Figure", "Finding", "Graph", "GroupError", "Interval",
    "Kind", "Location", "Nearest", "Node", "Outside", "Part", "Plugin", "Quantity", "QuantityError",
    "QueryError", "Ref", "RefusalError", "Report", "Reporter", "Result", "Rule", "Severity", "Stated", "Sweep",
    "Table", "TrnspecError", "Unit", "UnknownNameError", "UsageError", "UsedFigure", "__version__", "evaluate",
    "load", "rule", "search", "sensitivity", "solve", "sweep", "trace", "validate",
]  # fmt: skip

_MODULES = {
    "trnspec.api": ("evaluate", "load", "search", "sensitivity", "solve", "sweep", "trace", "validate"),
    "trnspec.evidence": ("Evidence", "GroupError", "Nearest", "Outside", "UsedFigure"),
    "trnspec.evaluation.sweeps": ("Sweep",),
    "trnspec.catalog.catalog": ("Catalog",),
    "trnspec.catalog.query.run": ("Result",),
    "trnspec.catalog.query.tree": ("QueryError",),
    "trnspec.catalog.versions.diff": ("Differences",),
    "trnspec.catalog.views": ("DocumentView",),
    "trnspec.checks.runner": ("Checked",),
    "trnspec.diagnostics": ("Code", "Diagnostic", "Location", "Report", "Severity"),
    "trnspec.errors": (
        "EditionError", "QuantityError", "RefusalError", "TrnspecError", "UnknownNameError", "UsageError",
    ),
    "trnspec.evaluation.result": (
        "Answer", "Assumption", "Evaluation", "Part", "Table",
    ),
    "trnspec.graph.graph": ("Graph",),
    "trnspec.graph.provenance": ("Stated",),
    "trnspec.loading.precedence": ("CatalogWarning",),
    "trnspec.model.document": ("Node",),
    "trnspec.model.figure": ("ConflictingValue", "Figure"),
    "trnspec.model.ref": ("Ref",),
    "trnspec.output.exporters.exported": ("ExportError",),
    "trnspec.plugins.api": ("Command", "Evaluator", "Exporter", "Finding", "Kind", "Plugin", "Reporter", "Rule", "rule"),
    "trnspec.quantities.amount": ("Amount",),
    "trnspec.quantities.quantity": ("Interval", "Quantity"),
    "trnspec.quantities.units": ("Dimension", "Unit"),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    # Imported at the first access (PEP 562), so that ``import trnspec`` stays cheap.
    if name in _MODULE_OF:
        from importlib import import_module

        value = globals()[name] = getattr(import_module(_MODULE_OF[name]), name)
        return value
    raise AttributeError(f"module 'trnspec' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
