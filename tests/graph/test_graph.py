"""trnspec.graph.graph: names and aliases resolve to typed specs, and a changed spec changes all who use it."""

from fractions import Fraction
from typing import Any

import pytest
from attrs import evolve

from trnspec.api import registry
from trnspec.diagnostics import Location
from trnspec.errors import TrnspecError, UnknownNameError
from trnspec.graph import graph as graphs
from trnspec.loading.pipeline import load_document
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.link import Link
from trnspec.model.ref import Ref
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.quantities.units import UnitTable
from trnspec.yaml import Place, read_text

KNOWN = registry()


def node(kind: str, name: str, spec: str, metadata: str = "", rest: str = "") -> Node[Any]:
    text = (
        f"api_version: trnspec/v1\nkind: {kind}\nmetadata: {{name: {name}, title: X{metadata}}}\nspec: {spec}\n{rest}"
    )
    found = load_document(read_text(text, f"{name}.yaml"), KNOWN)
    assert found.problems == ()
    assert found.node is not None
    return found.node


def source(name: str = "page", metadata: str = "") -> Node[Source]:
    return node("Source", name, '{publisher: P, as_of: "2024", rank: third-party}', metadata)


def chip(name: str = "one", metadata: str = "", more: str = "", rest: str = "") -> Node[Chip]:
    spec = f"{{peak: {{dense: {{bf16: 190 TFLOPS}}}}, memory: {{capacity: 32 GiB, bandwidth: 820 GB/s}}{more}}}"
    return node("Chip", name, spec, metadata, rest)


def server(name: str = "box", of: str = "one", more: str = "", rest: str = "") -> Node[Server]:
    return node("Server", name, f"{{chips: {{chip: {of}, count: 16}}{more}}}", rest=rest)


def reported(problems: list[graphs.NodeProblem]) -> set[tuple[str, str, int, int, str, str]]:
    """Name of the node, code, line, column, message, hint."""
    found = set()
    for p in problems:
        assert p.problem.place is not None
        place = p.problem.place
        found.add((p.node.name, p.problem.code, place.line, place.column, p.problem.message, p.problem.hint))
    return found


def test_names_and_aliases_resolve():
    one, box = chip(metadata=", aliases: [uno, eins]"), server(of="uno")
    graph, problems = graphs.build([one, box])
    assert problems == []
    assert graph[box.spec.chips.chip] is one.spec
    assert graph.node(Ref("eins")) is one
    assert graph.named("one") is graph.named("uno") is one
    assert dict(graph.aliases) == {"one": "one", "uno": "one", "eins": "one", "box": "box"}
    assert (len(graph), list(graph)) == (2, [one, box])
    assert "eins" in graph
    assert "zwei" not in graph
    assert 5 not in graph


def test_a_name_that_leads_nowhere():
    graph, _ = graphs.build([chip("trainium1"), chip("trainium2")])
    missing: Ref[Chip] = Ref("trainium3")
    assert graph.find(missing) is None
    for lookup in (graph.node, graph.__getitem__):
        with pytest.raises(graphs.UnresolvedError) as caught:
            lookup(missing)
        assert str(caught.value) == "no document is named 'trainium3'"
    with pytest.raises(UnknownNameError) as unknown:
        graph.named("trainium3")
    assert str(unknown.value) == "no document is named 'trainium3'; did you mean 'trainium2' or 'trainium1'?"
    with pytest.raises(TrnspecError) as unlike:
        graph.named("zebra")
    assert ("no document is named 'zebra'", "trnspec list shows the names") == (str(unlike.value), unlike.value.hint)
    with pytest.raises(KeyError):
        graph.named("zebra")


def test_the_nodes_of_a_class_by_name():
    class Derived(Link):
        pass

    links = [node("Link", name, "{connects: chips}") for name in ("b", "a")]
    derived = evolve(node("Link", "aa", "{connects: chips}"), spec=Derived(connects="servers"))
    graph, _ = graphs.build([*links, chip(), derived])
    assert [n.name for n in graph.of(Link)] == ["a", "aa", "b"]
    assert [n.name for n in graph.of(Derived)] == ["aa"]
    assert graph.of(Server) == ()
    assert len(graph.of(object)) == 4


