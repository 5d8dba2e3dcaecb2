"""Mistakes that a type checker finds before the program runs: one in each marked line, none elsewhere."""

from __future__ import annotations

import trnspec
from trnspec.model.chip import Chip

cat = trnspec.load()
chip = cat.chips["trainium2"]

size = chip.memory.size  # wrong
one = cat.chip  # wrong
cat.chips[2]  # wrong
chip.memory.bandwidth.to("GB/s")  # wrong: it may be None
inner = cat.servers["trn2.48xlarge"].servers  # wrong
chip.memory.capacity.to(8)  # wrong
large = chip.memory.capacity > 3  # wrong: a number has no unit
chip.memory.capacity.agrees(3)  # wrong
memory = cat["trainium2"].memory  # wrong: a document of any kind
publisher = cat.of(Chip)["trainium2"].publisher  # wrong
