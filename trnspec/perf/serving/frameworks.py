"""Frameworks in inference: what each sets, in place of the options that describe it.

An option that is given explicitly replaces the framework's value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trnspec.perf import frameworks as every

if TYPE_CHECKING:
    from collections.abc import Mapping

FRAMEWORKS = {name: one.serving for name, one in every.FRAMEWORKS.items() if one.serving is not None}
"""The settings of the frameworks of inference, by name."""

DEFAULTS: Mapping[str, str] = {"batching": "continuous", "experts": "selected"}
"""The values of options without a framework."""
