"""Drafts: sound as they are, true to the record, and never in the way of what is there."""

from __future__ import annotations

import json

import pytest
from ec2_world import FILE, catalog, installed, put, record, run
from trnspec_ec2 import plugin
from trnspec_ec2.comparing import audit
from trnspec_ec2.reading import records

from trnspec.api import graph, validate
from trnspec.loading.files import documents_in, shipped
from trnspec.testing import PluginConformance

TRN2 = """\
# yaml-language-server: $schema=../../schemas/v1/server.schema.json
api_version: trnspec/v1
kind: Server
metadata:
  name: trn2.48xlarge
  title: Amazon EC2 trn2.48xlarge
  source: ec2-api-2026-11-20
spec:
  family: {name: trn2}
  chips: {chip: trainium2, count: 16}
  host: {vcpus: 192, memory: {value: "2,097,152 MiB", where: MemoryInfo.SizeInMiB}}
  network:
    technology: EFA
    nics: 16
    bandwidth: {value: "3,200.0 Gbps", where: "NetworkInfo.NetworkCards.PeakBandwidthInGbps, added"}
    storage: {value: "80,000 Mbps", where: EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps}
  local_storage: {value: "7,600 GB", where: InstanceStorageInfo.TotalSizeInGB}
  other: {cpu_clock: {value: 3.5 GHz, where: ProcessorInfo.SustainedClockSpeedInGhz}}
"""

NOTE = (
    "note: trn2.48xlarge: the device memory of 8,388,608 MiB is left out, for trainium2 has another; "
    "trnspec ec2 audit shows more"
)

SOURCE = """\
# yaml-language-server: $schema=../../schemas/v1/source.schema.json
api_version: trnspec/v1
kind: Source
metadata:
  name: ec2-api-2026-11-20
  title: "EC2 DescribeInstanceTypes, 2026-11-20"
spec:
  publisher: Amazon EC2 API
  as_of: 2026-11-20
  rank: vendor-api
"""

DAY = ("--as-of", "2026-11-20")


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


def files(folder):
    return {str(f.relative_to(folder)) for f in folder.rglob("*") if f.is_file()}


def drafted(*data, args=DAY, out="drafts", types=()):
    text = json.dumps(list(data)).encode()
    chosen = [a for t in types for a in ("--type", t)]
    return run("import", "-", *chosen, *args, "--out", out, stdin=text)


def test_a_draft(tmp_path) -> None:
    """With what the record says; the memory, which it says wrong, is reported and left out."""
    done = drafted(record("trn2.48xlarge"), types=["trn2.48xlarge"])

    assert (0, "") == (done.status, done.err)
    assert TRN2 == (tmp_path / "drafts/servers/trn2.48xlarge.yaml").read_text()
    assert SOURCE == (tmp_path / "drafts/sources/ec2-api-2026-11-20.yaml").read_text()
    assert [
        "wrote drafts/servers/trn2.48xlarge.yaml",
        "wrote drafts/sources/ec2-api-2026-11-20.yaml",
        NOTE,
        "2 files drafted; next: trnspec validate drafts",
    ] == done.out.splitlines()


def test_drafts_of_every_type_are_sound_and_say_what_the_records_say(tmp_path) -> None:
    """All that the installed moto has, with the shipped catalog; then the records beside the drafts."""
    everything = list(installed().values())
    done = drafted(*everything, types=())
    checked = validate([str(tmp_path / "drafts")])
    found = audit(records(everything, "moto"), graph([str(tmp_path / "drafts")]))
    left_out = {x.split(": ")[1] for x in done.out.splitlines() if x.startswith("not drafted: ")}

    assert (1, "", []) == (done.status, done.err, list(checked.report.diagnostics))
    assert {"p5.48xlarge.yaml", "inf1.xlarge.yaml"} <= {f.name for f in (tmp_path / "drafts/servers").iterdir()}
    assert left_out == {x.type for x in found.lacking}
    assert {"trn2.3xlarge", "trn2.48xlarge"} == {c.type for c in found.contradictions}


