"""What the command line says of plugins, kept where it costs nothing to say.

Context variables, so that two threads or two runs in one process may want different things.
"""

from __future__ import annotations

import os
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

ONLY: ContextVar[tuple[str, ...] | None] = ContextVar("trnspec_only", default=None)
"""The names of the plugins to use, none of them for no plugin; ``None`` leaves it to the environment."""

TELL: ContextVar[Callable[[str], None] | None] = ContextVar("trnspec_tell", default=None)
"""What is done with a warning of a plugin; ``None`` for Python's own way."""


def asked() -> bool:
    """Whether anybody has said which plugins to use."""
    return ONLY.get() is not None or "TRNSPEC_PLUGINS" in os.environ
