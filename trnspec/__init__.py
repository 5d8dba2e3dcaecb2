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
    from trnspec.errors import QuantityError, TrnspecError, UnknownNameError, UsageError
    from trnspec.evaluation.result import Evaluation, RefusalError
    from trnspec.model.figure import Figure
    from trnspec.quantities.amount import Amount

__all__ = [
    "Amount",
    "Catalog",
    "Evaluation",
    "Figure",
    "QuantityError",
    "QueryError",
    "RefusalError",
    "TrnspecError",
    "UnknownNameError",
    "UsageError",
    "__version__",
    "evaluate",
    "load",
    "validate",
]

_WHERE = {
    "Amount": "trnspec.quantities.amount",
    "Catalog": "trnspec.catalog.catalog",
    "Evaluation": "trnspec.evaluation.result",
    "Figure": "trnspec.model.figure",
    "QuantityError": "trnspec.errors",
    "QueryError": "trnspec.catalog.query.tree",
    "RefusalError": "trnspec.evaluation.result",
    "TrnspecError": "trnspec.errors",
    "UnknownNameError": "trnspec.errors",
    "UsageError": "trnspec.errors",
    "evaluate": "trnspec.api",
    "load": "trnspec.api",
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
