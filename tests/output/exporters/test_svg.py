"""Pictures of fabrics: sound XML, everything there, nothing outside, readable in light and in dark."""

import re
import xml.etree.ElementTree as ET
from collections import Counter

import pytest
from hypothesis import given, settings
from nvidia_catalog import catalog as nvidia

import trnspec
from tests.support.outputs import TOPOLOGIES, with_topology
from trnspec.output.exporters import export
from trnspec.output.exporters.drawing import STYLE

CAT = trnspec.load()
NS = "{http://www.w3.org/2000/svg}"
SYSTEMS = ["trn1.32xlarge", "trn2-ultraserver", "trn3-gen1-ultraserver", "trn3-gen2-ultraserver"]


def drawn(name: str, catalog: trnspec.Catalog = CAT) -> ET.Element:
    return ET.fromstring(catalog[name].export("svg").text)


def of_class(root: ET.Element, word: str) -> list[ET.Element]:
    return [e for e in root.iter() if word in e.get("class", "").split()]


def words(root: ET.Element) -> list[str]:
    return ["".join(e.itertext()) for e in root.iter(f"{NS}text")]


def links(root: ET.Element) -> Counter[str]:
    """How many links are drawn one by one, by colour; those in the legend left out."""
    (picture,) = root.findall(f"{NS}g")
    return Counter(e.get("class", "").split()[1] for e in of_class(picture, "link"))


def test_svg_has_title_and_description() -> None:
    root = drawn("trn2-ultraserver")

    assert "img" == root.get("role")
    assert {e.get("id") for e in root if e.tag in (f"{NS}title", f"{NS}desc")} == set(
        root.get("aria-labelledby").split()
    )
    assert "Amazon EC2 Trn2 UltraServer" == root.findtext(f"{NS}title")
    for stated in (
        "64 \u00d7 trainium2 in 4 \u00d7 trn2u.48xlarge",
        "4\u00d74\u00d74 torus",
        "128 links, 128 GB/s each way",
    ):
        assert stated in root.findtext(f"{NS}desc")


def test_four_dimensions_are_a_torus() -> None:
    """A hypercube is drawn as the torus it is: in every row and column neighbours differ in one bit."""
    cube = CAT.replace("trn1.32xlarge", {"fabric.topology": {"shape": "hypercube", "dimensions": [4]}})
    root = drawn("trn1.32xlarge", cube)
    numbers = [int(w) for w in words(root) if w.isdecimal()]
    rows = [numbers[i : i + 4] for i in range(0, 16, 4)]
    lines = [*rows, *map(list, zip(*rows, strict=True))]

    assert {"a": 32} == links(root)
    assert {1} == {(line[i] ^ line[i - 1]).bit_count() for line in lines for i in range(4)}


def boxes(root: ET.Element) -> list[tuple[float, float, float, float]]:
    """The corners of every chip."""
    return [
        (x, y, x + float(e.get("width")), y + float(e.get("height")))
        for e in of_class(root, "chip")
        for x, y in [(float(e.get("x")), float(e.get("y")))]
    ]


@given(TOPOLOGIES)
@settings(max_examples=40, deadline=None)
def test_any_fabric(topology) -> None:
    changed = with_topology(*topology)
    root = drawn("trn1.32xlarge", changed)
    fabric = changed["trn1.32xlarge"].topology
    axes = [a.size for a in getattr(fabric, "axes", ())]
    across = [e.get("class") for e in of_class(root, "bundle")]
    planes = axes[0] if len(axes) == 3 else 1

    assert fabric.nodes == len(of_class(root, "chip"))
    if len(axes) == 3:
        deep = fabric.axes[0]
        assert deep.links == len(across)
        assert fabric.links == sum(links(root).values()) + deep.links * fabric.nodes // planes
        return  # the planes are drawn in groups that are moved
    assert fabric.links == sum(links(root).values())
    found = boxes(root)
    for i, (left, top, right, bottom) in enumerate(found):
        assert not any(l < right and left < r and t < bottom and top < b for l, t, r, b in found[:i])  # noqa: E741


