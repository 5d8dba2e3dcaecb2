"""Recognition of DescribeInstanceTypes output: one message with the place for anything else."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from ec2_world import FILE, record, run
from trnspec_ec2.reading import WANTED, parse, records

from trnspec.errors import UsageError

TEXT = FILE.read_bytes()


def names(text: bytes) -> list[str]:
    return [r.name for r in parse(text, "f")]


def test_the_answer_of_the_api() -> None:
    assert 14 == len(names(TEXT))


@pytest.mark.parametrize("shape", ["list", "one", "bom", "pretty"])
def test_other_forms(shape) -> None:
    """A query prints the list or one record; some editors begin a file with a mark."""
    whole = json.loads(TEXT)
    made = {
        "list": json.dumps(whole["InstanceTypes"]),
        "one": json.dumps(whole["InstanceTypes"][0]),
        "bom": "\ufeff" + json.dumps(whole),
        "pretty": json.dumps(whole, indent=4),
    }[shape]

    assert (["inf1.24xlarge"] if shape == "one" else names(TEXT)) == names(made.encode())


def test_unknown_keys_are_ignored() -> None:
    one = {**record("trn1.2xlarge"), "Future": [1, {"a": None}], "PhcSupport": 7}

    assert records([record("trn1.2xlarge")], "f")[0].data == records([one], "f")[0].data


def test_null_values_are_ignored() -> None:
    """As ``--query`` prints what is not there."""
    one = {"InstanceType": "trn1.2xlarge", "NeuronInfo": None, "MemoryInfo": {"SizeInMiB": None}}

    assert {"InstanceType": "trn1.2xlarge", "MemoryInfo": {}} == records([one], "f")[0].data


def test_numbers_keep_their_digits() -> None:
    text = b'[{"InstanceType": "a.b", "ProcessorInfo": {"SustainedClockSpeedInGhz": 3.50}}]'

    assert "3.50" == str(parse(text, "f")[0].data["ProcessorInfo"]["SustainedClockSpeedInGhz"])
    assert (
        Decimal("3.5")
        == records([{"InstanceType": "a.b", "ProcessorInfo": {"SustainedClockSpeedInGhz": 3.5}}], "f")[0].data[
            "ProcessorInfo"
        ]["SustainedClockSpeedInGhz"]
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", f"f: it is empty; {WANTED}"),
        (b" \n", f"f: it is empty; {WANTED}"),
        (b"\xff{}", f"f: byte 1 is not UTF-8; {WANTED}"),
        (b'{\n "a": }', f"f:2:7: not JSON: Expecting value; {WANTED}"),
        (b'{"InstanceTypes": [{"a"', f"f:1:24: the JSON is cut off: Expecting ':' delimiter; {WANTED}"),
        (b'{"InstanceTy', f"f:1:2: the JSON is cut off: Unterminated string starting at; {WANTED}"),
        (b"{}{}", f"f:1:3: not JSON: Extra data; {WANTED}"),
        (b"[NaN]", f"f: NaN is not JSON; {WANTED}"),
        (b"[" * 200_000, f"f: the JSON is nested too deep; {WANTED}"),
        (b"[1" + b"0" * 5000 + b"]", f"f: a whole number has thousands of digits; {WANTED}"),
        (b"7", f"f: not DescribeInstanceTypes output: the number 7 with no keys is at its top; {WANTED}"),
        (
            b'{"Reservations": []}',
            f'f: not DescribeInstanceTypes output: an object with the keys "Reservations" is at its top; {WANTED}',
        ),
        (b'{"InstanceTypes": {}}', "f: InstanceTypes: expected a list, found an object"),
        (b'{"InstanceTypes": []}', f"f: it has no instance types; {WANTED}"),
        (
            b'["trn1.2xlarge"]',
            'f: [0]: expected a record of an instance type, an object, found the text "trn1.2xlarge"',
        ),
        (
            b'{"InstanceTypes": [{"VCpuInfo": {}}]}',
            f'f: InstanceTypes[0]: the record has no InstanceType; it has the keys "VCpuInfo"; {WANTED}',
        ),
        (
            b'[{"InstanceType": "../../x.y"}]',
            'f: [0].InstanceType: expected a type such as trn1.2xlarge, found the text "../../x.y"',
        ),
        (
            b'[{"InstanceType": 5}]',
            "f: [0].InstanceType: expected a text of 1 to 100 printable characters, found the number 5",
        ),
        (
            b'[{"InstanceType": "a.b"}, {"InstanceType": "c.d"}, {"InstanceType": "a.b"}]',
            "f: [2]: a.b is here a second time, after [0]; leave one out",
        ),
    ],
)
def test_refuses_other_json(text, message) -> None:
    with pytest.raises(UsageError) as raised:
        parse(text, "f")

    assert message == str(raised.value)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (
            {"VCpuInfo": {"DefaultVCpus": "8"}},
            'VCpuInfo.DefaultVCpus: expected a whole number, found the text "8"',
        ),
        (
            {"VCpuInfo": {"DefaultVCpus": 8.5}},
            "VCpuInfo.DefaultVCpus: expected a whole number, found the number 8.5",
        ),
        ({"VCpuInfo": {"DefaultVCpus": True}}, "VCpuInfo.DefaultVCpus: expected a whole number, found true"),
        ({"VCpuInfo": []}, "VCpuInfo: expected an object, found a list"),
        ({"NetworkInfo": {"NetworkCards": {}}}, "NetworkInfo.NetworkCards: expected a list, found an object"),
        (
            {"NetworkInfo": {"NetworkCards": [{}, {"PeakBandwidthInGbps": "x"}]}},
            'NetworkInfo.NetworkCards[1].PeakBandwidthInGbps: expected a number, found the text "x"',
        ),
        (
            {"NetworkInfo": {"EfaSupported": "yes"}},
            'NetworkInfo.EfaSupported: expected true or false, found the text "yes"',
        ),
        (
            {"MemoryInfo": {"SizeInMiB": -1}},
            "MemoryInfo.SizeInMiB: the number is out of bounds; expected one from 0 to 10^15 with at most 17 decimals",
        ),
        (
            {"GpuInfo": {"Gpus": [{"Name": "a\x1b[2J"}]}},
            'GpuInfo.Gpus[0].Name: expected a text of 1 to 100 printable characters, found the text "a\\u001b[2J"',
        ),
    ],
)
def test_values_of_other_types(more, message) -> None:
    text = json.dumps({"InstanceTypes": [{"InstanceType": "a.b"}, {"InstanceType": "c.d", **more}]}).encode()
    with pytest.raises(UsageError) as raised:
        parse(text, "f")

    assert f"f: InstanceTypes[1].{message}" == str(raised.value)


@pytest.mark.parametrize("command", ["audit", "import"])
@pytest.mark.parametrize(
    ("args", "stdin", "message"),
    [
        (["-"], b"{", "trnspec: <stdin>:1:2: the JSON is cut off: Expecting property name enclosed in double quotes"),
        (["no-such.json"], b"", "trnspec: no-such.json: there is no such file"),
        (["no-such.json/x"], b"", "trnspec: no-such.json/x: there is no such file"),
        (["."], b"", "trnspec: .: it is a folder; name a file in it"),
        (["/dev/null/x"], b"", "trnspec: /dev/null/x: it cannot be read: Not a directory"),
        ([], b"", "trnspec: name a file, - for standard input, or a region with --region; one of them"),
        (["-", "--region", "x"], b"", "trnspec: name a file, - for standard input, or a region with --region"),
        (["-", "--endpoint-url", "http://x"], b"", "trnspec: --endpoint-url goes with --region"),
        (
            ["-", "--as-of", "soon"],
            TEXT,
            "trnspec: --as-of soon: a date such as 2026-08-21, 2026-08 or 2026 is expected",
        ),
        (
            ["-", "--type", "trn1.2xlarg"],
            TEXT,
            "trnspec: <stdin> has no instance type 'trn1.2xlarg'; did you mean 'trn1.2xlarge'",
        ),
    ],
)
def test_misuse(command, args, stdin, message, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(command, *args, stdin=stdin)

    assert (2, "") == (done.status, done.out)
    assert done.err.startswith(message), done.err
    assert [] == list(tmp_path.iterdir())
