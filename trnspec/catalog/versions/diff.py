"""The differences between two catalogs: documents, figures with sources and reasons, counts, texts and claims."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from attrs import field, frozen

from trnspec.diagnostics import unknown_name
from trnspec.errors import UnknownNameError
from trnspec.graph.facts import joined
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import Stated, claims_at, figures
from trnspec.model.document import Claim, Node
from trnspec.model.reflection import FigureShape, dotted, leaves, spread, steps_of, value_at
from trnspec.quantities.quantity import Quantity, parse, parse_or_none
from trnspec.short_repr import short_repr
from trnspec.yaml import Path

_WIDTH = 80
_IN_FIGURES = ("source", "where")
"""Metadata that the sides of figures include."""


@frozen
class DiffSide:
    """One of the two sides of a difference.

    Attributes:
        says: The figure, count or text.
        source: The name of the source; empty for counts and texts, and if there is none.
        title: The title of the source.
        as_of: Its date.
        where: The location in it.
        derived: The formula of a figure that no source prints.
    """

    says: str
    source: str = ""
    title: str = ""
    as_of: str = ""
    where: str = ""
    derived: str = ""

    __repr__ = short_repr

    def __str__(self) -> str:
        if self.derived:
            return f"derived: {self.derived}"
        where = f", {self.where}" if self.where else ""
        return f"{self.title}, {self.as_of} ({self.source}{where})" if self.source else "no source"


@frozen
class Change:
    """The difference at one path of one document.

    Attributes:
        of: The document.
        at: The path below ``spec``, or one that begins with ``metadata``.
        old: The old value; ``None`` if there is none.
        new: The new value; ``None`` if there is none.
        ratio: New over old, for two figures of one dimension.
        verdict: The verdict of the new side on the old value; empty if it has none.
        reason: The reason for the verdict.
    """

    of: str
    at: str
    old: DiffSide | None
    new: DiffSide | None
    ratio: float | None = None
    verdict: str = ""
    reason: str = ""

    __repr__ = short_repr


@frozen
class Presence:
    """A document that only one side has.

    Attributes:
        kind: Its kind.
        name: Its name.
        reason: The reason why the other side lacks it, if known.
    """

    kind: str
    name: str
    reason: str = ""

    __repr__ = short_repr


@frozen
class Claims:
    """The differences between the claims of one document.

    Attributes:
        of: The document.
        added: The number of claims on the new side only.
        removed: The number of claims on the old side only.
        judged: The number of claims on both sides with another verdict or reason.
    """

    of: str
    added: int
    removed: int
    judged: int

    __repr__ = short_repr


@frozen(kw_only=True)
class Differences:
    """The differences between two catalogs; false if there are none. ``str`` lists them.

    Attributes:
        old: The label of the old side.
        new: The label of the new side.
        added: Documents on the new side only.
        removed: Documents on the old side only.
        figures: Figures that were added, removed or changed in documents of both sides.
        restated: Figures with the same value but another source or notation.
        words: Counts and texts that differ.
        claims: The numbers of claims that differ, by document.
        unread: Documents that were not compared because they have errors on one side, with the file.
    """

    old: str
    new: str
    added: tuple[Presence, ...] = ()
    removed: tuple[Presence, ...] = ()
    figures: tuple[Change, ...] = ()
    restated: tuple[Change, ...] = ()
    words: tuple[Change, ...] = ()
    claims: tuple[Claims, ...] = ()
    unread: Mapping[str, str] = field(factory=dict)

    __repr__ = short_repr

    def __bool__(self) -> bool:
        return any((self.added, self.removed, self.figures, self.restated, self.words, self.claims, self.unread))

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def differences(
    old: Graph,
    new: Graph,
    names: Iterable[str] = (),
    *,
    called: tuple[str, str] = ("old", "new"),
    unknown: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> Differences:
    """The differences between two graphs.

    Raises:
        UnknownNameError: Neither side has a document of a name; the message lists the nearest, or why it is not there.
    """
    chosen = _chosen(old, new, names, unknown)
    unread = {n: file for side in (old, new) for n, file in side.broken.items() if not chosen or n in chosen}
    all_names = sorted({*old.nodes, *new.nodes} - set(unread))
    fields: dict[str, list[Any]] = {k: [] for k in ("added", "removed", "figures", "restated", "words", "claims")}
    for name in all_names:
        if chosen and name not in chosen:
            continue
        before, after = old.nodes.get(name), new.nodes.get(name)
        if before is None and after is not None:
            fields["added"].append(Presence(after.kind, name, unknown[0].get(name, "")))
        elif after is None and before is not None:
            fields["removed"].append(Presence(before.kind, name, unknown[1].get(name, "")))
        elif before is not None and after is not None:
            for change in _figures(old, before, new, after):
                fields["restated" if _is_same(change, before, after) else "figures"].append(change)
            fields["words"] += _words(before, after)
            fields["claims"] += _claims(before, after)
    parts = {key: tuple(value) for key, value in fields.items()}
    return Differences(old=called[0], new=called[1], unread=dict(sorted(unread.items())), **parts)


def _chosen(
    old: Graph, new: Graph, names: Iterable[str], unknown: tuple[Mapping[str, str], Mapping[str, str]]
) -> Collection[str]:
    chosen: set[str] = set()
    known = {**old.aliases, **new.aliases} | {n: n for lacking in (*unknown, old.broken, new.broken) for n in lacking}
    for name in names:
        if name not in known:
            raise unknown_name(f"neither side has a document named {name!r}", name, known)
        if all(name in lacking for lacking in unknown):
            raise UnknownNameError(f"neither side has {name}: {unknown[1][name]}")
        # A name may be an alias on one side and a document of its own on the other.
        chosen |= {side.aliases.get(name, name) for side in (old, new)}
    return chosen


def _figures(old: Graph, before: Node[Any], new: Graph, after: Node[Any]) -> Iterator[Change]:
    one, two = figures(old, before), figures(new, after)
    for at in dict.fromkeys((*one, *two)):
        a, b = one.get(at), two.get(at)
        first, second = _side(a), _side(b)
        if first == second:
            continue
        ratio = None
        if a is not None and b is not None and a.value.dimension is b.value.dimension and a.value.value:
            ratio = float(b.value.value / a.value.value)
        verdict, reason = ("", "") if a is None else _judgement(after, at, a)
        yield Change(before.name, at, first, second, ratio, verdict, reason)


def _side(figure: Stated | None) -> DiffSide | None:
    if figure is None:
        return None
    where = figure.where or ""
    title, derived = figure.source_title, figure.derived or ""
    return DiffSide(figure.value.text, figure.source_name, title, figure.as_of, where, derived)


def _is_same(change: Change, before: Node[Any], after: Node[Any]) -> bool:
    """True for one value from two sources, or in two notations."""
    if change.old is None or change.new is None:
        return False
    old, new = change.old.says, change.new.says
    return old == new or parse(old, None, before.units).same_value(parse(new, None, after.units))


def _judgement(after: Node[Any], at: str, figure: Stated) -> tuple[str, str]:
    """The verdict of the new side on the old figure, preferably on the claim of the same source, and its reason."""
    path: Path = ("spec", *steps_of(at))
    about = (after.claims[index] for index in claims_at(after).get(path, ()))
    claims = [c for c in about if c.verdict is not None and _says(c, figure.value)]
    same_source = [c for c in claims if c.source.name == figure.source_name]
    best: Claim | None = next(iter([*same_source, *claims]), None)
    return ("", "") if best is None else (best.verdict or "", best.reason or "")


def _says(claim: Claim, quantity: Quantity) -> bool:
    claimed = parse_or_none(str(claim.says), quantity.table)
    return claimed is not None and claimed.same_value(quantity)


def _words(before: Node[Any], after: Node[Any]) -> Iterator[Change]:
    one, two = dict(_leaves(before)), dict(_leaves(after))
    for at in dict.fromkeys((*one, *two)):
        if one.get(at) != two.get(at):
            old, new = (None if v is None else DiffSide(v) for v in (one.get(at), two.get(at)))
            yield Change(before.name, at, old, new)


def _leaves(node: Node[Any]) -> Iterator[tuple[str, str]]:
    """Counts, texts and references by their paths; a list is one value, or has its items by their names."""
    values: dict[Path, list[str]] = {("kind",): [node.kind]}
    for name, value in (("metadata", node.metadata), ("spec", node.spec)):
        for path, leaf, item in leaves(value, (name,)):
            if isinstance(leaf, FigureShape) or (name == "metadata" and path[1] in _IN_FIGURES):
                continue
            at = path[:-1] if isinstance(path[-1], int) else path
            named = tuple(
                getattr(value_at(value, at[1 : n + 1]), "name", step) if isinstance(step, int) else step
                for n, step in enumerate(at)
            )
            if named[-1] != "name" or named[-2] != str(item):  # it is in the path
                values.setdefault(named, []).append(str(item))
    for path, items in values.items():
        yield dotted(path).removeprefix("spec."), ", ".join(items)


def _claims(before: Node[Any], after: Node[Any]) -> Iterator[Claims]:
    one, two = _keyed(before), _keyed(after)
    added, removed = (
        sum((Counter(a) - Counter(b)).values()) for a, b in ((two.keys(), one.keys()), (one.keys(), two.keys()))
    )
    judged = sum(one[key] != two[key] for key in one.keys() & two.keys())
    if added or removed or judged:
        yield Claims(before.name, added, removed, judged)


def _keyed(node: Node[Any]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Each claim on each path, with its verdict."""
    claims: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for claim in node.claims:
        for path in spread(claim.at):
            claims[path, claim.says, claim.source, claim.where] = (claim.verdict, claim.reason)
    return claims


