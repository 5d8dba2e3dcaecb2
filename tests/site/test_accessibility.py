"""axe-core finds no violation on any type of page, in light and in dark."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

LIGHT, DARK = {"color_scheme": "light"}, {"color_scheme": "dark"}
PAGES = (
    "index.html",
    "documents.html",
    "document/trainium2.html",
    "document/trn2-ultraserver.html",
    "sources.html",
    "source/neuron-trainium2-2026-08.html",
    "topology.html",
    "audit.html",
    "accuracy.html",
    "planner.html",
)


@pytest.fixture(scope="session")
def axe():
    return pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed").Axe()


@pytest.mark.parametrize(
    ("page", "how"), [*((page, LIGHT) for page in PAGES), *((page, DARK) for page in ("index.html", *PAGES[2:4]))]
)
def test_no_violation(opened, axe, page, how) -> None:
    """Contrast of texts, names of controls, landmarks and headings among others; the background follows the scheme."""
    shown = opened(page, **how)
    # It would load the style sheets a second time, which a browser forbids for files.
    found = axe.run(shown, options={"preload": False}).response
    passed = {rule["id"] for rule in found["passes"]}

    assert {"color-contrast", "link-name", "html-has-lang", "landmark-one-main", "page-has-heading-one"} <= passed
    assert [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in found["violations"]] == []
    red = int(shown.evaluate("getComputedStyle(document.body).backgroundColor").removeprefix("rgb(").split(",")[0])
    assert (red > 128) == (how["color_scheme"] == "light")
    shown.set_viewport_size({"width": 360, "height": 700})
    assert shown.evaluate("document.documentElement.scrollWidth") <= 360  # only tables are wider than the window
