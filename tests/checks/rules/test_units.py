"""trnspec.checks.rules.units: units of fields of plugins; the rules are tested by tables of edits."""

from __future__ import annotations

from attrs import frozen

from trnspec.builtin import plugin as builtin
from trnspec.model.fields import Capacity, DiskCapacity
from trnspec.plugins.api import Kind, Plugin, Registry
from trnspec.testing import diagnose, expected


@frozen(kw_only=True)
class Storage:
    """A storage system."""

    cache: Capacity
    capacity: DiskCapacity


def test_trn601_field_declared_as_capacity_of_a_disk():
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
