"""Credit: values that a page prints, and values that it does not."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.programs import Here
from trnspec.api import graph
from trnspec.checks.credit import credited, prints
from trnspec.errors import UsageError


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1,299 TFLOPS", "1,299 TFLOPS"),
        ("1299 TFLOPS of FP8", "1,299 TFLOPS"),
        ("1.299 PFLOPS", "1,299 TFLOPS"),
        ("98304 MiB", "96 GiB"),
        ("0x600000000", "24 GiB"),
        ("SizeInMiB: 524288", "524,288 MiB"),
        ("Performance: 8x 100 Gigabit", "800 Gbps"),
        ("x8 links", "8"),
        ("a 4x4 torus", "4 x 4"),
        ("sixteen chips", "16"),
        ("third generation", "3"),
        ("90% of peak", "0.9x"),
        ("October 2022", "2022-10"),
        ("Dec 3, 2024", "2024-12-03"),
        ("NVSwitch levels", "switched"),
        ("NeuronLink-v3", "neuronlink v3"),
    ],
)
def test_printed(text, says) -> None:
    assert prints(text, says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("1,298 TFLOPS", "1,299 TFLOPS"),
        ("96 GB", "96 GiB"),
        ("16 GB/s", "16"),
        ("fp8 and v3", "3"),
        ("1.5 links", "5"),
        ("October 2023", "2022-10"),
        ("a chain", "ring"),
        ("8x 100 Gigabit", "1,600 Gbps"),
    ],
)
def test_not_printed(text, says) -> None:
    assert not prints(text, says)


@given(st.integers(17, 10**7), st.integers(17, 10**7))
def test_only_equal_numbers_are_printed(printed, stated) -> None:
    """A number is printed with commas or without, and no other number is."""
    assert prints(f"of {printed} GB/s", f"{stated:,} GB/s") == (printed == stated)
    assert prints(f"of {printed:,} GB/s", f"{stated:,} GB/s") == (printed == stated)


@pytest.fixture
def pages(tmp_path):
    """A page whose line 8 states the cores of Trainium1, and the record of one server."""
    (tmp_path / "neuron-trainium-2024-02.txt").write_text("\n" * 16 + "Two cores\n190 TFLOPS\n")
    (tmp_path / "ec2-api-moto-5.2.5").mkdir()
    for name, vcpus in (("trn1.32xlarge", 128), ("trn1.2xlarge", 9)):
        (tmp_path / "ec2-api-moto-5.2.5" / f"{name}.txt").write_text(f"VCpuInfo.DefaultVCpus: {vcpus}\n")
    return tmp_path


def test_places(pages) -> None:
    found = {
        (c.citation.source, c.citation.of, c.citation.at, c.citation.says): c.printed for c in credited(graph(), pages)
    }

    page, api = "neuron-trainium-2024-02", "ec2-api-moto-5.2.5"
    assert found[page, "trainium1", "cores.count", "2"] == "line"
    assert found[page, "trainium1", "peak.dense.bf16", "190 TFLOPS"] == "page"  # the catalog names line 20
    assert found[page, "trainium1", "peak.dense.int8", "380 TOPS"] == "no"
    assert found[api, "trn1.32xlarge", "host.vcpus", "128"] == "line"
    assert found[api, "trn1.2xlarge", "host.vcpus", "8"] == "no"


def test_command(pages, tmp_path, monkeypatch, capsys) -> None:
    here = Here(tmp_path, monkeypatch, capsys)
    done = here("audit", "--pages", str(pages), "trn1.32xlarge", "trn1.2xlarge", "host.vcpus", "--format", "json")
    data = json.loads(done.out)

    assert done.status == 1
    assert (data["values"], data["printed"]) == (2, {"line": 1, "page": 0, "no": 1})
    assert [(row["document"], row["figure"], row["says"]) for row in data["rows"]] == [
        ("trn1.2xlarge", "host.vcpus", "8")
    ]
    assert here("audit", "--pages", str(pages), "trn1.32xlarge", "host.vcpus").status == 0


def test_folders_without_pages(tmp_path) -> None:
    with pytest.raises(UsageError, match="has no page of a source"):
        credited(graph(), tmp_path)
    with pytest.raises(UsageError, match="is not a folder"):
        credited(graph(), tmp_path / "absent")
