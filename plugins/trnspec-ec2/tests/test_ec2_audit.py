"""Records beside the catalog: what the API really says of Trainium, and what one wrong value does."""

from __future__ import annotations

import copy
import json
import re

import pytest
from attrs import evolve
from ec2_world import FILE, catalog, installed, put, record, run
from trnspec_ec2.comparing import audit, is_chip
from trnspec_ec2.reading import records
from trnspec_ec2.statements import adapters, statements

from trnspec.api import graph
from trnspec.graph.graph import Graph
from trnspec.model.chip import Chip
from trnspec.model.server import Server

ONE = "NeuronInfo.NeuronDevices[0].MemoryInfo.SizeInMiB"
ALL = "NeuronInfo.TotalNeuronDeviceMemoryInMiB"
CARD = "NetworkInfo.NetworkCards[0].PeakBandwidthInGbps"

KNOWN = {
    ("trn2.3xlarge", ONE, "524,288 MiB", "96 GiB", "rejected"),
    ("trn2.3xlarge", ALL, "524,288 MiB", "96 GiB", "rejected"),
    ("trn2.3xlarge", CARD, "50.0 Gbps", "200 Gbps", "unresolved"),
    ("trn2.48xlarge", ONE, "524,288 MiB", "96 GiB", "rejected"),
    ("trn2.48xlarge", ALL, "8,388,608 MiB", "1,536 GiB", "rejected"),
}
"""Every contradiction of the API with the shipped catalog; all of them are recorded there."""


def audited(*data, known=None):
    return audit(records(list(data), "test"), known or catalog())


def reported(found):
    return {
        (c.type, c.statement.where, str(c.statement), c.adopted.text, getattr(c.known, "verdict", None)) for c in found
    }


@pytest.fixture(scope="module")
def kept():
    return audit(records(json.loads(FILE.read_text()), "moto"), catalog())


def test_the_errors_of_the_api(kept) -> None:
    assert KNOWN == reported(kept.contradictions)
    assert () == kept.unrecorded


def test_the_records_of_the_installed_moto() -> None:
    """A newer moto may bring new records; those errors that it has are these, unless the API was corrected."""
    found = audited(*installed().values())

    assert reported(found.contradictions) <= KNOWN
    assert len(installed()) == found.others + len(found.lacking) + len({c.type for c in found.agreements})


def test_why_a_trainium2_has_512_gib(kept) -> None:
    """Both sentences of trnspec's own hypotheses, after the one that names parts and whole."""
    (found,) = (c for c in kept.contradictions if (c.type, c.statement.where) == ("trn2.48xlarge", ONE))

    assert ["total-of-another", "neighbour", "neighbour"] == [c.id for c in found.causes]
    assert [
        "512 GiB is the memory of 16 chips of 32 GiB, trainium1: trn1.32xlarge",
        "this is the figure of trn1.32xlarge and 1 other: 512 GiB",
        "this is the figure of trainium1: 16 x 32 GiB",
    ] == [c.sentence for c in found.causes]
    assert ("trainium2", "neuron-trainium2-2026-08", "2026-08-21") == (
        found.adopted.name,
        found.adopted.source,
        found.adopted.as_of,
    )
    assert ("rejected", "trainium2", "ec2-api-moto-5.2.1") == (
        found.known.verdict,
        found.known.name,
        found.known.source,
    )


def labelled(text: str) -> list[list[str]]:
    """The labels below each contradiction, in order."""
    blocks = [block.splitlines() for block in text.split("\n\n") if "\n  record " in block]
    return [[line.split()[0] for line in b[1:] if re.match(r"  [a-z]|        or ", line)] for b in blocks]


def test_beside_a_recorded_reason_a_cause_is_a_guess() -> None:
    """What somebody has found out comes first; where nothing is recorded the causes are all there is."""
    kept = run("audit", FILE, "--type", "trn2.3xlarge").out

    assert [
        ["record", "catalog", "known", "perhaps", "or"],
        ["record", "catalog", "known", "perhaps"],
        ["record", "catalog", "known"],
    ] == labelled(run("audit", FILE, "--type", "trn2.3xlarge", "-v").out)
    assert [["record", "catalog", "known"]] * 3 == labelled(kept)
    changed = record("trn1.32xlarge")
    put(changed, "VCpuInfo.DefaultCores", 60)
    put(changed, "MemoryInfo.SizeInMiB", 512)
    new = run("audit", "-", stdin=json.dumps([changed]).encode()).out

    assert [["record", "catalog", "cause", "new"]] * 2 == labelled(new)
    assert "  cause     none of the known causes closes the gap\n" in new


