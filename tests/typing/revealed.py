"""Types of the Python API as a type checker reveals them; tests/test_typing.py compares them with the comments."""

from __future__ import annotations

from typing import reveal_type

import trnspec
from trnspec.model.chip import Chip

cat = trnspec.load()
chip = cat.chips["trainium2"]
server = cat.servers["trn2.48xlarge"]
ultraserver = cat.ultraservers["trn2-ultraserver"]

reveal_type(cat)  # Catalog
reveal_type(chip.memory.capacity)  # Figure
reveal_type(chip.memory.bandwidth)  # Figure | None
reveal_type(chip.memory.capacity.to("GiB"))  # float
reveal_type(float(chip.memory.capacity))  # float
reveal_type(chip.memory.capacity + chip.memory.capacity)  # Amount
reveal_type(2 * chip.memory.capacity)  # Amount
reveal_type(chip.memory.capacity > chip.memory.capacity)  # bool
reveal_type(chip.memory.capacity > "90 GiB")  # bool
reveal_type(chip.memory.capacity.source_name)  # str
reveal_type(chip.memory.capacity.conflicting)  # tuple[ConflictingValue, ...]
reveal_type(chip.name)  # str
reveal_type(chip.figures["memory.capacity"])  # Stated
reveal_type(chip.figure("memory.capacity").as_of)  # str
reveal_type(server.chips.count)  # int
reveal_type(server.chip_count)  # int
reveal_type(server.total("peak.dense.bf16"))  # Amount
reveal_type(server.chip_view.memory.capacity)  # Figure
reveal_type(ultraserver.servers.count)  # int
reveal_type(ultraserver.topology.bisection().links)  # int
reveal_type(ultraserver.topology.bisection().rate)  # float | None
reveal_type(cat.links["efa"].connects)  # Literal['chips', 'servers']
reveal_type([view.name for view in cat.chips.values()])  # list[str]
reveal_type(cat.sources["semianalysis-2024-12"].as_of)  # str
reveal_type(cat["trn2.48xlarge"])  # DocumentView
reveal_type(cat["trn2.48xlarge"].total("peak.dense.bf16"))  # Amount
reveal_type(cat.of(Chip))  # Documents[Chip]
reveal_type(cat.of(Chip)["trainium2"].memory.capacity)  # Figure
reveal_type(cat.query("chip")[0])  # DocumentView
reveal_type(cat.chips.where("dies > 1")[0])  # ChipView
reveal_type(trnspec.Quantity.parse("2.9 TB/s"))  # Quantity
reveal_type(trnspec.Amount.parse("2.9 TB/s"))  # Amount
reveal_type(cat.replace("trainium2", {"memory.capacity": "128 GiB"}))  # Catalog
