"""A machine compared with the catalog: published outputs of neuron-ls and nvidia-smi, and changes of them."""

import copy
import json

import pytest

from tests.support.engine import everything
from tests.support.programs import DATA
from tests.support.rules import shipped
from trnspec.checks.reconcile.machines import compare
from trnspec.errors import UsageError
from trnspec.loading.host import neuron_ls, nvidia_smi
from trnspec.loading.host.machine import HostText

HOST = DATA / "host"


def published(name: str) -> bytes:
    return (HOST / name).read_bytes()


def machine(raw):
    text = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
    reader = nvidia_smi if text.lstrip()[:1] == b"<" else neuron_ls
    return reader.read(HostText("machine", text))


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
def test_published_outputs_of_neuron_ls(name, server, candidates, differing) -> None:
    found = compare(shipped(), machine(published(name)))

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
def test_published_outputs_of_nvidia_smi(name, chip, differing) -> None:
    found = compare(everything(), machine(published(name)))

    assert chip == found.chip
    assert differing == {row.property: row.machine for row in found.rows if row.outcome == "differs"}


def test_with_the_catalog_of_inferentia() -> None:
    """A size with 8 GiB is found; one device of 32 GiB and two cores is of either family."""
    assert "inf1.6xlarge" == compare(everything(), machine(published("neuron_ls_inf1.6xlarge.json"))).server
    found = compare(everything(), machine(published("neuron_ls_trn1.2xlarge.json")))
    assert ("", "", ("inf2.8xlarge", "inf2.xlarge", "trn1.2xlarge")) == (found.server, found.chip, found.candidates)
    assert {""} == {row.source for row in found.rows}


TRN2 = "neuron_ls_trn2n.48xlarge.json"


def test_topology_is_compared_up_to_the_numbering() -> None:
    """Renumbered devices are the same torus; a ladder with the same degrees is not."""
    data = devices(TRN2)
    for each in data:
        each["neuron_device"] = 100 - each["neuron_device"]
        each["connected_to"] = [100 - n for n in each["connected_to"]]
    found = compare(shipped(), machine(data), "trn2.48xlarge")
    assert [("the same graph", "agrees")] == [(r.machine, r.outcome) for r in found.rows if r.property == "topology"]
    for n, each in enumerate(data):
        near = [(n + 1) % 16, (n - 1) % 16, (n + 2) % 16, (n - 2) % 16]
        each["connected_to"] = [100 - m for m in near]
    found = compare(shipped(), machine(data), "trn2.48xlarge")
    (row,) = (r for r in found.rows if r.property == "topology")
    assert "differs" == row.outcome
    assert row.machine != "the same graph"


def test_missing_property_is_not_a_difference() -> None:
    data = [{"neuron_device": n} for n in range(16)]
    found = compare(shipped(), machine(data), "trn2.48xlarge")

    assert {"devices": "agrees"} == {p: o for p, o in outcomes(found).items() if o != "not reported"}
    assert not found.differs


def test_reserved_memory_of_a_gpu() -> None:
    """A driver keeps up to 2 % back; more is a difference, and so is more memory than the chip has."""
    raw = published("nvidia_smi_h100.xml").decode()
    sizes = {"81559": "agrees", "80282": "agrees", "80281": "differs", "98304": "differs"}

    assert sizes == {
        size: outcomes(compare(everything(), machine(raw.replace("81559", size).encode())))["memory of a device"]
        for size in sizes
    }


@pytest.mark.parametrize("generation", range(1, 7))
def test_each_generation_of_pcie_doubles_the_rate(generation) -> None:
    """64 GB/s in both directions are 16 lanes of the fourth; half or twice as many of it differ."""
    raw = published("nvidia_smi_a100_mig.xml").decode()
    raw = raw.replace("max_device_link_gen>4<", f"max_device_link_gen>{generation}<")
    lanes = 2 ** (8 - generation)

    for number, outcome in ((lanes, "agrees"), (lanes // 2, "differs"), (2 * lanes, "differs")):
        changed = raw.replace("max_link_width>16x<", f"max_link_width>{number}x<")
        assert outcome == outcomes(compare(everything(), machine(changed.encode())))["host link"]


@pytest.mark.parametrize(
    ("name", "server", "message"),
    [("nvidia_smi_h100.xml", None, "install trnspec-nvidia"), (TRN2, "trainium2", "trainium2 is a Chip")],
)
def test_misuse(name, server, message) -> None:
    with pytest.raises(UsageError, match=message):
        compare(shipped(), machine(published(name)), server)
