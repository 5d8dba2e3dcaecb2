"""A program that uses the public API; tests/test_typing.py checks its types against the installed wheel, and runs it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import trnspec
from trnspec.model.chip import Chip
from trnspec.perf.sweep.batch import Pareto, Top, estimators, sweep

# Load, attributes, provenance.
cat = trnspec.load()
chip = cat.chips["trainium2"]
bandwidth = chip.memory.bandwidth
assert bandwidth is not None, "a figure that is not published is None"
bf16 = chip.figure("peak.dense.bf16")
print(bandwidth, repr(chip), repr(cat), repr(bandwidth))
print(bandwidth.to("GB/s"), f"{bandwidth:.2f}", float(bandwidth), bandwidth.interval.low)
print(bandwidth.source_name, bandwidth.source_title, bandwidth.as_of, bandwidth.where, bandwidth.scope)
for value in bandwidth.conflicting:
    print(value.says, value.verdict, value.source, value.as_of)
stated: trnspec.Stated = chip.figure("memory.bandwidth")
print(stated.of, stated.at, [at for at, figure in chip.figures.items() if figure.derived])

# Arithmetic and comparison.
ridge: trnspec.Amount = bf16 / bandwidth
print(ridge, ridge.to("FLOP/B"), bandwidth > "2 TB/s", bandwidth.agrees("2.93 TB/s"))
print(float(sum(c.memory.capacity for c in cat.chips.values() if c.status is None)))
print(trnspec.Quantity.parse("2.9 TB/s").dimension.word, trnspec.Amount.parse("96 GiB") <= chip.memory.capacity)
try:
    print(chip.memory.capacity + bandwidth)
except trnspec.QuantityError as error:
    print(error.reason, error.hint)

# Systems: documents of any kind, totals, topology.
system: trnspec.DocumentView = cat["trn2.48xlarge"]
total: trnspec.Amount = system.total("peak.dense.bf16")
print(system.kind, system.title, system.chip_count, total, system.chip_view.memory.capacity)
cut = cat.ultraservers["trn2-ultraserver"].topology.bisection("rate")
print(cut.links, cut.rate)

# Queries.
large: trnspec.Result[trnspec.DocumentView] = cat.query("server where memory.capacity > 1 TiB", sort="-memory.capacity")
print(large, large[0].name, large[0].figure("host.memory"), [row.name for row in large.undecided])
for server in cat.servers.where("memory.capacity > 1 TiB"):
    print(server.name, server.chips.count, server.total("memory.capacity").to("TiB"))
print(
    max((c for c in cat.of(Chip).values() if c.status is None), key=lambda c: c.memory.capacity).memory.capacity.to(
        "GiB"
    )
)
print(large.records()[0]["memory.capacity"], large.to_pandas().shape)

# Other versions: a date, a change, an overlay; and what differs.
then: trnspec.Catalog = cat.then("2024-12")
print(then.as_of, dict(then.unknown).get("trainium3"))
changed = cat.replace("trainium2", {"memory.capacity": "128 GiB"})
Path("overlay.yaml").write_text("change:\n  trainium2: {memory.bandwidth: 4 TB/s}\n", encoding="utf-8")
changed = changed.overlay("overlay.yaml")
differences: trnspec.Differences = cat.diff(changed, "trainium2")
print(differences, [(c.at, c.old and c.old.says, c.new and c.new.says, c.ratio) for c in differences.figures])

# Data frames.
frame = cat.to_pandas()["chips"]
print(frame[["name", "memory.capacity", "memory.bandwidth"]], cat.sql("SELECT name FROM chips").num_rows)

# Evaluation.
evaluation: trnspec.Evaluation = trnspec.evaluate("roofline", cat, on="trainium2", matmul="4096x4096x4096")
print(evaluation.bottleneck, [(answer.name, answer.value, answer.unit) for answer in evaluation.answers])
print([(figure.of, figure.at, figure.says, figure.as_of) for figure in evaluation.figures_used])
try:
    trnspec.evaluate("training", cat, model="llama-3.1-70b", on="trn2.48xlarge", seq=8192, global_batch=64, tp=3)
except trnspec.RefusalError as refusal:
    print(refusal.reason, refusal.place)

by_degree: trnspec.Sweep = trnspec.sweep(
    "training", cat, model="llama-3.1-8b", on="trn2.48xlarge", seq=8192, global_batch=64, tp=[8, 16]
)
print(by_degree.units["step_time"], [record["step_time"] for record in by_degree.records()])

# Batches.
prepared = estimators(cat.graph, ["llama-3.1-8b"], ["trn2.48xlarge*4"])
axes: dict[str, Any] = {"seq": 8192, "global_batch": 256, "tp": [4, 8, 16], "pp": [1, 2], "zero": [1, 3]}
fastest = sweep(prepared, keep=Top(3), **axes)
print([(layout.tp, layout.pp) for _, layout in fastest.layouts()], fastest.result.time.min(), fastest.to_pandas().shape)
front = sweep(prepared, keep=Pareto(), **axes)
slowest: list[float] = sweep(prepared, keep=lambda block: float(block.time.max()), **axes).result
print(len(front.result), front.records()[0]["step_time"], max(slowest))

# Validation.
report = trnspec.validate(sys.argv[1:]).report
print(report.ok, [(d.code, d.severity.label, d.message, str(d.where)) for d in report.diagnostics])
