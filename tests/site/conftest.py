"""The site in a browser: Playwright with a Chromium of the system, from a folder, without a server."""

import shutil

import pytest

import trnspec
from trnspec.api import graph
from trnspec.site.build import build, write_site
from trnspec.site.planner import PlannedCase, cases

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def plans() -> list[PlannedCase]:
    """The plans of one model on two systems."""
    catalog = trnspec.load()
    some = ("llama-3.1-8b", "trn1.32xlarge", "trn2.48xlarge")
    return cases(lambda name, inputs: trnspec.evaluate(name, catalog, **inputs), some)


@pytest.fixture(scope="session")
def address(tmp_path_factory, plans) -> str:
    folder = tmp_path_factory.mktemp("site")
    write_site(folder, build(graph(), plans))
    return folder.as_uri()


@pytest.fixture(scope="session")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as started:
        running = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def opened(browser, address):
    """Opens a page; at the end no page may have loaded anything from elsewhere or written to the console."""
    problems = []
    contexts = []

    def open_(path: str = "index.html", **options):
        context = browser.new_context(accept_downloads=True, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("console", lambda m: problems.append(m.text))
        page.on("pageerror", lambda e: problems.append(str(e)))
        page.on("requestfailed", lambda r: problems.append(r.url))
        page.on("request", lambda r: None if r.url.startswith(("file:", "data:", "blob:")) else problems.append(r.url))
        page.goto(f"{address}/{path}")
        return page

    yield open_
    for context in contexts:
        context.close()
    assert [] == problems
