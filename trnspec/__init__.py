"""trnspec: a checked catalog of accelerator hardware, and the checker that says why two figures disagree.

>>> import trnspec
>>> cat = trnspec.load()
>>> cat.chips["trainium2"].memory.capacity.to("GiB")
96.0
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec._version import __version__

if TYPE_CHECKING:
    from trnspec.api import evaluate, load, validate
    from trnspec.catalog.catalog import Catalog
    from trnspec.catalog.query.tree import QueryError
    from trnspec.diagnostics import Diagnostic, Report
    from trnspec.errors import QuantityError, TrnspecError, UnknownNameError, UsageError
    from trnspec.evaluation.result import Evaluation, RefusalError
    from trnspec.graph.graph import Graph
    from trnspec.graph.provenance import Stated
    from trnspec.model.document import Node
    from trnspec.model.figure import Figure
    from trnspec.model.ref import Ref
    from trnspec.plugins.api import Evaluator, Exporter, Finding, Kind, Plugin, Reporter, rule
    from trnspec.quantities.amount import Amount
    from trnspec.quantities.quantity import Quantity

__all__ = [
    "Amount",
    "Catalog",
    "Diagnostic",
    "Evaluation",
    "Evaluator",
    "Exporter",
    "Figure",
    "Finding",
    "Graph",
    "Kind",
    "Node",
    "Plugin",
    "Quantity",
    "QuantityError",
    "QueryError",
    "Ref",
    "RefusalError",
    "Report",
    "Reporter",
    "Stated",
    "TrnspecError",
    "UnknownNameError",
    "UsageError",
    "__version__",
    "evaluate",
    "load",
    "rule",
    "validate",
]

_WHERE = {
    "Amount": "trnspec.quantities.amount",
    "Catalog": "trnspec.catalog.catalog",
    "Diagnostic": "trnspec.diagnostics",
    "Evaluation": "trnspec.evaluation.result",
    "Evaluator": "trnspec.plugins.api",
    "Exporter": "trnspec.plugins.api",
    "Figure": "trnspec.model.figure",
    "Finding": "trnspec.plugins.api",
    "Graph": "trnspec.graph.graph",
    "Kind": "trnspec.plugins.api",
    "Node": "trnspec.model.document",
    "Plugin": "trnspec.plugins.api",
    "Quantity": "trnspec.quantities.quantity",
    "QuantityError": "trnspec.errors",
    "QueryError": "trnspec.catalog.query.tree",
    "Ref": "trnspec.model.ref",
    "RefusalError": "trnspec.evaluation.result",
    "Report": "trnspec.diagnostics",
    "Reporter": "trnspec.plugins.api",
    "Stated": "trnspec.graph.provenance",
    "TrnspecError": "trnspec.errors",
    "UnknownNameError": "trnspec.errors",
    "UsageError": "trnspec.errors",
    "evaluate": "trnspec.api",
    "load": "trnspec.api",
    "rule": "trnspec.plugins.api",
    "validate": "trnspec.api",
}


def __getattr__(name: str) -> Any:
    # Imported when first asked for, so that ``import trnspec`` costs nothing.
    if name in _WHERE:
        from importlib import import_module

        return getattr(import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'trnspec' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
