"""The pages of a site: their numbers are those of ``trnspec show``, their links resolve, and they load nothing."""

import html
import json
import re
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from urllib.parse import unquote

import pytest

import trnspec
from tests.support.programs import written
from trnspec.api import graph
from trnspec.catalog.newest import newest_first
from trnspec.checks.reconcile.audit import audit
from trnspec.errors import UsageError
from trnspec.graph.citations import citations
from trnspec.graph.fabrics import fabric
from trnspec.graph.facts import facts
from trnspec.graph.graph import Graph
from trnspec.graph.totals import sums
from trnspec.model.calibration import Calibration
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.ultraserver import UltraServer
from trnspec.site.accuracy import COLUMNS, scores
from trnspec.site.build import build, write_site
from trnspec.site.data import VALUE_FIELDS
from trnspec.site.document_values import entry
from trnspec.site.planner import LOADS, MODELS, SERVED, TRAINED, _questions, cases
from trnspec.site.serve import server

GRAPH = graph()


@pytest.fixture(scope="module")
def pages() -> Iterator[dict[str, str]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trnspec.site.build._DISPUTED", 10**6)  # all of them
        yield {name: contents.decode() for name, contents in build(GRAPH).items()}


@pytest.fixture(scope="module")
def data(pages) -> dict:
    return json.loads(pages["data.js"].removeprefix("window.TRNSPEC = ").removesuffix(";\n"))


class Links:
    """The addresses of a page, its ids, and what it loads."""

    def __init__(self, text: str) -> None:
        tags = [
            (tag, dict(re.findall(r'([\w-]+)="([^"]*)"', rest)))
            for tag, rest in re.findall(r"<(\w+)((?:\s[^<>]*)?)>", text)
        ]
        self.ids = [attributes["id"] for _, attributes in tags if "id" in attributes]
        self.links = [html.unescape(attributes["href"]) for tag, attributes in tags if tag == "a"]
        loading = ("src", "href", "srcset", "action", "data", "poster")
        self.loaded = [attributes[k] for tag, attributes in tags if tag != "a" for k in loading if k in attributes]


@pytest.fixture(scope="module")
def parsed(pages) -> dict[str, Links]:
    return {name: Links(text) for name, text in pages.items() if name.endswith(".html")}


def cells(page: str) -> list[list[str]]:
    """The text of the head and of each value of a table row with an id: path, value."""
    rows = re.findall(r'<tr id="([^"]*)">.*?<summary>(.*?)</summary>.*?</tr>', page, re.DOTALL)
    return [[html.unescape(at).removeprefix("total."), html.unescape(text)] for at, text in rows]


def test_every_value_is_that_of_show(here, pages) -> None:
    for name in ("trainium2", "trn2.48xlarge", "trn2-ultraserver", "llama-3.1-70b", "neuronlink-v3", "neuroncore-v3"):
        rows = here("show", name, "--format", "csv").rows
        adopted = [[r["at"], r["says"]] for r in rows if r["value"] or r["verdict"] in ("adopted", "derived")]
        page = [[at, text] for at, text in cells(pages[f"document/{name}.html"]) if text != "not adopted"]

        assert len(adopted) > 4
        assert [r for r in adopted if r not in page] == []
        assert [c for c in page if c not in [[r["at"], r["says"]] for r in rows]] == []


def test_every_document_has_all_its_values(pages) -> None:
    for node in GRAPH:
        if node.kind == "Source":
            continue
        page = pages[f"document/{node.name}.html"]
        shown = cells(page)
        words = html.unescape(page)
        expected = [[f.at, f.text] for f in facts(GRAPH, node) if f.text] + [[s.at, s.text] for s in sums(GRAPH, node)]

        assert [e for e in expected if e not in shown] == []
        others = [o for f in facts(GRAPH, node) for o in f.conflicting]
        assert [o for o in others if o.says not in words or o.reason not in words or o.verdict not in words] == []


def test_table_has_the_numbers_of_show(here, data) -> None:
    for name in ("trainium2", "trn2.48xlarge", "trn2-ultraserver", "llama-3.1-70b"):
        rows = here("show", name, "--format", "json").data["rows"]
        shown = {r["at"]: r for r in rows if r["value"] is not None}
        (document,) = [d for d in data["documents"] if d["name"] == name]
        table = {at: dict(zip(VALUE_FIELDS, row, strict=False)) for at, row in document["values"].items()}
        compared = [at for at in shown if at in table]

        assert len(compared) > 8
        for at in compared:
            row, cell = shown[at], table[at]
            assert [row["says"], row["value"], row["low"]] == [cell["text"], cell["value"], cell["low"]]
            assert (row["high"], 0) == (cell["high"], cell.get("document") or 0)
            assert row["verdict"].replace("adopted", "") == (cell.get("verdict") or "")
            assert (row["unit"] or "") == (data["units"][cell["unit"]][1] if cell.get("unit") else "")
            assert (row["source"] or None) == (data["sources"][cell["source"] - 1][0] if cell.get("source") else None)


def test_rows_of_the_table_end_with_a_value(data) -> None:
    rows = [row for document in data["documents"] for row in document["values"].values()]
    assert [] == [row for row in rows if row[-1] in (None, 0, "", [])]
    paths = {at for document in data["documents"] for at in document["values"]}
    assert [] == [at for at in paths if at.startswith("ratios.") or at.endswith("note")]


def test_scores_of_calibrations(pages) -> None:
    """Each group of figures with a mean error, of the chip that was measured."""
    times = {"training": "step time", "inference": "TPOT", "collectives": "collective"}
    expected = {}
    for node in GRAPH.of(Calibration):
        stated = {f.at: f.text for f in facts(GRAPH, node) if f.text}
        for group in {at.rpartition(".")[0] for at in stated} - {""}:
            figures = {name: stated[f"{group}.{name}"] for name in COLUMNS if f"{group}.{name}" in stated}
            if "mean" in figures:
                part = {"spread": times[stated["of"]], "first": "TTFT"}.get(group, "collective, server")
                expected[node.name, stated["chip"], part] = figures
    found = scores(entry(GRAPH, node) for node in (*GRAPH.of(Server), *GRAPH.of(Calibration)))
    assert expected == {(s.name, s.chip, s.part): {k: v.text for k, v in s.values.items()} for s in found}
    assert len(expected) > 10
    row = pages["accuracy.html"].partition('"document/trainium1-neuron.html"')[2].partition("</tr>")[0]
    assert ["7", "16.1 %", "14.6 %", "26.9 %", "80.0 %"] == re.findall("<summary>(.*?)</summary>", row)


def test_disputed_figures_of_the_first_page(pages) -> None:
    disputed = pages["index.html"].partition("Disputed figures")[2].partition("</ul>")[0]
    listed = re.findall(r'document/[^"]+">([^<]+)</a> <code>(.*?)</code>', disputed)
    unresolved = {(d.name, d.at.removeprefix("spec.")) for d in audit(GRAPH).disagreements if d.verdict == "unresolved"}
    assert {(name, at.replace("<wbr>", "")) for name, at in listed} == unresolved
    newest = pages["index.html"].partition("Newest systems")[2].partition("</table>")[0]
    ultraservers = [node.name for node in newest_first(GRAPH, GRAPH.of(UltraServer))]
    assert re.findall(r'<th scope="row"><a href="document/([^"]+)\.html">', newest) == ultraservers[:3]


def test_questions_of_the_planner() -> None:
    """Each load of each model; where the catalog has no plan for one, the others remain."""
    asked = []

    def evaluate(name: str, inputs) -> None:
        asked.append((name, inputs))
        raise UsageError("no price")

    assert [] == cases(evaluate, ("llama-3.1-8b", "llama-3.1-70b", "trn1.32xlarge", "trn3.48xlarge"))
    names = ["plan-train", *["plan-serve"] * len(LOADS)]
    assert names * 2 == [name for name, _ in asked]
    served = {1: ("trn1.32xlarge", "trn3.48xlarge"), 0: ("trn1.32xlarge",)}
    assert [(4, 16, 64)] * 2 == [inputs["count"] for _, inputs in asked if "count" in inputs]
    assert [served[name == "plan-serve"] for name, _ in asked] == [inputs["on"] for _, inputs in asked]
    for _, load, inputs in [*_questions("m", SERVED)][1:]:
        assert load.startswith(f"{inputs['rate']:g} requests/s, ")
        assert f"prompts of {inputs['isl']:,} tokens, outputs of {inputs['osl']}" in load


def test_measures_of_a_topology(pages) -> None:
    drawn = {name[9:-4] for name in pages if name.endswith(".svg")}
    assert drawn == {n.name for kind in (Server, UltraServer) for n in GRAPH.of(kind) if fabric(GRAPH, n) is not None}
    cut = trnspec.load()["trn2-ultraserver"].topology.bisection("rate")
    assert (32, 2.048e12) == (cut.links, cut.rate)
    assert "Diameter: 6 links. Bisection: 32 links, 2.048 TB/s each way." in pages["document/trn2-ultraserver.html"]
    assert re.search(r"Bisection: \d+ links\.", pages["document/trn3-gen2-ultraserver.html"])


def test_values_of_a_source(pages) -> None:
    order = re.findall(r'href="document/([^"#]+)\.html"', pages["documents.html"])
    rows = re.findall(
        r'document/([^"#]+)\.html#[^>]*>[^<]*</a></th><td><code>(.*?)</code>',
        pages["source/neuron-scheduler-2026-08.html"],
    )
    cited = [(c.of, c.at) for c in citations(GRAPH, {"neuron-scheduler-2026-08"})]

    assert sorted(cited) == sorted((of, at.replace("<wbr>", "")) for of, at in rows)
    places = [order.index(of) for of, _ in rows]
    assert places == sorted(places)
    assert places[0] < places[-1]


def test_links_resolve(pages, parsed) -> None:
    broken = []
    outside = set()
    for name, page in parsed.items():
        for link in page.links:
            if link.startswith(("http://", "https://")):
                outside.add(link)
                continue
            path, _, anchor = link.partition("#")
            folder = name.rpartition("/")[0]
            target = name if not path else f"{folder}/{path}" if folder else path
            target = re.sub(r"[^/]+/\.\./", "", target)
            if target not in pages or (anchor and unquote(anchor) not in parsed[target].ids):
                broken.append((name, link))

    assert [] == broken
    assert {n.spec.address for n in GRAPH.of(Source) if n.spec.address} >= outside
    assert outside


def test_site_loads_no_external_resources(pages, parsed) -> None:
    loaded = {link for page in parsed.values() for link in page.loaded}
    local = {"site.css", "../site.css", "site.js", "../site.js", "data.js", "explorer.js", "data:,"}

    assert [] == [link for link in loaded - local if not re.fullmatch(r"topology/[\w.-]+\.svg", link)]
    assert [] == re.findall(r"url\(|@import", pages["site.css"])
    assert [] == re.findall(r"fetch\(|XMLHttpRequest|import\(|https?://", pages["site.js"] + pages["explorer.js"])


def test_size(pages) -> None:
    assert len(pages["data.js"].encode()) < 1_000_000
    assert [] == [n for n, text in pages.items() if n.endswith(".html") and len(text.encode()) > 500_000]


@pytest.mark.slow
def test_same_bytes(pages) -> None:
    assert {name: text.encode() for name, text in pages.items()} == build(graph())


def test_text_of_a_catalog_is_no_markup(tmp_path) -> None:
    folder = tmp_path / "catalog" / "sources"
    folder.mkdir(parents=True)
    (folder / "evil.yaml").write_text(
        "api_version: trnspec/v1\nkind: Source\n"
        "metadata: {name: evil, title: <script>alert(1)</script>, note: '\"><img src=x>'}\n"
        "spec: {publisher: </title><b>, as_of: 2026-01-01, rank: third-party, address: 'https://example.com/?a=1&b=2'}\n"
    )
    pages = build(Graph({"evil": graph([tmp_path / "catalog"]).named("evil")}))
    page = pages["source/evil.html"].decode()

    assert "<title>&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert [] == re.findall(r"<script>alert|</title><b>|a=1&b", page)


def test_command(here, tmp_path, monkeypatch, pages) -> None:
    monkeypatch.setattr("trnspec.cli.site.build", lambda *_: {n: pages[n].encode() for n in ("index.html", "data.js")})
    result = here("site", "build", tmp_path / "site", "--no-plans")

    assert (0, "") == (result.status, result.out)
    assert f"wrote {tmp_path / 'site' / 'index.html'} and the files it links to\n" == result.err
    assert (tmp_path / "site" / "index.html").is_file()


def test_a_new_site_replaces_the_old_one(tmp_path) -> None:
    write_site(tmp_path, {"data.js": b"1", "document/a.html": b"a", "document/b.html": b"b"})
    write_site(tmp_path, {"data.js": b"2", "document/b.html": b"c"})

    assert ["b.html"] == [f.name for f in (tmp_path / "document").iterdir()]
    assert b"2" == (tmp_path / "data.js").read_bytes()


def test_a_folder_of_other_files_is_not_overwritten(tmp_path) -> None:
    (tmp_path / "letter.txt").write_text("")
    with pytest.raises(UsageError, match="is not empty and is not a site"):
        write_site(tmp_path, {"data.js": b""})

    assert ["letter.txt"] == [f.name for f in tmp_path.iterdir()]


def test_server_on_loopback(tmp_path) -> None:
    write_site(tmp_path, {"data.js": b"1", "index.html": b"<p>"})
    with server(tmp_path, 0) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{listening.server_port}"
            with urllib.request.urlopen(f"{address}/index.html") as answer:
                assert b"<p>" == answer.read()
            with pytest.raises(urllib.error.HTTPError):
                urllib.request.urlopen(f"{address}/../secret")
        finally:
            listening.shutdown()
            thread.join()
    assert "127.0.0.1" == listening.server_address[0]
    with pytest.raises(UsageError, match="is not a site"):
        server(tmp_path / "none", 0)


def test_invalid_document_is_omitted_alone(here, tmp_path) -> None:
    for name, text in {
        "chips/odd": "kind: Chip\nmetadata: {name: odd, title: Odd, source: page}\nspec: {memory: {capacity: 1 GiB}}\n",
        "sources/page": "kind: Source\nmetadata: {name: page, title: Page}\nspec: {publisher: 3}\n",
    }.items():
        written(tmp_path / "own" / f"{name}.yaml", f"api_version: trnspec/v1\n{text}")

    done = here("site", "build", "out", "--catalog", "own", "--no-plans")

    assert 0 == done.status
    assert "sources/page.yaml:4:1: TRN102" in done.err
    assert '["page","page",""]' in (tmp_path / "out" / "data.js").read_text()


def test_without_jinja(here, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = here("site", "build", "site")

    assert 2 == result.status
    assert "pip install 'trnspec[site]'" in result.err


def test_models_and_systems_of_plans_are_in_the_catalog() -> None:
    catalog = trnspec.load()

    assert {*MODELS} <= {*catalog.models}
    assert {*TRAINED, *SERVED} <= {*catalog.servers}
