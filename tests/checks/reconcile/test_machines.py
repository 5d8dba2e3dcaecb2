"""A machine compared with the catalog: published outputs of neuron-ls and nvidia-smi, and changes of them."""

from __future__ import annotations

import copy
import json
from pathlib import Path

import attrs
import pytest

from tests.support.programs import DATA
from tests.support.rules import linked, put
from trnspec.api import graph
from trnspec.checks.reconcile.machines import _bytes, _host_link, compare, slug
from trnspec.errors import UsageError
from trnspec.graph.graph import Graph
from trnspec.loading.host import neuron_ls, nvidia_smi
from trnspec.loading.host.machine import Device, Input
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.source import Source
from trnspec.quantities.quantity import parse

HOST = DATA / "host"
PLUGINS = Path(__file__).parents[3] / "plugins"


def plugin(name: str) -> str:
    return str(PLUGINS / f"trnspec-{name}" / "src" / f"trnspec_{name}" / "catalog")


@pytest.fixture(scope="module")
def catalog():
    return graph()


@pytest.fixture(scope="module")
def every():
    """The catalog with the chips of NVIDIA and with Inferentia."""
    return graph([plugin("nvidia"), plugin("inferentia")])


def published(name: str) -> bytes:
    return (HOST / name).read_bytes()


def machine(raw):
    text = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
    reader = nvidia_smi if text.lstrip()[:1] == b"<" else neuron_ls
    return reader.read(Input("machine", text))


def devices(name: str):
    return copy.deepcopy(json.loads(published(name)))


def outcomes(comparison) -> dict[str, str]:
    return {row.property: row.outcome for row in comparison.rows}


@pytest.mark.parametrize(
    ("name", "server", "candidates", "differing"),
    [
        ("neuron_ls_trn1.2xlarge.json", "trn1.2xlarge", (), []),
        ("neuron_ls_trn2.3xlarge.json", "trn2.3xlarge", (), []),
        ("neuron_ls_trn2_container.json", "trn2.48xlarge", (), ["devices"]),
        ("neuron_ls_trn2n.48xlarge.json", "", ("trn2.48xlarge", "trn2u.48xlarge"), []),
        ("neuron_ls_trn1.32xlarge.json", "", ("trn1.32xlarge", "trn1n.32xlarge"), []),
        ("neuron_ls_inf1.6xlarge.json", "", (), []),
    ],
)
def test_published_outputs_of_neuron_ls(catalog, name, server, candidates, differing) -> None:
    found = compare(catalog, machine(published(name)))

    assert (server, candidates) == (found.server, found.candidates)
    assert differing == [row.property for row in found.rows if row.outcome == "differs"]
    assert found.differs == (bool(differing) or name == "neuron_ls_inf1.6xlarge.json")


@pytest.mark.parametrize(
    ("name", "chip", "differing"),
    [
        ("nvidia_smi_a100_mig.xml", "a100-80gb", {"power limit": "500 W"}),
        ("nvidia_smi_h100.xml", "h100-sxm", {}),
        ("nvidia_smi_a10g.xml", "", {}),
    ],
)
def test_published_outputs_of_nvidia_smi(every, name, chip, differing) -> None:
    found = compare(every, machine(published(name)))

    assert chip == found.chip
    assert differing == {row.property: row.machine for row in found.rows if row.outcome == "differs"}


def test_with_the_catalog_of_inferentia(every) -> None:
    """A size with 8 GiB is found; one device of 32 GiB and two cores is of either family."""
    assert "inf1.6xlarge" == compare(every, machine(published("neuron_ls_inf1.6xlarge.json"))).server
    found = compare(every, machine(published("neuron_ls_trn1.2xlarge.json")))
    assert ("", "", ("inf2.8xlarge", "inf2.xlarge", "trn1.2xlarge")) == (found.server, found.chip, found.candidates)
    assert {""} == {row.source for row in found.rows}


