"""trnspec.checks.rules.units: memory is binary, bandwidth is decimal."""

from __future__ import annotations

import pytest
from attrs import frozen

from tests.support.rules import bare, claim, found
from trnspec.builtin import plugin as builtin
from trnspec.model.fields import Capacity, DiskCapacity
from trnspec.plugins.api import Kind, Plugin, Registry
from trnspec.testing import diagnose, expected


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
