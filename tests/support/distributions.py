"""Installed distributions, made by hand: a module and its metadata in a folder that is put on the path."""

from __future__ import annotations

from typing import TYPE_CHECKING

from running import Result, forked

if TYPE_CHECKING:
    from pathlib import Path

HEAD = "from trnspec.plugins.api import API, Kind, Plugin, Evaluator, Finding, rule\n"


class Site:
    """A folder of installed distributions, and the command line that sees it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    def add(self, name: str, code: str, *, version: str = "1.0", value: str = "plugin") -> Path:
        """Install the distribution ``trnspec-NAME``, whose module holds ``code``; returns the module."""
        module = f"trnspec_{name.replace('-', '_')}"
        (self.folder / f"{module}.py").write_text(code)
        info = self.folder / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: trnspec-{name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(f"[trnspec.plugins]\n{name} = {module}:{value}\n")
        return self.folder / f"{module}.py"

    def plugin(self, name: str, more: str = "", *, head: str = "") -> Path:
        """Install a plugin that works, with ``more`` arguments."""
        return self.add(name, f"{HEAD}{head}\nplugin = Plugin(name={name!r}, api=API, {more})\n")

    def catalog(self, name: str, documents: dict[str, str]) -> Path:
        """Install a plugin with a catalog; returns its folder."""
        folder = self.folder / f"{name}_catalog"
        for file, text in documents.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text)
        self.plugin(name, f"catalogs=(Path({str(folder)!r}),)", head="from pathlib import Path")
        return folder

    def run(self, *args: str | Path, **env: str) -> Result:
        """The command line in a process that finds what is installed here."""
        return forked(*args, cwd=self.folder, path=self.folder, **env)
