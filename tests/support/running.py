"""Running the command line: in this process, where that is enough, and in one of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.cli import main

if TYPE_CHECKING:
    import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"


@frozen
class Result:
    """What a run wrote, and how it ended."""

    status: int
    out: str
    err: str


class Here:
    """The command line in this process, in a folder of its own."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        monkeypatch.chdir(folder)
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.delenv("FORCE_COLOR", raising=False)

    def __call__(self, *args: str | Path) -> Result:
        self._monkeypatch.setattr(sys, "argv", ["trnspec", *map(str, args)])
        status = 0
        try:
            main()
        except SystemExit as end:
            status = int(end.code or 0)
        written = self._capsys.readouterr()
        return Result(status, written.out, written.err)


def command(*args: str | Path) -> list[str]:
    """The command line as an argument vector."""
    return [sys.executable, "-m", "trnspec", *map(str, args)]


def environment(**more: str) -> dict[str, str]:
    """This environment without what changes how text is written, and with ``more``."""
    left_out = ("NO_COLOR", "FORCE_COLOR", "PYTHONIOENCODING", "PYTHONUTF8", "LC_ALL")
    return {k: v for k, v in os.environ.items() if k not in left_out} | more


def apart(*args: str | Path, cwd: Path, stdin: bytes = b"", **env: str) -> Result:
    """The command line in a process of its own."""
    done = subprocess.run(
        command(*args), cwd=cwd, input=stdin, env=environment(**env), capture_output=True, check=False, timeout=60
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())