def test_changed_spec_reaches_all_users():
    one, box = chip(metadata=", aliases: [uno]"), server()
    graph, _ = graphs.build([one, box], {"lost": "lost.yaml"})
    smaller = evolve(one.spec, dies=7)
    for name in ("one", "uno"):
        other = graph.replace(name, smaller)
        assert other[box.spec.chips.chip] is smaller
        assert other.named("one").document is one.document
        assert other.named("box") is box
        assert list(other.nodes) == list(graph.nodes)
        assert other.broken == graph.broken
    assert graph[box.spec.chips.chip] is one.spec
    assert one.spec.dies is None
    with pytest.raises(UnknownNameError):
        graph.replace("none", smaller)


def test_figures_by_path_in_the_order_of_the_class():
    one = chip(more=", dies: 2, sbuf: {value: 48 MiB, source: page}, other: {z: 3 W, a: 1 us}, memory_pool: 16")
    graph, _ = graphs.build([one, source()])
    assert [(".".join(map(str, p)), str(f)) for p, f in graph.figures(one).items()] == [
        ("spec.peak.dense.bf16", "190 TFLOPS"),
        ("spec.memory.capacity", "32 GiB"),
        ("spec.memory.bandwidth", "820 GB/s"),
        ("spec.sbuf", "48 MiB"),
        ("spec.other.z", "3 W"),
        ("spec.other.a", "1 us"),
    ]
    for path, figure in graph.figures(one).items():
        assert graphs.figure_at(one, path) is figure
    assert graphs.figure_at(one, ("spec", "dies")) == 2
    assert graphs.figure_at(one, ("spec", "power")) is None
    assert graphs.figure_at(one, ("spec", "memory", "count")) is None


def test_the_location_of_a_path():
    one = chip()
    place = one.document.place(("metadata", "name"))
    assert graphs.at(one, ("metadata", "name"), text="x") == Location("one.yaml", place, ("metadata", "name"), "x")
    assert place == Place(3, 18)
    assert graphs.at(one, ("metadata", "name"), key=True).place == Place(3, 12)
    assert str(graphs.at(one, ("kind",))) == "one.yaml:2:7"


def test_every_reference_with_the_class_it_must_lead_to():
    one = chip(
        metadata=", source: page",
        more=(
            ", cores: {core: c, count: 2}, links: {link: l}, sbuf: {value: 48 MiB, source: page},"
            " ratios: [{of: spec.sbuf, over: older, says: 2x, source: page}], other: {a: {value: 1 us, source: page}}"
        ),
        rest="claims: [{at: spec.sbuf, says: 48 MiB, source: other}]\n",
    )
    assert {(".".join(map(str, path)), cls.__name__, ref.name) for path, cls, ref in graphs.references(one)} == {
        ("metadata.source", "Source", "page"),
        ("spec.cores.core", "Core", "c"),
        ("spec.links.link", "Link", "l"),
        ("spec.sbuf.source", "Source", "page"),
        ("spec.ratios.0.over", "Chip", "older"),
        ("spec.ratios.0.source", "Source", "page"),
        ("spec.other.a.source", "Source", "page"),
        ("claims.0.source", "Source", "other"),
    }


def test_references_of_claims_stand_where_the_claims_do():
    """Also when an unsound claim before them was left out."""
    text = (
        "api_version: trnspec/v1\nkind: Link\nmetadata: {name: a, title: A}\nspec: {connects: chips}\n"
        "claims:\n  - {}\n  - {at: spec.latency, says: 1 us, source: none}\n"
    )
    found = load_document(read_text(text, "a.yaml"), KNOWN).node
    assert found is not None
    _, (problem,) = graphs.build([found])
    assert (problem.problem.path, problem.problem.place) == (("claims", 1, "source"), Place(7, 44))


def test_a_dangling_reference():
    nodes = [chip("trainium1"), chip("trainium2", ", aliases: [trainium-two]"), server("box", of="trainium"), server("b2", of="zzz")]  # fmt: skip
    graph, problems = graphs.build(nodes)
    assert len(graph) == 4
    near = "did you mean 'trainium-two' or 'trainium1' or 'trainium2'?"
    assert reported(problems) == {
        ("box", "TRN201", 4, 22, "no Chip is named 'trainium'", near),
        (
            "b2",
            "TRN201",
            4,
            22,
            "no Chip is named 'zzz'",
            "write chips/zzz.yaml, or correct the name; known: trainium1, trainium2",
        ),
    }
    assert reported(graphs.build([server()])[1]) == {
        ("box", "TRN201", 4, 22, "no Chip is named 'one'", "write chips/one.yaml, or correct the name")
    }


