"""The kind Measurements: a table of published measurements, with its source, columns and what it leaves unstated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from attrs import field, frozen

from trnspec.model.annotations import Pattern, Text, Unsourced

FileName = Annotated[
    str, Pattern(r"^[A-Za-z0-9][A-Za-z0-9_.-]*\.csv$", "the name of a CSV file in the folder of the document")
]

Kind = Literal[
    "train", "train_run", "serve_run", "infer", "collective", "matmul", "attention", "moe", "op", "device_profile"
]
"""Quantity that a row measures; the value of the column ``kind``."""

RowKind = Literal["text", "yes-no", "number", "date"]


@frozen(kw_only=True, repr=False)
class MeasuredColumn(Unsourced):
    """A column of the table.

    Attributes:
        meaning: What a cell states. Example: time per output token, client mean
        unit: The unit of a number; a share of 1 has the unit 1. Example: ms
        holds: What the cells hold, where they are not numbers with a unit.
    """

    meaning: Text
    unit: Text | None = None
    holds: RowKind = "text"


@frozen(kw_only=True, repr=False)
class RejectedRow(Unsourced):
    """A row, or one cell of it, that is kept as published and not used.

    Attributes:
        row: The id of the row. Example: whn09-0-gemm
        column: The column of the cell; by default the whole row. Example: out_tok_s
        reason: Why it cannot be right.
    """

    row: Text
    column: Text | None = None
    reason: Text


@frozen(kw_only=True, repr=False)
class Measurements(Unsourced):
    """A table of published measurements, one row per measurement.

    Attributes:
        data: The table, a CSV file in the folder of the document. Example: training_mpt.csv
        of: What a row measures.
        framework: The software that was measured; a column of the table has it where rows differ. Example: llm-foundry
        version: Its version, where one version made all rows. Example: 0.7
        commit: The revision of the repository that the rows were read from. Example: 095f58a51c4c
        licence: The licence of the source; "none stated" where it states none. Example: Apache-2.0
        hardware: The catalog names of the hardware that rows name; an empty text for hardware that is in no catalog.
        models: The catalog names of models that rows name otherwise.
        columns: Every column of the table.
        unstated: Settings that change the result and that no row states. Example: recompute
        rejected: Rows and cells that cannot be right.
    """

    data: FileName
    of: Kind
    framework: Text
    version: Text | None = None
    commit: Annotated[str, Pattern(r"^[0-9a-f]{7,40}$", "7 to 40 hexadecimal digits")] | None = None
    licence: Text
    hardware: Mapping[str, str] = field(factory=dict)
    models: Mapping[str, str] = field(factory=dict)
    columns: Mapping[str, MeasuredColumn]
    unstated: tuple[Text, ...] = ()
    rejected: tuple[RejectedRow, ...] = ()
