"""A small catalog with gaps, for the tests of what asks: queries, tables, SQL."""

from tests.support.rules import document, graph, source
from trnspec.catalog.catalog import Catalog

PAGE, OLD = source("page", "2024-02"), source("old", "'2023'", rank="third-party")

CORE = document("Core", "core", "spec: {engines: {tensor: {clock: 2.8 GHz}}, sbuf: {capacity: 24 MiB}}")
FULL = document(
    "Chip",
    "full",
    """\
spec:
  launched: 2022-10
  dies: 2
  cores: {core: core, count: 8}
  peak: {dense: {bf16: 600 TFLOPS, fp8: {value: 1.2 PFLOPS, derived: twice the bf16}}, sparse: {bf16: 1.2 PFLOPS}}
  memory: {capacity: 100 GiB, bandwidth: ~3 TB/s, technology: HBM}
  links: {link: wire, ports: 4, bandwidth: {both: {value: 1 TB/s, source: old, where: line 3, note: a note}}}
  other: {share: 30x, extra: 5 us}
claims:
  - {at: spec.peak.dense.bf16, says: 610 TFLOPS, source: old, verdict: superseded, reason: It was more.}
  - {at: spec.dies, says: 3, source: old, verdict: rejected, reason: There are two.}
  - {at: spec.memory_pool, says: all of them, source: old, verdict: unresolved, reason: Who knows.}""",
    "source: page, aliases: [whole]",
)
BARE = document("Chip", "bare", "spec: {peak: {}, memory: {capacity: 50 GiB}, other: {share: 10x}}", "source: page")
WIRE = document("Link", "wire", "spec: {connects: chips, other: {odd: 1 GB}}", "source: page")
ROPE = document("Link", "rope", "spec: {connects: servers, other: {odd: 1 us}}", "source: page")
BOX = document(
    "Server",
    "box",
    """\
spec:
  chips: {chip: whole, count: 4}
  host: {vcpus: 32, memory: 200 GiB}
  fabric: {link: wire, topology: {shape: torus, dimensions: [2, 2]}}
  network: {nics: 8, bandwidth: 100 Gbps, peak: up to 12.5 Gbps}
  stated: {memory: {capacity: 0.4 TB}}""",
    "source: page",
)
TIN = document("Server", "tin", "spec: {chips: {chip: bare, count: 2}}", "source: page")
RACK = document("UltraServer", "rack", "spec: {servers: {server: box, count: 3}}", "source: page")

GRAPH = graph(PAGE, OLD, CORE, FULL, BARE, WIRE, ROPE, BOX, TIN, RACK)
CAT = Catalog(GRAPH)
