"""Edits that change nothing, or add what is known: the rules report none of them.

Each kind of edit is a function that gives edits of several documents. Edits of different places are made in one copy of the
catalog and checked together, since none of them may be reported.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from trnspec.api import validate
from trnspec.loading.files import shipped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Edit = tuple[str, str, str]
    """A file of the catalog, a text in it, and what is written instead; with an empty text, a new file."""


def ambiguous_zeros() -> Iterator[Edit]:
    yield "chips/trainium2.yaml", "fp8: 1,299 TFLOPS", "fp8: 1,300 TFLOPS"
    yield "chips/trainium1.yaml", "fp32: {value: 47.5 TFLOPS,", "fp32: {value: 47.50 TFLOPS,"
    yield "chips/trainium3.yaml", "capacity: 144 GiB\n", "capacity: 144.0 GiB\n"
    yield "cores/neuroncore-v2.yaml", "capacity: 24 MiB", "capacity: 24.0 MiB"
    yield "cores/neuroncore-v4.yaml", "capacity: 32 MiB", "capacity: 32.00 MiB"
    yield "servers/trn1.32xlarge.yaml", "bandwidth: 800 Gbps", "bandwidth: 800.0 Gbps"


def other_units() -> Iterator[Edit]:
    yield "chips/trainium2.yaml", "bandwidth: 2.9 TB/sec", "bandwidth: 2,900 GB/s"
    yield "chips/trainium3.yaml", "mxfp8: 2,517 TFLOPS", "mxfp8: 2.517 PFLOPS"
    yield "chips/trainium1.yaml", "capacity: 32 GiB\n", "capacity: 32,768 MiB\n"
    yield "chips/trainium3.yaml", "sbuf: 256 MiB", "sbuf: 0.25 GiB"
    yield "servers/trn2.48xlarge.yaml", 'memory: "2,048 GiB"', "memory: 2 TiB"
    yield "servers/trn2.48xlarge.yaml", 'bandwidth: "3,200 Gbps"', "bandwidth: 3.2 Tbps"
    yield "servers/trn1.32xlarge.yaml", "memory: 512 GiB", 'memory: "524,288 MiB"'
    yield "cores/neuroncore-v2.yaml", "clock: 2.8 GHz", "clock: 2,800 MHz"
    yield "cores/neuroncore-v3.yaml", "capacity: 28 MiB", 'capacity: "28,672 KiB"'
    yield "links/efa-v3.yaml", "value: 200.0 Gbps", "value: 25 GB/s"
    yield "servers/trn1n.32xlarge.yaml", 'local_storage: {value: "7,600 GB"', "local_storage: {value: 7.6 TB"
    yield "ultraservers/trn2-ultraserver.yaml", 'memory: "8,192 GiB"', "memory: 8 TiB"


def agreeing_sources() -> Iterator[Edit]:
    for file, at, says, source in (
        ("chips/trainium2.yaml", "spec.memory.bandwidth", "~3 TB/s", "semianalysis-2024-12"),
        ("chips/trainium2.yaml", "spec.memory.capacity", "96 GiB", "semianalysis-2024-12"),
        ("chips/trainium2.yaml", "spec.dies", "2", "semianalysis-2024-12"),
        ("chips/trainium3.yaml", "spec.memory.capacity", "144 GiB", "semianalysis-2025-12"),
        ("servers/trn1.32xlarge.yaml", "spec.chips.count", "16", "thirdparty-trainium-overview"),
        ("servers/trn2.48xlarge.yaml", "spec.network.bandwidth", "3.2 Tbps", "semianalysis-2024-12"),
        ("models/llama-3.1-8b.yaml", "spec.context", "128K", "llama-3.1-2024-07"),
        ("models/llama-3.1-70b.yaml", "spec.parameters.total", "70.6B", "llama-3.1-2024-07"),
        ("models/mixtral-8x7b.yaml", "spec.parameters.total", "46.7 billion", "mixtral-8x7b-2023-12"),
    ):
        yield file, "claims:\n", f"claims:\n  - {{at: {at}, says: {says}, source: {source}, where: a table}}\n"


def bounds() -> Iterator[Edit]:
    for file, at, says in (
        ("chips/trainium1.yaml", "spec.peak.dense.bf16", "over 100 TFLOPS"),
        ("chips/trainium1.yaml", "spec.memory.bandwidth", "up to 1 TB/s"),
        ("chips/trainium2.yaml", "spec.peak.sparse.fp8", '"up to 2,563 TFLOPS"'),
        ("servers/trn1.32xlarge.yaml", "spec.network.bandwidth", "over 400 Gbps"),
    ):
        source = "source: thirdparty-trainium-overview, where: line 3"
        yield file, "claims:\n", f"claims:\n  - {{at: {at}, says: {says}, {source}}}\n"


def verdicts() -> Iterator[Edit]:
    for file, at, says, verdict, more in (
        ("chips/trainium1.yaml", "spec.memory.bandwidth", "0.8 TB/s", "rounded", ""),
        ("chips/trainium2.yaml", "spec.peak.dense.bf16", "0.67 PFLOPS", "rounded", ""),
        ("chips/trainium2.yaml", "spec.memory.bandwidth", "2.8 TB/s", "rejected", ""),
        (
            "chips/trainium1.yaml",
            "spec.links.bandwidth.both",
            "192 GB/s",
            "other-scope",
            "scope: spec.links.bandwidth.both / 2",
        ),
        ("chips/trainium2.yaml", "spec.cores.count", "4", "other-scope", "scope: logical cores of two physical ones"),
    ):
        claim = f"  - at: {at}\n    says: {says}\n    source: neuronstuff-48c4bc5\n    where: a table\n"
        claim += f"    verdict: {verdict}\n    reason: It is stated so there.\n"
        yield file, "claims:\n", f"claims:\n{claim}" + (f"    {more}\n" if more else "")


def origins() -> Iterator[Edit]:
    yield "chips/trainium2.yaml", "  memory_pool: 64\n", "  memory_pool: {value: 64, where: line 117}\n"
    count = "cores: {core: neuroncore-v4, count: {value: 8, derived: 2 x 4}}"
    yield "chips/trainium3.yaml", "cores: {core: neuroncore-v4, count: 8}", count
    count = "  chips: {chip: trainium1, count: {value: 16, note: In one chassis.}}"
    yield "servers/trn1.32xlarge.yaml", "  chips: {chip: trainium1, count: 16}", count
    yield "links/neuronlink-v3.yaml", "connects: chips", "connects: {value: chips, where: line 3}"
    yield "models/qwen3-8b.yaml", "context: 40960", "context: {value: 40960, where: config.json}"


def topologies() -> Iterator[Edit]:
    yield "servers/trn1.32xlarge.yaml", "dimensions: [4, 4]", "dimensions: [2, 2, 2, 2]"
    yield "servers/trn2.48xlarge.yaml", "shape: torus, dimensions: [4, 4]", "shape: hypercube, dimensions: [4]"


def rounded_parameters() -> Iterator[Edit]:
    for name, exact, text in (
        ("llama-3-8b", "8030261248", "8.03 B"),
        ("llama-3.1-405b", "405853388800", "~406B"),
        ("gpt2", "124439808", "124M"),
        ("mistral-7b-v0.3", "7248023552", "7.25 billion"),
        ("qwen2.5-72b", "72706203648", "72.7B"),
        ("qwen3-32b", "32762123264", "32.8b"),
    ):
        yield f"models/{name}.yaml", f"total: {exact}", f"total: {text}"
    yield "models/mixtral-8x7b.yaml", "active: {value: 13B,", "active: {value: 12.9B,"


def later_dates() -> Iterator[Edit]:
    yield "sources/neuron-trn1-2023-02.yaml", "as_of: 2023-02-24", "as_of: 2023-02-26"
    yield "sources/llama-3.2-2024-09.yaml", "as_of: 2024-09-25", "as_of: 2024-09-30"
    yield "sources/hf-api-2026-10.yaml", "as_of: 2026-10-01", "as_of: 2026-10"


def power() -> Iterator[Edit]:
    """Of a chip, a server and an UltraServer: in proportion, of several types and loads."""
    for of, type_, more in (
        ("trainium2", "tdp", "power: ~500 W"),
        ("trn2.48xlarge", "measured", "scope: system, load: training of Llama 3 8B, power: 7.9 kW"),
        ("trn2.48xlarge", "maximum", "scope: system, power: 12 kW"),
        ("trn2-ultraserver", "nameplate", "scope: rack, region: 380 to 415 V, power: 80 kW"),
    ):
        spec = f"  {{of: {of}, type: {type_}, {more}}}\n"
        yield _document("Power", "power", f"{of}-{type_}", spec, "semianalysis-2024-12")


def texts() -> Iterator[Edit]:
    yield "links/neuronlink-v2.yaml", "  name: neuronlink-v2\n", "  name: neuronlink-v2\n  note: The first one.\n"
    yield "links/efa.yaml", "  name: efa\n", "  name: efa\n  aliases: [elastic-fabric-adapter]\n"
    yield "models/gpt2.yaml", "spec:\n", "# Dimensions.\nspec:\n"
    feature = "  features: [{name: preview, says: it is new, source: neuron-trn1-2026-08}]\n"
    yield "servers/trn1.2xlarge.yaml", "spec:\n", f"spec:\n{feature}"


HEAD = "api_version: trnspec/v1\nkind: {kind}\nmetadata: {{name: {name}, title: New{source}}}\nspec:\n"


def _document(kind: str, folder: str, name: str, spec: str, source: str = "") -> Edit:
    named = f", source: {source}" if source else ""
    return f"{folder}/{name}.yaml", "", HEAD.format(kind=kind, name=name, source=named) + spec


def bare_numbers() -> Iterator[Edit]:
    """Whole numbers without quotes where a date, or a count that may be a bound, is a text."""
    yield "chips/trainium1.yaml", "launched: {value: 2022-10,", "launched: {value: 2022,"
    yield "sources/llama-3.1-2024-07.yaml", "as_of: 2024-07-23", "as_of: 2024"
    yield _document("Cluster", "clusters", "acme-cluster", "  {chip: trainium2, chips: 2048}\n", "semianalysis-2024-12")


def new_documents() -> Iterator[Edit]:
    """Chips of which little is known, another publisher, and new links, servers and models."""
    announced = "  generation: {accelerator: 5, training: 4}\n  memory: {capacity: 288 GiB}\n"
    yield _document("Chip", "chips", "trainium4", announced, "neuron-trn3-2025-12")
    yield _document(
        "Chip",
        "chips",
        "acme-1",
        "  launched: 2025-11\n  peak: {dense: {fp8: ~900 TFLOPS}}\n"
        "  memory: {capacity: 64 GiB, bandwidth: up to 2 TB/s}\n"
        "  links: {link: neuronlink-v2, ports: {value: 6, derived: 2 x 3}}\n",
        "acme-2026-01",
    )
    page = "  publisher: Acme\n  as_of: 2026-01-15\n  rank: vendor-chip-page\n"
    yield _document("Source", "sources", "acme-2026-01", page)
    link = "  connects: chips\n  version: v5\n  bandwidth: {per_direction: 256 GB/s, both: 512 GB/s}\n"
    yield _document("Link", "links", "neuronlink-v5", link, "acme-2026-01")
    network = "  network: {technology: EFA, link: efa-v3, nics: 4, bandwidth: 800 Gbps}\n"
    size = "  family: {name: trn2}\n  chips: {chip: trainium2, count: 4}\n  host: {vcpus: 48, memory: 512 GiB}\n"
    yield _document("Server", "servers", "trn2.12xlarge", size + network, "neuron-trn2-2026-08")
    yield _document(
        "UltraServer", "ultraservers", "acme-pod", "  servers: {server: trn2.12xlarge, count: 2}\n", "acme-2026-01"
    )
    dimensions = (
        "  layers: 80\n  hidden: 8192\n  vocabulary: 128256\n  context: 262144\n  positions: rotary\n"
        "  embeddings: untied\n  norm: rms\n  attention: {heads: 64, kv_heads: 8, head_size: 128}\n"
        "  feed_forward: {width: 28672, form: gated}\n  parameters: {total: 70.6 B}\n"
    )
    base = "  base: {model: llama-3.1-70b, differs: [spec.context]}\n"
    small = (
        "  layers: 36\n  hidden: 2560\n  vocabulary: 151936\n  context: 262144\n  positions: rotary\n"
        "  embeddings: tied\n  norm: rms\n  attention: {heads: 32, kv_heads: 8, head_size: 128, norm: head}\n"
        "  feed_forward: {width: 9728, form: gated}\n  parameters: {total: 4.0B, non_embedding: 3.6B}\n"
        "  base: {model: qwen3-4b, differs: [spec.context]}\n"
    )
    yield _document("Model", "models", "qwen3-4b-2507", small, "qwen3-2025-04")
    yield _document("Model", "models", "acme-70b", dimensions + base, "acme-2026-01")


KINDS: tuple[Callable[[], Iterator[Edit]], ...] = (
    ambiguous_zeros,
    other_units,
    agreeing_sources,
    bounds,
    verdicts,
    origins,
    topologies,
    rounded_parameters,
    later_dates,
    power,
    texts,
    bare_numbers,
    new_documents,
)

LEAST = 50


@pytest.fixture
def catalog(tmp_path: Path) -> Path:
    return shutil.copytree(shipped(), tmp_path / "catalog")


def _made(catalog: Path, edits: list[Edit]) -> None:
    for name, old, new in edits:
        file = catalog / name
        text = file.read_text(encoding="utf-8") if old else ""

        assert old in text, (name, old)

        file.write_text(text.replace(old, new, 1), encoding="utf-8")


def _findings(catalog: Path) -> list[tuple[str, str, str]]:
    return [(d.code, d.where.file, d.message) for d in validate([str(catalog)]).report.diagnostics]


def test_number_of_edits():
    assert sum(len(list(kind())) for kind in KINDS) >= LEAST


@pytest.mark.parametrize("first", [True, False], ids=["one half", "other half"])
def test_edits_of_many_documents(catalog, first):
    """All edits of half of the kinds together."""
    edits = [edit for index, kind in enumerate(KINDS) for edit in kind() if (index % 2 == 0) is first]
    _made(catalog, edits)

    assert _findings(catalog) == []
