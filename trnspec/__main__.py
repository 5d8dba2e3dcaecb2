"""The entry point of the command line: ``trnspec`` and ``python -m trnspec``."""

from __future__ import annotations

import sys

_GARBAGE = 300_000
"""The number of new objects that starts a garbage collection."""


_INTERRUPTED = 130
"""The exit status that shells use for a process that SIGINT ended."""


def main() -> None:
    """Run the command line."""
    try:
        _run(sys.argv[1:])
    except KeyboardInterrupt:
        # During imports too, before a command handles it.
        sys.stderr.write("trnspec: interrupted\n")
        sys.exit(_INTERRUPTED)


def _run(arguments: list[str]) -> None:
    """A run of ``validate`` that repeats an earlier one imports nothing else."""
    if "validate" in arguments:
        from trnspec.cache import verdicts

        status = verdicts.replay(arguments)
        if status is not None:
            sys.exit(status)
        from trnspec.cache import observer

        observer.start(arguments)
    # A command runs for a moment; garbage collection during start and at exit would take a fifth of that.
    import gc

    gc.set_threshold(_GARBAGE)
    if "validate" in arguments or "lsp" in arguments:
        from trnspec.cache import compiled

        compiled.install()
    if arguments[:1] == ["validate"]:
        from trnspec.cli import prepare, validation

        prepare()
        status = validation.run(arguments)
        if status is not None:
            sys.exit(status)
    from trnspec.cli import main as run

    run()


if __name__ == "__main__":
    main()
