"""Small catalogs for tests, made from texts."""

from __future__ import annotations

from trnspec.api import registry
from trnspec.graph.graph import Graph
from trnspec.loading.pipeline import link, load_document
from trnspec.yaml import read_text

KNOWN = registry()


def source(name: str, as_of: str, rank: str = "vendor-chip-page", dating: str = "exact") -> str:
    """The text of a source."""
    return (
        "api_version: trnspec/v1\nkind: Source\n"
        f"metadata: {{name: {name}, title: The page {name}}}\n"
        f"spec: {{publisher: Somebody, as_of: {as_of}, rank: {rank}, dating: {dating}}}\n"
    )


def document(kind: str, name: str, rest: str, metadata: str = "") -> str:
    """The text of a document; ``rest`` begins with its spec."""
    more = f", {metadata}" if metadata else ""
    return f"api_version: trnspec/v1\nkind: {kind}\nmetadata: {{name: {name}, title: T{more}}}\n{rest}\n"


def graph(*texts: str) -> Graph:
    """The graph of some texts, which must be sound."""
    made, problems = link([load_document(read_text(text, f"file-{i}.yaml"), KNOWN) for i, text in enumerate(texts)])

    assert not problems, problems

    return made
