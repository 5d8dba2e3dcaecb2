"""A measurement set: a table of rows for each kind, with its Measurements document, and the source of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import frozen

from trnspec.loading.measured import csv_text, is_stated
from trnspec.measure.device import Device
from trnspec.measure.kernels import Cells
from trnspec.model.document_text import document_text

_US, _GBPS, _MIB = ({"unit": unit} for unit in ("us", "GB/s", "MiB"))
_NUMBER = {"holds": "number"}

_COLUMNS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "kind": ("what the row measures", {}),
    "id": ("name of the row", {}),
    "op": ("what ran", {}),
    "phase": ("prefill or decode", {}),
    "model": ("what was multiplied", {}),
    "hardware": ("hardware, as the driver or the catalog names it", {}),
    "n_chips": ("chips in use", _NUMBER),
    "ranks": ("ranks", _NUMBER),
    "cores": ("logical cores in use", _NUMBER),
    "precision": ("arithmetic", {}),
    "kv_precision": ("type of the KV cache", {}),
    "m": ("rows of the left operand", _NUMBER),
    "n": ("columns of the right operand", _NUMBER),
    "k": ("inner dimension", _NUMBER),
    "batch": ("sequences of a batch", _NUMBER),
    "q_len": ("queries of a sequence", _NUMBER),
    "kv_len": ("keys of a sequence", _NUMBER),
    "heads": ("attention heads", _NUMBER),
    "kv_heads": ("KV heads", _NUMBER),
    "head_dim": ("size of a head", _NUMBER),
    "causal": ("whether the mask is causal", {"holds": "yes-no"}),
    "collective": ("the collective", {}),
    "size_bytes": ("the buffer", {"unit": "B"}),
    "dtype": ("type of an element", {}),
    "shape": ("bytes that are copied; of a layer batch, tokens, hidden size, heads, KV heads and width", {}),
    "time_us": ("time per call", _US),
    "tflops_per_chip": ("achieved rate per chip", {"unit": "TFLOPS"}),
    "achieved": ("achieved rate: bytes read and written over the time", _NUMBER),
    "unit": ("unit of the achieved rate", {}),
    "algbw_GBps": ("buffer over time", _GBPS),
    "busbw_GBps": ("bus bandwidth, as nccl-tests defines it", _GBPS),
    "bytes": ("bytes of operands and results, each counted once", {"unit": "B"}),
    "peak_mib": ("largest allocated memory, forward and backward, weights included", _MIB),
    "saved_mib": ("activations kept for the backward computation", _MIB),
    "framework": ("software", {}),
    "framework_version": ("its version", {}),
    "kernel": ("kernel or library", {}),
    "launch": ("how calls were launched", {}),
    "source": ("the program that measured", {}),
    "note": ("how the value was obtained", {}),
}
"""The columns of all tables, in order: meaning, and unit or form."""

TITLES = {
    "matmul": "Matrix multiplications",
    "attention": "Attention in prefill and decoding",
    "op": "Copies of device memory and layers of a decoder",
    "collective": "Collectives",
}
"""Columns of the table of a kind."""


@frozen(kw_only=True)
class TableOrigin:
    """Columns shared by all tables of a set.

    Attributes:
        name: Their names begin with it; the name of the source.
        date: The day of the measurement.
        device: The device.
        hardware: The name of the chip in the catalog, or of the device.
        server: The name of the server in the catalog, for collectives; empty if unknown.
        chip: The chip in the catalog; empty if it has none.
        version: The version of trnspec.
    """

    name: str
    date: str
    device: Device
    hardware: str
    server: str
    chip: str
    version: str


def completed(kind: str, rows: Sequence[Cells], origin: TableOrigin) -> list[Cells]:
    """The rows of a kind with the cells that all have."""
    of_collective = kind == "collective"
    common = {
        "kind": kind,
        "hardware": origin.server if of_collective and origin.server else origin.hardware,
        "n_chips": "1",
        "framework": "nccl" if of_collective else "torch",
        "framework_version": origin.device.facts.get("PyTorch", ""),
        # Calls follow each other, as in nccl-tests, so that the host is ahead of a collective.
        "launch": "queued, as by nccl-tests" if of_collective else "eager",
        "source": f"trnspec measure {origin.version}, {origin.date}",
    }
    if of_collective and origin.device.kind != "cuda":
        common["framework"] = "gloo"
    return [
        common | row | {"id": f"{origin.name}-{row['id']}"} | ({"n_chips": row["ranks"]} if of_collective else {})
        for row in rows
    ]


def table(rows: Sequence[Cells]) -> str:
    """The rows as CSV, with the columns that some row has."""
    return csv_text(columns(rows), rows)


def columns(rows: Sequence[Cells]) -> list[str]:
    """The columns that some row has, in order."""
    return [name for name in _COLUMNS if any(is_stated(row.get(name, "")) for row in rows)]


def files(folder: Path, tables: Mapping[str, Sequence[Cells]], origin: TableOrigin) -> dict[Path, bytes]:
    """The files of a set: tables and documents by kind, and the source."""
    texts = {folder / "sources" / f"{origin.name}.yaml": _source(origin)}
    for kind, rows in tables.items():
        if rows:
            stem = folder / "measured" / f"{origin.name}-{kind}"
            texts[stem.with_name(f"{stem.name}.csv")] = table(rows)
            texts[stem.with_name(f"{stem.name}.yaml")] = _document(kind, rows, origin)
    return {path: text.encode() for path, text in texts.items()}


def _source(origin: TableOrigin) -> str:
    return document_text(
        "Source",
        {"name": origin.name, "title": f"Own measurements on {origin.device.name}"},
        {
            "publisher": "own measurements", "as_of": origin.date, "rank": "third-party",
            "version": f"trnspec {origin.version}", "note": _facts(origin),
        },
    )  # fmt: skip


def _facts(origin: TableOrigin) -> str:
    return "; ".join(f"{name} {value}" for name, value in {"device": origin.device.name, **origin.device.facts}.items())


def _document(kind: str, rows: Sequence[Cells], origin: TableOrigin) -> str:
    known = {origin.hardware: origin.chip, origin.server: origin.server}
    described = {name: _COLUMNS[name] for name in columns(rows)}
    return document_text(
        "Measurements",
        {
            "name": f"{origin.name}-{kind}", "title": f"{TITLES[kind]}, {origin.device.name}", "source": origin.name,
            "note": _facts(origin),
        },
        {
            "data": f"{origin.name}-{kind}.csv", "of": kind, "framework": "PyTorch",
            "version": origin.device.facts.get("PyTorch", "unknown"), "licence": "own measurements",
            "hardware": {text: known.get(text, "") for text in sorted({r["hardware"] for r in rows})},
            "columns": {name: {"meaning": meaning, **form} for name, (meaning, form) in described.items()},
            "unstated": ["temperature", "L2 residency"],
        },
    )  # fmt: skip
