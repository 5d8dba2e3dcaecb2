"""The products that a document, or the name of a source, is about: the chips behind it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from trnspec.graph.graph import Graph, cached_by_graph
from trnspec.model.chip import Chip
from trnspec.model.core import Core
from trnspec.model.document import Node
from trnspec.model.link import Link
from trnspec.model.quotes import Power
from trnspec.model.ref import Ref
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.ultraserver import UltraServer


def chips_of(graph: Graph, node: Node[Any]) -> frozenset[str]:
    """The chips that a core, chip, link, server or UltraServer consists of or belongs to, or a power is of; else none."""
    spec = node.spec
    if isinstance(spec, Chip):
        return frozenset({node.name})
    if isinstance(spec, Core):
        return _chips_of_cores(graph).get(node.name, frozenset())
    if isinstance(spec, Link):
        users = (graph.nodes[name] for name in graph.users.get(node.name, ()) if name in graph.nodes)
        return frozenset[str]().union(
            *(chips_of(graph, user) for user in users if not isinstance(user.spec, (Link, Power)))
        )
    ref: Ref[Any] | None = None
    if isinstance(spec, Server):
        ref = spec.chips.chip
    elif isinstance(spec, UltraServer):
        ref = spec.servers.server
    elif isinstance(spec, Power):
        ref = spec.of
    whole = graph.find(ref)
    return frozenset() if whole is None or isinstance(whole.spec, Power) else chips_of(graph, whole)


@cached_by_graph
def _chips_of_cores(graph: Graph) -> Mapping[str, frozenset[str]]:
    """The chips by the name of their core."""
    chips: dict[str, frozenset[str]] = {}
    for chip in graph.of(Chip):
        core = None if chip.spec.cores is None else graph.find(chip.spec.cores.core)
        if core is not None:
            chips[core.name] = chips.get(core.name, frozenset()) | {chip.name}
    return chips


@cached_by_graph
def about(graph: Graph, source: str) -> frozenset[str]:
    """The chips that the name of a source names, by themselves or by their servers; none if it names no product."""
    chips = [_chips_of_word(graph, word) for word in source.split("-")]
    chips += [chips_of(graph, core) for core in graph.of(Core) if _is_about_core(source, core)]
    return frozenset[str]().union(*chips)


def _is_about_core(source: str, core: Node[Core]) -> bool:
    """Whether a name has that of the core, or its version as in ``neuron-core-v3-2026-08``."""
    names = {core.name, *core.aliases} | ({f"core-{core.spec.version}"} if core.spec.version else set())
    return any(f"-{name}-" in f"-{source}-" for name in names)


@cached_by_graph
def _chips_of_word(graph: Graph, word: str) -> frozenset[str]:
    return frozenset[str]().union(*(chips_of(graph, node) for node in _words(graph).get(word, ())))


def is_described(graph: Graph, chips: Collection[str]) -> bool:
    """Whether the name of a source names one of these chips, by itself or by one of its servers."""
    return any(_is_described(graph, chip) for chip in chips)


@cached_by_graph
def _is_described(graph: Graph, chip: str) -> bool:
    words = _words_of_sources(graph)
    users = (graph.nodes[name] for name in (chip, *graph.users.get(chip, ())) if name in graph.nodes)
    return any(
        node.is_of(Chip, Server) and chip in chips_of(graph, node) and bool(words & _names(node)) for node in users
    )


@cached_by_graph
def _words_of_sources(graph: Graph) -> frozenset[str]:
    return frozenset(word for source in graph.of(Source) for word in source.name.split("-"))


@cached_by_graph
def _words(graph: Graph) -> Mapping[str, list[Node[Any]]]:
    """The chips and servers by the words that name them: ``trainium2``, and ``trn2`` and ``trn2u`` of servers."""
    words: dict[str, list[Node[Any]]] = {}
    for node in graph:
        if node.is_of(Chip, Server):
            for word in _names(node):
                words.setdefault(word, []).append(node)
    return words


def _names(node: Node[Any]) -> set[str]:
    """The words that name a chip or a server: its names, of a server those of the family."""
    names = (node.name, *node.aliases)
    return {name if node.is_of(Chip) else name.split(".")[0].split("-")[0] for name in names}
