"""Shapes in the notations of published texts: ``4x4, 2D Torus``, ``4D-HyperCube``, ``ring of 12``, ``torus(4,4)``."""

from __future__ import annotations

import re

from trnspec.topology.fabric import TopologyError
from trnspec.topology.shapes import Chain, FullyConnected, Hypercube, Mesh, Ring, Shape, Single, Torus

EXPECTED = "torus(4,4), 4x4 torus, 2D torus, mesh(4,4), 4D hypercube, ring(12), chain(6), fully-connected(8) or single"

_WORDS = {
    "torus": "torus",
    "mesh": "mesh",
    "grid": "mesh",
    "hypercube": "hypercube",
    "ring": "ring",
    "chain": "chain",
    "line": "chain",
    "single": "single",
    "fullyconnected": "fully-connected",
}


def parse(text: str, nodes: int | None = None) -> Shape:
    """The shape that a text names, without rates.

    Args:
        text: For instance ``4x4, 2D Torus``; case, hyphens and the word ``topology`` do not matter.
        nodes: The number of chips, where it is known from elsewhere.  A text without sizes
            (``ring``, ``2D torus``) needs it; ``2D torus`` of a square number of chips is assumed to have equal sides,
            and nothing else is guessed.

    Raises:
        TopologyError: A ``ValueError``: no shape is named, sizes are missing, or the text contradicts itself or
            ``nodes``.
    """
    low = re.sub(r"[\s_]+", " ", text.strip().lower())
    dims, rest = _sizes(low)
    rank, rest = _rank(rest)
    word = re.sub(
        r"[^a-z]", "", re.sub(r"\b(topology|of|a|an|the|single chip|chips?|devices?|nodes?|with)\b", " ", rest)
    )
    if low in ("single chip", "single device"):
        word = "single"
    if word == "alltoall":
        raise TopologyError(f"{text!r} says who can reach whom, not which links there are; expected {EXPECTED}")
    if word == "switched":
        raise TopologyError(f"{text!r} needs the sizes of its switches, which no text form gives; write it as data")
    if word not in _WORDS:
        raise TopologyError(f"{text!r} names no shape; expected {EXPECTED}")
    shape = _shape(text, _WORDS[word], dims, rank, nodes)
    if nodes is not None and shape.nodes != nodes:
        raise TopologyError(f"{text!r} has {shape.nodes} chips; expected {nodes}")
    return shape


def _sizes(text: str) -> tuple[tuple[int, ...] | None, str]:
    """The sizes, written ``(4,4)``, ``4x4`` or ``12``, and the text without them."""
    for pattern in (
        r"\(\s*(\d+(?:\s*[,x\u00d7*]\s*\d+)*)\s*,?\s*\)",
        r"\b(\d+(?:\s*[x\u00d7]\s*\d+)+)\b",
        r"\b(\d+)\b(?![-\s]?d(?:im|\b))",
    ):
        match = re.search(pattern, text)
        if match:
            sizes = tuple(int(number) for number in re.findall(r"\d+", match[1]))
            return sizes, f"{text[: match.start()]} {text[match.end() :]}"
    return None, text


def _rank(text: str) -> tuple[int | None, str]:
    """The number of dimensions, written ``2D`` or ``2-dimensional``, and the text without that."""
    match = re.search(r"\b(\d+)[-\s]?d(?:im(?:ensional)?)?\b-?", text)
    return (int(match[1]), f"{text[: match.start()]} {text[match.end() :]}") if match else (None, text)


def _shape(text: str, word: str, dims: tuple[int, ...] | None, rank: int | None, nodes: int | None) -> Shape:
    if word == "single":
        if dims not in (None, (1,)) or rank is not None:
            raise TopologyError(f"{text!r}: a single chip has no sizes")
        return Single()
    if word in ("torus", "mesh"):
        sizes = dims if dims is not None else _equal_sides(text, rank, nodes)
        if rank is not None and rank != len(sizes):
            raise TopologyError(f"{text!r} says {rank}D and gives {len(sizes)} sizes; expected as many sizes")
        return Torus(sizes) if word == "torus" else Mesh(sizes)
    if word == "hypercube":
        return _hypercube(text, dims, rank, nodes)
    if rank not in (None, 1):
        raise TopologyError(f"{text!r}: a {word} has one dimension")
    if dims is None:
        if nodes is None:
            raise TopologyError(f"{text!r} leaves out how many chips; write {word}(12)")
        dims = (nodes,)
    if len(dims) != 1:
        raise TopologyError(f"{text!r}: a {word} has one size, as in {word}(12)")
    (n,) = dims
    return Ring(n) if word == "ring" else Chain(n) if word == "chain" else FullyConnected(n)


def _equal_sides(text: str, rank: int | None, nodes: int | None) -> tuple[int, ...]:
    if rank is None or nodes is None:
        raise TopologyError(f"{text!r} leaves out the sizes; write for instance torus(4,4) or 4x4 torus")
    side = round(nodes ** (1 / rank)) if rank and nodes > 0 else 0
    if rank < 1 or side**rank != nodes:
        raise TopologyError(f"{text!r}: {nodes} chips have no {rank} equal sides; write the sizes, as in 4x8 torus")
    return (side,) * rank


def _hypercube(text: str, dims: tuple[int, ...] | None, rank: int | None, nodes: int | None) -> Shape:
    if dims is not None and rank is not None:
        # "16-chip 4D hypercube": the number can only be the chips.
        if len(dims) != 1 or dims[0] != 2**rank:
            raise TopologyError(f"{text!r}: a {rank}D hypercube has {2**rank} chips")
    elif dims is not None:
        if len(dims) != 1:
            raise TopologyError(f"{text!r}: a hypercube has one number, its dimensions, as in hypercube(4)")
        rank = dims[0]
    elif rank is None:
        if not nodes or nodes & (nodes - 1):
            raise TopologyError(f"{text!r} leaves out the dimensions; write hypercube(4) for 16 chips")
        rank = nodes.bit_length() - 1
    return Hypercube(rank)
