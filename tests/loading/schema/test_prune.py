"""trnspec.loading.schema.prune: as much of an unsound document stays as can be used, and claims keep their positions."""

from typing import Any

import pytest

from tests.support.schema import normal
from trnspec.api import registry
from trnspec.loading.pipeline import LoadResult, load_document
from trnspec.loading.schema.prune import is_needed, prune
from trnspec.loading.structure import plain
from trnspec.model.chip import Chip
from trnspec.yaml import read_text

KNOWN = registry()
CHIP = """\
api_version: trnspec/v1
kind: Chip
metadata: {name: example, title: Example, aliases: [other], allow: [{code: TRN301, reason: a test}]}
spec:
  peak: {dense: {bf16: 190 TFLOPS, fp32: 47.5 TFLOPS}, sparse: {bf16: 380 TFLOPS}}
  memory: {capacity: 32 GiB, bandwidth: 820 GB/s, stacks: {count: 2, capacity: 16 GiB}}
  sbuf: {value: 48 MiB, note: both cores}
  ratios:
    - {of: spec.memory.bandwidth, over: older, says: 2x, source: page}
    - {of: spec.memory.capacity, over: older, says: 2x, source: page}
  other: {one: 1 GB/s, two: 2 us}
claims:
  - {at: spec.memory.bandwidth, says: 0.8 TB/s, source: page}
  - {at: spec.memory.capacity, says: 32 GB, source: page}
  - {at: spec.sbuf, says: 48 MiB, source: page}
"""


def reading(text: str) -> LoadResult:
    return load_document(read_text(text, "example.yaml"), KNOWN)


def plain_of(text: str) -> Any:
    node = reading(text).node
    assert node is not None
    return plain(node)


# What is written instead of what, and what is missing from the node in comparison with the sound one.
CASES: dict[str, tuple[str, str, list[str]]] = {
    "an unknown key": ("peak: {dense", "speed: 3\n  peak: {dense", []),
    "an unknown key of a figure": ("{value: 48 MiB,", "{value: 48 MiB, sources: page,", []),
    "an unknown key of the document": ("claims:", "more: {}\nclaims:", []),
    "an unknown key of a claim": ("says: 32 GB,", "says: 32 GB, colour: red,", ["claims.1"]),
    "a bad figure in an optional place": ("820 GB/s", "820 GB", ["spec.memory.bandwidth"]),
    "a bad figure deep in an optional place": ("47.5 TFLOPS", "47.5", ["spec.peak.dense.fp32"]),
    "a bad value of a figure": ("value: 48 MiB", "value: 48 MB/s", ["spec.sbuf"]),
    "a bad note of a figure": ("note: both cores", "note: 5", ["spec.sbuf.note"]),
    "a missing key in an optional mapping": ("count: 2, ", "", ["spec.memory.stacks"]),
    "a bad key in an optional mapping": ("count: 2", "count: 0", ["spec.memory.stacks"]),
    "an item of a list": ("spec.memory.capacity, over: older", "spec.memory.capacity, over: 5", ["spec.ratios"]),
    "one name of a mapping of names": ("two: 2 us", "two: fast", ["spec.other.two"]),
    "a list that is none": ("aliases: [other]", "aliases: other", ["metadata.aliases"]),
    "a waiver": ("code: TRN301", "code: none", ["metadata.allow"]),
    "an optional mapping that is null": ("sparse: {bf16: 380 TFLOPS}", "sparse: null", ["spec.peak.sparse"]),
    "the first claim": ("says: 0.8 TB/s, ", "", ["claims.0"]),
    "a claim in the middle": ("says: 32 GB", "says: 3.5", ["claims.1"]),
    "an optional key of a claim": ("says: 32 GB,", "says: 32 GB, verdict: maybe,", ["claims.1"]),
    "what the reader refused": ("820 GB/s", "&a 820 GB/s", ["spec.memory.bandwidth"]),
    "a merge key": ("{count: 2, capacity: 16 GiB}", "{<<: {count: 2}, capacity: 16 GiB}", ["spec.memory.stacks"]),
    "two at once": ("820 GB/s, stacks: {count: 2", "820 GB, stacks: {count: 0", ["spec.memory.bandwidth", "spec.memory.stacks"]),
}  # fmt: skip


