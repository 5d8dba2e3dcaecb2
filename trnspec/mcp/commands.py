"""Runs a command of trnspec in a process of its own and reads its JSON.

A tool answers what the command line answers: the JSON output of commands is a stable interface with unit, interval, source
and date of every number. A process of its own bounds the time of a call, keeps the output of plugins out of the protocol,
and sees every edit of the catalog.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from trnspec.errors import UsageError

TIME_LIMIT = 300
"""Seconds that a call may take."""


def answer(command: Sequence[str], positional: Sequence[str] = (), *, options: Sequence[str] = ()) -> dict[str, Any]:
    """The JSON object that a command prints.

    Args:
        command: The command: ``("eval", "training")``.
        positional: Its arguments; a text that begins with a dash stays an argument.
        options: Its options.

    Raises:
        UsageError: The command rejects the arguments, gives no answer, or takes longer than :data:`TIME_LIMIT`.
    """
    line = [sys.executable, "-m", "trnspec", *command, *options, "--format", "json", "--", *positional]
    try:
        run = subprocess.run(line, capture_output=True, encoding="utf-8", timeout=TIME_LIMIT, check=False)  # noqa: S603  # no shell
    except subprocess.TimeoutExpired:
        raise UsageError(f"{' '.join(command)} took longer than {TIME_LIMIT} s") from None
    except ValueError as error:  # a zero byte or a surrogate, which no argument of a process can hold
        raise UsageError(f"{' '.join(command)}: an argument is not a text: {error}") from None
    try:
        # Exit status 1 is an answer: a value that differs, or a refusal with its reason.
        found: dict[str, Any] = json.loads(run.stdout) if run.returncode in {0, 1} else {}
    except json.JSONDecodeError:
        found = {}
    if not found:
        message = run.stderr.strip().removeprefix("trnspec: ")
        raise UsageError(message or f"{' '.join(command)} ended with exit status {run.returncode}")
    return found
