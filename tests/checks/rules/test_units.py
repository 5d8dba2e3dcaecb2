"""trnspec.checks.rules.units: memory is binary, bandwidth is decimal."""

from __future__ import annotations

import pytest
from attrs import frozen

from tests.support.rules import bare, claim, findings, found, put, shipped
from trnspec.builtin import plugin as builtin
from trnspec.model.fields import Capacity, DiskCapacity
from trnspec.model.figure import Figure
from trnspec.plugins.api import Kind, Plugin, Registry
from trnspec.quantities.quantity import parse
from trnspec.testing import diagnose, expected


@pytest.mark.parametrize(
    ("name", "at", "text", "hint"),
    [
        ("trainium1", "memory.capacity", "32 GB", "32 GiB"),
        ("trainium1", "memory.capacity", "~32 GB", "~32 GiB"),
        ("trainium1", "memory.stacks.capacity", "16,384 MB", "16,384 MiB"),
        ("trainium1", "sbuf", "48000 kB", "48000 KiB"),
        ("neuroncore-v2", "psum.per_bank", "2 kB", "2 KiB"),
        ("trn1.32xlarge", "host.memory", "0.5 TB", "0.5 TiB"),
        ("trainium1", "memory.bandwidth", "820 GiB/s", "820 GB/s"),
        ("trainium1", "memory.bandwidth", "13,120 GiB/sec", "13,120 GB/s"),
        ("trainium1", "memory.bandwidth", "839,680,000 KiB/s", "839,680,000 kB/s"),
        ("trn1.32xlarge", "network.bandwidth", "800 Gibit/s", "800 Gbit/s"),
    ],
)
def test_the_unit_that_was_meant(name, at, text, hint):
    graph = put(bare(), name, at, text)
    (finding,) = findings("TRN601", graph)

    assert {(name, f"spec.{at}")} == found("TRN601", graph)
    assert finding.hint.startswith(f"did you mean {hint}? ")
    assert text in finding.message


@frozen(kw_only=True)
class Storage:
    """A storage system."""

    cache: Capacity
    capacity: DiskCapacity


def test_a_field_can_be_declared_as_the_capacity_of_a_disk():
    kind = Kind("Storage", "storages", Storage)
    registry = Registry.of([builtin, Plugin(name="example", api=1, kinds=(kind,))])
    text = """\
api_version: trnspec/v1
kind: Storage
metadata: {name: example, title: Example, source: neuron-trn1-2026-08}
spec:
  cache: 1 TB  #! TRN601
  capacity: 1 PB
"""

    assert diagnose(text, registry=registry) == expected(text, registry=registry)


@pytest.mark.parametrize(
    ("name", "at", "text"),
    [
        ("trainium1", "memory.capacity", "32,768 MiB"),
        ("trainium1", "memory.capacity", "34,359,738,368 B"),
        ("trn1.32xlarge", "local_storage", "7,600 GB"),
        ("trainium1", "memory.bandwidth", "0.82 TB/s"),
        ("trn1.32xlarge", "network.bandwidth", "800 Gbps"),
    ],
)
def test_units_that_can_be_meant(name, at, text):
    assert findings("TRN601", put(bare(), name, at, text)) == []


def test_the_shipped_catalog_has_the_right_units():
    assert findings("TRN601", shipped()) == []


@pytest.mark.parametrize(
    ("field", "text", "reported"),
    [
        ("InstanceStorageInfo.TotalSizeInGB", "7,600 GB", False),
        ("InstanceStorageInfo.TotalSizeInGB", "7.6 TB", False),
        ("InstanceStorageInfo.TotalSizeInGB", "475.125 GB", False),
        ("InstanceStorageInfo.TotalSizeInGB", "475.0625 GB", True),
        ("InstanceStorageInfo.TotalSizeInGB", "7,600 GiB", True),
        ("InstanceStorageInfo.TotalSizeInMiB", "7,600 GiB", False),
        ("BaselineThroughputInMBps", "2 GB", True),
        ("a table, line 3", "7,600 GiB", False),
        (None, "7,600 GiB", False),
    ],
)
def test_the_unit_that_a_field_is_named_after(field, text, reported):
    figure = Figure(value=parse(text), where=field)
    graph = put(bare(), "trn2.48xlarge", "local_storage", figure)

    assert ({("trn2.48xlarge", "spec.local_storage")} if reported else set()) == found("TRN611", graph)


@pytest.mark.parametrize(
    ("at", "says", "where", "verdict", "reported"),
    [
        ("network.storage", "2,375.5 MB/s", "MaximumThroughputInMBps", None, False),
        ("network.storage", "2,375.0625 MB/s", "MaximumThroughputInMBps", None, True),
        ("network.storage", "2,375.0625 MB/s", "MaximumThroughputInMBps", "rounded", False),
        ("network.storage", "2,375.0625 MB/s", "MaximumThroughput", None, False),
        ("network.storage", "many", "MaximumThroughputInMBps", None, False),
    ],
)
def test_the_unit_that_the_field_of_a_claim_is_named_after(at, says, where, verdict, reported):
    graph = claim(bare(), "trn2.48xlarge", f"spec.{at}", says, where=where, verdict=verdict)

    assert ({("trn2.48xlarge", "claims.0.says")} if reported else set()) == found("TRN611", graph)


@pytest.mark.parametrize(("says", "reported"), [("1.403 GHz", False), ("1.4031 GHz", True)])
def test_units_that_fields_spell_in_their_own_way(says, reported):
    graph = claim(bare(), "neuroncore-v2", "spec.engines.vector.clock", says, where="SustainedClockSpeedInGhz")

    assert ({("neuroncore-v2", "claims.0.says")} if reported else set()) == found("TRN611", graph)
