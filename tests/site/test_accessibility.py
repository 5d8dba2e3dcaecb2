"""axe-core finds no violation on any type of page; dark and narrow pages have the same markup and other colours."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow

WIDE = {"color_scheme": "light"}
NARROW = {"color_scheme": "dark", "viewport": {"width": 390, "height": 800}}
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
    ("page", "how"),
    [*((page, WIDE) for page in PAGES), *((page, NARROW) for page in ("index.html", "document/trainium2.html"))],
)
def test_no_violation(opened, axe, page, how) -> None:
    # It would load the style sheets a second time, which a browser forbids for files.
    found = axe.run(opened(page, **how), options={"preload": False}).response

    assert found["passes"]
    assert [(v["id"], [n["target"] for n in v["nodes"]][:3]) for v in found["violations"]] == []
