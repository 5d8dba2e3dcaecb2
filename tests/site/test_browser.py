"""The pages in a browser: Playwright with a Chromium of the system, from a folder, without a server."""

import json

import pytest

from tests.support.tables import tables
from trnspec.api import graph

pytestmark = pytest.mark.slow


def names(page) -> list[str]:
    return page.locator("#table tbody th[scope=row] a").all_inner_texts()


def column(page, title: str) -> list[str]:
    """The texts of the cells of a column."""
    heads = [h.split("\n")[0].rstrip(" \u25b2\u25bc\u00d7") for h in page.locator("#table thead th").all_inner_texts()]
    at = heads.index(title) + 1
    return [t.strip() for t in page.locator(f"#table tbody tr > :nth-child({at})").all_inner_texts()]


NEWEST = ["trn3-gen2-ultraserver", "trn3-gen1-ultraserver", "trn2-ultraserver"]
CHIPS = ["trainium3", "trainium2", "trainium1"]


def test_first_view(opened) -> None:
    page = opened()

    assert names(page)[:3] == CHIPS
    assert column(page, "memory.capacity")[:3] == ["144 GiB", "96 GiB", "32 GiB"]
    page.select_option("#kind", "systems")
    # By default; published units remain on the pages of documents.
    assert len({text.split()[-1] for text in column(page, "peak.dense.bf16") if text[0].isdigit()}) == 1


def test_first_page(opened) -> None:
    """The newest systems, unresolved figures and two questions; scripts of other places are not allowed."""
    page = opened()
    sections = page.locator(".start section")

    assert sections.locator("h2").all_inner_texts() == ["Newest systems", "Disputed figures", "Two planning questions"]
    assert sections.nth(0).locator("tbody th").all_inner_texts() == NEWEST
    assert "trainium3 memory.bandwidth" in " ".join(sections.nth(1).locator("li").all_inner_texts())
    policy = page.get_attribute("meta[http-equiv='Content-Security-Policy']", "content")
    assert policy.startswith("default-src 'none'; script-src 'self' file:;")


@pytest.mark.parametrize(("kind", "text", "expected"), tables(__file__)["filter"])
def test_filter(opened, kind, text, expected) -> None:
    page = opened()
    page.select_option("#kind", kind)
    page.fill("#q", text)
    page.press("#q", "Enter")

    assert expected == names(page)


@pytest.mark.parametrize(("text", "message"), tables(__file__)["wrong_filter"])
def test_wrong_filter(opened, text, message) -> None:
    page = opened()
    page.fill("#q", text)
    page.press("#q", "Enter")

    assert message in page.inner_text("#status")
    assert len(names(page)) > 20


def test_sort_both_ways_with_unknown_values_last(opened) -> None:
    page = opened("index.html#kind=Server")
    page.click("[data-key='sort:network.bandwidth']")
    up = column(page, "network.bandwidth")
    page.click("[data-key='sort:network.bandwidth']")
    down = column(page, "network.bandwidth")

    assert page.get_attribute("th[aria-sort]", "aria-sort") == "descending"
    known = [t for t in up if t[0].isdigit()]
    assert known == sorted(known, key=lambda t: float(t.split()[0].replace(",", "")))
    assert up[: len(known)] == known
    assert down[: len(known)] == known[::-1]


@pytest.mark.parametrize(
    ("formula", "unit", "expected"),
    [
        ("peak.dense.bf16 / memory.bandwidth", "FLOP/B", ["136.9", "230", "231.7", "-"]),
        ("memory.capacity / cores.count", "GiB", ["18", "12", "16", "-"]),
        ("2 * (memory.capacity - memory.capacity / 2)", "GiB", ["144", "96", "32", "-"]),
        ("memory.bandwidth / memory.bandwidth", "", ["1", "1", "1", "-"]),
    ],
)
def test_formula_as_a_column(opened, formula, unit, expected) -> None:
    page = opened("index.html#kind=Chip")
    page.fill("#add", formula)
    page.press("#add", "Enter")

    assert expected == column(page, formula)
    assert unit == "".join(page.locator("#table thead th:last-child small").all_inner_texts())


def test_formula_of_different_units(opened) -> None:
    page = opened("index.html#kind=Chip")
    page.fill("#add", "memory.capacity + memory.bandwidth")
    page.press("#add", "Enter")

    assert page.inner_text("#status") == "GiB and TB/s cannot be added or subtracted"
    assert "cols=" not in page.url


