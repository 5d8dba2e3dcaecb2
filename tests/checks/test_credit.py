"""Credit: values that a page prints, and values that it does not."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trnspec.api import graph
from trnspec.checks.credit import credited, prints
from trnspec.errors import UsageError
from trnspec.yaml import read_text

TABLE = read_text(Path(__file__).with_name("credit.yaml").read_text("utf-8"), "credit.yaml").data


@pytest.mark.parametrize(("text", "says"), TABLE["printed"])
def test_printed(text, says) -> None:
    assert prints(text, says)


@pytest.mark.parametrize(("text", "says"), TABLE["not_printed"])
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
    (tmp_path / "neuron-availability-survey-2026-10.txt").write_text("\n" * 11 + "16 GiB\n")
    (tmp_path / "ec2-api-moto-5.2.5").mkdir()
    for name, vcpus in (("trn1.32xlarge", 128), ("trn1.2xlarge", 9)):
        (tmp_path / "ec2-api-moto-5.2.5" / f"{name}.txt").write_text(f"VCpuInfo.DefaultVCpus: {vcpus}\n")
    return tmp_path


def test_places(pages) -> None:
    found = {(c.source, c.of, c.at, c.says): printed for c, printed in credited(graph(), pages)}

    page, api = "neuron-trainium-2024-02", "ec2-api-moto-5.2.5"
    assert found[page, "trainium1", "cores.count", "2"] == "line"
    assert found[page, "trainium1", "peak.dense.bf16", "190 TFLOPS"] == "page"  # the catalog names line 20
    assert found[page, "trainium1", "peak.dense.int8", "380 TOPS"] == "no"
    survey, share = "neuron-availability-survey-2026-10", "other.device_memory_share"
    assert found[survey, "neuroncore-v2", share, "16 GiB"] == "line"  # the last of lines 5 to 12
    assert found[api, "trn1.32xlarge", "host.vcpus", "128"] == "line"
    assert found[api, "trn1.2xlarge", "host.vcpus", "8"] == "no"


def test_folders_without_pages(tmp_path) -> None:
    with pytest.raises(UsageError, match="has no page of a source"):
        credited(graph(), tmp_path)
    with pytest.raises(UsageError, match="is not a folder"):
        credited(graph(), tmp_path / "absent")