@pytest.mark.slow
def test_each_draft_is_sound_by_itself(tmp_path) -> None:
    """Also those of types that the catalog has: the draft replaces its document."""
    names = [r["InstanceType"] for r in json.loads(FILE.read_text())["InstanceTypes"] if "NeuronInfo" in r]
    for name in names:
        done = drafted(record(name), types=[name], out=name)
        assert (0, []) == (done.status, list(validate([str(tmp_path / name)]).report.diagnostics))
    assert 13 == len(names)


def test_a_chip_that_the_catalog_lacks(tmp_path) -> None:
    """Its core is that of the catalog; no source knows its rates."""
    one = record("trn2.48xlarge")
    put(one, "InstanceType", "trn9.48xlarge")
    put(one, "NeuronInfo.NeuronDevices[0].Name", "Trainium9")
    done = drafted(one)
    made = graph([str(tmp_path / "drafts")])
    chip = made.named("trainium9").spec

    assert 0 == done.status
    assert "note: trainium9: the API has no peak rates; peak is empty until a source is found" in done.out.splitlines()
    assert ("neuroncore-v3", 8, "524,288 MiB") == (chip.cores.core.name, chip.cores.count, str(chip.memory.capacity))
    assert (None, None) == (chip.peak.dense, chip.memory.bandwidth)
    assert [] == list(validate([str(tmp_path / "drafts")]).report.diagnostics)


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("NeuronInfo.NeuronDevices[0].MemoryInfo", None, "nothing says how much memory a Trainium9 has"),
        ("NeuronInfo.NeuronDevices[0].Name", None, "the record does not name its chip"),
        ("NeuronInfo.NeuronDevices[0].Name", "NeuronLink v3", "the catalog has another document named neuronlink-v3"),
        ("NeuronInfo.NeuronDevices[0].Count", None, "its record does not say how many accelerators it has"),
        ("NeuronInfo.NeuronDevices", [], "its record lists no accelerator"),
    ],
)
def test_unknown_values_are_reported(path, value, reason, tmp_path) -> None:
    one = record("trn2.48xlarge")
    put(one, "InstanceType", "trn9.48xlarge")
    put(one, "NeuronInfo.NeuronDevices[0].Name", "Trainium9")
    put(one, path, value)
    done = drafted(one, types=["trn9.48xlarge"])

    assert (1, "") == (done.status, done.err)
    assert f"not drafted: trn9.48xlarge: {reason}" in done.out.splitlines()
    assert not (tmp_path / "drafts/servers").exists()


def test_a_part_of_a_chip_is_not_drafted(tmp_path) -> None:
    done = drafted(installed()["g6f.xlarge"])

    assert "not drafted: g6f.xlarge: it has a part of a chip, and a catalog counts whole ones" in done.out
    assert set() == files(tmp_path)


def test_two_figures_for_one_attribute_are_neither_drafted(tmp_path) -> None:
    done = drafted(record("trn2.3xlarge"), types=["trn2.3xlarge"])

    assert "note: trn2.3xlarge: network.peak is left out, for the record says 50.0 Gbps at" in done.out
    assert graph([str(tmp_path / "drafts")]).named("trn2.3xlarge").spec.network.peak is None


@pytest.mark.parametrize(
    ("path", "stated"),
    [
        (
            "VCpuInfo.DefaultVCpus",
            "host.vcpus is left out, for the record says 0 at VCpuInfo.DefaultVCpus and 4 x 2 = 8 at",
        ),
        ("MemoryInfo.SizeInMiB", "host.memory is left out, for the record says 0 MiB at MemoryInfo.SizeInMiB"),
    ],
)
def test_zero_is_not_drafted(path, stated) -> None:
    one = record("trn1.2xlarge")
    put(one, path, 0)

    assert f"note: trn1.2xlarge: {stated}" in drafted(one, types=["trn1.2xlarge"]).out