def test_a_size_that_no_server_has(catalog, every) -> None:
    """Sizes of Inferentia are named where its catalog is missing, and only there."""
    sizes = devices("neuron_ls_inf1.6xlarge.json")
    for each in sizes:
        each["memory_size"] = 3 * 2**30
    reasons = [compare(graph, machine(sizes)).reason for graph in (catalog, every)]

    assert [reason.partition(": ")[2] for reason in reasons] == [
        "no server of the catalog has these; those of Inferentia are in trnspec-inferentia",
        "no server of the catalog has these",
    ]


def test_a_catalog_without_its_sources(catalog) -> None:
    """Rows name a source that can be looked up, or none."""
    alone = Graph({n.name: n for n in catalog if not isinstance(n.spec, Source)})
    found, bare = (compare(g, machine(published(TRN2)), "trn2.48xlarge") for g in (catalog, alone))

    assert {row.source for row in bare.rows} == {""}
    assert all(catalog.find(Ref(row.source)) is not None for row in found.rows if row.source)
    assert any(row.source for row in found.rows)


TRN2 = "neuron_ls_trn2n.48xlarge.json"


@pytest.mark.parametrize(
    ("change", "differing", "text"),
    [
        (lambda d: d.pop(), ["devices"], "15"),
        (lambda d: [x.update(memory_size=64 * 2**30) for x in d], ["memory of a device"], "64 GiB"),
        (lambda d: d[3].update(memory_size=48 * 2**30), ["memory of a device"], "15 x 96 GiB, 1 x 48 GiB"),
        (lambda d: [x.pop("logical_neuroncore_config") for x in d], ["cores of a device"], "4"),
        (lambda d: d[0].update(nc_count=3), ["cores of a device"], "15 x 8, 1 x 6"),
        (lambda d: d[0]["connected_to"].pop(), ["links of a device", "topology"], "15 x 4, 1 x 3"),
        (lambda d: [x.update(connected_to=[]) for x in d], ["links of a device"], "0"),
        (lambda d: d[5].update(connected_to=[5, 4, 9, 6]), ["topology"], "device 1 lists 5, but 5 does not list 1"),
    ],
)
def test_differing_properties(catalog, change, differing, text) -> None:
    data = devices(TRN2)
    change(data)
    found = compare(catalog, machine(data), "trn2.48xlarge")
    wrong = [row for row in found.rows if row.outcome == "differs"]

    assert differing == [row.property for row in wrong]
    assert text == wrong[0].machine
    assert found.differs


def test_topology_is_compared_up_to_the_numbering(catalog) -> None:
    """Renumbered devices are the same torus; a ladder with the same degrees is not."""
    data = devices(TRN2)
    for each in data:
        each["neuron_device"] = 100 - each["neuron_device"]
        each["connected_to"] = [100 - n for n in each["connected_to"]]
    assert "agrees" == outcomes(compare(catalog, machine(data), "trn2.48xlarge"))["topology"]
    for n, each in enumerate(data):
        near = [(n + 1) % 16, (n - 1) % 16, (n + 2) % 16, (n - 2) % 16]
        each["connected_to"] = [100 - m for m in near]
    found = compare(catalog, machine(data), "trn2.48xlarge")
    (row,) = (r for r in found.rows if r.property == "topology")
    assert "differs" == row.outcome


def test_logical_cores_explain_half_the_cores(catalog) -> None:
    data = devices(TRN2)
    for each in data:
        del each["logical_neuroncore_config"]
    (row,) = (r for r in compare(catalog, machine(data), "trn2.48xlarge").rows if r.outcome == "differs")

    assert "logical cores of 2 physical cores each would explain it" == row.note


def test_instance_type_that_the_catalog_lacks_is_not_taken_for_another(catalog) -> None:
    data = devices(TRN2)
    for each in data:
        each["instance_type"] = "trn9.48xlarge"
    found = compare(catalog, machine(data))

    assert ("", ("trn2.48xlarge", "trn2u.48xlarge")) == (found.server, found.candidates)
    assert found.reason.startswith("the catalog has no trn9.48xlarge; ")


def test_missing_property_is_not_a_difference(catalog) -> None:
    data = [{"neuron_device": n} for n in range(16)]
    found = compare(catalog, machine(data), "trn2.48xlarge")

    assert {"devices": "agrees"} == {p: o for p, o in outcomes(found).items() if o != "not reported"}
    assert not found.differs


