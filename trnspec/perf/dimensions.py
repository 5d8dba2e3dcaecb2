"""Dimensions under the name by which the performance models know them."""

from __future__ import annotations

from trnspec.architecture.dimensions import Dimensions

__all__ = ["Dimensions"]
