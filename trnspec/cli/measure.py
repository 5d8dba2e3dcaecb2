"""``trnspec measure``: measures the accelerator of the user, and compares it with its figures."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import Any

import click
from attrs import asdict

from trnspec._version import __version__
from trnspec.atomic_write import write
from trnspec.catalog.catalog import Catalog
from trnspec.cli.common import load_catalog
from trnspec.cli.complete import documents
from trnspec.cli.help import documented, option
from trnspec.cli.progress import bar
from trnspec.cli.render import formats, show
from trnspec.errors import UnknownNameError, UsageError
from trnspec.measure.collectives import collectives
from trnspec.measure.comparison import ComparedRows, compare
from trnspec.measure.device import Device, chip_of, device_of
from trnspec.measure.kernels import Cells, attention, copies, gemms
from trnspec.measure.layer import layers
from trnspec.measure.shapes import FULL, SMALL
from trnspec.measure.tables import TableOrigin, completed, files
from trnspec.model.annotations import NAME_PATTERN
from trnspec.model.server import Server
from trnspec.perf.calibration.measured.case import Skipped
from trnspec.text_table import Column, plural, table

PARTS = ("gemm", "copy", "attention", "layer", "collective")
"""Kinds of measurements."""

KINDS = {"gemm": "matmul", "copy": "op", "attention": "attention", "layer": "op", "collective": "collective"}
"""The kind of the rows of each."""


@documented(
    "measure",
    ("trnspec measure --out mine --name lab-h200", "Measure the GPU, and write a measurement set into a catalog:"),
    ("trnspec measure --device cpu --ranks 2", "Try it on the CPU, in seconds:"),
    ("trnspec measure --device cpu --only gemm --format json", "One kind of measurement, for programs:"),
    ("trnspec measure --device cpu --only copy --small", "Copies within device memory, with small sizes:"),
)
@option("--device", "Measurements", "What to measure; a GPU if any.", type=click.Choice(["cuda", "cpu"]))
@option("--only", "Measurements", "Measure only this; may be repeated.", multiple=True, type=click.Choice(PARTS))
@option("--small", "Measurements", "Small shapes and few repetitions: seconds, not minutes; always so on the CPU.")
@option(
    "--ranks N",
    "Measurements",
    "Ranks of collectives; below 2 there are none.  [default: the GPUs of the machine]",
    type=click.IntRange(min=1),
)
@option(
    "--chip NAME",
    "Hardware",
    "The chip of the catalog that the device is; by the name of the device when left out.",
    shell_complete=documents("chips"),
)
@option(
    "--server NAME",
    "Hardware",
    "The server of the catalog, for collectives: dgx-h200.",
    shell_complete=documents("servers"),
)
@option(
    "--calibration NAME",
    "Hardware",
    "The calibration to compare with; none for the published figures alone.",
    default="auto",
)
@option("--out DIR", "Output", "Write tables and documents into this catalog folder.")
@option("--name NAME", "Output", "Names begin with it.", default="measured")
@option("--force", "Output", "Overwrite existing files.")
@formats("text", "json")
@option("--catalog DIR", "Catalog", "Also resolve names in this catalog.")
def command(**options: Any) -> None:
    """Measure kernels, a layer and collectives on an accelerator with PyTorch.

    Measured are matrix multiplications by shape and precision, copies of device memory, attention in prefill and decoding,
    a layer of a decoder forward and backward with its memory, and collectives where there are several devices. Each time is the
    median of batches between device events, after a warm-up. The result is a measurement set with driver, clocks and
    versions, which `trnspec validate`, `trnspec eval accuracy --data` and `trnspec calibrate` read, and a comparison with the
    figures of the chip and the calibration in use.
    """
    if not re.fullmatch(NAME_PATTERN.regex, options["name"]):
        raise UsageError(f"--name: {options['name']!r} is not {NAME_PATTERN.words}")
    catalog = load_catalog(catalog=options["catalog"])
    server = _server(catalog, options["server"])
    device = device_of(options["device"])
    chip = chip_of(catalog.graph, device, options["chip"])
    origin = TableOrigin(
        name=options["name"], date=f"{datetime.now(UTC):%Y-%m-%d}", device=device, hardware=chip or device.name,
        server=server, chip=chip, version=__version__,
    )  # fmt: skip
    if options["out"]:
        _check_free(FilePath(options["out"]), options)
    measured = _measured(device, options)
    tables = {kind: completed(kind, rows, origin) for kind, rows in measured.items()}
    written = files(FilePath(options["out"]), tables, origin) if options["out"] else {}
    write(written)
    compared, skipped = compare(catalog.graph, tables, options["calibration"])
    if options["format_"] == "json":
        click.echo(_json(device, chip, tables, compared, skipped, list(written)))
        return
    _print(device, chip, tables, compared, skipped)
    for path in sorted(written):
        click.echo(f"wrote {path}")


def _server(catalog: Catalog, name: str | None) -> str:
    if name is None:
        return ""
    known = next((n.name for n in catalog.graph.of(Server) if name in (n.name, *n.metadata.aliases)), None)
    if known is None:
        raise UnknownNameError(f"--server: no server is named {name!r}")
    return known


def _check_free(folder: FilePath, options: Mapping[str, Any]) -> None:
    """Reports files that exist before the measurement, which may take minutes."""
    names = [folder / "sources" / f"{options['name']}.yaml"]
    names += [folder / "measured" / f"{options['name']}-{kind}.csv" for kind in sorted({*KINDS.values()})]
    existing = [path for path in names if path.exists()]
    if existing and not options["force"]:
        raise UsageError(f"{existing[0]} exists; --force overwrites it")


def _measured(device: Device, options: Mapping[str, Any]) -> dict[str, list[Cells]]:
    """The rows of each kind."""
    shapes = SMALL if options["small"] or device.kind == "cpu" else FULL
    parts = options["only"] or PARTS
    functions = {"gemm": gemms, "copy": copies, "attention": attention, "layer": layers}
    rows: dict[str, list[Cells]] = {}
    with bar() as advance:
        for i, part in enumerate(parts):
            advance(i, len(parts))
            if part in functions:
                rows.setdefault(KINDS[part], []).extend(functions[part](device, shapes))
            else:
                rows.setdefault(KINDS[part], []).extend(collectives(device, shapes, options["ranks"] or device.count))
        advance(len(parts), len(parts))
    return rows


def _print(
    device: Device,
    chip: str,
    tables: Mapping[str, Sequence[Cells]],
    compared: Sequence[ComparedRows],
    skipped: Sequence[Skipped],
) -> None:
    count = sum(map(len, tables.values()))
    head = [f"{device.name}: {count} rows, chip {chip or 'unknown: state it with --chip'}"]
    head += [f"  {name:<18}{value}" for name, value in device.facts.items()]
    numbers = [Column(name, right=True, keep=True) for name in ("rows", "best", "median")]
    columns: list[str | Column] = [
        Column("measured", keep=True),
        "precision",
        *numbers,
        "of the",
        Column("calibration", wrap=True),
    ]
    cells = [
        (c.what, c.precision, c.rows, f"{c.best:.1%}", f"{c.median:.1%}", c.against, _calibrated(c)) for c in compared
    ]
    reasons = Counter(row.reason for row in skipped)
    notes = [f"not compared: {plural(rows, 'row')}: {why}" for why, rows in reasons.items()]
    show(["\n".join(head), table(columns, cells, "--format json"), *notes])


def _calibrated(compared: ComparedRows) -> str | None:
    if compared.error is None or compared.bias is None or compared.inside is None:
        return None
    return f"{compared.calibration}: {compared.error:.0%} off ({compared.bias:+.0%}), {compared.inside:.0%} inside"


def _json(  # the parts of the document
    device: Device,
    chip: str,
    tables: Mapping[str, Sequence[Cells]],
    compared: Sequence[ComparedRows],
    skipped: Sequence[Skipped],
    written: Sequence[FilePath],
) -> str:
    return json.dumps(
        {
            "device": {"kind": device.kind, "name": device.name, "count": device.count, "facts": dict(device.facts)},
            "chip": chip or None,
            "rows": [dict(row) for rows in tables.values() for row in rows],
            "compared": [asdict(each) for each in compared],
            "skipped": [asdict(each) for each in skipped],
            "wrote": sorted(map(str, written)),
        },
        indent=2,
    )