def test_chart_of_a_column(opened) -> None:
    """Bars in the order of the table, with lengths in proportion to the values; the choice is in the address."""
    page = opened("index.html#kind=Chip")
    assert not page.locator("#figure").is_visible()
    page.select_option("#chart", "memory.bandwidth")
    assert "chart=memory.bandwidth" in page.url
    assert CHIPS == page.locator("#figure a").all_inner_texts()
    assert column(page, "memory.bandwidth")[:3] == page.locator("#figure .num").all_inner_texts()

    widths = [
        float(w.rstrip("%"))
        for w in page.locator("#figure .bar").evaluate_all("bars => bars.map((b) => b.style.width)")
    ]
    values = [4.9e12, 2.9e12, 820e9]
    assert [w / widths[0] for w in widths] == pytest.approx([v / values[0] for v in values], rel=1e-4)
    assert page.locator("#figure .whisker").count() == 3

    again = opened(page.url.rpartition("/")[2])
    assert again.locator("#figure .bar").count() == 3
    again.set_viewport_size({"width": 360, "height": 700})
    tops = "all => all.map((node) => node.getBoundingClientRect().top)"
    assert again.locator("#figure a").evaluate_all(tops) == again.locator("#figure .num").evaluate_all(tops)
    again.select_option("#chart", "")
    assert not again.locator("#figure").is_visible()


def test_comparison(opened) -> None:
    page = opened()
    for name in ("trn1.32xlarge", "trn2.48xlarge"):
        assert page.is_disabled("#compare")  # it needs two
        page.check(f"[aria-label='Compare {name}']")
    page.click("#compare")
    every = page.locator("#table tbody tr").count()
    page.check("#diff")
    differing = page.locator("#table tbody tr").count()

    assert ["trn1.32xlarge", "trn2.48xlarge"] == page.locator("#table thead a").all_inner_texts()
    assert 10 < differing < every
    assert "local_storage" not in page.locator("#table tbody th").all_inner_texts()
    page.go_back()
    assert len(names(page)) > 20
    page.go_forward()
    assert page.locator("#table tbody tr").count() == differing
    page.click("[aria-label='Remove trn2.48xlarge']")
    assert len(names(page)) > 20
    assert page.locator("#kind:focus").count() == 1  # the button of the comparison is disabled


@pytest.mark.parametrize(
    "hash_",
    [
        "kind=Chip&q=memory.capacity+%3E+90+GiB&units=decimal&sort=-memory.capacity",
        "kind=Server&cols=chips%3Bpeak.dense.bf16+%2F+prices.on-demand&sort=chips",
        "pick=trainium2%2Ctrainium3&compare=1&diff=1",
    ],
)
def test_state_in_the_address(opened, hash_) -> None:
    page = opened(f"index.html#{hash_}")

    assert hash_ == page.url.partition("#")[2]
    assert page.inner_text("#table") == opened(page.url.rpartition("/")[2]).inner_text("#table")


def test_hostile_address_and_reset(opened) -> None:
    page = opened("index.html#kind=__proto__&cols=constructor;%3Cimg%20src%3Dx%3E&sort=toString&pick=x,y&compare=1")

    assert "no document has" in page.inner_text("#status")
    assert 0 == page.locator("#table img").count()
    page.click("#reset")
    assert "#" not in page.url
    assert names(page)[:3] == CHIPS
    page.click("[aria-label='Remove column chips']")
    assert "chips" not in page.inner_text("#table thead")
    assert "cols=" in page.url


def test_files_of_the_view(opened, tmp_path) -> None:
    page = opened("index.html#kind=Chip&q=trainium2&cols=memory.capacity;peak.dense.fp8")
    for button in ("#csv", "#json"):
        with page.expect_download() as waiting:
            page.click(button)
        waiting.value.save_as(tmp_path / button)
    (row,) = json.loads((tmp_path / "#json").read_text())["rows"]

    assert (
        b'name,kind,memory.capacity,peak.dense.fp8\r\ntrainium2,Chip,96 GiB,"1,299 TFLOPS"\r\n'
        == (tmp_path / "#csv").read_bytes()
    )
    capacity = {"text": "96 GiB", "value": 96 * 2**30, "low": 95.5 * 2**30, "high": 96.5 * 2**30, "unit": "B"}
    assert {"name": "trainium2", "kind": "Chip", "memory.capacity": capacity}.items() <= row.items()


CARD = "details.val[open] .pop"
BANDWIDTH = "tr:has(a[href='document/trainium2.html']) summary:text-is('2.9 TB/s')"


