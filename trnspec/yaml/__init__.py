"""YAML text to plain data and a table of places: JSON's data model, YAML 1.2 core scalars, nothing else.

What is refused (duplicate keys, anchors, tags, numbers past 64 bits, ...) becomes a :class:`Problem` with a place.
Nothing here raises for a mistake in a file.
"""

from __future__ import annotations

from trnspec.yaml.document import Document, Json, Limits, Path, Place, Problem, Span
from trnspec.yaml.reader import read_file, read_text

__all__ = ["Document", "Json", "Limits", "Path", "Place", "Problem", "Span", "read_file", "read_text"]
