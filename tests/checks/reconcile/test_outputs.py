"""Answers of the reconciliation: audits, stated values that are judged, and machines that are compared.

``tests/data/answers/reconcile.txt`` has an answer of each wording, a line for each, and after them the number and a checksum of
all answers. After a change of an answer, ``python tests/checks/reconcile/test_outputs.py`` writes it; read the difference.
"""

import functools
import sys
from pathlib import Path
from typing import Any

import pytest
from attrs import asdict, evolve

# Run as a program, too.
sys.path.extend(map(str, Path(__file__).parents[3].glob("plugins/*/src")))

from collections.abc import Callable, Iterator

from tests.support.programs import DATA
from tests.support.rules import checked, document, files, graph, shipped, slips, source
from tests.support.stored import sample, sampled
from trnspec.api import graph as load
from trnspec.checks.reconcile.audit import audit
from trnspec.checks.reconcile.judge import judge
from trnspec.checks.reconcile.machines import compare
from trnspec.checks.reconcile.overview import overview
from trnspec.checks.reconcile.proportions import proportions
from trnspec.errors import QuantityError, UsageError
from trnspec.graph.graph import Graph
from trnspec.graph.paths import paths, place
from trnspec.loading.host import neuron_ls, nvidia_smi
from trnspec.loading.host.machine import Accelerator, HostMachine, HostText
from trnspec.quantities.amount import Amount

STORED = "answers/reconcile.txt"

HARDWARE = (
    "alpha1", "beta2", "a1.small", "a1.large", "b2.large", "b2-ultra", "hall", "a1.large-spot", "kern-v1", "wire-v1",
)  # fmt: skip


def _line(value: Any) -> str:
    """An answer without what is empty."""
    return _plain(asdict(value, filter=lambda _, part: part not in ("", (), None)))


def _plain(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_plain(part)}' for key, part in value.items())}}}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(_plain, value))}]"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _audited(graph: Graph) -> Iterator[str]:
    found = audit(graph)
    yield from map(_line, found.disagreements)
    yield from map(_line, found.views)
    summary = overview(graph, found.disagreements)
    yield _line(evolve(summary, important=()))
    yield f"first: {[(d.name, d.at) for d in summary.important]}"
    for each in proportions(graph):
        yield f"{each.name}: {'; '.join(f'{s} {s.of} {s.note}' for s in each.shares)} | {each.cause}"


def audits() -> Iterator[str]:
    """Of the catalog, of parts of it, and of some slips; of a slip what it adds."""
    graph = checked().graph
    before = list(_audited(graph))
    yield from before
    some = audit(graph, frozenset({"alpha1"}))
    yield f"alpha1: {[(d.at, d.verdict) for d in some.disagreements]}, views {some.views}"
    for names, wanted in (
        (("alpha1",), ()),
        ((), ("memory",)),
        (("a1.large", "b2-ultra"), ("stated.peak", "stated.memory")),
    ):
        yield f"{names} {wanted}: {_line(evolve(overview(graph, some.disagreements, frozenset(names), wanted), important=()))}"
    made = [
        s
        for name in files()
        if name.startswith(("chips", "servers", "ultra", "links"))
        for s in slips(files(), name, 1)
    ]
    for slip in made[::7]:
        yield str(slip)
        yield from (line for line in _audited(checked({slip.file: slip.text}).graph) if line not in before)


CHIP = document("Chip", "part", "spec: {peak: {}, memory: {capacity: 3 GiB, bandwidth: 1.7 TB/s}}", "source: page")
BOX = document("Server", "box", "spec: {chips: {chip: part, count: 97}}", "source: page")
RACK = """spec: {servers: {server: box, count: 7}}
claims:
  - {at: spec.stated.memory.bandwidth, says: 1 TB/s, source: page, verdict: rejected, reason: Of another.}
  - {at: spec.stated.memory.capacity, says: 1.7 TB, source: page, verdict: rejected, reason: Of another.}"""


def computed() -> Iterator[str]:
    """Totals that nothing states, of many parts: they are printed with two digits more than a part."""
    made = graph(source("page", "2024-01"), CHIP, BOX, document("UltraServer", "rack", RACK, "source: page"))
    yield from map(_line, audit(made).disagreements)


def judged() -> Iterator[str]:
    """Every path that has a value, with other values; and what cannot be compared."""
    graph = checked().graph
    for name in HARDWARE:
        node = graph.named(name)
        known = (
            (at, field.read(node))
            for at in paths(graph, type(node.spec))
            if (field := place(graph, type(node.spec), at))
        )
        for number, (at, value) in enumerate((at, value) for at, value in known if value is not None):
            others = (value.text, "1,024", "-3")[number % 3 :: 3]
            if isinstance(value.value, Amount):
                own, unit = float(value.value.value / value.value.unit.factor), value.value.unit.symbol
                others = (value.text, *(f"{own * factor:.5g} {unit}" for factor in FACTORS), "5 parsecs")[
                    number % 9 :: 9
                ]
            if isinstance(value.value, (Amount, int)) or number % 5 == 0:
                yield from (f"{name} {at} {says}: {_judged(graph, name, at, says)}" for says in others)
    for name, at in (
        ("alpha1", "power"),
        ("b2.large", "power"),
        ("a1.large", "stated.peak.dense.fp16"),
        ("a1.large-spot", "hourly.eu-north-1"),
    ):
        yield f"{name} {at}: {_judged(graph, name, at, '9.5 kW')}"
    for name, at in (("alpha1", "memory.capcity"), ("a1.large", "chip.memory.bandwith"), ("b2-ultra", "nothing")):
        yield f"{name} {at}: {_judged(graph, name, at, '1 GB')}"


