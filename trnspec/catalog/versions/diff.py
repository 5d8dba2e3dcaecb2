"""What differs between two catalogs: documents, figures with their sources and the reason, counts, words and claims."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from trnspec.diagnostics import did_you_mean
from trnspec.errors import QuantityError, UnknownNameError
from trnspec.graph.provenance import Stated, figures
from trnspec.model.document import Claim, Metadata, Node
from trnspec.model.reflection import FigureShape, ObjectShape, dotted, leaves, shape_of, spread
from trnspec.quantities.quantity import Quantity, parse
from trnspec.short_repr import short_repr

if TYPE_CHECKING:
    from trnspec.graph.graph import Graph
    from trnspec.yaml import Path

_WIDTH = 80
_TOLD_ELSEWHERE = ("source", "where")
"""Metadata of which the figures tell more."""


@frozen
class Side:
    """One of the two sides of a difference.

    Attributes:
        says: The figure, the count or the word.
        source: The name of the source; empty for counts and words, and where there is none.
        title: What the source is called.
        as_of: The date of the source.
        where: The place in it.
        derived: The formula, for a figure that nobody printed.
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
        return f"{self.title}, {self.as_of} ({self.source}{where})" if self.source else "nobody's word"


@frozen
class Change:
    """What differs at one place of one document.

    Attributes:
        of: The document.
        at: Where in it, below ``spec``; a path that begins with ``metadata`` is above.
        old: What stood there; ``None`` where nothing did.
        new: What stands there now; ``None`` where nothing does.
        ratio: New over old, for two figures of one dimension.
        verdict: What the new side decided about the old value; empty where it does not mention it.
        reason: Why.
    """

    of: str
    at: str
    old: Side | None
    new: Side | None
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
        reason: Why the other side lacks it, where that is known.
    """

    kind: str
    name: str
    reason: str = ""

    __repr__ = short_repr


@frozen
class Claims:
    """How the claims of one document differ.

    Attributes:
        of: The document.
        added: Claims on the new side alone.
        removed: Claims on the old side alone.
        judged: Claims on both sides, with another verdict or reason.
    """

    of: str
    added: int
    removed: int
    judged: int

    __repr__ = short_repr


@frozen(kw_only=True)
class Differences:
    """All that differs.  It is false where nothing does.

    Attributes:
        old: What the old side is called.
        new: What the new side is called.
        added: Documents on the new side alone.
        removed: Documents on the old side alone.
        figures: Figures that were added, removed or changed in documents of both sides.
        restated: Figures whose value is the same on another word, or in another notation.
        words: Counts and words that differ.
        claims: How many claims differ, by document.
        unread: Documents that could not be compared because they have errors on one side, with the file.
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


def differences(  # the two sides, and what is known of each
    old: Graph,
    new: Graph,
    names: Iterable[str] = (),
    *,
    called: tuple[str, str] = ("old", "new"),
    unknown: tuple[Mapping[str, str], Mapping[str, str]] = ({}, {}),
) -> Differences:
    """What differs between two graphs.

    Args:
        old: The one side.
        new: The other.
        names: Only these documents; all when there are none.
        called: What to call the two.
        unknown: Documents that each side lacks, with the reason.

    Raises:
        UnknownNameError: Neither side has a document of a name; the message lists the nearest.
    """
    chosen = _chosen(old, new, names, unknown)
    unread = {n: file for side in (old, new) for n, file in side.broken.items() if not chosen or n in chosen}
    all_names = sorted({*old.nodes, *new.nodes} - set(unread))
    found: dict[str, list[Any]] = {k: [] for k in ("added", "removed", "figures", "restated", "words", "claims")}
    for name in all_names:
        if chosen and name not in chosen:
            continue
        before, after = old.nodes.get(name), new.nodes.get(name)
        if before is None and after is not None:
            found["added"].append(Presence(after.kind, name, unknown[0].get(name, "")))
        elif after is None and before is not None:
            found["removed"].append(Presence(before.kind, name, unknown[1].get(name, "")))
        elif before is not None and after is not None:
            for change in _figures(old, before, new, after):
                found["restated" if _is_same(change, before, after) else "figures"].append(change)
            found["words"] += _words(before, after)
            found["claims"] += _claims(before, after)
    parts = {key: tuple(value) for key, value in found.items()}
    return Differences(old=called[0], new=called[1], unread=dict(sorted(unread.items())), **parts)


def _chosen(
    old: Graph, new: Graph, names: Iterable[str], unknown: tuple[Mapping[str, str], Mapping[str, str]]
) -> Collection[str]:
    chosen: set[str] = set()
    known = {**old.aliases, **new.aliases} | {n: n for lacking in (*unknown, old.broken, new.broken) for n in lacking}
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise UnknownNameError(f"neither side has a document named {name!r}" + (f"; {hint}" if hint else ""))
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


def _side(figure: Stated | None) -> Side | None:
    if figure is None:
        return None
    where = figure.where or ""
    title, derived = figure.source_title, figure.derived or ""
    return Side(figure.value.text, figure.source_name, title, figure.as_of, where, derived)


def _is_same(change: Change, before: Node[Any], after: Node[Any]) -> bool:
    """True for one value on two words, or in two notations."""
    if change.old is None or change.new is None:
        return False
    old, new = change.old.says, change.new.says
    return old == new or parse(old, None, before.units).same_value(parse(new, None, after.units))


