"""An environment outside the repository that holds the wheel: what somebody who installs trnspec has."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from functools import cache
from pathlib import Path

from attrs import frozen
from running import ROOT


@frozen
class Elsewhere:
    """An environment outside the repository that holds the wheel, and a folder to work in."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "env" / "bin" / "python"

    def run(self, *args: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """A program that sees nothing of this environment's Python."""
        hidden = ("PYTHON", "VIRTUAL_ENV", "TRNSPEC", "PYTEST", "COLUMNS")
        env = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
        return subprocess.run([*args], cwd=cwd or self.folder, env=env, capture_output=True, check=False, text=True)

    def reported(self, *args: str | Path, cwd: Path | None = None) -> str:
        """What a program prints that must not fail."""
        done = self.run(*args, cwd=cwd)

        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def trnspec(self, *args: str) -> str:
        return self.reported(self.folder / "env" / "bin" / "trnspec", *args)

    def pip(self, *args: str | Path) -> None:
        self.reported(self.python, "-m", "pip", *args, "--quiet")

    def files(self) -> set[str]:
        """All that is installed; what the interpreter keeps of modules it has read comes and goes."""
        every = (self.folder / "env").rglob("*")
        return {f.relative_to(self.folder).as_posix() for f in every if "__pycache__" not in f.parts}


def _temporary() -> Path:
    """A folder that lasts as long as this process."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    return folder


@cache
def wheel() -> Path:
    """The wheel of this checkout, built once for all tests."""
    folder = _temporary()
    Elsewhere(folder).reported(
        sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT
    )
    (made,) = folder.glob("*.whl")
    return made


def built(folder: Path, *more: str) -> Elsewhere:
    """A new environment in a folder, with the wheel of this checkout, and with further distributions."""
    made = Elsewhere(folder)
    venv.create(folder / "env", with_pip=True)
    made.pip("install", wheel(), *more)
    return made


@cache
def with_pytest() -> Elsewhere:
    """An environment with the wheel and pytest, for tests that remove again what they install."""
    return built(_temporary(), "pytest")