def test_a_figure_without_an_adopted_value_is_recorded_as_a_claim() -> None:
    """The baseline of trn2.3xlarge is 50 or 200 Gbps: what the record says is a claim, and nothing to add."""
    card = "NetworkInfo.NetworkCards[0].BaselineBandwidthInGbps"
    found = audited(record("trn2.3xlarge"))
    (one,) = (c for c in found.agreements if c.statement.where == card)

    assert ("50.0 Gbps", "spec.network.baseline") == (one.adopted.text, one.target.path)
    assert () == found.additions


@pytest.mark.parametrize(("path", "says", "figure"), [(ONE, 224, "224 MiB"), (ALL, 16 * 224, "16 x 224 MiB")])
def test_another_figure_of_the_chip_is_reported_by_its_path(path, says, figure) -> None:
    """As such, and times how many chips there are."""
    changed = record("trn2.48xlarge")
    put(changed, ONE, 98304)
    put(changed, ALL, 16 * 98304)
    put(changed, path, says)
    (found,) = audited(changed).contradictions

    assert [f"this is the figure at spec.sbuf of trainium2: {figure}"] == [c.sentence for c in found.causes]


def test_the_total_follows_from_the_part(kept) -> None:
    (found,) = (c for c in kept.contradictions if (c.type, c.statement.where) == ("trn2.48xlarge", ALL))

    assert ["it is 16 x 524,288 MiB, the figure of one chip in the same record"] == [c.sentence for c in found.causes]


def test_one_record_lists_no_accelerator(kept) -> None:
    assert (("trn2u.48xlarge", "16 x trainium2"),) == kept.omissions


def test_figures_that_the_catalog_lacks(kept) -> None:
    assert set() == {(c.type, c.target.path, str(c.statement)) for c in kept.additions}


def test_types_that_the_catalog_lacks(kept) -> None:
    assert {
        *((f"inf1.{size}", "AWS Inferentia", "") for size in ("xlarge", "2xlarge", "6xlarge", "24xlarge")),
        *((f"inf2.{size}", "AWS Inferentia2", "") for size in ("xlarge", "8xlarge", "24xlarge", "48xlarge")),
    } == {(x.type, d.title, chip) for x in kept.lacking for d, chip in x.devices}


def test_with_the_catalog_of_inferentia_its_types_agree() -> None:
    inferentia = pytest.importorskip("trnspec_inferentia")
    known = graph([str(inferentia.plugin.catalogs[0])])
    found = audit(records(json.loads(FILE.read_text()), "moto"), known)

    assert KNOWN == reported(found.contradictions)
    assert ((), {f"inf{i}" for i in (1, 2)}) == (
        found.lacking,
        {c.type.partition(".")[0] for c in found.agreements if c.type.startswith("inf")},
    )


