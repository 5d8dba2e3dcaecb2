"""Layouts of which a test states only what matters to it."""

from __future__ import annotations

from typing import Any

from trnspec.perf.work.layout import Layout


def layout(*, microbatches: Any = 1, **fields: Any) -> Layout:
    """A layout of some microbatches per replica; sequences have one token if no length is stated."""
    stated = {"seq": 1, "microbatch": 1, "dp": 1} | fields
    return Layout(global_batch=microbatches * stated["microbatch"] * stated["dp"], **stated)
