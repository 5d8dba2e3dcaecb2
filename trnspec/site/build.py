"""Builds the pages: one for each document and source, the table of all, the audit, the accuracy and the topologies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from trnspec._version import __version__
from trnspec.atomic_write import write
from trnspec.catalog.newest import documents_in_order, newest_first
from trnspec.catalog.system_table import system_table
from trnspec.checks.reconcile.audit import audit
from trnspec.checks.reconcile.overview import overview
from trnspec.errors import UsageError, library
from trnspec.evaluation.measures import measure
from trnspec.graph.citations import Citation, citations
from trnspec.graph.fabrics import fabric
from trnspec.graph.graph import Graph
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.ultraserver import UltraServer
from trnspec.output.exporters.exported import ExportError
from trnspec.output.exporters.svg import export as draw
from trnspec.site.accuracy import scores
from trnspec.site.data import script
from trnspec.site.document_values import Entry, entry
from trnspec.site.planner import PlannedCase
from trnspec.text_table import shown
from trnspec.topology.fabric import TopologyError

if TYPE_CHECKING:  # an extra
    from jinja2 import Environment
    from markupsafe import Markup

DATA = "data.js"
STATIC = ("site.css", "site.js", "explorer.js", "planner.js")
_NEWEST = 3
"""Systems on the first page."""
_DISPUTED = 5
"""Disputed figures on the first page."""
_DRAWN = ("Server", "UltraServer")
_FOLDERS = ("document", "source")


def build(graph: Graph, plans: Sequence[PlannedCase] = ()) -> dict[str, bytes]:
    """The files of the site by their path in its folder; the same catalog gives the same bytes.

    Raises:
        UsageError: Jinja2 is not installed.
    """
    templates = _templates()
    entries = [entry(graph, node) for node in documents_in_order(graph)]
    documents = [e for e in entries if not isinstance(e.node.spec, Source)]
    drawings = _drawings(graph, documents)
    measures = {name: _measures(graph, name) for name in drawings}
    cited = _cited(graph, documents)
    sources = graph.of(Source)
    common = {"version": __version__, "documents": documents, "drawings": drawings, "plans": plans}
    compared = overview(graph, audit(graph).disagreements)
    systems = newest_first(graph, graph.of(UltraServer)) + newest_first(graph, graph.of(Server))
    shared: dict[str, Mapping[str, Any]] = {
        "index.html": {
            "newest": system_table(graph, systems[:_NEWEST]),
            "disputed": [d for d in compared.important if d.verdict == "unresolved"][:_DISPUTED],
            "unresolved": compared.unresolved,
        },
        "documents.html": {"kinds": _by_kind(documents)},
        "sources.html": {"sources": sources, "cited": {name: len(values) for name, values in cited.items()}},
        "audit.html": {"overview": compared},
        "accuracy.html": {"scores": scores(documents)},
        "topology.html": {"titles": {e.node.name: e.node.metadata.title for e in documents}},
    }
    if plans:
        shared["planner.html"] = {}
    pages = {
        name: templates.get_template(name).render(**common, **values, root="", current=name.removesuffix(".html"))
        for name, values in shared.items()
    }
    page = templates.get_template("document.html")
    for each in documents:
        pages[f"document/{each.node.name}.html"] = page.render(
            **common,
            entry=each,
            node=each.node,
            drawing=drawings.get(each.node.name),
            measures=measures.get(each.node.name, ""),
            root="../",
            current="",
        )
    page = templates.get_template("source.html")
    for node in sources:
        pages[f"source/{node.name}.html"] = page.render(
            **common, node=node, cited=cited.get(node.name, ()), root="../", current=""
        )
    static = files("trnspec.site").joinpath("static")
    pages |= {name: static.joinpath(name).read_text(encoding="utf-8") for name in STATIC}
    pages |= {f"topology/{name}.svg": drawing for name, drawing in drawings.items()}
    pages[DATA] = script(graph, documents)
    return {name: text.encode() for name, text in pages.items()}


def write_site(folder: FilePath, pages: Mapping[str, bytes]) -> None:
    """Write the files of a site; pages of an earlier site that it no longer has are removed.

    Raises:
        UsageError: The folder has files, but is not a site.
    """
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())) and not (folder / DATA).is_file():
        raise UsageError(f"{folder} is not empty and is not a site of trnspec; name another folder")
    kept = {folder / name for name in pages}
    write({folder / name: contents for name, contents in pages.items()})
    for name in _FOLDERS:
        for file in (folder / name).glob("*.html"):
            if file not in kept:
                file.unlink()


def _templates() -> Environment:
    library("jinja2", "site")
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("trnspec.site", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"web": _web, "wrapped": _wrapped, "command": _command, "cell": shown}
    return environment


def _web(address: str | None) -> str:
    """An address that a page may link to; empty for any other text."""
    return address if address is not None and address.startswith(("https://", "http://")) else ""


def _wrapped(path: str) -> Markup:
    """A path that a narrow column may break after its dots."""
    from markupsafe import Markup, escape

    return Markup(".<wbr>").join(escape(step) for step in path.split("."))


def _command(text: str) -> Markup:
    """A command that may break between its words only, not at the hyphens of its options."""
    from markupsafe import Markup

    words = Markup(" ").join(Markup("<span>{}</span>").format(word) for word in text.split(" "))
    return Markup('<code class="command">{}</code>').format(words)


def _drawings(graph: Graph, entries: Sequence[Entry]) -> dict[str, str]:
    """The topology of each system that has one, by name."""
    drawn: dict[str, str] = {}
    for each in entries:
        if each.node.kind in _DRAWN:
            try:
                drawn[each.node.name] = draw(each.node, graph).text
            except ExportError:
                continue
    return drawn


def _measures(graph: Graph, name: str) -> str:
    """Diameter and bisection of a topology in words: ``diameter 6 links; bisection 32 links, 2.048 TB/s each way``."""
    shape = fabric(graph, graph.named(name))
    if shape is None:
        return ""
    try:
        cut = shape.bisection("rate")
    except TopologyError:
        cut = shape.bisection()  # the rate of a link is not known
    rate = "" if cut.rate is None else f", {measure(cut.rate, 'B/s', digits=4)} each way"
    bound = "" if cut.exact else " at most"
    return f"Diameter: {shape.diameter} links. Bisection:{bound} {cut.links:,} links{rate}."


def _by_kind(entries: Sequence[Entry]) -> dict[str, list[Entry]]:
    kinds: dict[str, list[Entry]] = {}
    for each in entries:
        kinds.setdefault(each.node.kind, []).append(each)
    return kinds


def _cited(graph: Graph, entries: Sequence[Entry]) -> dict[str, list[Citation]]:
    """The values that come from each source, in the order of the documents."""
    order = {each.node.name: number for number, each in enumerate(entries)}
    cited: dict[str, list[Citation]] = {}
    for each in sorted(citations(graph, {n.name for n in graph.of(Source)}), key=lambda c: order[c.of]):
        cited.setdefault(each.source, []).append(each)
    return cited
