"""Documents to be filled in: a source that is referred to and does not exist."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from pathlib import Path as FilePath

from trnspec.loading.files import root_of
from trnspec.model.document_text import stub_text
from trnspec.plugins.api import Registry

_NO_SOURCE = re.compile(r"no Source is named '([a-z0-9][a-z0-9.-]*)'")
_KIND = "Source"
_SIMILAR = 0.85
"""The similarity of two names from which one may be the other with a mistake."""


def missing_source(code: str, message: str, hint: str) -> str:
    """The name of the source that a finding misses; empty if there is none, or if its name may be misspelt."""
    match = _NO_SOURCE.fullmatch(message.partition("\n")[0])
    if code != "TRN201" or match is None:
        return ""
    return "" if any(_is_misspelt(match[1], other) for other in re.findall(r"'([^']+)'", hint)) else match[1]


def _is_misspelt(name: str, known: str) -> bool:
    """Whether a name may be another one with a mistake; names with other digits are of other dates."""
    same = re.findall(r"\d+", name) == re.findall(r"\d+", known)
    return known.startswith(name) or (same and SequenceMatcher(None, name, known).ratio() > _SIMILAR)


def stub_of(name: str, near: FilePath, known: Registry) -> tuple[FilePath, str] | None:
    """The file of a source of that name in the catalog of a file, and its text; ``None`` if the file exists.

    Nothing unknown becomes known by it: its fields have no values, so that the document is invalid until they are written.
    """
    kind = known.kinds.get(_KIND)
    if kind is None:
        return None
    file = root_of(near, [k.folder for k in known.kinds.values()]) / kind.folder / f"{name}.yaml"
    if file.exists():
        return None
    text = stub_text(kind.name, kind.spec, {"name": name, "title": None}, {}, kind.api_version)
    return file, f"# Not checked by anyone yet: this document is invalid until its empty fields are filled in.\n{text}"
