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
        as_of: The date of the records; empty if it is not known.
    """

    name: str
    as_of: str

    def __str__(self) -> str:
        """As text."""
        return f"EC2 API, {self.as_of or 'undated'}"


def text(result: Audit, origin: Origin, *, verbose: bool = False, only_new: bool = False) -> str:
    """The audit as text.

    Args:
        result: The result of the audit.
        origin: Where the records come from.
        verbose: Whether to list agreements too, each type that the catalog lacks, and the causes that arithmetic suggests
            where the catalog records a reason.
        only_new: Whether to leave out the contradictions that the catalog records.
    """
    lines: list[str] = []
    for compared in result.unrecorded if only_new else result.contradictions:
        lines += [*_contradiction(compared, origin, verbose=verbose), ""]
    if result.omissions:
        lines.append("Types of the catalog whose record lists no accelerator:")
        lines += [f"  {name}  {chips} in the catalog" for name, chips in result.omissions] + [""]
    if result.lacking:
        lines.append("Types with accelerators that the catalog lacks:")
        lines += [*_lacking(result.lacking, verbose=verbose), ""]
    if result.additions:
        lines.append("Figures that the catalog lacks:")
        lines += [f"  {c.type}  {c.target.path}: {c.statement}  ({c.statement.where})" for c in result.additions] + [""]
    if verbose and result.agreements:
        lines.append("What agrees:")
        lines += [f"  {c.type}  {c.statement.title}: {c.statement}  {_location(c)}" for c in result.agreements] + [""]
    lines.append(_sum(result))
    return "\n".join(lines)


def _sum(result: Audit) -> str:
    new = len(result.unrecorded)
    known = len(result.contradictions) - new
    parts = [
        f"{len(result.agreements)} agree",
        f"{known} contradict and {'is' if known == 1 else 'are'} recorded",
        f"{new} contradict and {'is' if new == 1 else 'are'} not",
        f"{len(result.additions)} could be added",
    ]
    types = len(result.lacking)
    return f"{', '.join(parts)}; the catalog lacks {types} type{'' if types == 1 else 's'} with accelerators."


def _location(compared: Compared) -> str:
    adopted = compared.adopted
    assert adopted is not None  # only what is stated can agree
    return f"({adopted.name} {adopted.path}: {adopted.text})"


_MOST_CAUSES = 3


def _contradiction(compared: Compared, origin: Origin, *, verbose: bool) -> Iterator[str]:
    adopted = compared.adopted
    assert adopted is not None  # only what is stated can be contradicted
    yield f"{compared.type}  {compared.statement.title}"
    yield f"  record    {_says(compared)}  ({origin})"
    yield f"            {compared.statement.where}"
    yield f"  catalog   {adopted.text}  ({_source(adopted)})"
    yield f"            {adopted.path} of {adopted.name}"
    if compared.known is not None:
        recorded = (
            f"{compared.known.verdict} in {compared.known.name}, of {compared.known.source}: {compared.known.reason}"
        )
        yield from _wrapped("  known     ", recorded)
    # Where a reason is recorded, the hypotheses from arithmetic alone are guesses.
    guesses = compared.known is not None and compared.known.reason
    label = "  perhaps   " if guesses else "  cause     "
    for index, cause in enumerate(compared.causes[: _MOST_CAUSES * (verbose or not guesses)]):
        yield from _wrapped(label if index == 0 else "        or  ", cause.sentence)
    if not compared.causes and compared.known is None:
        yield "  cause     none of the known causes closes the gap"
    if compared.known is None:
        yield "  new       the catalog does not record it"


def _source(adopted: Adopted) -> str:
    return ", ".join(t for t in (adopted.source or "no source", adopted.as_of) if t)


def _says(compared: Compared) -> str:
    """The statement of the record, and the same in a unit closer to that of the catalog: GiB for many MiB."""
    says = compared.statement.says
    if isinstance(says, Quantity) and says.unit.symbol == "MiB" and not compared.statement.text:
        gib = says.value / 2**30
        if gib.denominator == 1:
            return f"{says} = {render(says.value, 'GiB', len(str(gib)))}"
    return str(compared.statement)


def _lacking(lacking_types: tuple[Lacking, ...], *, verbose: bool) -> Iterator[str]:
    if verbose:
        for lacking in lacking_types:
            listed = "; ".join(
                f"{d}{f', which is {chip}' if chip else ', a chip it lacks too'}" for d, chip in lacking.devices
            )
            yield f"  {lacking.type}  {listed}"
        return
    chips: dict[str, list[str]] = {}
    for lacking in lacking_types:
        for device, _ in lacking.devices:
            chips.setdefault(device.title, []).append(lacking.type)
    for title, types in sorted(chips.items()):
        names = list(dict.fromkeys(types))
        yield from _wrapped(f"  {title}: ", ", ".join(names))


def _wrapped(head: str, content: str) -> list[str]:
    return textwrap.wrap(content, 100, initial_indent=head, subsequent_indent=" " * min(len(head), 12)) or [head]


def data(result: Audit, origin: Origin, *, only_new: bool = False) -> str:
    """The audit as JSON, version 1; the arguments are those of :func:`text`."""
    content: dict[str, Any] = {
        "version": 1,
        "records": {"from": origin.name, "as_of": origin.as_of or None},
        "contradictions": [_entry(c) for c in (result.unrecorded if only_new else result.contradictions)],
        "omissions": [{"type": name, "catalog": chips} for name, chips in result.omissions],
        "lacking": [
            {"type": x.type, "devices": [{"says": str(d), "where": d.where, "chip": c or None} for d, c in x.devices]}
            for x in result.lacking
        ],
        "additions": [_entry(c) for c in result.additions],
        "agreements": [_entry(c) for c in result.agreements],
        "others": result.others,
    }
    return json.dumps(content, indent=2, ensure_ascii=False)


def _entry(compared: Compared) -> dict[str, Any]:
    adopted = compared.adopted
    entry: dict[str, Any] = {
        "type": compared.type,
        "attribute": compared.statement.id,
        "record": {"says": str(compared.statement), "where": compared.statement.where},
        "catalog": None,
        "path": compared.target.path,
    }
    if adopted is not None:
        says = {"says": adopted.text, "name": adopted.name, "path": adopted.path}
        entry["catalog"] = {**says, "source": adopted.source or None, "as_of": adopted.as_of or None}
    if not compared.agrees:
        entry["causes"] = [asdict(c) for c in compared.causes]
        entry["known"] = asdict(compared.known) if compared.known is not None else None
    return entry