CORRUPTED = [
    ("trn1.32xlarge", "VCpuInfo.DefaultVCpus", 64, "vcpus", ["cores-for-vcpus"]),
    ("trn1.32xlarge", "VCpuInfo.DefaultCores", 60, "threads", []),
    ("trn1.32xlarge", "VCpuInfo.DefaultThreadsPerCore", 1, "threads", ["cores-for-vcpus"]),
    ("trn1.32xlarge", "MemoryInfo.SizeInMiB", 512, "host-memory", ["prefix"]),
    ("trn1.32xlarge", "MemoryInfo.SizeInMiB", 2097152, "host-memory", ["neighbour"]),
    ("trn1.32xlarge", "NeuronInfo.NeuronDevices[0].Name", "Trainium2", "chip", []),
    ("trn1.32xlarge", "NeuronInfo.NeuronDevices[0].Name", "Inferentia", "chip", []),
    ("trn1.32xlarge", "NeuronInfo.NeuronDevices[0].Count", 32, "chips", ["cores-for-chips"]),
    ("trn1.32xlarge", "NeuronInfo.NeuronDevices[0].Count", 1, "chips", ["neighbour"]),
    ("trn1.32xlarge", "NeuronInfo.NeuronDevices[0].CoreInfo.Count", 32, "cores", ["whole-for-part"]),
    ("trn1.32xlarge", "NeuronInfo.NeuronDevices[0].CoreInfo.Count", 8, "cores", ["neighbour"]),
    ("trn1.32xlarge", "NeuronInfo.NeuronDevices[0].CoreInfo.Version", 3, "core-version", []),
    (
        "trn1.32xlarge",
        "NeuronInfo.NeuronDevices[0].MemoryInfo.SizeInMiB",
        524288,
        "device-memory",
        ["total-of-another", "whole-for-part"],
    ),
    ("trn1.32xlarge", "NeuronInfo.NeuronDevices[0].MemoryInfo.SizeInMiB", 98304, "device-memory", ["neighbour"]),
    ("trn1.32xlarge", ALL, 32768, "device-memory-total", ["part-for-whole", "neighbour"]),
    ("trn1.32xlarge", ALL, 512, "device-memory-total", ["prefix"]),
    ("trn1.32xlarge", "NetworkInfo.EfaSupported", False, "efa", []),
    ("trn1.32xlarge", "NetworkInfo.EfaInfo.MaximumEfaInterfaces", 16, "efa-interfaces", ["neighbour"]),
    ("trn1.32xlarge", "NetworkInfo.MaximumNetworkCards", 4, "cards-most", []),
    ("trn1.32xlarge", "NetworkInfo.NetworkCards[3].InterfaceTypes", ["interface"], "cards", []),
    ("trn1.32xlarge", "NetworkInfo.NetworkCards[3].PeakBandwidthInGbps", 10.0, "card-peak", ["decimal-point"]),
    ("trn1.32xlarge", "NetworkInfo.NetworkCards[7].BaselineBandwidthInGbps", 50.0, "card-baseline", []),
    ("trn1.32xlarge", "NetworkInfo.NetworkPerformance", "8x 50 Gigabit", "performance", ["one-direction"]),
    ("trn1.32xlarge", "NetworkInfo.NetworkPerformance", "16x 100 Gigabit", "performance", ["both-directions"]),
    ("trn1.32xlarge", "NetworkInfo.NetworkPerformance", "4x 200 Gigabit", "performance-cards", []),
    ("trn1.32xlarge", "InstanceStorageInfo.TotalSizeInGB", 7700, "local-storage", ["one-digit"]),
    ("trn1.32xlarge", "InstanceStorageInfo.Disks[0].SizeInGB", 950, "disks", []),
    ("trn1.32xlarge", "InstanceStorageInfo.Disks[0].Count", 8, "disks", []),
    ("trn1.32xlarge", "EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps", 8000, "ebs", ["decimal-point"]),
    ("trn1.32xlarge", "ProcessorInfo.SustainedClockSpeedInGhz", 5.3, "clock", ["swapped-digits"]),
    ("trn1.32xlarge", "ProcessorInfo.Manufacturer", "AMD", "cpu", []),
    ("trn1.32xlarge", "EbsInfo.EbsOptimizedInfo.MaximumThroughputInMBps", 1000.0, "ebs-throughput", ["decimal-point"]),
    ("trn1.32xlarge", "EbsInfo.EbsOptimizedInfo.MaximumIops", 130000, "ebs-iops", []),
    ("trn1.32xlarge", "EbsInfo.EbsOptimizedInfo.BaselineBandwidthInMbps", 40000, "ebs-baseline", []),
    ("trn1.32xlarge", "EbsInfo.EbsOptimizedInfo.BaselineThroughputInMBps", 5000.0, "ebs-baseline-throughput", []),
    ("trn1.32xlarge", "EbsInfo.EbsOptimizedInfo.BaselineIops", 26000, "ebs-baseline-iops", ["decimal-point"]),
    ("trn1.2xlarge", "EbsInfo.EbsOptimizedInfo.BaselineBandwidthInMbps", 20000, "ebs-baseline", []),
    ("trn1.2xlarge", "NetworkInfo.NetworkCards[0].PeakBandwidthInGbps", 25.0, "peak", []),
    ("trn1.2xlarge", "NetworkInfo.NetworkCards[0].BaselineBandwidthInGbps", 12.5, "card-baseline", []),
    ("trn1.2xlarge", "NetworkInfo.NetworkPerformance", "Up to 25 Gigabit", "performance", []),
    # No technology is adopted; the claim of an earlier record is compared.
    ("trn1.2xlarge", "NetworkInfo.EfaSupported", True, "efa", []),
]