def test_a_dangling_name_in_a_row_is_one_problem():
    """Although several values have it."""
    row = "{type: spot, region: us-east-1, price: 1 USD/h, days: 9, low: 1 USD/h, high: 4 USD/h, source: none}"
    text = f"api_version: trnspec/v1\nkind: PriceList\nmetadata: {{name: box-prices, title: P}}\nspec:\n  server: box\n  rows: [{row}]\n"
    nodes = [part.node for part in load_document(read_text(text, "box-prices.yaml"), KNOWN).parts]
    _, problems = graphs.build([*nodes, server(), chip()])
    assert [(p.problem.code, p.problem.place.line) for p in problems] == [("TRN201", 6)]


@pytest.mark.parametrize(
    ("count", "hint"),
    [
        (0, "write chips/nothing-alike.yaml, or correct the name"),
        (2, "write chips/nothing-alike.yaml, or correct the name; known: c0, c1"),
        (graphs.MOST_KNOWN, "write chips/nothing-alike.yaml, or correct the name; known: c0, c1, c2, c3, c4, c5"),
        (graphs.MOST_KNOWN + 1, "write chips/nothing-alike.yaml, or correct the name"),
    ],
)
def test_hints(count, hint) -> None:
    """The known names are listed where they are few."""
    _, problems = graphs.build([*(chip(f"c{n}") for n in range(count)), server(of="nothing-alike")])

    assert [hint] == [p.problem.hint for p in problems]


def test_a_reference_to_a_document_of_another_kind():
    page, one = source(), chip()
    _, problems = graphs.build([page, one, server(of="page")])
    assert reported(problems) == {("box", "TRN202", 4, 22, "'page' is a Source; a Chip is expected here", "known: one")}
    (problem,) = problems
    assert problem.see == (Location("page.yaml", Place(2, 7), ("kind",), "Source"),)
    _, (alone,) = graphs.build([page, server(of="page")])
    assert alone.problem.hint == ""


def test_a_reference_to_a_document_that_has_errors():
    """Once in a document, however often it refers to the other."""
    _, problems = graphs.build([server(more=", other: {a: {value: 2 GB, source: one}}")], {"one": "chips/one.yaml"})
    message = "Chip 'one' cannot be used: its own document has errors"
    assert reported(problems) == {("box", "TRN203", 4, 22, message, "fix that document first")}
    assert problems[0].see == (Location("chips/one.yaml"),)


UNIQUE = "names and aliases are unique in a catalog"


def test_of_two_that_share_a_name_the_first_stays():
    first, second = chip(), evolve(chip(more=", dies: 2"), target=False)
    graph, problems = graphs.build([first, second, server()])
    assert graph.named("one") is first
    assert [p.node for p in problems] == [second]
    assert reported(problems) == {("one", "TRN204", 3, 18, "the name 'one' is taken by another document", UNIQUE)}
    assert problems[0].see == (Location("one.yaml", Place(3, 18), ("metadata", "name"), "Chip one"),)


def test_an_alias_that_is_a_name_and_a_name_that_is_an_alias():
    named, aliased = chip("one"), chip("two", ", aliases: [one]")
    graph, problems = graphs.build([named, aliased])
    assert graph.named("one") is named
    assert reported(problems) == {("two", "TRN204", 3, 43, "the name 'one' is taken by another document", UNIQUE)}
    graph, problems = graphs.build([aliased, named])
    assert graph.named("one") is named
    assert reported(problems) == {("two", "TRN204", 3, 43, "the name 'one' is taken by another document", UNIQUE)}


def test_an_alias_of_a_document_that_is_checked_is_reported():
    """The other document, of the shipped catalog, is as it was, whichever comes first."""
    mine, shipped = chip("one", ", aliases: [both]"), evolve(chip("two", ", aliases: [both]"), target=False)
    for nodes in ([mine, shipped], [shipped, mine]):
        _, problems = graphs.build(nodes)
        assert reported(problems) == {("one", "TRN204", 3, 43, "the name 'both' is taken by another document", UNIQUE)}