def ratio_text(ratio: float) -> str:
    """A ratio as text: ``x 0.905``."""
    return f"x {ratio:.4g}"


def _lines(differences: Differences) -> Iterator[str]:
    yield f"From {differences.old} to {differences.new}:"
    if not differences:
        yield "  no differences."
        return
    for title, documents in (("added", differences.added), ("removed", differences.removed)):
        if documents:
            yield ""
            yield f"Documents {title}:"
        for document in documents:
            reason = f": {document.reason}" if document.reason else ""
            yield from _wrapped(f"  {document.kind} {document.name}", reason, 6)
    d = differences
    changes: tuple[Change | Claims, ...] = (*d.figures, *d.restated, *d.words, *d.claims)
    for name in dict.fromkeys(c.of for c in changes):
        yield ""
        yield name
        yield from _document(differences, name)
    if differences.unread:
        yield ""
        yield "Not compared, because of errors on one side:"
        for name, file in differences.unread.items():
            yield f"  {name} ({file})"


def _document(differences: Differences, name: str) -> Iterator[str]:
    for group in _grouped(c for c in differences.figures if c.of == name):
        yield from _entry(group)
    for change in (c for c in differences.words if c.of == name):
        old, new = (_text(s) for s in (change.old, change.new))
        yield from _wrapped(f"  {change.at}", f": {old} -> {new}", 6)
    same = [c for c in differences.restated if c.of == name]
    if same:
        yield from _wrapped("  same value, other source or notation: ", ", ".join(joined(c.at for c in same)), 6)
    for claims in (c for c in differences.claims if c.of == name):
        parts = ((claims.added, "added"), (claims.removed, "removed"), (claims.judged, "with another verdict"))
        yield f"  claims: {', '.join(f'{n} {word}' for n, word in parts if n)}"


def _text(side: DiffSide | None) -> str:
    return "nothing" if side is None else side.says


def _grouped(changes: Iterable[Change]) -> list[list[Change]]:
    """Changes grouped if they are the same for several figures of one group, such as four data types."""
    groups: dict[Any, list[Change]] = {}
    for c in changes:
        groups.setdefault((c.at.rpartition(".")[0], c.old, c.new, c.verdict, c.reason), []).append(c)
    return list(groups.values())


def _entry(group: list[Change]) -> Iterator[str]:
    change = group[0]
    at = joined(c.at for c in group)[0]
    ratio = f"  {ratio_text(change.ratio)}" if change.ratio is not None else ""
    yield from _wrapped(f"  {at}", f": {_text(change.old)} -> {_text(change.new)}{ratio}", 6)
    for head, side in (("was", change.old), ("now", change.new)):
        if side is not None:
            yield from _wrapped(f"      {head}  ", str(side), 11)
    if change.verdict:
        reason = f": {change.reason}" if change.reason else ""
        yield from _wrapped("      why  ", f"{change.verdict}{reason}", 11)


def _wrapped(head: str, text: str, indent: int) -> list[str]:
    return textwrap.wrap(head + text, _WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False) or [head]
