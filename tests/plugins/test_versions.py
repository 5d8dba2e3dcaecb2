"""Versions of the kinds of plugins: conversions of documents, in reading and by ``trnspec fix``."""

import sys
import time
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from attrs import field, frozen
from hypothesis import given
from hypothesis import strategies as st

from trnspec.builtin import plugin as builtin
from trnspec.catalog.versions.editions import freeze, read
from trnspec.checks.fixes import fix
from trnspec.errors import UsageError
from trnspec.graph.graph import build
from trnspec.loading.pipeline import load_document
from trnspec.loading.settings import Settings
from trnspec.loading.upgraded import upgrade_edit
from trnspec.model.fields import Bandwidth, Capacity, Power
from trnspec.model.json_schema import document_schema
from trnspec.plugins.api import Kind, Plugin, Registry
from trnspec.plugins.failures import called
from trnspec.quantities.quantity import parse
from trnspec.yaml import read_text
from trnspec.yaml.edits import apply
from trnspec.yaml.layout import comments


@frozen(kw_only=True)
class Rate:
    """A rate.

    Attributes:
        each: In one direction.
        both: The sum.
    """

    each: Bandwidth
    both: Bandwidth


@frozen(kw_only=True)
class Shelf:
    """A shelf.

    Attributes:
        rate: Its rate.
        power: Its power.
        disks: Capacities of its disks by slot.
        label: A text.
    """

    RENAMED: ClassVar[Mapping[str, str]] = {"rate": "rate.both"}

    rate: Rate
    power: Power
    disks: Mapping[str, Capacity] = field(factory=dict)
    label: str = ""


def from_v1(data: dict[str, Any]) -> dict[str, Any]:
    """One figure becomes two, and a number gets its unit."""
    spec = data["spec"]
    both = parse(spec.pop("rate"))
    spec["rate"] = {"each": f"{float(both.number) / 2:g} Gbps", "both": both.text}
    spec["power"] = f"{spec.pop('watts')} W"
    return data


def from_v2(data: dict[str, Any]) -> dict[str, Any]:
    """A list becomes a mapping."""
    disks = data["spec"].get("disks", [])
    return {**data, "spec": {**data["spec"], "disks": {f"slot{n}": text for n, text in enumerate(disks)}}}


SHELF = Kind("Shelf", "shelves", Shelf, api_version="acme/v3", upgrade={"acme/v1": from_v1, "acme/v2": from_v2})
KNOWN = Registry.of([builtin, Plugin(name="acme", api=1, kinds=(SHELF,))])

OLD = """\
# A shelf of Acme.
api_version: acme/v1  # the first
kind: Shelf
metadata: {name: shelf, title: Shelf,   source: trainium-page}
spec:
  rate: 800 Gbps  # as printed
  # at full load
  watts: 900
  disks:  # from the left
    # the boot disk
    - 1 TB
    - 2 TB  # spare
  label: one
claims:
  - {at: spec.rate, says: 810 Gbps, source: trainium-page, verdict: unresolved, reason: r}
"""
NEW = """\
# A shelf of Acme.
api_version: acme/v3  # the first
kind: Shelf
metadata: {name: shelf, title: Shelf,   source: trainium-page}
spec:
  rate: {each: 400 Gbps, both: 800 Gbps}  # as printed
  # at full load
  power: 900 W
  # from the left
  # the boot disk
  disks: {slot0: 1 TB, slot1: 2 TB}  # spare
  label: one
claims:
  - {at: spec.rate.both, says: 810 Gbps, source: trainium-page, verdict: unresolved, reason: r}
"""


SOURCE = """\
api_version: trnspec/v1
kind: Source
metadata: {name: trainium-page, title: A page}
spec: {publisher: Acme, as_of: 2026-10, rank: vendor-chip-page, address: "https://acme.example/1"}
"""


def load(text: str) -> Any:
    return load_document(read_text(text, "shelf.yaml"), KNOWN)


def test_former_versions_are_read_as_the_present_one() -> None:
    result = load(OLD)

    assert [("TRN058", 2), ("TRN057", 15)] == [(p.code, p.place.line) for p in result.problems if p.place]
    assert "acme/v1 is an older version; the document is read as acme/v3" == result.problems[0].message
    assert load(NEW).node.spec == result.node.spec
    assert ("400 Gbps", "900 W", ["slot0", "slot1"]) == (
        result.node.spec.rate.each.value.text, result.node.spec.power.value.text, [*result.node.spec.disks],
    )  # fmt: skip


def test_fix_writes_the_present_version_and_keeps_comments() -> None:
    fixed = fix([load(OLD)], KNOWN, Settings())

    assert NEW == fixed.texts["shelf.yaml"]
    assert [] == list(load(NEW).problems)
    assert sorted(comments(OLD)) == sorted(comments(NEW))


