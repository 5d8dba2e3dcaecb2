"""A graph whose documents are read when they are first asked for.

Names are the names of files, so a question about one chip reads that chip, its parts and its sources, and not the
catalog.  What it answers is the same: where the names of files do not tell enough, everything is read after all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import frozen

from trnspec.graph import Graph
from trnspec.pipeline import read
from trnspec.source import read_file

if TYPE_CHECKING:
    from pathlib import Path as FilePath

    from trnspec.model.document import Node
    from trnspec.plugin import Registry


def on_demand(files: Mapping[str, FilePath], known: Registry, everything: Callable[[], Graph]) -> Graph:
    """The graph of some files.

    Args:
        files: The files by their names without suffix.
        known: The kinds that are read so; a document of another kind makes it necessary to read everything.
        everything: Reads all the files; called at most once, when a name is no file's or a document is wrong, when the
            graph is walked through, and when it is changed.
    """
    return _Graph(_Nodes(files, known, everything))


class _Nodes(Mapping[str, "Node[Any]"]):
    """The documents by name."""

    def __init__(self, files: Mapping[str, FilePath], known: Registry, everything: Callable[[], Graph]) -> None:
        self._files = files
        self._known = known
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
        """The document in the file of that name; ``None`` where it is not there, not sound, or called otherwise."""
        if name not in self._files:
            return None
        node = read(read_file(self._files[name]), self._known).node
        return node if node is not None and node.name == name else None

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
