"""A graph whose documents are read when they are first asked for.

Names are the names of files, so a question about one chip reads that chip, its parts and its sources, and not the
catalog.  What it answers is the same: where the names of files do not tell enough, everything is read after all.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen

from trnspec.graph.graph import Graph
from trnspec.loading.files import documents_in, shipped
from trnspec.loading.renamed import DEPRECATED, upgrade
from trnspec.loading.structure import StructureError, structure
from trnspec.model.kinds import BUILTIN, spec_of
from trnspec.quantities.units import UNITS, UnitTable
from trnspec.yaml import read_file

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from trnspec.loading.settings import Settings
    from trnspec.model.document import Node


def on_demand(
    paths: Iterable[str], settings: Settings, everything: Callable[[], Graph], added: Iterable[FilePath] | None = ()
) -> Graph:
    """The graph of some catalogs.

    Args:
        paths: Files and folders; nothing means the shipped catalog.
        settings: Names further catalogs.
        everything: Reads all of it; called at most once: when a name is no file's, when a document is wrong or of a
            kind that a plugin brings, when the graph is walked through, and when it is changed.
        added: Catalogs of plugins; ``None`` where plugins add more, so that names of files do not tell enough.

    Raises:
        UsageError: A path is not there.
    """
    paths = list(paths)
    files: dict[str, FilePath] = {}
    more = None if added is None else list(added)
    if more is None or (more and (paths or settings.catalogs)):
        return everything()
    if paths or settings.catalogs:
        from trnspec.loading.selection import choose

        found = choose(paths, [folder for folder, _ in BUILTIN.values()], [shipped()], settings, every=True)
        for file in (*found.targets, *found.context):
            files.setdefault(file.stem, file)
    else:
        for file in documents_in(shipped()):
            files.setdefault(file.stem, file)
        if more and not _beside(files, more):
            return everything()
    return _Graph(_Nodes(files, everything))


def _beside(files: dict[str, FilePath], folders: list[FilePath]) -> bool:
    """Take in the documents of plugins, unless one of them may stand in for another or bear a name that is taken.

    Names are those of files; aliases are looked for in their texts. Where a name or an alias is given twice, or may be,
    all of it must be read to tell which document counts.
    """
    found = [file for folder in folders for file in documents_in(folder)]
    names = {file.stem for file in found}
    if len(names) < len(found) or not names.isdisjoint(files):
        return False
    if any(b"overrides" in file.read_bytes() for file in found):
        return False
    taken = {*files, *names}
    for file in (*files.values(), *found):
        aliases = _aliases(file.read_bytes())
        if aliases is None or not taken.isdisjoint(aliases):
            return False
        taken |= aliases
    files.update((file.stem, file) for file in found)
    return True


_ALIASES = re.compile(rb"\baliases['\"]?\s*:\s*(?:\[([^\]\\]*)\]|((?:\s*- [^\n\\]*\n)+))")


def _aliases(text: bytes) -> set[str] | None:
    """The words of the list of aliases in a file, found without reading it as YAML; ``None`` where that is in doubt."""
    count = text.count(b"aliases")
    if not count:
        return set()
    lists = [a or b for a, b in _ALIASES.findall(text)]
    if len(lists) < count:
        return None
    return {word.decode() for part in lists for word in re.findall(rb"[a-z0-9][a-z0-9.-]*", part)}


class _Nodes(Mapping[str, "Node[Any]"]):
    """The documents by name."""

    def __init__(self, files: Mapping[str, FilePath], everything: Callable[[], Graph]) -> None:
        self._files = files
        self._everything = everything
        self._read: dict[str, Node[Any]] = {}

    @functools.cached_property
    def all(self) -> Graph:
        """The whole graph; documents that have been handed out stay the same objects."""
        found = self._everything()
        return Graph({**found.nodes, **self._read}, found.broken)

    def __getitem__(self, name: str) -> Node[Any]:
        if "all" in self.__dict__:
            return self.all.nodes[name]
        if name not in self._read:
            node = self._one(name)
            if node is None:
                return self.all.nodes[name]
            self._read[name] = node
        return self._read[name]

    def _one(self, name: str) -> Node[Any] | None:
        """The document in the file of that name; ``None`` where it is not there, not sound, or called otherwise.

        Where it is not sound, everything is read, and that warns of it.
        """
        if name not in self._files:
            return None
        document = read_file(self._files[name])
        kind = (document.data or {}).get("kind")
        if document.data is None or document.problems or not isinstance(kind, str) or kind not in BUILTIN:
            return None
        document = upgrade(document, spec_of(kind))
        if any(problem.code != DEPRECATED for problem in document.problems):
            return None
        try:
            node: Node[Any] = structure(kind, spec_of(kind), document, document.data or {})
        except StructureError:
            return None
        return node if node.name == name else None

    def __iter__(self) -> Iterator[str]:
        return iter(self.all.nodes)

    def __len__(self) -> int:
        return len(self.all.nodes)


class _Aliases(Mapping[str, str]):
    """Every name and alias with the name it stands for; a name that a document answers to is its own."""

    def __init__(self, nodes: _Nodes) -> None:
        self._nodes = nodes

    def __getitem__(self, name: str) -> str:
        # A name that is no document's is looked for among the aliases, for which everything is read.
        return name if name in self._nodes else self._nodes.all.aliases[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes.all.aliases)

    def __len__(self) -> int:
        return len(self._nodes.all.aliases)


@frozen(eq=False)
class _Graph(Graph):
    """A graph over documents that are read on demand."""

    @functools.cached_property
    def aliases(self) -> Mapping[str, str]:
        """Every name and alias with the name it stands for."""
        assert isinstance(self.nodes, _Nodes)
        return _Aliases(self.nodes)

    @property
    def units(self) -> UnitTable:
        """Those of trnspec: where a plugin gives more, everything is read."""
        return UNITS
