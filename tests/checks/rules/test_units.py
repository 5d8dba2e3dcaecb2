"""trnspec.checks.rules.units: memory is binary, bandwidth is decimal."""

from __future__ import annotations

import pytest
from attrs import frozen
from rules_world import bare, findings, found, put, shipped

from trnspec.builtin import plugin as builtin
from trnspec.model.fields import Capacity, DiskCapacity
from trnspec.plugins.api import Kind, Plugin, Registry
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
