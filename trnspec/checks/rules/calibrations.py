"""Calibrations: their tables of measurements, ranges, shares and dates."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date
from pathlib import Path as FilePath
from typing import Any

from attrs import has

from trnspec.checks.rules.measurements import of_family
from trnspec.diagnostics import Location, did_you_mean
from trnspec.errors import UsageError
from trnspec.graph.graph import Graph
from trnspec.loading.measured import DTYPES, table_of
from trnspec.model.calibration import Achieved, Calibration, Protocol
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.measurements import Measurements
from trnspec.model.ref import Ref
from trnspec.model.reflection import FigureShape, fields_of
from trnspec.plugins.api import Finding, rule
from trnspec.quantities.dates import compared
from trnspec.quantities.units import Dimension
from trnspec.yaml import Path


@rule("TRN706", "changed-table", over=Calibration)
def changed_table(node: Node[Calibration], graph: Graph) -> Iterator[Finding]:
    """A calibration whose table of measurements has changed since the fit, is of another kind, or not in the catalog.

    Why:
        Its lines no longer name the fitted rows, so that no row of the table counts as one that the fit has not seen.

    Example:
        ```yaml
        # file: measured/example.yaml
        api_version: trnspec/v1
        kind: Measurements
        metadata: {name: example, title: Example, source: neuron-trn1-2023-02}
        spec:
          data: example.csv
          of: matmul
          framework: PyTorch
          licence: Apache-2.0
          columns:
            kind: {meaning: what the row measures}
            id: {meaning: name of the row}
            source: {meaning: where it is published}
            time_us: {meaning: time per call, unit: us}
        # file: measured/example.csv
        kind,id,source,time_us
        matmul,one,a page,12.5
        # file: calibrations/trainium1-example.yaml
        api_version: trnspec/v1
        kind: Calibration
        metadata: {name: trainium1-example, title: Example, source: neuron-trn1-2023-02}
        spec:
          chip: trainium1
          of: kernels
          software: PyTorch
          fitted: 2026-11-20
          tables:
            - {table: example.csv, hash: 0a1b2c3d4e5f, lines: "2"}  #! TRN706
          achieved: {matmul: 0.8x}
          spread: {rows: 1, mean: 0.1x, median: 0.1x, worst: 0.1x, coverage: 0.8x, low: 0.9x, high: 1.1x}
        ```

    Instead:
        ```diff
        -    - {table: example.csv, hash: 0a1b2c3d4e5f, lines: "2"}
        +    - {table: example.csv, hash: e3186d1538b0, lines: "2"}
        ```

    Source:
        docs/explanation/performance/calibration.md: errors are those of rows that a fit has not seen.
    """
    if graph.focus is not None and node.name not in graph.focus:
        return  # the tables are read for a calibration that is checked
    hashes: dict[str, set[str]] = {}
    kinds: dict[str, str] = {}
    places: dict[str, tuple[Location, ...]] = {}
    lines: dict[str, set[int]] = defaultdict(set)
    named = {document.spec.data for document in graph.of(Measurements) if document.target}
    for document in graph.of(Measurements):
        # TRN701 reports a table that cannot be read.
        with suppress(UsageError):
            places[document.spec.data] = (Location(document.document.file),)
            table = table_of(document.spec, document.document.file)
            places[document.spec.data] += (Location(table.file),)
            hashes.setdefault(document.spec.data, set()).add(table.hash)
            kinds[document.spec.data] = document.spec.of
            lines[document.spec.data].update(row.line for row in table.rows)
    for index, fitted in enumerate(node.spec.tables):
        path = ("spec", "tables", index)
        known, see = hashes.get(fitted.table), places.get(fitted.table, ())
        files = (FilePath(file).parent / fitted.table for file in graph.broken.values())
        if known is None and (fitted.table in named or any(file.exists() for file in files)):
            continue  # it cannot be read, or that of a document with errors
        if known is None:
            hint = did_you_mean(fitted.table, hashes)
            unread = tuple(place for name, place in places.items() if name not in hashes)
            see = tuple(place for each in unread for place in each)
            yield Finding((*path, "table"), f"no document has the table {fitted.table}", hint, see)
        elif fitted.hash not in known:
            message = f"{fitted.table} has changed since the fit: its hash is {' or '.join(sorted(known))}"
            yield Finding((*path, "hash"), message, "fit it anew with trnspec calibrate", see)
        elif kinds[fitted.table] not in _ROWS_OF[node.spec.of]:
            message = f"{fitted.table} has rows of {kinds[fitted.table]}, not those of a fit of {node.spec.of}"
            yield Finding((*path, "table"), message, f"one of {', '.join(_ROWS_OF[node.spec.of])} is expected", see)
        elif not fitted.numbers <= lines[fitted.table]:
            without = min(fitted.numbers - lines[fitted.table])
            message = f"{fitted.table} has no row on line {without}"
            yield Finding(
                (*path, "lines"),
                message,
                f"its rows are on lines {min(lines[fitted.table])} to {max(lines[fitted.table])}",
                see,
            )


_ROWS_OF: Mapping[str, tuple[str, ...]] = {
    "training": ("train",),
    "inference": ("infer",),
    "collectives": ("collective",),
    "kernels": ("matmul", "attention", "moe", "op"),
}
"""The rows that a fit uses."""

_FIT_DTYPES = ("int4", "int8", *dict.fromkeys(name for _, names in DTYPES for name in names))
"""The compute dtypes of fits."""

_SHARES = tuple(
    name
    for name, member in fields_of(Achieved).items()
    if member.shape == FigureShape(Dimension.RATIO) and not name.endswith(("_passes", "copies"))
)
"""Achieved values that are shares; the other ratios are passes over data."""

_MAY_BE_ZERO = re.compile("overlap|exposed|additive|causal|padding|queue|coverage")
"""Shares that can be zero; times are divided by the others."""


@rule("TRN707", "impossible-fit", over=Calibration, local=True)
def impossible_fit(node: Node[Calibration], graph: Graph) -> Iterator[Finding]:
    """A calibration with a range or lines in the wrong order, an impossible share, error, number of rows or date.

    Why:
        Whether an input is inside the range of a fit decides whether an answer is an extrapolation, and the coverage how
        wide its interval is. With the two ends of a range exchanged, nothing is inside.

    Example:
        ```yaml
        api_version: trnspec/v1
        kind: Calibration
        metadata: {name: trainium1-example, title: Example, source: neuron-trn1-2023-02}
        spec:
          chip: trainium1
          of: kernels
          software: PyTorch
          fitted: 2026-11-20
          fitted_on:
            chips: [trainium1]
            ranks: {low: 64, high: 2}  #! TRN707
          achieved: {matmul: 0.8x}
          spread: {rows: 1, mean: 0.1x, median: 0.1x, worst: 0.1x, coverage: 0.8x, low: 0.9x, high: 1.1x}
        ```

    Instead:
        ```diff
        -    ranks: {low: 64, high: 2}
        +    ranks: {low: 2, high: 64}
        ```

    Source:
        The definition of an interval.
    """
    for path, low, high in _ranges(node.spec, ("spec",)):
        yield Finding((*path, "low"), f"low is {low}, and high {high}", "exchange the two")
    yield from _impossible_errors(node.spec)
    yield from _impossible_shares(node.spec)
    when, today = node.spec.fitted, date.today().isoformat()  # noqa: DTZ011  # as TRN307
    measured = graph.find(node.metadata.source) if node.metadata.source is not None else None
    if compared(when, today) > 0:
        yield Finding(("spec", "fitted"), f"{when} is in the future; today is {today}", "write the day of the fit")
    elif measured is not None and compared(when, measured.spec.as_of) < 0:
        message = f"it was fitted {when}, before its source, {measured.name} of {measured.spec.as_of}"
        yield Finding(("spec", "fitted"), message, "correct the date, or name the source of the measurements")
    yield from _unknown_rows(node, graph)
    for index, fitted in enumerate(node.spec.tables):
        if any(int(first) > int(last) for first, last in re.findall(r"(\d+)-(\d+)", fitted.lines)):
            yield Finding(
                ("spec", "tables", index, "lines"),
                f"{fitted.lines} ends before it begins",
                "write the lower line first",
            )


def _impossible_shares(spec: Calibration) -> Iterator[Finding]:
    """The findings of shares above 1, of rates that are not reached at all, and of a protocol that is listed twice."""
    shares: list[tuple[Path, Figure | None]] = [(("spec", "spread", "coverage"), spec.spread.coverage)]
    shares += [(("spec", "achieved", name), getattr(spec.achieved, name)) for name in _SHARES]
    for index, protocol in enumerate(spec.protocols):
        path = ("spec", "protocols", index)
        if protocol.name in {each.name for each in spec.protocols[:index]}:
            yield Finding((*path, "name"), f"the protocol {protocol.name} is listed twice", "remove or correct one")
        shares += [((*path, name), getattr(protocol, name)) for name in ("link", "network")]
    for index, learned in enumerate(spec.prior.learned if spec.prior is not None else ()):
        shares.append((("spec", "prior", "learned", index, "share"), learned.share))
    for index, roof in enumerate(spec.roofs):
        shares += [(("spec", "roofs", index, name), getattr(roof, name)) for name in ("compute", "memory")]
    for at, share in shares:
        least = 0 if _MAY_BE_ZERO.search(str(at[-1])) else 1e-9
        if share is not None and not least <= share.value.value <= 1:
            fault = "above 1" if share.value.value else "not a rate"
            yield Finding(at, f"a share of {share} is {fault}", "write a share of the published figure, such as 0.8x")


def _impossible_errors(spec: Calibration) -> Iterator[Finding]:
    """The findings of errors and numbers of rows that exceed those that they are part of."""
    spread, at = spec.spread, ("spec", "spread")
    lines = sum(len(table.numbers) for table in spec.tables)
    if lines and (spread.rows > lines or (spec.of == "training" and spread.rows < lines)):
        yield Finding((*at, "rows"), f"{spread.rows:,} rows, but the tables have {lines:,} lines", f"{lines}?")
    for name in ("mean", "median"):
        if (error := getattr(spread, name)).value.value > spread.worst.value.value:
            yield Finding((*at, name), f"{error} is above the worst error, {spread.worst}", "correct one of the two")
    for index, group in enumerate(spec.groups):
        for name, most, of in (("rows", spread.rows, "the fit"), ("clusters", group.rows, "the group")):
            if (number := getattr(group, name)) > most:
                message = f"{number:,} {name}, but {of} has {most:,} rows"
                yield Finding(("spec", "groups", index, name), message, f"write at most {most}")


def _unknown_rows(node: Node[Calibration], graph: Graph) -> Iterator[Finding]:
    """The findings of chips and dtypes of a fit that do not exist."""
    fitted_on = node.spec.fitted_on
    for index, chip in enumerate(fitted_on.chips if fitted_on is not None else ()):
        if chip not in graph and chip not in graph.broken and (known := of_family(chip, graph)):
            path = ("spec", "fitted_on", "chips", index)
            yield Finding(path, f"no chip is named {chip!r}", did_you_mean(chip, known) or f"known: {', '.join(known)}")
    known_names = [
        *fields_of(Achieved),
        *(f"{p.name} {name}" for p in node.spec.protocols for name in fields_of(Protocol)),
    ]
    for index, learned in enumerate(node.spec.prior.learned if node.spec.prior is not None else ()):
        if learned.name not in known_names:
            message, hint = f"no parameter is named {learned.name!r}", did_you_mean(learned.name, known_names)
            yield Finding(("spec", "prior", "learned", index, "name"), message, hint)
    for index, dtype in enumerate(fitted_on.dtypes if fitted_on is not None else ()):
        if dtype not in _FIT_DTYPES:
            yield Finding(
                ("spec", "fitted_on", "dtypes", index), f"{dtype!r} is not a dtype", did_you_mean(dtype, _FIT_DTYPES)
            )


def _ranges(value: Any, path: Path) -> Iterator[tuple[Path, Any, Any]]:
    """Each range whose low end is above its high end."""
    if isinstance(value, tuple):
        for index, item in enumerate(value):
            yield from _ranges(item, (*path, index))
    elif has(cls := type(value)) and not isinstance(value, (Figure, Ref)):
        ends = [getattr(value, "low", None), getattr(value, "high", None)]
        sizes = [end.value.value if isinstance(end, Figure) else end for end in ends if end is not None]
        if len(sizes) == len(ends) and sizes[0] > sizes[1]:
            yield path, ends[0], ends[1]
        for name in fields_of(cls):
            yield from _ranges(getattr(value, name), (*path, name))
