"""The text that is shown for what is under the pointer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trnspec.diagnostics import Code
from trnspec.graph.facts import Fact, facts
from trnspec.graph.graph import Graph, references
from trnspec.graph.provenance import Stated
from trnspec.graph.totals import total
from trnspec.lsp.fields import TOP, described, field_at
from trnspec.lsp.positions import Spot
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.parts import has_parts
from trnspec.model.reflection import dotted, spread, steps_of, value_at
from trnspec.model.source import Source
from trnspec.quantities.units import UnitTable
from trnspec.yaml import Path


def hover(spot: Spot, spec: type | None, node: Node[Any] | None, graph: Graph, units: UnitTable) -> str:
    """The text for a position, as Markdown; empty where there is nothing to say."""
    if not spot.key and node is not None:
        target = reference_target(spot.path, node, graph)
        text = "" if target is None else document_text(target)
        text = text or "\n\n".join(_values(spot.path, node, graph))
        if text:
            return text
    return key_text(spot.path, spec, units)


def key_text(path: Path, spec: type | None, units: UnitTable) -> str:
    """The documentation of a key."""
    if len(path) == 1:
        return TOP.get(str(path[0]), "")
    field = None if spec is None else field_at(spec, path)
    return "" if field is None else described(field, units)


def reference_target(path: Path, node: Node[Any], graph: Graph) -> Node[Any] | None:
    """The document that the reference at a path names; ``None`` if there is no reference, or it names none."""
    for at, target, ref in references(node):
        if at == path:
            return graph.lookup(ref.name, target)
    return None


def document_text(node: Node[Any]) -> str:
    """Kind, title and source of a document."""
    parts = [f"**{node.name}** ({node.kind})", node.metadata.title]
    spec = node.spec
    if isinstance(spec, Source):
        parts.append(f"{spec.publisher}, {spec.as_of}, {spec.standing}")
        parts += [f"<{spec.address}>"] if spec.address else []
        parts += [f"version {spec.version}"] if spec.version else []
    elif node.metadata.note:
        parts.append(node.metadata.note)
    return "\n\n".join(parts)


def _values(path: Path, node: Node[Any], graph: Graph) -> Iterator[str]:
    """The texts of the figure, or the figures, at a path: a value, a part of one, or the path of a claim."""
    every = {fact.at: fact for fact in facts(graph, node)}
    if path[:1] == ("claims",) and len(path) > 2:
        paths = paths_named(value_at_data(node, ("claims", path[1], "at")))
    else:
        paths = (path,)
    for each in paths:
        for length in range(len(each), 1, -1):
            fact = every.get(dotted(each[1:length]))
            if fact is not None and each[0] == "spec":
                yield fact_text(fact, node, graph)
                break


def paths_named(text: object) -> tuple[Path, ...]:
    """The paths that a text of a document names; none where it is invalid."""
    try:
        return spread(text) if isinstance(text, str) else ()
    except ValueError:
        return ()


def value_at_data(node: Node[Any], path: Path) -> Any:
    """The plain value at a path of the text of a document; ``None`` where there is none."""
    value: Any = node.document.data
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def fact_text(fact: Fact, node: Node[Any], graph: Graph) -> str:
    """Value, interval, source, conflicting values, and the totals that are computed from a figure."""
    lines = str(fact.value).splitlines() if isinstance(fact.value, Stated) else _plain(fact)
    if isinstance(fact.value, Figure) and fact.value.check:
        lines.append(f"  check        {fact.value.check}")
    if isinstance(fact.value, Figure) and not fact.at.startswith(("ratios.", "features.")):
        lines += [f"  total        {text}" for text in _totals(fact, node, graph)]
    text = "\n".join(lines)
    return f"```text\n{text}\n```" + (f"\n\n{fact.note}" if fact.note else "")


def _plain(fact: Fact) -> list[str]:
    lines = [f"{fact.text if fact.text is not None else 'no value adopted'}  ({fact.label} of {fact.of})"]
    if fact.verdict == "derived":
        lines.append(f"  source       derived: {fact.reason}")
    elif fact.source:
        lines.append(f"  source       {', '.join(filter(None, (fact.cited, fact.as_of, fact.where)))}")
    lines += [f"  {c.verdict:<11}  {c.says} ({c.source}, {c.as_of})" for c in fact.conflicting]
    return lines


def _totals(fact: Fact, node: Node[Any], graph: Graph) -> Iterator[str]:
    """The totals over the parts of systems that contain a document, such as the memory of a server."""
    path = ("spec", *steps_of(fact.at))
    for system in graph:
        if system is node or not has_parts(type(system.spec)) or value_at(system.spec, path[1:]) is not None:
            continue
        whole = total(graph, system, path)
        if whole is not None and any(term.part is node for term in whole.terms):
            yield f"{whole} of {system.name} ({' + '.join(map(str, whole.terms))})"


def code_text(code: Code) -> str:
    """The summary of a code, and where to read more."""
    return f"**{code.id} {code.name}**: {code.summary}\n\n`trnspec explain {code.id}`"