@pytest.mark.parametrize("way", ["hover", "focus", "tap", "click"])
def test_details_of_a_value(opened, way) -> None:
    line = graph().named("trainium2").document.place(("spec", "memory", "bandwidth")).line
    page = opened(has_touch=way == "tap")
    value = page.locator(BANDWIDTH)
    if way == "hover":
        value.hover()
    elif way == "focus":
        # :focus-visible needs the keyboard.
        page.focus("tr:has(a[href='document/trainium2.html']) a")
        while page.evaluate("document.activeElement.innerText") != "2.9 TB/s":
            page.keyboard.press("Tab")
    elif way == "tap":
        value.tap()
    else:
        value.click()
    page.wait_for_selector(CARD)
    text = page.inner_text(CARD)

    for part in (
        "[2.85, 2.95)",
        "per chip",
        "neuron-trainium2-2026-08",
        "2026-08-21",
        "rejected",
        f"trainium2.yaml, line {line}",
    ):
        assert part in text
    top, bottom = (value.evaluate(f"n => n.getBoundingClientRect().{side}") for side in ("top", "bottom"))
    box = page.locator(CARD).bounding_box()
    assert box["y"] >= bottom or box["y"] + box["height"] <= top
    page.keyboard.press("Escape")
    # Longer than the delay after which a value under the pointer opens its details.
    page.wait_for_timeout(400)
    assert 0 == page.locator(CARD).count()


@pytest.mark.parametrize("path", ["index.html", "document/trainium2.html"])
def test_print(opened, path) -> None:
    page = opened(path, color_scheme="dark", viewport={"width": 740, "height": 1000})
    page.emulate_media(media="print")

    assert page.evaluate("document.documentElement.scrollWidth") <= 740

    assert "rgb(255, 255, 255)" == page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert [] == page.locator("header nav, .tools, .yaml").evaluate_all(
        "all => all.filter((n) => n.checkVisibility()).map((n) => n.className)"
    )
    assert page.is_visible("table")


@pytest.mark.parametrize("width", [360, 1280])
def test_numbers_are_aligned(opened, width) -> None:
    page = opened("index.html#kind=UltraServer&cols=chips", viewport={"width": width, "height": 700})

    assert 1 == len(
        set(page.locator("#table td summary").evaluate_all("all => all.map((n) => n.getBoundingClientRect().right)"))
    )


def test_rows_look_alike_whatever_their_figure_is_called(opened) -> None:
    page = opened("document/trn1.32xlarge-capacity-block.html")
    colors = page.locator("tbody tr[id]").evaluate_all("all => all.map((row) => getComputedStyle(row).color)")

    assert page.locator("#status").count() == 1 == len(set(colors))


def test_without_scripts(opened) -> None:
    page = opened("document/trainium2.html", java_script_enabled=False)
    page.click("tr[id='memory.bandwidth'] summary")

    assert "[2.85, 2.95) TB/s" in page.inner_text("tr[id='memory.bandwidth'] .pop")
    assert "2,400 GB/s" in page.inner_text("main")


LIGHT, DARK = {"color_scheme": "light"}, {"color_scheme": "dark"}
PAGES = (
    "index.html", "documents.html", "document/trainium2.html", "document/trn2-ultraserver.html", "sources.html",
    "source/ec2-api-capacity-block-offerings.html", "topology.html", "audit.html", "accuracy.html", "planner.html",
)  # fmt: skip


@pytest.fixture(scope="session")
def axe():
    return pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()


ALIKE = """() => { const seen = {};
for (const row of document.querySelectorAll("tbody tr, li")) {
  const form = [...row.querySelectorAll("*")].map((node) => node.tagName + node.getAttribute("class")).join();
  if ((seen[form] = (seen[form] || 0) + 1) > 2) row.remove();
} }"""
"""Removes rows of the same elements and classes as two others."""


@pytest.mark.parametrize(
    ("page", "how"), [*((page, LIGHT) for page in PAGES), *((page, DARK) for page in ("index.html", *PAGES[2:4]))]
)
def test_no_violation(opened, axe, page, how) -> None:
    """Contrast of texts, names of controls, landmarks and headings among others; the background follows the scheme."""
    shown = opened(page, **how)
    size = shown.viewport_size
    for width in (360, 768, 1160, 1280):
        shown.set_viewport_size({"width": width, "height": 700})
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        assert (
            shown.locator(".scroll:has(.stack)").evaluate_all("all => all.filter((n) => n.scrollWidth > n.clientWidth)")
            == []
        )
    shown.set_viewport_size(size)
    shown.evaluate(ALIKE)
    # It would load the style sheets a second time, which a browser forbids for files.
    found = axe.run(shown, options={"preload": False}).response
    passed = {rule["id"] for rule in found["passes"]}

    assert {"color-contrast", "link-name", "html-has-lang", "landmark-one-main", "page-has-heading-one"} <= passed
    assert [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in found["violations"]] == []
    red = int(shown.evaluate("getComputedStyle(document.body).backgroundColor").removeprefix("rgb(").split(",")[0])
    assert (red > 128) == (how["color_scheme"] == "light")
