"""Running the command line: in this process, where that is enough, and in one of its own."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import io
import os
import signal
import subprocess
import sys
import tempfile
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import frozen

from trnspec.__main__ import main as process
from trnspec.api import validate
from trnspec.cli import COMMANDS, main

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any, NoReturn

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


def completed(work: Coroutine[Any, Any, Any]) -> Any:
    """What ``work`` returns. It has a thread of its own: Playwright's browser keeps an event loop in the main one."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def apart(*args: str | Path, cwd: Path, stdin: bytes = b"", **env: str) -> Result:
    """The command line in a process of its own."""
    done = subprocess.run(
        command(*args), cwd=cwd, input=stdin, env=environment(**env), capture_output=True, check=False, timeout=60
    )
    encoding = env.get("PYTHONIOENCODING", "utf-8")
    return Result(done.returncode, done.stdout.decode(encoding), done.stderr.decode(encoding))


def forked(*args: str | Path, cwd: Path, path: Path, stdin: bytes = b"", **env: str) -> Result:
    """The command line in a fork of this process, with a folder before the others that modules are imported from.

    It has streams, an environment, imports and an exit status of its own, and needs a tenth of the time of a new
    interpreter.  :func:`apart` is for what an interpreter does at its start, except the encoding of its streams, and
    where there is no fork.
    """
    if not hasattr(os, "fork") or any(name.startswith("PYTHON") for name in env.keys() - {"PYTHONIOENCODING"}):
        before = os.pathsep.join(filter(None, [str(path), os.environ.get("PYTHONPATH", "")]))
        return apart(*args, cwd=cwd, stdin=stdin, **{"PYTHONPATH": before} | env)
    with tempfile.TemporaryFile() as given, tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        given.write(stdin)
        given.seek(0)
        child = _fork(args, cwd, path, environment(**env), (given.fileno(), out.fileno(), err.fileno()))
        _, status = os.waitpid(child, 0)
        written = []
        for stream in (out, err):
            stream.seek(0)
            written.append(stream.read().decode(env.get("PYTHONIOENCODING", "utf-8")))
        return Result(os.waitstatus_to_exitcode(status), *written)


def at_a_terminal(*args: str | Path, cwd: Path, **env: str) -> Result:
    """The command line in a fork of this process that a terminal listens to; what it writes is in ``out``."""
    ours, theirs = os.openpty()
    child = _fork(args, cwd, cwd, environment(**{"TERM": "xterm"} | env), (theirs, theirs, theirs))
    os.close(theirs)
    written = b""
    # Linux says with an error that the other side has gone.
    with contextlib.suppress(OSError):
        while part := os.read(ours, 65_536):
            written += part
    os.close(ours)
    _, status = os.waitpid(child, 0)
    return Result(os.waitstatus_to_exitcode(status), written.decode().replace("\r\n", "\n"), "")


def _fork(args: tuple[str | Path, ...], cwd: Path, path: Path, env: dict[str, str], files: tuple[int, int, int]) -> int:
    """The number of a fork that runs the command line with these streams."""
    _prepare()
    with warnings.catch_warnings():
        # Threads of pytest-xdist are no part of the fork, and it needs none of their locks.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        _run_in_fork(args, cwd, path, env, files)
    return child


@functools.cache
def _prepare() -> None:
    """Imports what most commands import, and parses the shipped catalog: each fork has it then."""
    validate()
    importlib.import_module("trnspec.catalog.catalog")
    for name in COMMANDS:
        with contextlib.suppress(ImportError):
            importlib.import_module(f"trnspec.cli.{name}")


def _run_in_fork(
    args: tuple[str | Path, ...], cwd: Path, path: Path, env: dict[str, str], files: tuple[int, int, int]
) -> NoReturn:
    status: object = 1
    try:
        # Ends what hangs, as the time limit of a subprocess does.
        signal.alarm(60)
        for number, file in enumerate(files):
            os.dup2(file, number)
        encoding = env.get("PYTHONIOENCODING", "utf-8")
        sys.stdin, sys.stdout, sys.stderr = (
            io.TextIOWrapper(open(n, "wb" if n else "rb", closefd=False), encoding=encoding, write_through=n == 2)  # noqa: SIM115
            for n in range(3)
        )
        os.chdir(cwd)
        os.environ.clear()
        os.environ.update(env)
        sys.path.insert(0, str(path))
        sys.argv = ["trnspec", *map(str, args)]
        for name in [name for name in sys.modules if name.startswith("trnspec_")]:
            del sys.modules[name]
        importlib.invalidate_caches()
        warnings.resetwarnings()
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        process()
        status = 0
    except SystemExit as end:
        status = end.code
    except BaseException:  # noqa: BLE001  # whatever it is, the fork must not go on with the tests
        traceback.print_exc()
    finally:
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        finally:
            os._exit(status if isinstance(status, int) else 0 if status is None else 1)
