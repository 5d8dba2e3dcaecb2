"""Only the documents that a question needs: those it names, what they are built of, and on whose word.

Names are the names of files, so nothing else need be read to find them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.graph import Graph, build, references
from trnspec.model.source import Source
from trnspec.pipeline import read
from trnspec.source import read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path as FilePath

    from trnspec.model.document import Node
    from trnspec.plugin import Registry


def closure(files: Mapping[str, FilePath], names: Iterable[str], known: Registry) -> Graph | None:
    """The graph of some documents, of what they are built of, and of the sources that the named ones cite.

    The sources of parts are left out, and so is whatever a document is merely compared with.

    Args:
        files: The files of a catalog by their names without suffix.
        names: The documents.
        known: The kinds.

    Returns:
        ``None`` where the names of files do not tell enough: a name is an alias or unknown, a file does not hold what
        its name says, or something in it is wrong. Then everything has to be read.
    """
    asked = list(dict.fromkeys(names))
    nodes: dict[str, Node[Any]] = {}
    waiting = [(name, True) for name in reversed(asked)]
    while waiting:
        name, named = waiting.pop()
        if name in nodes:
            continue
        if name not in files:
            return None
        reading = read(read_file(files[name]), known)
        node = reading.node
        if node is None or reading.problems or node.name != name:
            return None
        nodes[name] = node
        waiting += [(r, False) for r in _needed(node, cited=named) if r not in nodes]
    return build(nodes.values())[0]


def _needed(node: Node[Any], *, cited: bool) -> Iterator[str]:
    for path, target, ref in references(node):
        if target is Source:
            if cited:
                yield ref.name
        elif path[:2] != ("spec", "ratios"):
            yield ref.name