@pytest.mark.parametrize(("aliases", "name", "column"), [("one", "one", 43), ("a, a", "a", 46)])
def test_a_document_that_gives_itself_a_name_twice(aliases, name, column):
    graph, problems = graphs.build([chip(metadata=f", aliases: [{aliases}]")])
    assert reported(problems) == {
        ("one", "TRN204", 3, column, f"the name {name!r} is given twice", "remove one of them")
    }
    assert len(graph) == 1


def test_the_references_of_a_document_that_was_left_out_are_not_reported():
    graph, problems = graphs.build([server("box", of="one"), server("box", of="none"), chip()])
    assert [p.problem.code for p in problems] == ["TRN204"]
    assert [n.name for n in graph] == ["box", "one"]


def test_references_of_all_documents_are_checked_unless_only_targets_are_wanted() -> None:
    """A document of the context with a dangling reference."""
    context = evolve(node("Chip", "part", "{memory: {capacity: 1 GiB}}", ", source: nothing"), target=False)

    assert [["TRN201"], ["TRN201"], []] == [
        [p.problem.code for p in graphs.build([context], **given)[1]]
        for given in ({}, {"targets_only": False}, {"targets_only": True})
    ]


def test_documents_that_use_others():
    """Directly, through another, and in a chain of three; the given ones are among them."""
    graph, _ = graphs.build(
        [
            source(),
            chip("one"),
            chip("two"),
            server("box", "one"),
            server("case", "two"),
            node("UltraServer", "rack", "{servers: {server: box, count: 4}}"),
        ]
    )

    assert graph.using(["one"]) == {"one", "box", "rack"}
    assert graph.using(["two", "box"]) == {"two", "case", "box", "rack"}
    assert graph.using(["rack"]) == {"rack"}
    assert graph.users == {"one": {"box"}, "two": {"case"}, "box": {"rack"}}


def test_focus():
    """Rules ask for the documents of a kind, of several, or of any; without a focus all documents are in it."""
    graph, _ = graphs.build([source(), chip("one"), chip("two"), server("box", "one"), server("case", "two")])
    mine = graph.focused_on(["one", "case"])

    assert [n.name for n in mine.focused()] == ["one", "case"]
    assert [n.name for n in mine.focused(Chip)] == ["one"]
    assert [n.name for n in mine.focused(Chip, Server)] == ["one", "case"]
    assert mine.scope == {"one", "box", "case"}
    assert [n.name for n in graph.focused(Chip)] == ["one", "two"]
    assert len(graph.focused()) == 5
    assert graph.scope is None


def test_cached_by_graph_and_by_other_arguments() -> None:
    calls: list[tuple[graphs.Graph, str]] = []

    @graphs.cached_by_graph
    def computed(graph: graphs.Graph, name: str) -> str:
        calls.append((graph, name))
        return name

    first, second = graphs.Graph({}), graphs.Graph({})

    assert [computed(graph, name) for graph, name in ((first, "a"), (first, "a"), (first, "b"), (second, "a"))] == [
        "a",
        "a",
        "b",
        "a",
    ]
    assert [(graph is first, name) for graph, name in calls] == [(True, "a"), (True, "b"), (False, "a")]


@pytest.mark.parametrize("direction", ["per_direction", "both"])
@pytest.mark.parametrize("stated", ["per_direction", "both"])
def test_both_directions_have_twice_the_rate_of_one(stated, direction) -> None:
    wire = node("Link", "wire", f"{{connects: chips, bandwidth: {{{stated}: 100 GB/s}}}}")
    rates = {"per_direction": 1, "both": 2}

    place, factor = graphs.directed(wire, ("spec", "bandwidth"), direction)

    assert (("spec", "bandwidth", stated), Fraction(rates[direction], rates[stated])) == (place, factor)


def test_units_are_those_of_a_plugin_if_there_is_one() -> None:
    units = UnitTable(())
    plugin = evolve(chip("two"), units=units)

    assert graphs.build([chip(), plugin])[0].units is units
