"""Exporters: documents in the formats of other programs, each with the assumptions of the export.

The formats are the exporters of the registry, those of trnspec and of plugins alike; each is a separate module that is
imported when it is used.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from trnspec.errors import UsageError
from trnspec.graph.graph import Graph
from trnspec.model.document import Node
from trnspec.output.exporters.exported import Export
from trnspec.plugins.api import Exporter, Function, loaded
from trnspec.plugins.discovery import installed
from trnspec.plugins.failures import called


def exporter(format: str) -> Exporter:
    """The exporter of that name; ``UsageError`` suggests the nearest or lists all."""
    return installed().registry.exporter(format)


def export(format: str, node: Node[Any], graph: Graph, *, use: Mapping[str, str] | None = None) -> Export:
    """One document in another format.

    Args:
        format: The name of an exporter.
        node: The document.
        graph: The documents it refers to.
        use: The figures to use in place of unknown ones: a path of the document that lacks the figure, by field of the
            export, such as ``{"vector.tflops": "peak.dense.fp32"}``. Each is an assumption of the export.

    Raises:
        UsageError: There is no such format, it only writes whole catalogs, it takes no other figures, or the exporter
            raised an error.
        ExportError: The format needs a figure that this document does not have; the message names it.
    """
    chosen = exporter(format)
    if chosen.one is None:
        raise UsageError(f"{format} exports the whole catalog; leave out {node.name}")
    return _run(chosen, chosen.one, node, graph, **({"use": use} if use else {}))


def export_all(format: str, graph: Graph) -> Export:
    """The whole catalog in another format.

    Raises:
        UsageError: There is no such format, it takes one document at a time, or the exporter raised an error.
    """
    chosen = exporter(format)
    if chosen.all is None:
        raise UsageError(f"{format} exports one document at a time; name one, such as a server or an UltraServer")
    return _run(chosen, chosen.all, graph)


def _run(chosen: Exporter, function: Function, *args: Any, **options: Any) -> Export:
    """Call a function of an exporter."""
    what, provider = f"the exporter {chosen.name}", installed().registry.provider(chosen)
    call = loaded(f"{what} of {provider}", function)
    if options and "use" not in inspect.signature(call).parameters:
        raise UsageError(f"{chosen.name} takes no other figures (--use); an overlay can supply one (--overlay FILE)")
    return called(what, provider, call, Export, *args, **options)