@pytest.mark.parametrize("name", [*SYSTEMS, "trn2.48xlarge", "trn3-gen2-server"])
def test_drawing_is_inside_the_page(name) -> None:
    """Every box and the end of every text is inside the picture; letters are 0.55 of their size wide on average, or less."""
    root = drawn(name)
    width, height = (float(n) for n in root.get("viewBox").split()[2:])
    sizes = {c: float(n) for c, n in re.findall(r"\.(\w+)\{[^}]*font-size:([\d.]+)px", STYLE)}

    def check(element: ET.Element, dx: float, dy: float) -> None:
        moved = re.match(r"translate\(([\d.-]+) ([\d.-]+)\)", element.get("transform", ""))
        if moved:
            dx, dy = dx + float(moved[1]), dy + float(moved[2])
        if element.tag == f"{NS}rect":
            x, y = float(element.get("x")) + dx, float(element.get("y")) + dy
            assert 0 <= x
            assert 0 <= y
            assert x + float(element.get("width")) <= width
            assert y + float(element.get("height")) <= height
        if element.tag == f"{NS}text":
            classes = element.get("class").split()
            size = next(sizes[c] for c in reversed(classes) if c in sizes)
            long = len("".join(element.itertext())) * size * 0.55
            start = float(element.get("x")) + dx - (long / 2 if {"middle", "number"} & set(classes) else 0)
            assert 0 <= start
            assert start + long <= width
        for inner in element:
            check(inner, dx, dy)

    check(root, 0, 0)


def luminance(colour: str) -> float:
    """Relative luminance, by the Web Content Accessibility Guidelines 2.2."""
    parts = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, two: str) -> float:
    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True])
def test_it_is_readable_in_light_and_in_dark(dark) -> None:
    """Texts have a contrast of 4.5 or more with all that lies behind them, lines of 3 or more."""
    light, _, night = STYLE.partition("@media")
    rules: dict[str, str] = {}
    for block in (light, night) if dark else (light,):
        for name, body in re.findall(r"([.\w]+)\{([^}]*)\}", block):
            for key, colour in re.findall(r"(fill|stroke):(#[0-9a-f]{6})", body):
                rules[f"{name} {key}"] = colour
    behind = [rules[f".{c} fill"] for c in ("card", "group")]

    for text in (rules["text fill"], rules[".soft fill"]):
        assert min(contrast(text, b) for b in behind) >= 4.5
    assert min(contrast(rules["text fill"], rules[f".{c} fill"]) for c in ("chip", "switch")) >= 4.5
    for line in "abcd":
        assert min(contrast(rules[f".{line} stroke"], b) for b in behind) >= 3
    for box in ("chip", "switch"):
        assert min(contrast(rules[f".{box} stroke"], b) for b in behind) >= 3


@pytest.mark.parametrize(
    ("name", "stated"),
    [
        ("p5.48xlarge", ("144 links", "NVSwitch of 8 chips: 18 links, 450 GB/s each way per chip")),
        ("gb200-nvl72", ("1,296 links", "NVLink Switch of 72 chips: 18 links, 900 GB/s each way per chip")),
    ],
)
def test_the_links_of_a_chip_to_its_switch_are_counted(name, stated) -> None:
    graph = nvidia()
    text = export("svg", graph.named(name), graph).text
    described = ET.fromstring(text).findtext(f"{NS}desc")

    assert [] == [part for part in stated if part not in described]


@pytest.mark.parametrize("name", ["trn3-gen1-ultraserver", "trn3-gen2-ultraserver"])
def test_the_halves_of_a_fabric_mirror_each_other(name) -> None:
    (picture,) = drawn(name).findall(f"{NS}g")
    boxes = [(float(e.get("y", "")), float(e.get("height", ""))) for e in picture.iter(f"{NS}rect")]
    total = max(y + height for y, height in boxes)

    assert sorted(boxes) == sorted((total - y - height, height) for y, height in boxes)
