"""Outputs of neuron-ls and nvidia-smi as untrusted input: one clear error with line and code, and nothing is expanded."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.programs import DATA
from trnspec.errors import UsageError
from trnspec.loading.host import neuron_ls, nvidia_smi
from trnspec.loading.host.machine import HostText

HOST = DATA / "host"


def reader(raw: bytes):
    return nvidia_smi if raw.lstrip()[:1] == b"<" else neuron_ls


def read(raw: bytes | str):
    raw = raw.encode() if isinstance(raw, str) else raw
    return reader(raw).read(HostText("f", raw))


def gpus(inner: str, doctype: str = "") -> str:
    return f'<?xml version="1.0"?>\n{doctype}<nvidia_smi_log>\n<gpu>\n{inner}\n</gpu>\n</nvidia_smi_log>\n'


ONE = '[\n {"neuron_device": 0, "nc_count": 2},\n {"neuron_device": 1,\n  "nc_count": %s}\n]\n'
LIST = "TRN103 wrong-type: expected a list of devices, found "
COUNT = "TRN103 wrong-type: nc_count of entry 2: expected a whole number, found "
KEYS = "TRN102 missing-field: entry 1 has no neuron_device; it has the keys "
LAUGHS = '<!DOCTYPE a [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>\n'
OUTSIDE = '<!DOCTYPE a [\n<!ENTITY x SYSTEM "file:///etc/hostname">]>\n'


@pytest.mark.parametrize(
    ("raw", "line", "code"),
    [
        ("", 1, "TRN013"), (b"\n\xff]", 2, "TRN002 wrong-encoding: byte 2 is not UTF-8"), ('[\n{"neuron_device": 0,}]', 2, "TRN004"),
        ('[\n{"neuron_device": 0', 2, "TRN004"), ('[{"neuron_device": 0},\n{"neuron_device": 0}]', 2, "TRN005"),
        ('[{"neuron_device": 0,\n"neuron_device": 1}]', 2, "TRN005"), ("[" * 100_000, 1, "TRN011"),
        ('[{"neuron_device": NaN}]', 1, "TRN010"), ('[{"neuron_device": ' + "9" * 5000 + "}]", 1, "TRN010"),
        ("{}", 1, f"{LIST}an object; "), ("[]", 1, f"{LIST}an empty list; "), ('"a"', 1, f'{LIST}"a"; '),
        ("[1]", 1, "TRN103 wrong-type: expected an object for device 0, found 1"), ('[\n{"nc_count": 2}]', 2, "TRN102"),
        (ONE % f'"{"t" * 38}"', 4, f'{COUNT}"{"t" * 38}"'), (ONE % f'"{"t" * 39}"', 4, f'{COUNT}"{"t" * 35}...'),
        (ONE % "{}", 4, f"{COUNT}an object"), (ONE % "[]", 4, f"{COUNT}a list"), (ONE % "true", 4, "TRN103"),
        (ONE % "-1", 4, "TRN106"), (ONE % "2.5", 4, "TRN103"), (ONE % "1e400", 4, "TRN103"),
        (ONE % str(2**53), 4, "TRN106"), ('[{"neuron_device": 0, "connected_to":\n "1"}]', 1, "TRN103"),
        ('[{"neuron_device": 0, "instance_type": "a"},\n{"neuron_device": 1, "instance_type": "b"}]', 2, "TRN103"),
        ('[{"neuron_device": 0,\n"instance_type": 5}]', 2, "TRN106"), ("<html>\n</html>", 1, "TRN103"),
        ("<nvidia_smi_log>\n<gpu>", 2, "TRN004"), ("<nvidia_smi_log></nvidia_smi_log>", 1, "TRN102"),
        (gpus(""), 3, "TRN102"), (gpus("<product_name>N/A</product_name>"), 3, "TRN102"),
        (gpus("<product_name>x</product_name>\n<fb_memory_usage><total>1 GB</total></fb_memory_usage>"), 5, "TRN103"),
        (gpus("<product_name>&b;</product_name>", LAUGHS), 2, "TRN004"),
        (gpus("<product_name>&x;</product_name>", OUTSIDE), 3, "TRN004"),
        (gpus("<a>" * 15 + "</a>" * 15), 4, "TRN011"), (gpus("<a>" * 14 + "</a>" * 14), 3, "TRN102"),
        (gpus("<a/>" * 499_999), 4, "TRN012"), (gpus("<a/>" * 499_998), 3, "TRN102"),
        ("<nvidia_smi_log>" + "<gpu/>" * 4097 + "</nvidia_smi_log>", 1, "TRN012"),
        ("<nvidia_smi_log>" + "<gpu/>" * 4096 + "</nvidia_smi_log>", 1, "TRN102"),
        (json.dumps([dict.fromkeys("abcd", 1)]), 1, f'{KEYS}"a", "b", "c", "d"; '),
        (json.dumps([dict.fromkeys("abcde", 1)]), 1, f'{KEYS}"a", "b", "c", "d", ...; '),
        (json.dumps([{}] * 4096), 1, "TRN102"), (json.dumps([{}] * 4097), 1, "TRN012"),
    ],
)  # fmt: skip
def test_bad_input(raw, line, code) -> None:
    with pytest.raises(UsageError) as caught:
        read(raw)

    assert str(caught.value).startswith(f"f:{line}: error {code}")
    assert "\n" not in str(caught.value)


def test_size_is_limited(tmp_path) -> None:
    (tmp_path / "big").write_bytes(bytes(2**24 + 9))
    source = HostText.read(str(tmp_path / "big"))

    assert (2**24 + 1, 2**24) == (len(source.raw), len(HostText("f", b"x" * 2**24).text()))
    with pytest.raises(UsageError, match=":1: error TRN012 excessive-size: more than 16 MiB"):
        source.text()


@pytest.mark.parametrize("name", ["missing", "folder", "\0"])
def test_unreadable(tmp_path, name) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(UsageError, match="TRN001"):
        HostText.read(str(tmp_path / name))


def test_unknown_fields_are_reported_with_their_lines() -> None:
    neuron = read('[{"neuron_device": 0},\n{"neuron_device": 1, "hbm_size": 5,\n"nc_count": 2}]')
    nvidia = read(gpus("<product_name>x</product_name>\n<warp_drive>on</warp_drive>"))

    assert ({"hbm_size": 2}, {"warp_drive": 5}) == (neuron.unknown, nvidia.unknown)


def test_values() -> None:
    neuron = read((HOST / "neuron_ls_trn2_container.json").read_bytes())
    nvidia = read((HOST / "nvidia_smi_a100_mig.xml").read_bytes())
    (device,), (gpu,) = neuron.devices, nvidia.devices

    lanes = "<link_widths><max_link_width>16x</max_link_width></link_widths>"
    (unknown,) = read(
        gpus(f"<product_name>x</product_name><pci><pci_gpu_link_info>{lanes}</pci_gpu_link_info></pci>")
    ).devices

    assert unknown.pcie is None
    assert ("trn2.48xlarge", {}, (12, 1, 9, 14)) == (neuron.instance_type, neuron.unknown, device.neighbours)
    assert (4, 2, 96 * 2**30) == (device.cores, device.cores_in_one, device.memory)
    assert ("535.54.03", 4, {}) == (nvidia.driver, nvidia.attached, nvidia.unknown)
    assert ("NVIDIA A100-SXM4-80GB", 80 * 2**30, 500, (4, 16), True) == (
        gpu.name,
        gpu.memory,
        gpu.power,
        gpu.pcie,
        gpu.partitioned,
    )


SAMPLES = [file.read_bytes() for file in sorted(HOST.glob("n*"))]


@given(st.sampled_from(SAMPLES), st.data())
def test_damaged_outputs_are_read_or_rejected(raw, data) -> None:
    """A byte changed, bytes removed or repeated: no other exception is raised."""
    at = data.draw(st.integers(0, len(raw) - 1))
    length = data.draw(st.integers(0, 40))
    insert = data.draw(st.binary(max_size=8))
    damaged = raw[:at] + insert + raw[at + length :]
    message = ""
    try:
        read(damaged)
    except UsageError as error:
        message = str(error)

    assert re.match(r"$|f:\d+: error TRN\d{3} [a-z-]+: ", message)
