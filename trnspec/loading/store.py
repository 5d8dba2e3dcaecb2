"""Cache of loaded documents in memory, for programs that check a catalog again and again.

A document is loaded again when its content has changed: the bytes of its file, or its text in an editor.
"""

from __future__ import annotations

from attrs import define, field

from trnspec.loading.pipeline import LoadResult, load_document
from trnspec.plugins.api import Registry
from trnspec.yaml import ReadingLimits, read_bytes, read_file, read_text


@define
class DocumentStore:
    """The loaded documents of a program.

    Attributes:
        registry: The kinds and units.
        texts: Texts that take the place of the content of a file, by its path.
    """

    registry: Registry
    texts: dict[str, str] = field(factory=dict)
    _loaded: dict[tuple[str, bool], tuple[tuple[object, ...], LoadResult]] = field(factory=dict, repr=False)

    def load(self, file: str, *, target: bool = True, plugin: str = "", layer: int = 0) -> LoadResult:
        """A document, as :func:`trnspec.loading.pipeline.load_document` loads it."""
        text = self.texts.get(file)
        content = _content(file) if text is None else text
        if content is None:
            return load_document(read_file(file), self.registry, target=target, plugin=plugin, layer=layer)
        origin = (content, plugin, layer)
        before, result = self._loaded.get((file, target), (None, None))
        if result is None or before != origin:
            document = read_text(content, file)
            result = load_document(document, self.registry, target=target, plugin=plugin, layer=layer)
            self._loaded[file, target] = (origin, result)
        return result


def _content(file: str) -> bytes | None:
    """The bytes of a regular file, at most one more than a document may have; ``None`` where there is no such file."""
    try:
        return read_bytes(file, ReadingLimits().bytes + 1)
    except (OSError, ValueError):
        return None
