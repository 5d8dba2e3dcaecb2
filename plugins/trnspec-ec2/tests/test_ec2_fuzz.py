"""Whatever JSON comes in, a sentence or an audit comes out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from ec2_world import _kept, catalog, put, record, run
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from trnspec_ec2 import reporting
from trnspec_ec2.comparing import audit
from trnspec_ec2.drafting import Origin, draft
from trnspec_ec2.reading import COUNT, FLAG, NUMBER, SHAPE, parse

from trnspec.api import graph, validate
from trnspec.errors import UsageError

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12)
JSON = st.recursive(LEAVES, lambda x: st.lists(x, max_size=4) | st.dictionaries(st.text(max_size=8), x, max_size=4))


def like(shape: Any) -> st.SearchStrategy[Any]:
    """Values of the right form, with anything in them that a record may hold."""
    if isinstance(shape, dict):
        inner = {k: like(v) for k, v in shape.items()}
        return st.fixed_dictionaries(inner) | st.fixed_dictionaries({}, optional=inner)
    if isinstance(shape, list):
        return st.lists(like(shape[0]), min_size=1, max_size=2) | st.just([])
    if shape == COUNT:
        return st.integers(0, 40) | st.sampled_from([8192, 32768, 98304]) | st.integers(0, 10**15 - 1)
    if shape == NUMBER:
        return st.decimals(0, 10**6, places=3).map(float) | st.integers(0, 10**6)
    if shape == FLAG:
        return st.booleans()
    names = ["Trainium", "Trainium2", "efa", "16x 200 Gigabit", "Up to 0 Gigabit", "0x 0.0 Gigabit", "High", "-", "*"]
    return st.sampled_from(names) | st.text(st.characters(categories=["L", "N", "P", "S"]), min_size=1, max_size=8)


INFOS = ("NeuronInfo", "GpuInfo", "InferenceAcceleratorInfo")

RECORDS = st.builds(
    lambda data, left_out: {k: v for k, v in data.items() if k not in left_out},
    like({k: v for k, v in SHAPE.items() if k != "InstanceType"}),
    st.sets(st.sampled_from(INFOS), max_size=2),
)
NAMES = st.sampled_from(["trn1.32xlarge", "trn1.2xlarge", "trn2.48xlarge", "new.xlarge"])


def used(text: bytes) -> bool:
    """Everything that is done with an input; False where it is refused with one line."""
    try:
        found = parse(text, "fuzz")
    except UsageError as error:
        if "\n" in str(error):
            raise AssertionError("a message is one line") from error
        return False
    made = audit(found, catalog())
    reporting.text(made, reporting.Origin("fuzz", ""), verbose=True)
    json.loads(reporting.data(made, reporting.Origin("fuzz", "")))
    draft(found, catalog(), Origin("ec2-api-2026", "2026"), "..")
    return True


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(text) -> None:
    used(text)


@settings(deadline=None)
@given(JSON)
def test_any_json(data) -> None:
    used(json.dumps(data).encode())


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=30, deadline=None)
@given(st.dictionaries(NAMES, RECORDS, min_size=1, max_size=2))
def test_any_records(found) -> None:
    used(json.dumps([{**data, "InstanceType": name} for name, data in found.items()]).encode())


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=30, deadline=None)
@given(st.sampled_from(sorted(_kept())), st.data(), JSON)
def test_any_value_at_any_place_of_a_real_record(name, data, value) -> None:
    """What is anywhere in a record is replaced by anything."""
    changed = record(name)
    where: Any = changed
    while True:
        keys = sorted(where) if isinstance(where, dict) else range(len(where))
        key = data.draw(st.sampled_from(list(keys)))
        if not (isinstance(where[key], (dict, list)) and where[key]) or data.draw(st.booleans()):
            break
        where = where[key]
    where[key] = value
    used(json.dumps([changed]).encode())


@given(st.integers(0, 40_000))
@settings(max_examples=40, deadline=None)
def test_any_truncation(length) -> None:
    text = json.dumps([record(n) for n in sorted(_kept())]).encode()

    assert not used(text[: min(length, len(text) - 1)])


def test_the_command_line_says_the_same() -> None:
    done = run("audit", "-", stdin=b'[{"InstanceType": []}]')

    assert (2, "") == (done.status, done.out)
    assert (
        "trnspec: <stdin>: [0].InstanceType: expected a text of 1 to 100 printable characters, found a list" in done.err
    )


PLACES = {
    "NeuronInfo.NeuronDevices[0].Name": st.text(
        st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1, max_size=20
    ),
    "NeuronInfo.NeuronDevices[0].Count": st.integers(0, 100),
    "NeuronInfo.NeuronDevices[0].MemoryInfo.SizeInMiB": st.integers(0, 10**9),
    "NeuronInfo.NeuronDevices[0].CoreInfo.Count": st.integers(0, 100),
    "NeuronInfo.NeuronDevices[0].CoreInfo.Version": st.integers(0, 6),
    "NeuronInfo.TotalNeuronDeviceMemoryInMiB": st.integers(0, 10**12),
    "VCpuInfo.DefaultVCpus": st.integers(0, 1000),
    "MemoryInfo.SizeInMiB": st.integers(0, 10**9),
    "ProcessorInfo.SustainedClockSpeedInGhz": st.decimals(0, 10, places=2).map(float),
    "InstanceStorageInfo.TotalSizeInGB": st.integers(0, 10**6),
    "EbsInfo.EbsOptimizedInfo.MaximumBandwidthInMbps": st.integers(0, 10**6),
    "NetworkInfo.NetworkPerformance": st.sampled_from(["High", "0 Gigabit", "2x 0.5 Gigabit", "Up to 3 Gigabit"]),
    "NetworkInfo.NetworkCards": st.sampled_from([[], [{"PeakBandwidthInGbps": 0, "BaselineBandwidthInGbps": 0.75}]]),
    "NetworkInfo.EfaSupported": st.booleans(),
}


@pytest.mark.slow
@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=15, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(PLACES)), st.none(), max_size=5), st.data())
def test_drafts_of_any_record_are_sound(tmp_path_factory, places, data) -> None:
    """Whatever the values are: what is drafted has no findings, and is read as what the record says."""
    one = {**record("trn2.48xlarge"), "InstanceType": "new.xlarge"}
    for place in places:
        put(one, place, data.draw(PLACES[place]))
    try:
        found = parse(json.dumps([one]).encode(), "fuzz")
    except UsageError:
        return
    made = draft(found, catalog(), Origin("ec2-api-2026", "2026"), "..")
    folder = tmp_path_factory.mktemp("drafts")
    for path, text in made.files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(text)
    if not made.files:
        assert made.left_out
        return
    # TRN613: a record may have little memory for its CPUs.
    assert [] == [str(d) for d in validate([str(folder)]).report.diagnostics if d.code != "TRN613"]
    drafted = {path.rpartition("/")[2].removesuffix(".yaml") for path in made.files}
    wrong = [c for c in audit(found, graph([str(folder)])).contradictions if c.adopted.name in drafted]
    # What was left out is compared with what else is there: the total of the memory with that of the chips.
    assert all(any(str(c.statement) in note for note in made.notes) for c in wrong)
