"""The entry point of the command line: ``trnspec`` and ``python -m trnspec``."""

from __future__ import annotations

import gc
import sys

_GARBAGE = 300_000
"""The number of new objects that starts a garbage collection."""

_INTERRUPTED = 130
"""The exit status that shells use for a process that SIGINT ended."""


def main() -> None:
    """Run the command line."""
    # A command runs for a moment; garbage collection during start and at exit would take a fifth of that.
    gc.set_threshold(_GARBAGE)
    try:
        from trnspec.cli import main as run

        run()
    except KeyboardInterrupt:
        # During imports too, before a command handles it.
        sys.stderr.write("trnspec: interrupted\n")
        sys.exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
