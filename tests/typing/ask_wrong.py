"""Mistakes that a type checker finds before the program runs: one in each marked line, none elsewhere."""

from __future__ import annotations

import trnspec

cat = trnspec.load()
chip = cat.chips["trainium2"]

size = chip.memory.size  # wrong
one = cat.chip  # wrong
cat.chips[2]  # wrong
chip.memory.bandwidth.to("GB/s")  # wrong: it may not be printed
inner = cat.servers["trn2.48xlarge"].servers  # wrong
chip.memory.capacity.to(8)  # wrong
