"""A typed name: specs do not nest, they name each other."""

from __future__ import annotations

from typing import Generic, TypeVar

from attrs import field, frozen

T_co = TypeVar("T_co", covariant=True)


@frozen
class Ref(Generic[T_co]):
    """The name of another document, with the kind it must be of: ``graph[server.chips.chip]`` is a ``Chip``.

    Attributes:
        name: The name, or an alias, of the other document.
        target: The class of its spec; ``None`` allows every kind. A graph resolves the reference to no other kind.
    """

    name: str
    target: type | None = field(default=None, eq=False, repr=False)

    def __str__(self) -> str:
        return self.name


def target_word(target: type | None) -> str:
    """The kind that a reference expects, in a message; ``document`` if it may be of every kind."""
    return "document" if target is None or target is object else target.__name__


def indefinite(word: str) -> str:
    """A kind with its article, in a message."""
    return f"{'an' if word[0] in 'AEIOU' else 'a'} {word}"
