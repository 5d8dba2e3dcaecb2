"""The choice of plugins for a run, and where warnings go.

Nothing heavy is imported here: the command line sets these values before it knows which command runs. They are context
variables, so that two threads of one process can use different plugins.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextvars import ContextVar

from attrs import frozen

GROUP = "trnspec.plugins"
"""The entry-point group whose objects are plugins."""

CORE = ("trnspec", "trnspec.builtin:plugin")
"""Name and place of trnspec's own plugin."""

ONLY: ContextVar[tuple[str, ...] | None] = ContextVar("trnspec_only", default=None)
"""The names of the plugins to use; ``()`` for none; ``None`` means that the environment decides."""

REPORT: ContextVar[Callable[[str], None] | None] = ContextVar("trnspec_report", default=None)
"""Called with each warning about a plugin or a document; ``None`` issues a Python warning."""

TRACEBACK: ContextVar[bool | None] = ContextVar("trnspec_traceback", default=None)
"""Printing of the traceback of an error in a plugin; ``None`` means that TRNSPEC_TRACEBACK decides."""


@frozen
class Choice:
    """Plugins that a run may use.

    Attributes:
        only: Their names; ``None`` for all installed plugins, ``()`` for none.
    """

    only: tuple[str, ...] | None = None

    def takes(self, name: str) -> bool:
        """Whether the plugin of that name may be used."""
        return self.only is None or name in self.only


def chosen(environ: Mapping[str, str] = os.environ) -> Choice:
    """The plugins that the command line names, else those in TRNSPEC_PLUGINS.

    The variable holds names separated by commas, or ``none``; unset or empty means all.
    """
    only = ONLY.get()
    if only is not None:
        return Choice(only)
    text = environ.get("TRNSPEC_PLUGINS", "").strip()
    if not text:
        return Choice()
    return Choice(() if text.lower() == "none" else tuple(n.strip() for n in text.split(",") if n.strip()))
