"""The shipped catalog as a graph that reads each document when it is first used.

The name of a document is the name of its file, which is in the folder of its kind. So a command that needs one chip reads that
chip, its parts and its sources; one that needs every calibration reads their folder. The results are those of the full graph.
Where file names do not suffice (an alias, an unknown name, a document with errors, iteration), the whole catalog is read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar, get_args

from trnspec.graph.graph import Graph
from trnspec.loading.files import documents_in, shipped
from trnspec.loading.pipeline import load_document
from trnspec.model.document import Node
from trnspec.model.kinds import BUILTIN, kind_of
from trnspec.model.quotes import PriceType
from trnspec.plugins.api import API, Plugin, Registry
from trnspec.plugins.builtin_kinds import KINDS
from trnspec.plugins.selection import CORE
from trnspec.quantities.units import UNITS, UnitTable
from trnspec.yaml import read_file

T = TypeVar("T")


def shipped_graph(load_all: Callable[[], Graph]) -> Graph:
    """The graph of the shipped catalog, without plugins and further catalogs, read on demand.

    Args:
        load_all: Reads the whole catalog; called at most once.
    """
    nodes = _Nodes(load_all)
    return _Graph(nodes, nodes.broken)


class _Nodes(Mapping[str, "Node[Any]"]):
    """The documents by name.

    Attributes:
        files: The files by name, without suffix.
        broken: The documents with errors, once the whole catalog is read; see :class:`~trnspec.graph.graph.Graph`.
    """

    def __init__(self, load_all: Callable[[], Graph]) -> None:
        self.broken: dict[str, str] = {}
        self.files = {file.stem: file for file in documents_in(shipped())}
        self._load_all = load_all
        self._read: dict[str, Node[Any]] = {}
        self._in_file: dict[str, list[Node[Any]]] = {}

    @functools.cached_property
    def full(self) -> Graph:
        """The whole graph; documents that were returned before stay the same objects."""
        graph = self._load_all()
        self.broken |= graph.broken
        return Graph({**graph.nodes, **self._read}, graph.broken)

    @property
    def is_full(self) -> bool:
        """Whether the whole catalog is read."""
        return "full" in self.__dict__

    def __getitem__(self, name: str) -> Node[Any]:
        if name not in self._read and not self.is_full:
            for file in self._files_of(name):
                if name not in self._read:
                    self._documents(file)
        return self._read[name] if name in self._read else self.full.nodes[name]

    def _files_of(self, name: str) -> Iterator[str]:
        """The files that may have the document of a name: one of that name, and lists."""
        if name in self.files:
            yield name
        server = next((name.removesuffix(f"-{t}") for t in get_args(PriceType) if name.endswith(f"-{t}")), "")
        yield from (f for f in self.files if f == f"{server}-prices" or f.endswith(("-platforms", "-calibrations")))

    def in_folder(self, folder: str) -> list[Node[Any]]:
        """The documents in a folder of the catalog; with those that its lists are read as."""
        files = [name for name, file in self.files.items() if file.parent.name == folder]
        return [node for file in files for node in self._documents(file)]

    def _documents(self, name: str) -> list[Node[Any]]:
        """The documents in a file: one, or those that a list is read as; where one has errors, the whole catalog is read."""
        if name not in self._in_file:
            result = load_document(read_file(self.files[name]), _registry())
            results = result.parts or (result,)
            nodes = [each.node for each in results if each.node is not None and not each.problems]
            self._in_file[name] = [self._read.setdefault(node.name, node) for node in nodes]
            if result.problems or len(nodes) < len(results):
                self.full  # noqa: B018  # it is read
        return self._in_file[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.full.nodes)

    def __len__(self) -> int:
        return len(self.full.nodes)


@functools.cache
def _registry() -> Registry:
    return Registry.of([Plugin(name=CORE[0], api=API, kinds=KINDS)])


class _Aliases(Mapping[str, str]):
    """Names and aliases with the name of the document; the name of a document precedes an alias."""

    def __init__(self, nodes: _Nodes) -> None:
        self._nodes = nodes

    def __getitem__(self, name: str) -> str:
        return name if name in self._nodes else self._nodes.full.aliases[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes.full.aliases)

    def __len__(self) -> int:
        return len(self._nodes.full.aliases)


class _Graph(Graph):
    """A graph over documents that are read on demand."""

    nodes: _Nodes

    @functools.cached_property
    def aliases(self) -> Mapping[str, str]:
        """Names and aliases with the name of the document."""
        return _Aliases(self.nodes)

    def lookup(self, name: str, target: type[T] | None = None) -> Node[T] | None:
        """The node of a name or an alias; an alias of a kind is in its folder, which is all that is read."""
        if target is not None and name not in self.nodes.files:
            cls: type = target
            if kind_of(cls) is not None:
                return next((node for node in self.of(target) if name in (node.name, *node.aliases)), None)
        return super().lookup(name, target)

    def of(self, spec: type[T]) -> tuple[Node[T], ...]:
        """The nodes of a class, by name; those of a kind are in one folder, which is all that is read."""
        cls: type = spec
        kind = kind_of(cls)
        if kind is not None and spec not in self._of and not self.nodes.is_full:
            nodes = self.nodes.in_folder(BUILTIN[kind][0])
            if not self.nodes.is_full:
                self._of[spec] = tuple(sorted((n for n in nodes if n.is_of(spec)), key=lambda n: n.name))
        return super().of(spec)

    @property
    def units(self) -> UnitTable:
        """The built-in units: no plugin is used."""
        return UNITS