@pytest.mark.parametrize(("name", "path", "value", "id", "causes"), CORRUPTED)
def test_one_wrong_value_is_one_contradiction(name, path, value, id, causes) -> None:
    """Of exactly that attribute; the causes are among those that were found."""
    assert () == audited(record(name)).contradictions
    changed = record(name)
    assert value != put(changed, path, value)
    found = audited(changed)

    assert [id] * (id is not None) == [c.statement.id for c in found.contradictions]
    assert [name] * (id is not None) == [c.type for c in found.unrecorded]
    assert set(causes) <= {e.id for c in found.contradictions for e in c.causes}


def test_every_attribute_is_corrupted_above() -> None:
    ids = {c.statement.id for name in ("trn1.32xlarge", "trn1.2xlarge") for c in audited(record(name)).agreements}

    assert ids - {"performance-cards"} <= {id for *_, id, _ in CORRUPTED}


def test_efa_that_the_catalog_does_not_know_could_be_added() -> None:
    changed = record("trn1.2xlarge")
    put(changed, "NetworkInfo.EfaSupported", True)
    node = catalog().named("trn1.2xlarge")
    silent = Graph({**catalog().nodes, node.name: evolve(node, claims=())})

    assert "spec.network.technology" in {c.target.path for c in audited(changed, known=silent).additions}


@pytest.mark.parametrize(
    ("path", "name", "part"),
    [
        ("host.vcpus", "trn1.2xlarge", "VCpuInfo.DefaultVCpus"),
        ("host.memory", "trn1.2xlarge", "MemoryInfo.SizeInMiB"),
        ("network.storage", "trn1.2xlarge", "EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps"),
        ("local_storage", "trn1.2xlarge", "InstanceStorageInfo.TotalSizeInGB"),
    ],
)
def test_missing_figure_is_an_addition(path, name, part) -> None:
    """A catalog without the figure: the record has it, once."""
    spec = catalog().named(name).spec
    head, _, last = path.partition(".")
    changed = evolve(spec, **{head: evolve(getattr(spec, head), **{last: None}) if last else None})
    found = audited(record(name), known=catalog().replace(name, changed))

    assert [(f"spec.{path}", part)] == [(c.target.path, c.statement.where) for c in found.additions]
    assert () == found.contradictions


def test_another_source_that_was_wrong_does_not_make_the_api_known() -> None:
    """trn1.32xlarge: a guide's figure was rejected, but the API never said it."""
    changed = record("trn1.2xlarge")
    put(changed, "NeuronInfo.NeuronDevices[0].CoreInfo.Count", 4)
    (found,) = audited(changed).contradictions

    assert (None, "4", "2") == (found.known, str(found.statement), found.adopted.text)


def test_without_neuron_info_the_chip_is_not_guessed() -> None:
    assert {"host-memory"} == {
        c.statement.id for c in audited({"InstanceType": "trn1.2xlarge", "MemoryInfo": {"SizeInMiB": 32768}}).agreements
    }


@pytest.fixture(scope="module")
def gpus(tmp_path_factory):
    """A catalog with a size that has GPUs: the draft of one."""
    folder = tmp_path_factory.mktemp("gpus")
    text = json.dumps([installed()["p5.48xlarge"]]).encode()
    assert 0 == run("import", "-", "--as-of", "2026-11", "--out", folder, stdin=text).status
    return graph([str(folder)])


def test_card_to_the_outside_is_no_adapter_to_other_servers() -> None:
    """p6-b300.48xlarge: 16 EFA interfaces on 17 cards, of which the first has another rate."""
    data = installed()["p6-b300.48xlarge"]
    cards = {s.id: s.says for s in statements(data) if s.targets[0].path == "spec.network.nics"}

    assert 17 == len(data["NetworkInfo"]["NetworkCards"])
    assert 16 == len(adapters(data))
    assert (16, 16) == (cards["efa-interfaces"], cards["cards"])


@pytest.mark.parametrize(
    ("path", "value", "id"),
    [
        ("GpuInfo.Gpus[0].Name", "H200", "chip"),
        ("GpuInfo.Gpus[0].Count", 4, "chips"),
        ("GpuInfo.Gpus[0].MemoryInfo.SizeInMiB", 655360, "device-memory"),
        ("GpuInfo.TotalGpuMemoryInMiB", 81920, "device-memory-total"),
    ],
)
def test_gpus_are_compared_too(gpus, path, value, id) -> None:
    one = copy.deepcopy(installed()["p5.48xlarge"])
    assert () == audited(one, known=gpus).contradictions
    put(one, path, value)

    assert [(id, path)] == [(c.statement.id, c.statement.where) for c in audited(one, known=gpus).contradictions]