@pytest.mark.parametrize(("old", "new", "gone"), CASES.values(), ids=CASES)
def test_the_sound_rest_stays(old, new, gone):
    assert CHIP.count(old) == 1
    assert reading(CHIP).problems == ()
    broken = CHIP.replace(old, new)
    assert reading(broken).problems
    expected = plain_of(CHIP)
    for path in gone:
        *above, last = [int(s) if s.isdigit() else s for s in path.split(".")]
        holder = expected
        for step in above:
            holder = holder[step]
        del holder[last]
    assert normal("Chip", plain_of(broken)) == normal("Chip", expected)


@pytest.mark.parametrize("part", ["name: example, ", "title: Example, ", "api_version: trnspec/v1\n"])
def test_a_document_without_a_name_title_or_version_is_reported_and_checked(part):
    """The rules run on it in the same run: the name of the file is assumed, and the known version."""
    found = reading(CHIP.replace(part, ""))
    assert [p.code for p in found.problems] == ["TRN102"]
    assert found.node is not None
    assert (found.node.name, found.node.metadata.title) in {("example", "example"), ("example", "Example")}


def test_a_document_with_an_invalid_title_is_checked():
    found = reading(CHIP.replace("title: Example", "title: 5"))
    assert [p.code for p in found.problems] == ["TRN103"]
    assert found.node is not None
    assert found.node.metadata.title == "example"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: example", "name: Example X"), ("capacity: 32 GiB, ", ""), ("capacity: 32 GiB", "capacity: 32"),
        ("capacity: 32 GiB", "capacity: {note: x}"), ("  memory: {", "  storage: {"), ("spec:\n", "specs:\n"),
        ("metadata: {", "metadata: !x {"),
    ],
)  # fmt: skip
def test_missing_required_field_drops_the_document(old, new):
    assert CHIP.count(old) == 1
    found = reading(CHIP.replace(old, new))
    assert found.node is None
    assert found.problems


def test_claims_keep_the_positions_that_they_have_in_the_file():
    """So that a finding on a claim points at the line on which it is."""
    text = CHIP.replace("says: 0.8 TB/s, ", "")
    node = reading(text).node
    assert node is not None
    assert node.positions == (1, 2)
    assert [c.says for c in node.claims] == ["32 GB", "48 MiB"]
    assert [node.claim_path(i) for i in range(2)] == [("claims", 1), ("claims", 2)]
    lines = text.splitlines()
    for index, claim in enumerate(node.claims):
        assert claim.at in lines[node.document.place(node.claim_path(index)).line - 1]
    sound = reading(CHIP).node
    assert sound is not None
    assert [sound.claim_path(i) for i in range(3)] == [("claims", i) for i in range(3)]


def test_prune_itself():
    data = {"metadata": {}, "spec": {"memory": {"bandwidth": 1, "capacity": 2}, "dies": 3}, "claims": [1, 2, 3, 4]}
    drops = [("spec", "memory", "bandwidth"), ("claims", 0), ("claims", 2, "says")]
    assert prune(Chip, data, drops) == (
        {"metadata": {}, "spec": {"memory": {"capacity": 2}, "dies": 3}, "claims": [2, 4]},
        (1, 3),
    )
    assert prune(Chip, data, [("claims",)])[1] == ()
    assert prune(Chip, data, [("spec", "memory", "capacity")]) == (None, ())
    assert prune(Chip, data, [("metadata", "title")]) == (None, ())
    assert prune(Chip, data, [()]) == (None, ())
    rest, positions = prune(Chip, data, [])
    assert (rest, positions) == (data, (0, 1, 2, 3))
    assert rest is not None
    assert rest["spec"] is not data["spec"]


def test_single_items_and_values_with_their_sources():
    """With ``items``: one ratio, a count whose source goes, and the objects that are empty without it."""
    memory = {"capacity": 2, "stacks": {"count": {"value": 2, "source": "x"}}, "bandwidth": {"value": 1, "source": "x"}}
    data = {
        "metadata": {},
        "spec": {"memory": memory, "ratios": [1, 2], "peak": {"dense": {"bf16": 3}}},
        "claims": [1, 2],
    }
    drops: list[Any] = [("ratios", 0), ("memory", "stacks", "count", "source"), ("memory", "bandwidth", "source"), ("peak", "dense", "bf16")]  # fmt: skip
    rest = {"metadata": {}, "spec": {"memory": {"capacity": 2}, "ratios": [2]}, "claims": [2]}

    assert prune(Chip, data, [*(("spec", *path) for path in drops), ("claims", 0)], items=True) == (rest, (1,))
    assert prune(Chip, data, [("spec", "memory", "capacity")], items=True) == (None, ())
    assert [True, False] == [is_needed(Chip, ("spec", "memory", key)) for key in ("capacity", "bandwidth")]
