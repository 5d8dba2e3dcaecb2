"""Definition, references and renaming."""

from pathlib import Path

import pytest

from tests.lsp.conftest import CHIP, edited, lines_of, place_in, spot_in
from trnspec.errors import UsageError
from trnspec.lsp.navigation import TextLocation, claims_on, definition, named_at, renamed, uses
from trnspec.lsp.symbols import _kind, symbols


def text_at(site: TextLocation) -> str:
    line = Path(site.file).read_text(encoding="utf-8").split("\n")[site.place.line - 1]
    return line[site.place.column - 1 :][: len(site.text)]


@pytest.mark.parametrize(
    ("words", "offset", "stem"),
    [
        ("neuroncore-v3", 3, "neuroncore-v3"),
        ("source: neuron-driver-fca19f7", 10, "neuron-driver-fca19f7"),
        ("trn2.48xlarge:spec.network", 2, "trn2.48xlarge"),
        ("trn2.48xlarge:spec.chips", 2, "trn2.48xlarge"),
        ("over: trainium1", 8, "trainium1"),
        ("name: trainium2", 8, "trainium2"),
    ],
)
def test_definition_of_a_document(words, offset, stem) -> None:
    result = edited()
    spot, place = spot_in(result, words, offset)
    named = named_at(spot, place, result.node, result.graph)
    (site,) = definition(spot, named, result.node)

    assert (stem, stem) == (Path(site.file).stem, text_at(site))


def test_definition_of_the_figures_of_a_claim() -> None:
    result = edited()
    spot, _ = spot_in(result, '"spec.peak.dense.{bf16,fp16,tf32}"', 5)
    sites = list(definition(spot, None, result.node))

    assert ["bf16", "fp16", "tf32"] == [site.text for site in sites] == [text_at(site) for site in sites]


def test_references() -> None:
    result = edited()
    server = result.graph.nodes["trn2.48xlarge"]
    sites = list(uses(server, result.graph))
    stems = {Path(site.file).stem for site in sites}

    assert {"trn2.48xlarge"} == {text_at(site) for site in sites}
    assert {"trainium2"} <= stems
    assert len(sites) == len(set(sites))
    graph = edited("trn2.48xlarge:spec.network", "trn2-16.48xlarge:spec.network").graph
    assert ["trn2-16.48xlarge"] == [s.text for s in uses(graph.nodes[server.name], graph) if s.text != server.name]


def test_renaming() -> None:
    result = edited()
    sites = renamed(result.node, "trainium2x", result.graph, {})
    files = {Path(site.file).stem for site in sites}

    assert {"trainium2"} == {text_at(site) for site in sites}
    assert {"trainium2", "trainium3", "trn2.48xlarge", "neuroncore-v3"} <= files
    quoted = edited("name: trainium2", 'name: "trainium2"')
    name, *_ = renamed(quoted.node, "trainium2x", quoted.graph, {})
    assert (name.place.column, name.text) == (len('  name: "') + 1, "trainium2")


@pytest.mark.parametrize(
    ("new", "fixed", "message"),
    [
        ("Trainium 2", {}, "is not a name of"),
        ("trainium3", {}, "is taken"),
        ("trainium2x", {CHIP: "is in another catalog"}, "is in another catalog"),
    ],
)
def test_renaming_that_is_rejected(new, fixed, message) -> None:
    result = edited()

    with pytest.raises(UsageError, match=message):
        renamed(result.node, new, result.graph, fixed)


def test_outline() -> None:
    result = edited("metadata:\n", "metadata:\n  aliases: [tn2, neuron2]\n")
    outline = {s.name: s for s in symbols(result.document, lines_of(result))}
    spec = {s.name: s for s in outline["spec"].children}
    stacks = next(s for s in spec["memory"].children if s.name == "stacks")

    assert ["api_version", "kind", "metadata", "spec", "claims"] == list(outline)
    assert [("count", "4", None), ("capacity", "24 GiB", None)] == [
        (s.name, s.detail, s.children) for s in stacks.children
    ]
    metadata = {s.name: s.detail for s in outline["metadata"].children}
    assert ("tn2, neuron2", 60) == (metadata["aliases"], len(metadata["note"]))
    assert place_in(result.document.text, "  memory:").line - 1 == spec["memory"].range.start.line
    assert "spec.cores.count" == outline["claims"].children[0].name


def test_kinds_of_items() -> None:
    items = {"Object": {}, "Array": [], "Boolean": True, "Number": 4, "String": "4"}
    assert [*items] == [_kind(item, is_figure=False).name for item in items.values()]


def test_claims_on_a_figure() -> None:
    result = edited()
    sites = list(claims_on(("spec", "peak", "dense", "fp16"), result.node))

    assert sites
    assert all("fp16" in site.text for site in sites)
