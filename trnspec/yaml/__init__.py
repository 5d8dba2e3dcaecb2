"""YAML text to plain data and a table of positions: the JSON data model and YAML 1.2 core scalars.

Rejected constructs (duplicate keys, anchors, tags, numbers beyond 64 bits, ...) become a :class:`Problem` with a
position. No error in a file raises an exception.
"""

from __future__ import annotations

from trnspec.yaml.document import Document, Edit, Json, Path, Place, Places, Problem, ReadingLimits, Span
from trnspec.yaml.reader import read_bytes, read_file, read_text

__all__ = [
    "Document",
    "Edit",
    "Json",
    "Path",
    "Place",
    "Places",
    "Problem",
    "ReadingLimits",
    "Span",
    "read_bytes",
    "read_file",
    "read_text",
]