def test_types_of_the_catalog_are_drafted_when_they_are_named() -> None:
    one = record("trn1.2xlarge")

    assert (0, "Nothing to draft.\n") == ((done := drafted(one)).status, done.out)
    assert 0 == drafted(one, types=["trn1.2xlarge"]).status


def test_a_source_of_the_catalog_is_not_drafted_again(tmp_path) -> None:
    args = ("--source", "ec2-api-moto-5.2.1")
    drafted(record("trn1.2xlarge"), types=["trn1.2xlarge"], args=args)

    assert {"drafts/servers/trn1.2xlarge.yaml"} == files(tmp_path)
    assert "source: ec2-api-moto-5.2.1\n" in (tmp_path / "drafts/servers/trn1.2xlarge.yaml").read_text()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "a source needs its date: say with --as-of DATE when the API said so, or --source NAME"),
        (("--source", "Über"), "--source Über: a name of lower-case letters"),
        (("--source", "trainium2", *DAY), "--source trainium2: in the catalog that is the name of a Chip"),
    ],
)
def test_sources_that_cannot_be(args, message, tmp_path) -> None:
    done = drafted(record("trn1.2xlarge"), types=["trn1.2xlarge"], args=args)

    assert 2 == done.status
    assert done.err.startswith(f"trnspec: {message}")
    assert set() == files(tmp_path)


def test_existing_file_is_kept(tmp_path) -> None:
    file = tmp_path / "drafts/servers/trn2.48xlarge.yaml"
    drafted(record("trn2.48xlarge"), types=["trn2.48xlarge"])
    file.write_text("mine\n")
    one = record("trn2.48xlarge")
    done = drafted(one, record("trn1.2xlarge"), types=["trn1.2xlarge", "trn2.48xlarge"])

    assert (2, "mine\n") == (done.status, file.read_text())
    assert "trnspec: drafts/servers/trn2.48xlarge.yaml would be overwritten;" in done.err
    assert not (tmp_path / "drafts/servers/trn1.2xlarge.yaml").exists()
    assert 0 == drafted(one, types=["trn2.48xlarge"], args=(*DAY, "--force")).status
    assert TRN2 == file.read_text()


def test_repeated_import_is_equal() -> None:
    first, second = (drafted(record("trn2.48xlarge"), types=["trn2.48xlarge"]) for _ in range(2))

    assert first == second


def test_a_folder_that_cannot_be_written_leaves_nothing(tmp_path) -> None:
    (tmp_path / "drafts").write_text("a file")
    done = drafted(record("trn2.48xlarge"), types=["trn2.48xlarge"])

    assert 2 == done.status
    assert {"drafts"} == files(tmp_path)


def test_the_schema_is_found_beside_the_catalog(tmp_path) -> None:
    """From the folder of a kind to the folder of the schemas."""
    (tmp_path / "schemas/v1").mkdir(parents=True)
    (tmp_path / "schemas/v1/server.schema.json").write_text("{}")
    drafted(record("trn2.48xlarge"), types=["trn2.48xlarge"], out="a/b/catalog")
    head = (tmp_path / "a/b/catalog/servers/trn2.48xlarge.yaml").read_text().splitlines()[0]

    assert "# yaml-language-server: $schema=../../../../schemas/v1/server.schema.json" == head


def test_names_of_drafts_are_those_of_no_shipped_document(tmp_path) -> None:
    drafted(*installed().values())
    names = {f.stem for f in documents_in(shipped())}

    assert set() == {f.stem for f in (tmp_path / "drafts").rglob("*.yaml")} & names
    assert "trn1.2xlarge" in catalog()


class TestConformance(PluginConformance):
    """What every plugin must keep."""

    plugin = plugin

    test_is_installed_and_used = None  # the tests of the project run it as it lies here; test_ec2_readme installs it