FACTORS = (2, 0.5, 1.024, 1 / 1.024, 8, 10, 0.1, 1.003, 16, 1 / 16, 15 / 16)


def _judged(graph: Graph, name: str, at: str, says: str) -> str:
    try:
        found = judge(graph, graph.named(name), at, says)
    except (UsageError, QuantityError) as refused:
        return f"{type(refused).__name__}: {refused}"
    causes = "; ".join(f"{cause.id}: {cause.sentence}" for cause in found.causes)
    own = "; ".join(f"{fact.of} {fact.at} {fact.text}" for fact in found.facts)
    factor = "-" if found.factor is None else f"{found.factor:.6g}"
    return f"{found.outcome} {factor} of {found.value} {found.formula} | {causes} | {own} | {found.name} {found.at} {found.says}"


PLUGINS = Path(__file__).parents[3] / "plugins"


@functools.cache
def _catalogs() -> tuple[Graph, Graph]:
    """The shipped catalog, and the same with the chips of NVIDIA and with Inferentia."""
    folders = (f"trnspec-{n}/src/trnspec_{n}/catalog" for n in ("nvidia", "inferentia"))
    return shipped(), load([str(PLUGINS / folder) for folder in folders])


def machines() -> Iterator[str]:
    """Published outputs of neuron-ls and nvidia-smi, and changes of one device and of all; of a change what it adds."""
    shipped_, every = _catalogs()
    for file in sorted((DATA / "host").glob("n*")):
        reader = nvidia_smi if file.suffix == ".xml" else neuron_ls
        machine = reader.read(HostText(file.name, file.read_bytes()))
        before = [*_compared(shipped_, machine), *_compared(every, machine)]
        yield from (file.name, *before)
        first, *rest = machine.devices
        for changes in _changes(first):
            one = evolve(machine, devices=(evolve(first, **changes), *rest))
            both = evolve(machine, devices=tuple(evolve(device, **changes) for device in machine.devices))
            lines = [*_compared(every, one), *(_compared(every, both) if rest else ())]
            yield from (f"{file.name} {changes}", *(line for line in lines if line not in before))
        for more in (
            {"attached": len(machine.devices) + 1},
            {"instance_type": "x9.huge"},
            {"instance_type": ""},
            {"devices": (first,)},
        ):
            other = evolve(machine, **more)
            named = "trn2.48xlarge" if machine.tool == "neuron-ls" else "dgx-h100"
            lines = [*_compared(every, other, named), *_compared(every, other), *_compared(shipped_, other)]
            yield from (f"{file.name} {[*more]}", *(line for line in lines if line not in before))


def _changes(device: Accelerator) -> Iterator[dict[str, Any]]:
    """Other values of a device, one attribute at a time."""
    for name in ("memory", "cores", "cores_in_one", "neighbours", "power", "pcie"):
        value = getattr(device, name)
        if value is not None:
            yield {name: None}
            if name == "neighbours":
                yield from ({name: value[1:]}, {name: (*value[:-1], device.index)}, {name: (*value, 99)}, {name: ()})
            elif name == "pcie":
                yield from ({name: (3, 16)}, {name: (4, 8)}, {name: (7, 16)})
            elif name == "memory":
                yield from (
                    {name: value * 98 // 100},
                    {name: value * 97 // 100},
                    {name: value + 2**20},
                    {name: value - 1},
                )
            else:
                yield from ({name: value * 2}, {name: value - 1 or 3})
    yield from ({"name": "NVIDIA H200"}, {"name": "Other"}, {"partitioned": True})


def _compared(graph: Graph, machine: HostMachine, name: str | None = None) -> Iterator[str]:
    try:
        found = compare(graph, machine, name)
    except UsageError as refused:
        yield f"UsageError: {refused}"
        return
    yield f"{found.server} | {found.chip} | {found.reason} | {', '.join(found.candidates)} | differs {found.differs}"
    yield from map(_line, found.rows)


OUTPUTS: dict[str, Callable[[], Iterator[str]]] = {
    "audits": audits,
    "computed": computed,
    "judged": judged,
    "machines": machines,
}


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_by_wording(name) -> None:
    assert sampled(STORED, name) == sample(name, OUTPUTS[name](), 15)


if __name__ == "__main__":
    lines = [line for name, made in OUTPUTS.items() for line in sample(name, made(), 15)]
    (DATA / STORED).write_text("".join(f"{line}\n" for line in lines), "utf-8")
