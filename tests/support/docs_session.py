"""Runs a page of the documentation as somebody reads it: in a shell, in a folder outside the repository, with pip.

Blocks of a language with a file before them (a line that ends in "`PATH`:") are written there.  Commands of console
blocks are run one after the other by a shell that remembers its folder, and must print what is shown; a line of three
dots represents any lines, and how long something took, or how many hundred documents there are, is not compared.  An
exit status other than 0 is shown as a last line ``[exit 1]``.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from attrs import define
from docs_runner import commands, matches

_BLOCK = re.compile(
    r"(?:^[^\n]*`(?P<file>[^`\n]+)`[^\n]*:\n\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
_VARYING = re.compile(r" +\d+ ms|in \d+\.\d+s|\d{3,} documents")


@define
class Session:
    """A shell.

    Attributes:
        programs: The folder whose programs are found first.
        folder: Where it is.
    """

    programs: Path
    folder: Path

    def follow(self, page: Path) -> int:
        """Do all that a page says; gives the number of commands."""
        count = 0
        for block in _BLOCK.finditer(page.read_text(encoding="utf-8")):
            if block["language"] == "console":
                for command, shown in commands(block["text"]):
                    self._run(page, command, shown)
                    count += 1
            elif block["file"] is not None:
                file = self.folder / block["file"]
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(block["text"], encoding="utf-8")
        return count

    def _run(self, page: Path, command: str, shown: str) -> None:
        # pytest and others print more, and in longer lines, where CI or BUILD_NUMBER is set.
        hidden = (
            "PYTHON",
            "VIRTUAL_ENV",
            "TRNSPEC",
            "PYTEST",
            "COLUMNS",
            "NO_COLOR",
            "FORCE_COLOR",
            "CI",
            "BUILD_NUMBER",
        )
        env = {k: v for k, v in os.environ.items() if not k.startswith(hidden)}
        env["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
        env["PATH"] = f"{self.programs}{os.pathsep}{env['PATH']}"
        script = f"{command}\nstatus=$?\npwd >&3\nexit $status"
        reader, writer = os.pipe()
        try:
            done = subprocess.run(
                ["bash", "-c", f"exec 3>&{writer}\n{script}"],
                cwd=self.folder,
                env=env,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                pass_fds=(writer,),
                text=True,
                check=False,
            )
        finally:
            os.close(writer)
        with os.fdopen(reader) as reported:
            self.folder = Path(reported.read().strip() or self.folder)
        printed = done.stdout + (f"[exit {done.returncode}]\n" if done.returncode else "")
        assert matches(_VARYING.sub(" N", shown), _VARYING.sub(" N", printed)), (
            f"{page}: {command}\nshown:\n{shown}\nprinted:\n{printed}"
        )
