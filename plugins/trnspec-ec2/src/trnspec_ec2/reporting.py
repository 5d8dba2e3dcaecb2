"""The result of an audit, as text for people and as JSON for programs."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING, Any

from attrs import asdict, frozen

from trnspec import Quantity
from trnspec.quantities.quantity import render

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec_ec2.comparing import Adopted, Audit, Compared, Lacking


@frozen
class Origin:
    """Where the records come from.

    Attributes:
        name: A file, ``<stdin>``, or a region.
        as_of: The date of the records; empty where it is not known.
    """

    name: str
    as_of: str

    def __str__(self) -> str:
        """For people."""
        return f"EC2 API, {self.as_of or 'undated'}"


def text(found: Audit, origin: Origin, *, verbose: bool = False, only_new: bool = False) -> str:
    """The audit for people.

    Args:
        found: What was found.
        origin: Where the records come from.
        verbose: Whether to list what agrees too, and each type that is lacking.
        only_new: Whether to leave out the contradictions that the catalog records.
    """
    lines: list[str] = []
    for each in found.unrecorded if only_new else found.contradictions:
        lines += [*_contradiction(each, origin), ""]
    if found.omissions:
        lines.append("Types of the catalog whose record tells of no accelerator:")
        lines += [f"  {name}  {chips} in the catalog" for name, chips in found.omissions] + [""]
    if found.lacking:
        lines.append("Types with accelerators that the catalog lacks:")
        lines += [*_lacking(found.lacking, verbose=verbose), ""]
    if found.additions:
        lines.append("Figures that the catalog lacks:")
        lines += [f"  {c.type}  {c.target.path}: {c.statement}  ({c.statement.where})" for c in found.additions] + [""]
    if verbose and found.agreements:
        lines.append("What agrees:")
        lines += [f"  {c.type}  {c.statement.title}: {c.statement}  {_there(c)}" for c in found.agreements] + [""]
    lines.append(_sum(found))
    return "\n".join(lines)


def _sum(found: Audit) -> str:
    new = len(found.unrecorded)
    known = len(found.contradictions) - new
    parts = [
        f"{len(found.agreements)} agree",
        f"{known} contradict and {'is' if known == 1 else 'are'} recorded",
        f"{new} contradict and {'is' if new == 1 else 'are'} not",
        f"{len(found.additions)} could be added",
    ]
    types = len(found.lacking)
    return f"{', '.join(parts)}; the catalog lacks {types} type{'' if types == 1 else 's'} with accelerators."


def _there(each: Compared) -> str:
    adopted = each.adopted
    assert adopted is not None  # only what is stated can agree
    return f"({adopted.name} {adopted.path}: {adopted.text})"


def _contradiction(each: Compared, origin: Origin) -> Iterator[str]:
    adopted = each.adopted
    assert adopted is not None  # only what is stated can be contradicted
    yield f"{each.type}  {each.statement.title}"
    yield f"  record    {_says(each)}  ({origin})"
    yield f"            {each.statement.where}"
    yield f"  catalog   {adopted.text}  ({_source(adopted)})"
    yield f"            {adopted.path} of {adopted.name}"
    if each.known is not None:
        told = f"{each.known.verdict} in {each.known.name}, of {each.known.source}: {each.known.reason}"
        yield from _wrapped("  known     ", told)
    # Where a reason is recorded, the hypotheses from arithmetic alone are guesses.
    label = "  perhaps   " if each.known is not None and each.known.reason else "  cause     "
    for index, cause in enumerate(each.causes):
        yield from _wrapped(label if index == 0 else "        or  ", cause.sentence)
    if not each.causes and each.known is None:
        yield "  cause     none of the usual causes closes the gap"
    if each.known is None:
        yield "  new       the catalog does not record it"


def _source(adopted: Adopted) -> str:
    return ", ".join(t for t in (adopted.source or "no source", adopted.as_of) if t)


def _says(each: Compared) -> str:
    """The statement of the record, and the same in a unit closer to that of the catalog: GiB for many MiB."""
    says = each.statement.says
    if isinstance(says, Quantity) and says.unit.symbol == "MiB" and not each.statement.text:
        gib = says.value / 2**30
        if gib.denominator == 1:
            return f"{says} = {render(says.value, 'GiB', len(str(gib)))}"
    return str(each.statement)


def _lacking(found: tuple[Lacking, ...], *, verbose: bool) -> Iterator[str]:
    if verbose:
        for each in found:
            told = "; ".join(
                f"{d}{f', which is {chip}' if chip else ', a chip it lacks too'}" for d, chip in each.devices
            )
            yield f"  {each.type}  {told}"
        return
    chips: dict[str, list[str]] = {}
    for each in found:
        for device, _ in each.devices:
            chips.setdefault(device.title, []).append(each.type)
    for title, types in sorted(chips.items()):
        names = list(dict.fromkeys(types))
        yield from _wrapped(f"  {title}: ", ", ".join(names))


def _wrapped(head: str, told: str) -> list[str]:
    return textwrap.wrap(told, 100, initial_indent=head, subsequent_indent=" " * min(len(head), 12)) or [head]


def data(found: Audit, origin: Origin, *, only_new: bool = False) -> str:
    """The audit for programs: JSON, version 1; the arguments are those of :func:`text`."""
    made: dict[str, Any] = {
        "version": 1,
        "records": {"from": origin.name, "as_of": origin.as_of or None},
        "contradictions": [_entry(c) for c in (found.unrecorded if only_new else found.contradictions)],
        "omissions": [{"type": name, "catalog": chips} for name, chips in found.omissions],
        "lacking": [
            {"type": x.type, "devices": [{"says": str(d), "where": d.where, "chip": c or None} for d, c in x.devices]}
            for x in found.lacking
        ],
        "additions": [_entry(c) for c in found.additions],
        "agreements": [_entry(c) for c in found.agreements],
        "others": found.others,
    }
    return json.dumps(made, indent=2, ensure_ascii=False)


def _entry(each: Compared) -> dict[str, Any]:
    adopted = each.adopted
    made: dict[str, Any] = {
        "type": each.type,
        "attribute": each.statement.id,
        "record": {"says": str(each.statement), "where": each.statement.where},
        "catalog": None,
        "path": each.target.path,
    }
    if adopted is not None:
        says = {"says": adopted.text, "name": adopted.name, "path": adopted.path}
        made["catalog"] = {**says, "source": adopted.source or None, "as_of": adopted.as_of or None}
    if not each.agrees:
        made["causes"] = [asdict(c) for c in each.causes]
        made["known"] = asdict(each.known) if each.known is not None else None
    return made
