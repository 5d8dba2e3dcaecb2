"""Claims that several sources make alike: read as one claim for each source, and written as one with all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import evolve

from trnspec.yaml import Document, Edit, Path, Problem, read_text
from trnspec.yaml.edits import apply, removal
from trnspec.yaml.layout import comments

_KEY = "sources"


def one_for_each_source(document: Document) -> Document:
    """The document with a claim for each name in the ``sources`` of a claim, at the position of that name.

    The claim itself keeps its index and has the first name; those of the other names are added below all claims. A claim
    whose ``sources`` is not a list of different names, or that has ``source`` too, is reported and rejected.
    """
    claims = (document.data or {}).get("claims")
    if not isinstance(claims, list) or not any(isinstance(c, dict) and _KEY in c for c in claims):
        return document
    written: list[Any] = list(claims)
    problems: list[Problem] = []
    rejected = set(document.rejected)
    copies: dict[int, list[int]] = {}
    for index, claim in enumerate(claims):
        if not isinstance(claim, dict) or _KEY not in claim:
            continue
        if (problem := _fault(document, index, claim)) is not None:
            problems.append(problem)
            rejected.add(("claims", index))
            written[index] = None
            continue
        first, *others = _one_each(claim)
        written[index] = first
        copies[index] = [index, *range(len(written), len(written) + len(others))]
        written += others
    pairs = (
        (new, path)
        for path in document.places
        for new in (_copied(path, copies) if path[:1] == ("claims",) else (path,))
    )
    return evolve(
        document,
        data={**(document.data or {}), "claims": written},
        places=document.places.renamed(pairs),
        rejected=frozenset(each for path in rejected for each in _copied(path, copies)),
        problems=(*document.problems, *problems),
    )


def _fault(document: Document, index: int, claim: dict[str, Any]) -> Problem | None:
    names = claim[_KEY]
    path: Path = ("claims", index, _KEY)
    at: Path = ("claims", index, "source")
    if "source" in claim:
        message = f"claims.{index} has both 'source' and 'sources'"
        return Problem("TRN101", message, document.place(at, key=True), "write every name in sources", at)
    if not isinstance(names, list) or not names:
        message = f"claims.{index}.sources is not a list of names"
        return Problem("TRN103", message, document.place(path), "write sources: [a, b], or source: a", path)
    for position, name in enumerate(names):
        if isinstance(name, str) and name in names[:position]:
            at = (*path, position)
            return Problem("TRN105", f"{name!r} is twice in the sources", document.place(at), "remove one of them", at)
    return None


def _one_each(claim: dict[str, Any]) -> list[dict[str, Any]]:
    """The claim of each source; of a name that was rejected, the rest."""
    rest = {key: value for key, value in claim.items() if key != _KEY}
    names: Any = claim[_KEY]
    return [rest if name is None else {**rest, "source": name} for name in names]


def _copied(path: Path, copies: Mapping[int, list[int]]) -> Iterator[Path]:
    """The paths of a value in the claims of each source; a name is the source of one of them."""
    match path:
        case ("claims", int(index), "sources", int(position), *below) if index in copies:
            yield ("claims", copies[index][position], "source", *below)
        case ("claims", int(index), "sources") if index in copies:
            pass
        case ("claims", int(index), *below) if index in copies:
            yield from (("claims", each, *below) for each in copies[index])
        case _:
            yield path


def joined_sources(text: str) -> str:
    """A document whose claims that differ in their sources alone are one claim with ``sources``.

    The others keep their order and text. A claim with a comment on its lines stays as it is.
    """
    document = read_text(text)
    claims: Any = (document.data or {}).get("claims")
    if not isinstance(claims, list) or document.problems:
        return text
    groups: dict[str, list[int]] = {}
    for index, claim in enumerate(claims):
        if isinstance(claim, dict) and _names(claim):
            rest = {key: value for key, value in claim.items() if key not in ("source", _KEY)}
            groups.setdefault(repr(sorted(rest.items())), []).append(index)
    joined = [edits for group in groups.values() if (edits := _joining(document, claims, group))]
    # All groups at once; where one of them would lose something, only those that lose nothing.
    whole = [edit for edits in joined for edit in edits]
    if _is_same(applied := apply(text, whole)[0], text):
        return applied
    kept: list[Edit] = []
    for edits in joined:
        if _is_same(apply(text, [*kept, *edits])[0], text):
            kept += edits
    return apply(text, kept)[0]


def _joining(document: Document, claims: list[Any], group: list[int]) -> list[Edit]:
    """The edits that join some claims with the first of them; none if no other can be joined."""
    first, *others = group
    names, edits = _names(claims[first]), []
    for other in others:
        edit = removal(document, ("claims", other))
        if edit is not None and not set(more := _names(claims[other])) & set(names):
            names += more
            edits.append(edit)
    span = document.places[("claims", first, _KEY if _KEY in claims[first] else "source")]
    if not edits or span.key is None:
        return []
    return [*edits, Edit(span.key, span.end, f"{_KEY}: [{', '.join(names)}]")]


def _names(claim: dict[str, Any]) -> list[str]:
    """The sources of a claim; empty if one of them is not a text."""
    names: Any = claim.get(_KEY)
    names = names if isinstance(names, list) else [claim.get("source")]
    return list(names) if all(isinstance(name, str) for name in names) else []


def _is_same(new: str, old: str) -> bool:
    """Whether two texts make the same claims with the same comments."""
    one, other = (one_for_each_source(read_text(text)) for text in (new, old))
    return _sorted_claims(one) == _sorted_claims(other) and sorted(comments(new)) == sorted(comments(old))


def _sorted_claims(document: Document) -> list[str]:
    claims = (document.data or {}).get("claims")
    return sorted(repr(sorted(c.items())) for c in claims if isinstance(c, dict)) if isinstance(claims, list) else []