@pytest.mark.parametrize(
    ("name", "full", "chip", "same"),
    [
        ("Trainium", "AWS Trainium", "trainium1", True),
        ("Trainium", "Trainium", "trainium2", False),
        ("trainium-2", "trainium-2", "trainium2", True),
        ("Train", "Train", "trainium2", True),
        ("Trainium3", "Trainium3", "trainium2", False),
    ],
)
def test_names_of_chips(name, full, chip, same) -> None:
    """Its names, or the beginning of one of them that is no other chip's name."""
    assert same == is_chip(catalog(), name, full, catalog().named(chip))


@pytest.mark.parametrize(
    ("args", "status", "last"),
    [
        ([], 0, "221 agree, 5 contradict and are recorded, 0 contradict and are not, 0 could be added;"),
        (["--new"], 0, "221 agree, 5 contradict and are recorded, 0 contradict and are not, 0 could be added;"),
        (["--strict"], 1, "221 agree, 5 contradict and are recorded, 0 contradict and are not, 0 could be added;"),
        (["--type", "trn1.2xlarge"], 0, "22 agree, 0 contradict and are recorded, 0 contradict and are not, 0 could"),
    ],
)
def test_status_and_last_line(args, status, last) -> None:
    done = run("audit", FILE, *args)

    assert (status, "") == (done.status, done.err)
    assert done.out.splitlines()[-1].startswith(last)


def test_new_decides_the_status() -> None:
    changed = record("trn2.48xlarge")
    put(changed, "VCpuInfo.DefaultVCpus", 96)
    text = json.dumps([changed]).encode()
    done = run("audit", "-", "--new", stdin=text)

    assert 1 == done.status
    assert ["trn2.48xlarge  vCPUs"] == [x for x in done.out.splitlines() if x.startswith("trn2")]
    assert 3 == run("audit", "-", stdin=text).out.count("\ntrn2.48xlarge") + 1


def test_the_maker_of_a_processor_is_the_beginning_of_its_model() -> None:
    node = catalog().named("trn1.2xlarge")
    host = evolve(node.spec.host, cpu="Intel Xeon Platinum 8375C")
    known = catalog().replace("trn1.2xlarge", evolve(node.spec, host=host))

    assert "cpu" in {c.statement.id for c in audited(record("trn1.2xlarge"), known=known).agreements}


def test_servers_that_are_not_instance_types_explain_nothing() -> None:
    changed = record("trn1.32xlarge")
    put(changed, "NetworkInfo.NetworkPerformance", "16x 100 Gigabit")
    (found,) = audited(changed).contradictions

    assert [] == [c.sentence for c in found.causes if "dgx" in c.sentence or "ultraserver" in c.sentence]


def test_verbose_lists_agreements() -> None:
    done = run("audit", FILE, "-v")

    assert "  trn1.2xlarge  host memory: 32,768 MiB  (trn1.2xlarge spec.host.memory: 32 GiB)" in done.out.splitlines()
    assert "  inf2.8xlarge  1 x AWS Inferentia2, a chip it lacks too" in done.out.splitlines()


def test_json() -> None:
    done = run("audit", FILE, "--format", "json", "--as-of", "2026-11-20")
    data = json.loads(done.out)

    assert (0, {"from": str(FILE), "as_of": "2026-11-20"}) == (done.status, data["records"])
    assert KNOWN == {
        (c["type"], c["record"]["where"], c["record"]["says"], c["catalog"]["says"], c["known"]["verdict"])
        for c in data["contradictions"]
    }
    assert (221, 0, 8, 1) == tuple(len(data[k]) for k in ("agreements", "additions", "lacking", "omissions"))
    assert [] == json.loads(run("audit", FILE, "--format", "json", "--new").out)["contradictions"]


def test_catalog_has_documents_of_these_tests() -> None:
    assert {"trainium1", "trainium2"} <= {n.name for n in catalog().of(Chip)}
    assert {"trn1.2xlarge", "trn1.32xlarge", "trn2.48xlarge"} <= {n.name for n in catalog().of(Server)}
