"""Bytes per element by data type."""

from __future__ import annotations

from trnspec.errors import RefusalError
from trnspec.perf import roofline

ELEMENT_BYTES = {**roofline.ELEMENT_BYTES, "int4": 0.5, "fp4": 0.5}
"""Bytes per element; microscaling types have one byte of scale per 32 elements (OCP MX 1.0, section 5)."""


def element_bytes(dtype: str, place: str) -> float:
    """Bytes per element of a data type.

    Args:
        dtype: The data type: ``bf16``.
        place: The input that names it.

    Raises:
        RefusalError: ``unknown-type``: its size is unknown.
    """
    if dtype not in ELEMENT_BYTES:
        raise RefusalError(
            "unknown-type", f"{place} is {dtype}, a type of unknown size", place=place, hint=", ".join(ELEMENT_BYTES)
        )
    return ELEMENT_BYTES[dtype]
