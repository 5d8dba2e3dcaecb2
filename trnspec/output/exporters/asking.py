"""What a document and a catalog can be asked to become: the same forms as ``trnspec export``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trnspec.output.exporters import export, export_all

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node
    from trnspec.output.exporters.exported import Export


class OneExport:
    """A document of a catalog."""

    __slots__ = ()
    node: Node[Any]
    catalog: Any

    def export(self, format: str) -> Export:
        """The document in another form: ``cat["trn2-ultraserver"].export("svg").text``.

        Args:
            format: ``json``, ``dot``, ``svg``, ``calculon``, ``astra-sim`` or ``llm-analysis``.

        Raises:
            UsageError: There is no such form.
            ExportError: The form needs something that is not known of this document; the message says what.
        """
        return export(format, self.catalog.graph, self.node)


class AllExport:
    """A catalog."""

    __slots__ = ()
    graph: Graph

    def export(self, format: str = "json") -> Export:
        """The whole catalog in another form.

        Raises:
            UsageError: There is no such form, or it takes one document at a time.
        """
        return export_all(format, self.graph)
