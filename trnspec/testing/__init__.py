"""The test kit for catalogs and plugins: ``helpers``, ``conformance`` and the ``pytest_plugin``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # pytest imports this package when it starts
    from trnspec.testing.conformance import EvaluatorConformance
    from trnspec.testing.helpers import (
        PluginConformance,
        check_code,
        check_rule,
        diagnose,
        examples,
        expected,
        report,
        split,
    )

__all__ = [
    "EvaluatorConformance",
    "PluginConformance",
    "check_code",
    "check_rule",
    "diagnose",
    "examples",
    "expected",
    "report",
    "split",
]


def __getattr__(name: str) -> Any:
    # Imported on first use: pytest loads this package in every project where trnspec is installed.
    if name in __all__:
        from importlib import import_module

        module = "conformance" if name == "EvaluatorConformance" else "helpers"
        return getattr(import_module(f"trnspec.testing.{module}"), name)
    raise AttributeError(f"module 'trnspec.testing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
