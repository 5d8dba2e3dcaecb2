"""Published figures, and the values of the catalog that state them."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

import attrs
from attrs import frozen

from trnspec.checks.reconcile.relations import claimed_paths
from trnspec.errors import QuantityError
from trnspec.graph.provenance import inherited
from trnspec.model.fields import Rates
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import dotted, leaves
from trnspec.model.sourced import Origin, origin_of
from trnspec.quantities.quantity import Quantity, parse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph
    from trnspec.model.document import Node
    from trnspec.yaml import Path

DATA = FilePath(__file__).parents[1] / "data"

FIVE = (
    "neuron-trainium-2024-02",
    "neuron-trn1-2023-02",
    "thirdparty-trainium-overview",
    "neuron-trn3-2025-12",
    "neuron-trn2-2024-12",
)
"""The sources whose every fact must be in the catalog."""


@frozen
class Fact:
    """One row: what a source prints.

    Attributes:
        row: The line of the table, from 2.
        subject: What it speaks of, in the words of the table.
        attribute: Which attribute of it.
        qualifier: Data types, scope and the like.
        value: As printed, without the unit.
        unit: As printed.
        source: The name of the source in the catalog, or an empty text.
        line: The line in the source, where it has lines.
        of_the_five: Whether it is in the very files that must be covered in full.
    """

    row: int
    subject: str
    attribute: str
    qualifier: str
    value: str
    unit: str
    source: str
    line: int | None
    of_the_five: bool

    @property
    def printed(self) -> str:
        return f"{self.value} {self.unit}".strip()

    def __str__(self) -> str:
        more = f" ({self.qualifier})" if self.qualifier else ""
        at = f", line {self.line}" if self.line else ""
        return f"row {self.row}: {self.subject}: {self.attribute}{more} is {self.printed} [{self.source}{at}]"


def facts() -> list[Fact]:
    """Every row of the table."""
    sources: dict[str, str] = json.loads((DATA / "facts-sources.json").read_text())
    found = []
    with (DATA / "facts.csv").open(newline="") as file:
        for number, row in enumerate(csv.DictReader(file), 2):
            where = row["source"]
            file_name = max((s for s in sources if where.startswith(s)), key=len, default="")
            line = re.match(r":(\d+)", where[len(file_name) :])
            found.append(
                Fact(
                    number,
                    row["subject"],
                    row["attribute"],
                    row["dtype/qualifier"],
                    row["value"],
                    row["unit"],
                    sources.get(file_name, ""),
                    int(line[1]) if line else None,
                    where.startswith("sources/00"),
                )
            )
    return found


_CORES = ("neuroncore-v2", "neuroncore-v3", "neuroncore-v4")
_GEN1, _GEN2 = "trn3-gen1-ultraserver", "trn3-gen2-ultraserver"
_TRN2 = ("trn2.48xlarge", "trn2u.48xlarge")
_EXACTLY = {
    "trn1 (instance)": ("trn1.32xlarge",),
    "trn1 UltraCluster": ("trn1-ultracluster",),
    "trn1n UltraCluster": ("trn1n-ultracluster",),
    "trn1/trn1n (instance)": ("trn1.32xlarge", "trn1n.32xlarge"),
    "trn1n": ("trn1n.32xlarge",),
    "trn2-16.48xlarge": ("trn2.48xlarge",),
    "u-trn2x64 UltraServer": ("trn2-ultraserver",),
    "trn2 UltraServer": ("trn2-ultraserver",),
    "trn3 UltraServer": (_GEN1, _GEN2),
    "trn3 UltraServer Gen1": (_GEN1,),
    "trn3 UltraServer Gen2": (_GEN2,),
    "trn3 Gen1 server": ("trn3-gen1-server",),
    "trn3 Gen2 server": ("trn3-gen2-server",),
}
_LIKE = (
    # Out of scope: other chips, and measurements of collective operations on systems that are not described.
    (r"^inf|^inferentia|neuroncore-v1|NeuronLink-v1|nccom-test|collective algorithm|KangaRing|p4d|^host$| vs v1", ()),
    (
        r"^trainium([123])( vs .*| DMA engine)?$",
        (r"trainium\1", r"neuroncore-v\1+", r"neuronlink-v\1+", r"neuronlink-v\1+-z"),
    ),
    (r"^trainium1/inferentia2", ("trainium1", "neuroncore-v2")),
    (r"^trainium2/", ("trainium2", "trainium3", "neuroncore-v3", "neuroncore-v4")),
    (r"^neuroncore-v([234])[ +]|^neuroncore-v([234])$", (r"neuroncore-v\1\2",)),
    (r"neuroncore|DMA|^all$", (*_CORES, "trainium1", "trainium2", "trainium3")),
    (r"^trn2 rank", ("efa-v3",)),
    (r"^(EFA|NeuronLink|link)", ("efa", "efa-v3", "neuronlink-v3", "neuronlink-v3-z", *_TRN2, "trn1.32xlarge")),
    (r"^trn1n?\.\w+", ("trn1.2xlarge", "trn1.32xlarge", "trn1n.32xlarge")),
    (r"^trn1", ("trn1.32xlarge", "trn1.2xlarge", "trainium1", "neuroncore-v2")),
    (r"^trn2\.(12x|3x)", ("trn2.3xlarge",)),
    (r"^trn2", (*_TRN2, "trainium2", "neuroncore-v3", "efa-v3", "trn3-gen1-server", "trn3-gen2-server")),
    (r"^trn3", ("trainium3", "neuronlink-v4", _GEN1, _GEN2, "trn3-gen1-server", "trn3-gen2-server")),
    (r"^UltraServer", ("trn2-ultraserver", _GEN1, _GEN2)),
)


def documents(fact: Fact, graph: Graph) -> tuple[str, ...]:
    """The documents that may have a fact; none when it is not about Trainium hardware."""
    subject = fact.subject
    if subject in _EXACTLY:
        return _EXACTLY[subject]
    if subject in graph and "neuroncore" not in subject and "trainium" not in subject:
        return (subject,)
    for pattern, names in _LIKE:
        match = re.search(pattern, subject)
        if match:
            return tuple(_named(match, name) for name in names)
    return tuple(name for name in re.split(r"[/ ]", subject) if name in graph)


def _named(match: re.Match[str], name: str) -> str:
    if "+" in name:  # the core of a chip counts one more
        return name.replace(r"\1+", str(int(match[1]) + 1))
    return name.replace(r"\1", match[1] or "").replace(r"\2", match.group(2) or "") if "\\" in name else name


# By attribute and kind of document; "{rate}" represents the data types of the qualifier.
PATHS: dict[str, dict[str, tuple[str, ...]]] = {
    "chip_count": {"Server": ("spec.chips.count",), "UltraServer": ("spec.stated.chips",), "Cluster": ("spec.chips",)},
    "scale_up_domain": {"UltraServer": ("spec.stated.chips",)},
    "neuroncores": {"Chip": ("spec.cores.count",), "Server": ("spec.stated.cores", "spec.chips")},
    "generation": {"Chip": ("spec.generation.{line}",)},
    "peak_compute": {
        "Chip": ("spec.peak.{rate}",),
        "Server": ("spec.stated.peak.{rate}",),
        "UltraServer": ("spec.stated.peak.{rate}",),
        "Core": ("spec.engines.{engine}.peak.{rate}",),
    },
    "device_memory_capacity": {
        "Chip": ("spec.memory.capacity",),
        "Server": ("spec.stated.memory.capacity", "spec.stated.memory"),
        "UltraServer": ("spec.stated.memory.capacity",),
        "Core": ("spec.other.device_memory_share",),
    },
    "device_memory_bandwidth": {
        "Chip": ("spec.memory.bandwidth",),
        "Server": ("spec.stated.memory.bandwidth",),
        "UltraServer": ("spec.stated.memory.bandwidth",),
        "Core": ("spec.other.device_memory_bandwidth_share",),
    },
    "dma_bandwidth": {"Chip": ("spec.dma.bandwidth",)},
    "dma_engines": {"Chip": ("spec.dma.engines",), "Core": ("spec.dma.engines",)},
    "sbuf_capacity": {"Chip": ("spec.sbuf",), "Core": ("spec.sbuf.capacity",)},
    "psum_capacity": {"Core": ("spec.psum.capacity",)},
    "launch_date": {"Chip": ("spec.launched",)},
    "neuronlink_version": {"Link": ("spec.version",), "Server": ("spec.fabric",)},
    "instance_sizes": {"Server": ("spec.family.sizes",)},
    "vcpus": {"Server": ("spec.host.vcpus",), "UltraServer": ("spec.stated.host.vcpus",)},
    "host_memory": {"Server": ("spec.host.memory",), "UltraServer": ("spec.stated.host.memory",)},
    "neuronlink": {"Server": ("spec.fabric",)},
    "neuronlink_bandwidth": {
        "Chip": ("spec.links.bandwidth.both",),
        "Server": ("spec.{fabric}.bandwidth.both", "spec.fabric"),
        "UltraServer": ("spec.{fabric}.bandwidth.both",),
    },
    "efa_bandwidth": {
        "Chip": ("spec.other.efa_share",),
        "Server": ("spec.network.bandwidth",),
        "UltraServer": ("spec.stated.network.bandwidth",),
        "Cluster": ("spec.per_server",),
    },
    "topology": {"Server": ("spec.{fabric}.topology",), "UltraServer": ("spec.{fabric}.topology",)},
    "network": {"Cluster": ("spec.network",)},
    "switch": {"UltraServer": ("spec.fabric.topology.levels.0.name",)},
    "second_level_switches": {"UltraServer": ("spec.fabric.topology.levels.1.count",)},
    "server_count": {"UltraServer": ("spec.servers.count",)},
    "instance_count": {"UltraServer": ("spec.servers.count",)},
}

_DTYPES = {a.name for a in attrs.fields(Rates)}


def _filled(fact: Fact, path: str) -> list[set[str]]:
    """The paths that a pattern means, in groups: of each group one must hold the fact."""
    words = fact.qualifier.lower()
    engine = next((e for e in ("tensor", "vector", "scalar", "gpsimd") if e in fact.subject.lower()), "tensor")
    between = "inter-instance" in words and "Server" in fact.subject
    fabric = "between_servers" if between else "fabric"
    training = "training" in words
    path = path.replace("{engine}", engine).replace("{fabric}", fabric)
    path = path.replace("{line}", "training" if training else "accelerator")
    if "{rate}" not in path:
        return [{path}]
    kind = "sparse" if "sparse" in words else "dense"
    groups = []
    for dtype in re.findall(r"[a-z]+\d+", words):
        # The first pages write FP8 for the configurable type of the first generation.
        alike = {"fp8", "cfp8"} if dtype == "fp8" else {dtype}
        groups.append({path.replace("{rate}", f"{kind}.{d}") for d in alike & _DTYPES})
    return [g for g in groups if g]


def groups(fact: Fact, kind: str) -> list[set[str]]:
    """The paths where documents of a kind must have a fact; none when the table of paths does not know it."""
    found: list[set[str]] = []
    for path in PATHS.get(fact.attribute, {}).get(kind, ()):
        for index, group in enumerate(_filled(fact, path)):
            if index < len(found) and "{rate}" not in path:
                found[index] |= group
            else:
                found.append(set(group))
    return found


@frozen
class Saying:
    """What the catalog has from a source at a path: an adopted value or a claim."""

    path: str
    value: Any
    source: str
    where: str


def sayings(node: Node[Any]) -> Iterator[Saying]:
    """Everything a document says, adopted or claimed, with its source."""
    meta = node.metadata
    own = meta.source.name if meta.source else ""
    for path, _, value in leaves(node.spec, ("spec",)):
        if isinstance(value, Figure):
            if value.derived is None:
                source = value.source.name if value.source else own
                yield Saying(dotted(path), value.value, _source_of(node, path, source), value.where or meta.where or "")
        elif path[1:2] == ("features",):
            feature = node.spec.features[int(path[2])]
            yield Saying(dotted(path), str(value), feature.source.name, feature.where or "")
        else:
            origin = origin_of(value) or Origin()
            around = inherited(node, path)
            name = around[0].name if around[0] is not None else ""
            places = around[1] or meta.where
            source, where = (origin.source.name, origin.where) if origin.source is not None else (name, places)
            if origin.derived is None:
                yield Saying(dotted(path), value.name if isinstance(value, Ref) else value, source, where or "")
    for claim in node.claims:
        for path in claimed_paths(claim.at):
            yield Saying(dotted(path), claim.says, claim.source.name, claim.where or "")


def _source_of(node: Node[Any], path: Path, source: str) -> str:
    """A printed ratio names its source beside it."""
    if path[1:2] == ("ratios",):
        return str(node.spec.ratios[int(path[2])].source)
    return source


_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ORDINALS = ("zeroth", "first", "second", "third", "fourth", "fifth")
_UNITS = {"TFLOP": "TFLOPS", "Gigabit": "Gbps", "microseconds": "us", "Tb": "Tbps"}


def _quantity(fact: Fact) -> Quantity | None:
    """The figure of a row, whose unit may stand in the column of the value."""
    unit = re.sub(r"/(device|chip)$", "", fact.unit).split(" ")[0]
    parts = re.match(r"([^A-Za-z%]*(?:up[- ]to )?[\d,.]+)[ -]?([A-Za-z]*)( \(.*)?$", fact.value, re.IGNORECASE)
    texts = [f"{fact.value} {_UNITS.get(unit, unit)}"]
    if fact.value.endswith("%"):
        texts.append(f"{int(fact.value[:-1]) / 100}x")
    elif parts is not None and parts[2] and unit not in ("elements", "lanes", "DMA", "CC-Core", "processing"):
        texts.append(f"{parts[1].lower()} {_UNITS.get(parts[2], parts[2])}")
    for text in texts:
        try:
            return parse(text)
        except QuantityError:
            continue
    return None


def _number(text: str) -> int | None:
    """A whole number, in digits or as a word."""
    word = text.strip().lower()
    for words in (_WORDS, _ORDINALS):
        if word in words:
            return words.index(word)
    digits = word.replace(",", "").removesuffix("x")
    return int(digits) if digits.isdigit() else None


def _tokens(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+|\d+", text.lower()))


def says(fact: Fact, saying: Saying, node: Node[Any]) -> bool:
    """Whether a saying is the fact: the same number with as many digits, in the same unit, or the same words."""
    wanted, value = _quantity(fact), saying.value
    if wanted is not None:
        if isinstance(value, str):
            try:
                value = parse(value)
            except QuantityError:
                return False
        return isinstance(value, Quantity) and _same(wanted, value)
    number = _number(fact.value)
    if number is not None:
        if isinstance(value, str):
            digits = re.findall(r"\d[\d,]*", value)
            return len(digits) == 1 and int(digits[0].replace(",", "")) == number
        return value == number
    if not isinstance(value, str):
        return False
    of = f"{value} {node.name}" if saying.path == "spec.version" else value
    return _tokens(fact.printed) <= _tokens(of) or _tokens(fact.value) == _tokens(value)


def _same(a: Quantity, b: Quantity) -> bool:
    return (a.number, a.unit, a.qualifier, a.ulp) == (b.number, b.unit, b.qualifier, b.ulp)


def _stands_at(line: int, where: str) -> bool:
    """Whether a line is among those that a place in a source names."""
    numbers = [(int(a), int(b or a)) for a, b in re.findall(r"(\d+)(?: to (\d+))?", where)]
    return any(first <= line <= last for first, last in numbers)


def noted(fact: Fact, graph: Graph) -> bool:
    """Whether a note of the right document reports the number of a fact and the line where it is."""
    words = re.findall(r"\d[\d,.]*\d|\d", fact.value)
    for name in documents(fact, graph):
        if name not in graph:
            continue
        node = graph.named(name)
        for note in _notes(node):
            lines = " ".join(re.findall(r"lines? (\d+(?: to \d+)?)", note))
            if fact.line and _stands_at(fact.line, lines) and set(words) <= set(re.findall(r"\d[\d,.]*\d|\d", note)):
                return True
    return False


def _notes(node: Node[Any]) -> Iterator[str]:
    yield node.metadata.note or ""
    for path, _, value in leaves(node.spec):
        if isinstance(value, Figure):
            yield value.note or ""
        elif path[-1] == "note":
            yield value


def place(fact: Fact, graph: Graph) -> str | None:
    """Where the catalog has a fact: the path of the right attribute, ``elsewhere`` in the right document, or ``None``.

    Every data type of a row must have it.
    """
    names = documents(fact, graph)
    links = [n.name for n in graph if n.kind == "Link"] if fact.attribute == "neuronlink_version" else []
    elsewhere = False
    for name in (*names, *links):
        if name not in graph:
            continue
        node = graph.named(name)
        mine = [s for s in sayings(node) if s.source == fact.source and says(fact, s, node)]
        if fact.of_the_five and fact.line is not None:
            mine = [s for s in mine if _stands_at(fact.line, s.where)]
        wanted = groups(fact, node.kind)
        paths = {s.path for s in mine}
        if wanted and all(group & paths for group in wanted):
            return f"{node.name}: {', '.join(sorted(path for group in wanted for path in group & paths))}"
        elsewhere = elsewhere or bool(mine)
    return "elsewhere" if elsewhere else None
