"""The rate of a fabric against its link, against the chip, and in one against both directions.

A link of 896 Gbps per direction, four links per chip: 3,584 Gbps in one direction, 7,168 Gbps in both.
"""

import pytest

from tests.support.rules import document, source
from tests.support.tables import tables
from trnspec.testing import report

LINKS = "links: {link: ici, ports: 4, bandwidth: %s}, "
CHIP = (
    "spec: {%speak: {dense: {bf16: 918 TFLOPS}}, tensor_peak: {dense: {bf16: 918 TFLOPS}},"
    " memory: {capacity: 32 GiB, bandwidth: 1640 GB/s}}"
)
FABRIC = "fabric: {link: ici, links_per_chip: 4, topology: {shape: torus, dimensions: [4, 4]}%s}"
IN_A_SERVER = "server"
IN_AN_ULTRASERVER = "pod"


def texts(rate: str, *, system: str = IN_AN_ULTRASERVER, chip: str = "7168 Gbps", link: str = "") -> dict[str, str]:
    fabric = FABRIC % (f", bandwidth: {rate}" if rate else "")
    links = LINKS % (chip if chip.startswith("{") else f"{{both: {chip}}}") if chip else ""
    count, inner = (16, f", {fabric}") if system == IN_A_SERVER else (4, "")
    made = {
        "sources/page": source("page", "2026-01-01"),
        "links/ici": document(
            "Link",
            "ici",
            f"spec: {{connects: chips, bandwidth: {link or '{per_direction: 896 Gbps}'}}}",
            "source: page",
        ),
        "chips/tpu": document("Chip", "tpu", CHIP % links, "source: page"),
        "servers/server": document(
            "Server", "server", f"spec: {{chips: {{chip: tpu, count: {count}}}{inner}}}", "source: page"
        ),
    }
    if system == IN_AN_ULTRASERVER:
        spec = f"spec: {{servers: {{server: server, count: 4}}, {fabric}}}"
        made["ultraservers/pod"] = document("UltraServer", "pod", spec, "source: page")
    return {f"{name}.yaml": text for name, text in made.items()}


def findings(files: dict[str, str]) -> list[tuple[str, str]]:
    """The path and the hint of each finding that is more than information."""
    return [
        (".".join(map(str, d.where.path[1:])), d.hint)
        for d in report(files).diagnostics
        if d.code not in ("TRN057", "TRN601")
    ]


SYSTEMS = pytest.mark.parametrize("system", [IN_A_SERVER, IN_AN_ULTRASERVER])
CORRECT = (
    "{per_direction: 3584 Gbps}",
    "{both: 7168 Gbps}",
    "{per_direction: 3584 Gbps, both: 7168 Gbps}",
    "7168 Gbps",
    "",
)


@SYSTEMS
@pytest.mark.parametrize("link", ["{per_direction: 896 Gbps}", "{both: 1792 Gbps}"])
@pytest.mark.parametrize("rate", CORRECT)
def test_the_right_rate_has_no_finding(rate: str, link: str, system: str) -> None:
    assert [] == findings(texts(rate, link=link, system=system))


@SYSTEMS
@pytest.mark.parametrize("chip", ["", "7168 Gbps"])
@pytest.mark.parametrize(("rate", "path", "hint"), tables(__file__)["a_wrong_rate_has_one_finding"])
def test_a_wrong_rate_has_one_finding(rate: str, path: str, hint: str, chip: str, system: str) -> None:
    [(at, reported)] = findings(texts(rate, chip=chip, system=system))
    assert f"fabric.bandwidth.{path}" == at
    assert hint in reported


@SYSTEMS
@pytest.mark.parametrize("counted", ["topology: ", "links_per_chip: 2, topology: {shape: ring, dimensions: [16]}}"])
def test_a_fabric_of_some_links_of_a_chip_need_not_have_all_of_their_rate(counted: str, system: str) -> None:
    files = texts("", system=system)
    name = "ultraservers/pod.yaml" if system == IN_AN_ULTRASERVER else "servers/server.yaml"
    before, _, after = files[name].partition("links_per_chip: 4, topology: ")
    files[name] = before + counted + (after if counted == "topology: " else after.partition("}}")[2])
    assert [] == findings(files)
