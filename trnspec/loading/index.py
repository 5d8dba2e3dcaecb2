"""The shipped catalog as a graph that reads each document when it is first used.

The name of a document is the name of its file, so a command that needs one chip reads that chip, its parts and its
sources: 0.2 s for ``trnspec show trainium2`` instead of 0.5 s. The results are those of the full graph. Where file
names do not suffice (an alias, an unknown name, a document with errors, iteration), the whole catalog is read.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from attrs import frozen

from trnspec.graph.graph import Graph
from trnspec.loading.files import documents_in, shipped
from trnspec.loading.forms.lists import documents_in_list
from trnspec.loading.renamed import DEPRECATED, upgrade
from trnspec.loading.structure import StructureError, structure
from trnspec.model.kinds import BUILTIN, LISTS, spec_of
from trnspec.model.quotes import PriceType
from trnspec.quantities.units import UNITS, UnitTable
from trnspec.yaml import read_file

if TYPE_CHECKING:
    from trnspec.model.document import Node
    from trnspec.yaml import Document

T = TypeVar("T")


def shipped_graph(load_all: Callable[[], Graph]) -> Graph:
    """The graph of the shipped catalog, without plugins and further catalogs, read on demand.

    Args:
        load_all: Reads the whole catalog; called at most once, where file names do not suffice.
    """
    return _Graph(_Nodes(load_all))


class _Nodes(Mapping[str, "Node[Any]"]):
    """The documents by name."""

    def __init__(self, load_all: Callable[[], Graph]) -> None:
        self._files = {file.stem: file for file in documents_in(shipped())}
        self._load_all = load_all
        self._read: dict[str, Node[Any]] = {}

    @functools.cached_property
    def full(self) -> Graph:
        """The whole graph; documents that were returned before stay the same objects."""
        graph = self._load_all()
        return Graph({**graph.nodes, **self._read}, graph.broken)

    def __getitem__(self, name: str) -> Node[Any]:
        if "full" not in self.__dict__ and name not in self._read and (node := self._read_one(name)) is not None:
            self._read[name] = node
        return self._read[name] if name in self._read else self.full.nodes[name]

    def _read_one(self, name: str) -> Node[Any] | None:
        """The document in the file of that name; ``None`` where there is none, or it has errors or another name."""
        if name not in self._files:
            server = next((name.removesuffix(f"-{t}") for t in get_args(PriceType) if name.endswith(f"-{t}")), "")
            lists = [f for f in self._files if f == f"{server}-prices" or f.endswith(("-platforms", "-calibrations"))]
            return next((node for each in lists for node in self._listed(each) or () if node.name == name), None)
        node = self._structured(name)
        return node if node is not None and node.name == name and node.kind not in LISTS else None

    def _structured(self, name: str) -> Node[Any] | None:
        """The document in a file; ``None`` where there is none, or it has errors."""
        if name not in self._files:
            return None
        document = read_file(self._files[name])
        kind = (document.data or {}).get("kind")
        known = document.data is not None and not document.problems and isinstance(kind, str) and kind in BUILTIN
        return _structured(str(kind), upgrade(document, spec_of(str(kind)))) if known else None

    def _listed(self, name: str) -> list[Node[Any]] | None:
        """The documents that a list is read as; ``None`` where it has errors."""
        node = self._structured(name)
        if node is None or node.kind not in LISTS:
            return None
        parts = [_structured(LISTS[node.kind], part) for part in documents_in_list(node)]
        nodes = [part for part in parts if part is not None]
        return nodes if len(nodes) == len(parts) else None

    def in_folder(self, folder: str) -> tuple[Node[Any], ...]:
        """The documents in a folder of the catalog, by name; of a list of prices those that its rows are."""
        nodes = []
        for name in [name for name, file in self._files.items() if file.parent.name == folder]:
            listed = self._listed(name) if name.endswith("-prices") else [self[name]]
            if listed is None:
                return tuple(node for node in self.full.nodes.values() if BUILTIN.get(node.kind, ("",))[0] == folder)
            nodes += [self._read.setdefault(node.name, node) for node in listed]
        return tuple(sorted(nodes, key=lambda node: node.name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.full.nodes)

    def __len__(self) -> int:
        return len(self.full.nodes)


def _structured(kind: str, document: Document) -> Node[Any] | None:
    """The document of a kind; ``None`` where it has errors."""
    if document.data is None or any(problem.code != DEPRECATED for problem in document.problems):
        return None
    try:
        node: Node[Any] = structure(kind, spec_of(kind), document, document.data)
    except StructureError:
        return None
    return node


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


@frozen(eq=False, slots=False)
class _Graph(Graph):
    """A graph over documents that are read on demand."""

    @functools.cached_property
    def aliases(self) -> Mapping[str, str]:
        """Names and aliases with the name of the document."""
        assert isinstance(self.nodes, _Nodes)
        return _Aliases(self.nodes)

    def of(self, spec: type[T]) -> tuple[Node[T], ...]:
        """The nodes of a class, by name; those of prices and power are in one folder each, which is all that is read."""
        for kind in ("Price", "Power"):
            if spec is spec_of(kind):
                assert isinstance(self.nodes, _Nodes)
                return self.nodes.in_folder(BUILTIN[kind][0])
        return super().of(spec)

    @property
    def units(self) -> UnitTable:
        """The built-in units: no plugin is used."""
        return UNITS
