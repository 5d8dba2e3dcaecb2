"""Names of documents and files."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from trnspec.plugins.api import Finding, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node


@rule("TRN205", "name-not-file-name", over=object)
def name_not_file_name(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A document whose name differs from the name of its file.

    Why:
        A reader of ``chip: trainium1`` must find ``trainium1.yaml`` without a search.

    Example:
        ```yaml
        # file: sources/one.yaml
        api_version: trnspec/v1
        kind: Source
        metadata:
          name: another  #! TRN205
          title: Another
        spec: {publisher: Somebody, as_of: 2024-02-13, rank: third-party}
        ```

    Instead:
        ```yaml
        # file: sources/one.yaml
        api_version: trnspec/v1
        kind: Source
        metadata: {name: one, title: One}
        spec: {publisher: Somebody, as_of: 2024-02-13, rank: third-party}
        ```

    Source:
        Common practice of Kubernetes manifests and of most package registries: one name, one file.
    """
    file = PurePath(node.document.file)
    stem = file.name.removesuffix(file.suffix)
    if file.suffix in (".yaml", ".yml") and stem != node.name:
        hint = f"rename the file to {node.name}{file.suffix} or the document to {stem}"
        yield Finding(("metadata", "name"), f"the document {node.name!r} is in the file {file.name}", hint)