@pytest.mark.parametrize(
    ("version", "code", "said"),
    [
        ("acme/v4", "TRN108", "newer than acme/v3, the format of the plugin acme"),
        ("trnspec/v1", "TRN108", "'trnspec/v1' at api_version is not acme/v3"),
        ("other/v4", "TRN108", "is not acme/v3"),
    ],
)
def test_other_versions(version, code, said) -> None:
    (problem,) = load(NEW.replace("acme/v3", version)).problems

    assert code == problem.code
    assert said in problem.message


def test_a_conversion_that_raises_names_the_kind() -> None:
    (problem,) = load(OLD.replace("  watts: 900\n", "")).problems

    assert ("TRN190", "the conversion of Shelf from acme/v1 to acme/v3 failed: KeyError: 'watts'") == (
        problem.code, problem.message,
    )  # fmt: skip


def endless(data: dict[str, Any]) -> dict[str, Any]:
    """It does not end."""
    while True:
        data["spec"] = dict(data["spec"])


@pytest.mark.parametrize(
    ("conversion", "reason"),
    [
        (endless, "TimeLimitError: it took longer than 0.05 s"),
        (sys.exit, "SystemExit: "),
        (lambda data: data.update(spec={}), "TypeError: it returned None; the data of the next version are expected"),
    ],
)
def test_a_conversion_without_result(monkeypatch, conversion, reason) -> None:
    monkeypatch.setenv("TRNSPEC_RULE_SECONDS", "0.05")
    kind = Kind("Shelf", "shelves", Shelf, api_version="acme/v2", upgrade={"acme/v1": conversion})
    known = Registry.of([builtin, Plugin(name="acme", api=1, kinds=(kind,))])
    (problem,) = load_document(read_text(OLD), known).problems

    assert ("TRN190", 2) == (problem.code, problem.place.line)
    assert f"the conversion of Shelf from acme/v1 to acme/v2 failed: {reason}" in problem.message


def test_only_calls_of_plugins_have_a_limit(monkeypatch) -> None:
    monkeypatch.setenv("TRNSPEC_RULE_SECONDS", "0.05")
    assert called("the exporter json", "trnspec", lambda: time.sleep(0.2) or "text", str) == "text"
    with pytest.raises(
        UsageError, match=r"the exporter json of acme failed: TimeLimitError: it took longer than 0\.05 s"
    ):
        called("the exporter json", "acme", lambda: time.sleep(0.2) or "text", str)


def test_editions_and_schemas_have_the_version() -> None:
    graph, _ = build([load(NEW).node, load_document(read_text(SOURCE), KNOWN).node])
    text = freeze(graph, "2026.11")

    assert '"api_version": "acme/v3"' in text
    assert load(NEW).node.spec == read(text, KNOWN).named("shelf").spec
    former = Registry.of([builtin, Plugin(name="acme", api=1, kinds=(Kind("Shelf", "shelves", Shelf, api_version="acme/v4",
        upgrade={"acme/v3": lambda data: {**data, "spec": {**data["spec"], "label": "converted"}}}),))])  # fmt: skip
    assert "converted" == read(text, former).named("shelf").spec.label
    versions = document_schema("Shelf", Shelf, api_versions=SHELF.api_versions)["properties"]["api_version"]["enum"]
    assert ["acme/v3", "acme/v1", "acme/v2"] == versions


VALUES = st.recursive(
    st.sampled_from(["1 TB", "a b", "900", 7, True, "x: y", "# no comment"]),
    lambda inner: st.lists(inner, min_size=1, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, min_size=1, max_size=3),
    max_leaves=8,
)  # fmt: skip
MAPPINGS = st.dictionaries(st.sampled_from("abcdef"), VALUES, min_size=1, max_size=5)


def block(value: Any, margin: str, notes: bool = True) -> str:
    """A value in block style with a comment on each line."""
    from trnspec.model.document_text import flow_text

    if isinstance(value, dict):
        return "".join(
            f"{margin}# above {k}\n{margin}{k}:"
            + (
                f"  # at {k}\n{block(v, margin + '  ')}"
                if isinstance(v, (dict, list))
                else f" {flow_text(v)}  # of {k}\n"
            )
            for k, v in value.items()
        )
    return "".join(f"{margin}- {flow_text(item)}  # item\n" for item in value)


@given(MAPPINGS, MAPPINGS)
def test_every_conversion_of_block_mappings_is_written(old, new) -> None:
    text = block({"spec": old}, "")
    document = read_text(text)
    assert {"spec": old} == document.data

    edit = upgrade_edit(document, {"spec": new})

    if old == new:
        assert edit is None
        return
    assert edit is not None
    written, _ = apply(text, [edit])
    assert {"spec": new} == read_text(written).data
    assert sorted(comments(text)) == sorted(comments(written))
