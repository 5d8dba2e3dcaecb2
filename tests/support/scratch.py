"""A copy of the package that a test changes, as a contributor would, and the programs that run it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from running import ROOT, Result, apart, environment

if TYPE_CHECKING:
    from pathlib import Path

_DATA = {"catalog", "schemas"}


class Scratch:
    """A checkout with the package, the catalog, the schemas and the hook.

    Attributes:
        folder: The root of the copy.
        changed: The files that were changed, by their paths in the checkout.
        added: The new files.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.changed: set[str] = set()
        self.added: set[str] = set()
        folder.mkdir(parents=True)
        # With the compiled modules, which are valid where size and time of the source are the same.
        shutil.copytree(ROOT / "trnspec", folder / "trnspec", ignore=shutil.ignore_patterns("*.pyc.*"))
        for name in _DATA:
            (folder / name).symlink_to(ROOT / name)

    def insert(self, file: str, before: str, text: str) -> None:
        """Insert a text before the only occurrence of another one."""
        old = (self.folder / file).read_text("utf-8")
        assert old.count(before) == 1, (file, before, old.count(before))
        self._own(file).write_text(old.replace(before, text + before), "utf-8")
        self.changed.add(file)

    def replace(self, file: str, old: str, new: str) -> None:
        """Replace the only occurrence of a text."""
        self.insert(file, old, "")
        path = self.folder / file
        path.write_text(path.read_text("utf-8").replace(old, new), "utf-8")

    def add(self, file: str, text: str) -> None:
        """Write a new file."""
        path = self._own(file)
        assert not path.exists(), file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        self.added.add(file)

    def _own(self, file: str) -> Path:
        """The path of a file in the copy; its folder is no longer that of the checkout."""
        top = file.split("/", 1)[0]
        if (self.folder / top).is_symlink():
            (self.folder / top).unlink()
            shutil.copytree(ROOT / top, self.folder / top)
        return self.folder / file

    def document(self, file: str, kind: str, spec: str) -> Path:
        """Write a document that is not part of the change, for the command line; its name is that of the file."""
        path = self.folder / "mine" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        title = f"metadata: {{name: {path.stem}, title: {path.stem}, source: neuron-trn1-2026-08}}"
        path.write_text(f"api_version: trnspec/v1\nkind: {kind}\n{title}\nspec: {spec}\n", "utf-8")
        return path

    def run(self, *args: str | Path) -> Result:
        """The command line of the copy, without plugins."""
        return apart("--no-plugins", *args, cwd=self.folder, PYTHONPATH=str(self.folder))

    def out(self, *args: str | Path) -> str:
        """What a command that succeeds prints."""
        done = self.run(*args)

        assert (0, "") == (done.status, done.err), done
        return done.out

    def json(self, *args: str | Path) -> Any:
        """What a command that succeeds prints as JSON."""
        return json.loads(self.out(*args, "--format", "json"))

    def python(self, *script: str) -> str:
        """What a program prints that imports the copy."""
        env = environment(PYTHONPATH=str(self.folder), TRNSPEC_PLUGINS="none")
        check = f"import trnspec; assert trnspec.__file__.startswith({str(self.folder)!r}), trnspec.__file__"
        done = subprocess.run(
            [sys.executable, "-c", "\n".join([check, *script])],
            cwd=self.folder,
            env=env,
            capture_output=True,
            check=False,
            text=True,
        )

        assert done.returncode == 0, done.stderr
        return done.stdout