def _judgement(after: Node[Any], at: str, figure: Stated) -> tuple[str, str]:
    """What the new side decided about the old figure, best about the claim of its own source."""
    path: Path = ("spec", *(int(s) if s.isdigit() else s for s in at.split(".")))
    found = [c for c in after.claims if c.verdict is not None and path in spread(c.at) and _says(c, figure.value)]
    own = [c for c in found if c.source.name == figure.source_name]
    best: Claim | None = next(iter([*own, *found]), None)
    return ("", "") if best is None else (best.verdict or "", best.reason or "")


def _says(claim: Claim, quantity: Quantity) -> bool:
    try:
        return parse(str(claim.says), None, quantity.table).same_value(quantity)
    except QuantityError:
        return False


def _words(before: Node[Any], after: Node[Any]) -> Iterator[Change]:
    one, two = dict(_leaves(before)), dict(_leaves(after))
    for at in dict.fromkeys((*one, *two)):
        if one.get(at) != two.get(at):
            old, new = (None if v is None else Side(v) for v in (one.get(at), two.get(at)))
            yield Change(before.name, at, old, new)


def _leaves(node: Node[Any]) -> Iterator[tuple[str, str]]:
    """Counts, words and references by their paths; a list of them is one."""
    found: dict[Path, list[str]] = {("kind",): [node.kind]}
    parts = (("metadata", node.metadata, shape_of(Metadata)), ("spec", node.spec, ObjectShape(type(node.spec))))
    for name, value, shape in parts:
        for path, leaf, item in leaves(value, shape, (name,)):
            if isinstance(leaf, FigureShape) or (name == "metadata" and path[1] in _TOLD_ELSEWHERE):
                continue
            whole = path[:-1] if isinstance(path[-1], int) else path
            found.setdefault(whole, []).append(str(item))
    for path, items in found.items():
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
    """Each claim on each figure, with its verdict."""
    found: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for claim in node.claims:
        for path in spread(claim.at):
            found[path, claim.says, claim.source, claim.where] = (claim.verdict, claim.reason)
    return found


def ratio_text(ratio: float) -> str:
    """A ratio as people read it: ``x 0.905``."""
    return f"x {ratio:.4g}"


def _lines(found: Differences) -> Iterator[str]:
    yield f"From {found.old} to {found.new}:"
    if not found:
        yield "  nothing differs."
        return
    for title, present in (("added", found.added), ("removed", found.removed)):
        if present:
            yield ""
            yield f"Documents {title}:"
        for each in present:
            yield from _wrapped(f"  {each.kind} {each.name}", f": {each.reason}" if each.reason else "", 6)
    changes: tuple[Change | Claims, ...] = (*found.figures, *found.restated, *found.words, *found.claims)
    for name in dict.fromkeys(c.of for c in changes):
        yield ""
        yield name
        yield from _document(found, name)
    if found.unread:
        yield ""
        yield "Not compared, because of errors on one side:"
        for name, file in found.unread.items():
            yield f"  {name} ({file})"


def _document(found: Differences, name: str) -> Iterator[str]:
    for group in _grouped(c for c in found.figures if c.of == name):
        yield from _entry(group)
    for change in (c for c in found.words if c.of == name):
        old, new = (_said(s) for s in (change.old, change.new))
        yield from _wrapped(f"  {change.at}", f": {old} -> {new}", 6)
    same = [c for c in found.restated if c.of == name]
    if same:
        yield from _wrapped("  the same on another word: ", ", ".join(_spoken([c.at for c in same])), 6)
    for claims in (c for c in found.claims if c.of == name):
        parts = ((claims.added, "added"), (claims.removed, "removed"), (claims.judged, "judged anew"))
        yield f"  claims: {', '.join(f'{n} {word}' for n, word in parts if n)}"


def _said(side: Side | None) -> str:
    return "nothing" if side is None else side.says


def _grouped(changes: Iterable[Change]) -> list[list[Change]]:
    """Changes that say the same of several figures of one group, such as four data types, are told once."""
    found: dict[Any, list[Change]] = {}
    for c in changes:
        found.setdefault((c.at.rpartition(".")[0], c.old, c.new, c.verdict, c.reason), []).append(c)
    return list(found.values())


def _spoken(paths: list[str]) -> list[str]:
    """Paths with what they share written once: ``peak.dense.{bf16,fp16}``."""
    heads: dict[str, list[str]] = {}
    for path in paths:
        head, _, last = path.rpartition(".")
        heads.setdefault(head, []).append(last)
    return [
        ".".join(filter(None, (head, lasts[0] if len(lasts) == 1 else "{" + ",".join(lasts) + "}")))
        for head, lasts in heads.items()
    ]


def _entry(group: list[Change]) -> Iterator[str]:
    change = group[0]
    at = _spoken([c.at for c in group])[0]
    ratio = f"  {ratio_text(change.ratio)}" if change.ratio is not None else ""
    yield from _wrapped(f"  {at}", f": {_said(change.old)} -> {_said(change.new)}{ratio}", 6)
    for head, side in (("was", change.old), ("now", change.new)):
        if side is not None:
            yield from _wrapped(f"      {head}  ", str(side), 11)
    if change.verdict:
        reason = f": {change.reason}" if change.reason else ""
        yield from _wrapped("      why  ", f"{change.verdict}{reason}", 11)


def _wrapped(head: str, text: str, indent: int) -> list[str]:
    return textwrap.wrap(head + text, _WIDTH, subsequent_indent=" " * indent, break_on_hyphens=False) or [head]
