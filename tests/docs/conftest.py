"""Commands and Python examples of the documentation, run."""

import doctest
import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from tests.support.programs import Here, written

# Runs a page of the documentation: every python and console block, in order, and compares what it prints with what the page shows.
#
# A python block is an interpreter session (``>>>``) or plain code, and all of them share one namespace.  A console block
# has commands after ``$``, each followed by what it prints; ``trnspec`` runs in this process, and an exit status other
# than 0 is shown as a last line ``[exit 1]``.  A line of three dots represents any lines.

_FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LANGUAGES = ("python", "console")
"""The languages of the blocks that are run."""


@frozen
class Block:
    """A block of a page.

    Attributes:
        page: The file.
        line: The line of its first line of code.
        language: The word after the fence.
        text: The lines between the fences.
    """

    page: Path
    line: int
    language: str
    text: str


def blocks(page: Path) -> list[Block]:
    """The blocks of a page that are run."""
    text = page.read_text(encoding="utf-8")
    found = _FENCE.finditer(text)
    return [Block(page, text.count("\n", 0, m.start(2)) + 1, m[1], m[2]) for m in found if m[1] in LANGUAGES]


@frozen
class Runner:
    """Runs blocks one after the other.

    Attributes:
        here: The command line in this process.
        names: The namespace of the python blocks.
    """

    here: Here
    names: dict[str, Any] = field(factory=dict)

    def run(self, block: Block) -> None:
        """Run one block; ``AssertionError`` with both texts where it prints something other than it shows."""
        (self._python if block.language == "python" else self._console)(block)

    def _python(self, block: Block) -> None:
        examples = doctest.DocTestParser().get_examples(block.text)
        if not examples:
            exec(compile("\n" * (block.line - 1) + block.text, str(block.page), "exec"), self.names)
            return
        test = doctest.DocTest(examples, self.names, block.page.name, str(block.page), block.line - 1, block.text)
        failures: list[str] = []
        # The namespace is kept, so that the next block goes on where this one ends.
        doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=failures.append, clear_globs=False)
        self.names.update(test.globs)
        assert not failures, "".join(failures)

    def _console(self, block: Block) -> None:
        for command, shown in commands(block.text):
            name, *args = shlex.split(command)
            assert name == "trnspec", f"{block.page}:{block.line}: only trnspec is run, not {name}"
            result = self.here(*args)
            printed = result.out + result.err + (f"[exit {result.status}]\n" if result.status else "")
            assert matches(shown, printed), (
                f"{block.page}:{block.line}: {command}\nshown:\n{shown}\nprinted:\n{printed}"
            )


def commands(text: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block, each with what it is shown to print; a backslash continues a command."""
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        command, _, shown = re.sub(r"\\\n\s*", "", part).partition("\n")
        yield command, shown


_FULL = re.compile(r"\d+\.\d{13,}(?:e-?\d+)?")
"""A number of full precision, whose last digit differs between processors."""


def _rounded(text: str) -> str:
    return _FULL.sub(lambda match: f"{float(match[0]):.12g}", text)


def matches(shown: str, printed: str) -> bool:
    """True when a text is the one that is shown; a line of three dots represents any lines, or none."""
    shown, printed = _rounded(shown), _rounded(printed)
    parts = re.split(r"^\.\.\.\n", shown.rstrip("\n") + "\n", flags=re.MULTILINE)
    pattern = r"(?:.*\n)*?".join(map(re.escape, parts))
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None


# Runs a page of the documentation as somebody reads it: in a shell, in a folder outside the repository, with pip.
#
# Blocks of a language with a file before them (a line that ends in "`PATH`:") are written there.  Commands of console
# blocks are run one after the other by a shell that remembers its folder, and must print what is shown; a line of three
# dots represents any lines, and how long something took, or how many hundred documents there are, is not compared.  An
# exit status other than 0 is shown as a last line ``[exit 1]``.

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
                written(self.folder / block["file"], block["text"])
        return count

    def _run(self, page: Path, command: str, shown: str) -> None:
        # pytest and others print more, and in longer lines, where CI or BUILD_NUMBER is set.
        hidden = (
            "PYTHON", "VIRTUAL_ENV", "TRNSPEC", "PYTEST", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "CI", "BUILD_NUMBER",
        )  # fmt: skip
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