def test_reserved_memory_of_a_gpu(every) -> None:
    """A driver keeps up to 2 % back; more is a difference, and so is more memory than the chip has."""
    raw = published("nvidia_smi_h100.xml").decode()
    sizes = {"81559": "agrees", "80282": "agrees", "80281": "differs", "98304": "differs"}

    assert sizes == {
        size: outcomes(compare(every, machine(raw.replace("81559", size).encode())))["memory of a device"]
        for size in sizes
    }


def test_eight_gpus_are_one_of_several_servers(every) -> None:
    head, start, rest = published("nvidia_smi_h100.xml").decode().partition("  <gpu>")
    gpu = start + rest.partition("</gpu>")[0] + "</gpu>"
    found = compare(every, machine(f"{head}{gpu * 8}</nvidia_smi_log>".encode()))

    assert {"dgx-h100", "hgx-h100", "p5.48xlarge"} <= set(found.candidates)
    assert not found.differs


@pytest.mark.parametrize(
    ("name", "server", "message"),
    [
        ("nvidia_smi_h100.xml", None, "install trnspec-nvidia"),
        (TRN2, "trainium2", "trainium2 is a Chip"),
    ],
)
def test_misuse(catalog, name, server, message) -> None:
    with pytest.raises(UsageError, match=message):
        compare(catalog, machine(published(name)), server)


def test_product_names_are_aliases(every) -> None:
    names = ["NVIDIA H100 80GB HBM3", "NVIDIA H200", "NVIDIA A100-SXM4-40GB", "NVIDIA B200", "NVIDIA GB200"]

    assert ["h100-sxm", "h200", "a100-40gb", "b200", "gb200"] == [every.aliases[slug(name)] for name in names]


@pytest.mark.parametrize(
    ("change", "note"),
    [
        (lambda d: d.pop(), "linked devices that are not described: 15"),
        (lambda d: (d.pop(), d.pop()), "linked devices that are not described: 14, 15"),
        (lambda d: d[0].pop("connected_to"), ""),
    ],
)
def test_devices_that_are_not_described(catalog, change, note) -> None:
    data = devices(TRN2)
    change(data)
    (row,) = (r for r in compare(catalog, machine(data), "trn2.48xlarge").rows if r.property == "topology")

    assert ("not reported", note) == (row.outcome, row.note)


def test_a_stated_number_of_links_is_that_of_the_server(catalog) -> None:
    """Where it and the topology contradict each other, which TRN502 reports."""
    changed = put(catalog, "trn2.48xlarge", "fabric.links_per_chip", 5)
    (row,) = (r for r in compare(changed, machine(published(TRN2)), "trn2.48xlarge").rows if "links" in r.property)

    assert ("4", "5", "differs") == (row.machine, row.catalog, row.outcome)


@pytest.mark.parametrize("lanes", [8, 16])
@pytest.mark.parametrize(("generation", "rate"), [(1, 8), (2, 16), (3, 32), (4, 64), (5, 128), (6, 256)])
def test_the_rate_of_a_host_link(generation, rate, lanes) -> None:
    """Of 16 lanes in both directions [GB/s], without the overhead of coding."""
    node = linked().named("beta2")
    chip = attrs.evolve(
        node, spec=attrs.evolve(node.spec, other={"host_bandwidth": Figure(value=parse(f"{rate}.0 GB/s"))})
    )
    row = _host_link(linked(), [Device(index=0, line=1, pcie=(generation, lanes))], chip)

    assert (row.machine, row.outcome) == (f"PCIe Gen{generation} x{lanes}", "agrees" if lanes == 16 else "differs")


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1,023 B"), (2**20, "1 MiB"), (2**20 + 1, "1,048,577 B"), (2**30, "1 GiB"), (3 * 2**29, "1,536 MiB"),
     (96 * 2**30, "96 GiB"), (2**40, "1,024 GiB")],
)  # fmt: skip
def test_sizes_in_the_largest_unit_that_they_are_multiples_of(size, text) -> None:
    assert _bytes(size) == text
