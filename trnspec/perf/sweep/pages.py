"""Memory pages that a batch keeps between its blocks."""

from functools import cache

import numpy as np

_FREED = 1 << 24
"""Size of the array that is freed once [B]."""


@cache
def keep_pages() -> None:
    """Free one large array, once.

    The GNU C library gives memory back to the system when more than twice the largest array freed so far is unused at
    the end of its heap, 256 KiB at first: a batch of some thousand rows would spend half its time getting pages again.
    """
    np.empty(_FREED, dtype=np.uint8)
