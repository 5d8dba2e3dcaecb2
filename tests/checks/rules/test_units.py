"""trnspec.checks.rules.units: units of fields of plugins; the rules are tested by tables of edits."""

import pytest
from attrs import frozen

from tests.support.rules import KNOWN
from trnspec.builtin import plugin as builtin
from trnspec.checks.fixes import fix
from trnspec.loading.pipeline import load_document
from trnspec.loading.settings import Settings
from trnspec.model.fields import Capacity, DiskCapacity
from trnspec.plugins.api import Kind, Plugin, Registry
from trnspec.testing import diagnose, expected
from trnspec.yaml import read_text


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


CHIP = """\
api_version: trnspec/v1
kind: Chip
metadata: {name: example, title: Example, source: neuron-trainium2-2026-08, where: line 3}
spec:
  memory: {capacity: 80 GB}
"""
CLAIM = '{at: spec.memory.capacity, says: "80 GB", source: neuron-trainium2-2026-08, where: "line 3"'
REJECTED = ', verdict: rejected, reason: "GB is printed where GiB is meant: the memory has MEANT."}'
API = "  - at: spec.memory.capacity\n    says: {}\n    source: aws-neuron-docs\n    where: a record\n"
OTHER = "  - {at: spec.memory.technology, says: HBM, source: aws-neuron-docs}\n"
SERVER = """\
api_version: trnspec/v1
kind: Server
metadata: {name: example-box, title: Example, source: neuron-trn2-2026-08}
spec:
  chips: {chip: example, count: 8}
  stated: {memory: {capacity: TOTAL}}
"""


def adopted(claims: str = "", chip: str = CHIP, total: str = "") -> str:
    """The chip after ``trnspec fix``: without its first lines; the figure and the claims."""
    texts = {"chips/example.yaml": chip + (f"claims:\n{claims}" if claims else "")}
    if total:
        texts["servers/example-box.yaml"] = SERVER.replace("TOTAL", total)
    results = [load_document(read_text(text, file), KNOWN) for file, text in texts.items()]
    fixed = fix(results, KNOWN, Settings(select=("TRN601",)))
    assert [d for d in fixed.checked.report.diagnostics if d.edit is not None] == []
    return "".join(text.partition("spec:\n")[2] for text in fixed.texts.values())


@pytest.mark.parametrize(
    ("says", "claim"),
    [
        ('"81,920 MiB"', CLAIM + REJECTED.replace("MEANT", "81,920 MiB")),
        ("74.5 GiB", CLAIM + "}"),
        ("96 GiB", ""),
        ("~80 GiB", ""),
        ('"81,920 MB"', ""),
    ],
    ids=["the same number", "a rounding", "another", "not exact", "not binary"],
)
@pytest.mark.parametrize("others", ["", OTHER])
def test_trn601_adopts_what_a_claim_states(says: str, claim: str, others: str) -> None:
    """Of a claim in binary units: its value, source and place; the printed value takes its place."""
    figure = '{value: SAYS, source: aws-neuron-docs, where: "a record"}'.replace("SAYS", '"' + says.strip('"') + '"')
    done = f"  memory: {{capacity: {figure}}}\nclaims:\n{others}  - {claim}\n" if claim else ""

    assert adopted(others + API.format(says)) == done


def test_trn601_keeps_line_ends() -> None:
    chip = f"{CHIP}claims:\n{API.format('80 GiB')}".replace("\n", "\r\n")
    fixed = fix([load_document(read_text(chip, "chips/example.yaml"), KNOWN)], KNOWN, Settings(select=("TRN601",)))

    (text,) = fixed.texts.values()
    assert text.count("\n") == text.count("\r\n") == chip.count("\n") - 3


@pytest.mark.parametrize(("claims", "kept"), [("", ""), (OTHER, OTHER)])
def test_trn601_adopts_the_share_of_a_total(claims: str, kept: str) -> None:
    """Of a system: the figure is derived from the total, and the printed value is the first claim."""
    figure = '{value: "80 GiB", derived: "example-box:spec.stated.memory.capacity / 8"}'
    done = f"  memory: {{capacity: {figure}}}\nclaims:\n  - {CLAIM}{REJECTED.replace('MEANT', '80 GiB')}\n{kept}"

    assert adopted(claims, total="640 GiB") == done
    assert adopted(claims, total="641 GiB").startswith('  memory: {capacity: {value: "82,048 MiB"')
    assert adopted(claims, total="640 GB") == adopted(claims, total="1 TiB") == ""


@pytest.mark.parametrize(
    "figure",
    [
        "{value: 80 GB, note: printed}",
        "{value: 80 GB, derived: 2 x 40 GB}",
        "\n      value: 80 GB\n      where: line 9",
    ],
)
def test_trn601_does_not_lose_a_note_or_a_formula(figure: str) -> None:
    chip = CHIP.replace("{capacity: 80 GB}", f"\n    capacity: {figure}")

    assert adopted(API.format("80 GiB"), chip) == ""
    assert adopted(API.format("80 GiB  # A comment.")) == ""
    assert adopted(API.format("80 GiB"), CHIP.replace(", source: neuron-trainium2-2026-08, where: line 3", "")) == ""
