"""Names of documents, files and families."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from trnspec.model.core import Core
from trnspec.model.link import Link
from trnspec.model.server import Server
from trnspec.plugins.api import Finding, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node


@rule("TRN205", "name-file-mismatch", over=object, local=True)
def name_file_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
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


@rule("TRN206", "name-family-mismatch", over=Server, local=True)
def name_family_mismatch(server: Node[Server], graph: Graph) -> Iterator[Finding]:
    """A server whose family is not the first part of its name, or is of another generation than its chip.

    Why:
        The name of an instance type is its family and its size, ``trn2.48xlarge``. With another family the server is
        listed, and priced, among those of another generation. The number of the family is that of the chip: Trn2 has
        Trainium2.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: trn2.12xlarge, title: Example, source: neuron-trn2-2026-08}
        spec:
          family: {name: trn1}  #! TRN206
          chips: {chip: trainium2, count: 4}
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Server
        metadata: {name: trn2.12xlarge, title: Example, source: neuron-trn2-2026-08}
        spec:
          family: {name: trn2}
          chips: {chip: trainium2, count: 4}
        ```

    Source:
        Amazon EC2 User Guide, instance type naming conventions.
    """
    family = server.spec.family
    stem, dot, _ = server.name.partition(".")
    if family is not None and dot and family.name != stem:
        message = f"the family is {family.name}, but the name of the server begins with {stem}"
        yield Finding(("spec", "family", "name"), message, f"write {stem}, or rename the server")
    chip = graph.find(server.spec.chips.chip)
    generations = _GENERATION.match(stem if dot else ""), chip and _GENERATION.match(chip.name)
    if generations[0] and generations[1] and generations[0]["number"] != generations[1]["number"]:
        assert chip is not None
        message = f"the chip is {chip.name}, but the name of the server begins with {stem}"
        yield Finding(("spec", "chips", "chip"), message, "correct the chip, or rename the server")


_GENERATION = re.compile(r"(?:trn|trainium|inf|inferentia)(?P<number>[0-9]+)(?![0-9])")


_VERSION = re.compile(r"(?<![a-z0-9])v[0-9]+(?:\.[0-9]+)?(?![a-z0-9])")


@rule("TRN207", "name-version-mismatch", over=object, local=True)
def name_version_mismatch(node: Node[Any], graph: Graph) -> Iterator[Finding]:
    """A core or a link whose version is not that of its name.

    Why:
        ``neuronlink-v3`` is NeuronLink of version v3. With another version its figures are taken for those of another
        generation.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Link
        metadata: {name: example-v3, title: Example}
        spec: {connects: chips, version: v2}  #! TRN207
        ```

    Instead:
        ```yaml
        api_version: trnspec/v1
        kind: Link
        metadata: {name: example-v3, title: Example}
        spec: {connects: chips, version: v3}
        ```

    Source:
        The Neuron pages, which name cores and links by their version.
    """
    if not isinstance(node.spec, (Core, Link)):
        return
    named = _VERSION.findall(node.name)
    version = _VERSION.findall((node.spec.version or "").lower())
    if named and version and not set(named) & set(version):
        message = f"the version is {node.spec.version}, but the name of the document has {named[0]}"
        yield Finding(("spec", "version"), message, f"write {named[0]}, or rename the document")
