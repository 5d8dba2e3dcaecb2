"""trnspec.graph.graph.build: users, problems of references and their hints."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from tests.support.rules import KNOWN, document, source
from trnspec.graph.graph import MOST_KNOWN, Graph, build, names_used
from trnspec.loading.pipeline import load_document
from trnspec.model.document import Node
from trnspec.yaml import read_text


def node(text: str, *, target: bool = True) -> Node[Any]:
    found = load_document(read_text(text, "file.yaml"), KNOWN).node
    assert found is not None
    return evolve(found, target=target)


PAGE = source("page", "2024-02")
ONE = document("Chip", "one", "spec: {memory: {capacity: 1 GiB}}", "source: page, aliases: [uno]")
BOX = document("Server", "box", "spec: {chips: {chip: uno, count: 4}}", "source: page")
WIRE = document("Link", "one", "spec: {connects: chips}", "source: page")


def codes(problems: list[Any]) -> list[tuple[str, str, str]]:
    return [(p.node.name, p.problem.code, p.problem.message) for p in problems]


def test_users() -> None:
    """The documents that refer to each document, by its name or an alias."""
    box = node(BOX)
    graph, problems = build([node(PAGE), node(ONE), box])

    assert [] == codes(problems)
    assert {"one": {"box"}, "page": {"one", "box"}} == {k: set(v) for k, v in graph.users.items()}
    assert ("page", "uno") == tuple(sorted(names_used(box)))


@pytest.mark.parametrize(
    ("text", "others", "expected"),
    [
        (BOX, [PAGE], [("box", "TRN201", "no Chip is named 'uno'")]),
        (BOX.replace("uno", "one"), [PAGE, WIRE], [("box", "TRN202", "'one' is a Link; a Chip is expected here")]),
    ],
)
def test_problems_of_references(text, others, expected) -> None:
    _, problems = build([*(node(other) for other in others), node(text)])

    assert expected == codes(problems)


@pytest.mark.parametrize("targets_only", [True, False])
def test_context_is_not_checked_if_targets_alone_are(targets_only) -> None:
    box = node(BOX, target=False)
    graph, problems = build([node(PAGE), box], targets_only=targets_only)

    assert ([] if targets_only else [("box", "TRN201", "no Chip is named 'uno'")]) == codes(problems)
    assert {"page": {"box"}} == {k: set(v) for k, v in graph.users.items()}


@pytest.mark.parametrize(
    ("count", "hint"),
    [
        (0, "write chips/nothing-alike.yaml, or correct the name"),
        (2, "write chips/nothing-alike.yaml, or correct the name; known: c0, c1"),
        (MOST_KNOWN, "write chips/nothing-alike.yaml, or correct the name; known: c0, c1, c2, c3, c4, c5"),
        (MOST_KNOWN + 1, "write chips/nothing-alike.yaml, or correct the name"),
    ],
)
def test_hints(count, hint) -> None:
    """The known names are listed where they are few."""
    chips = [document("Chip", f"c{n}", "spec: {memory: {capacity: 1 GiB}}") for n in range(count)]
    box = document("Server", "box", "spec: {chips: {chip: nothing-alike, count: 4}}")
    _, problems = build([*(node(text) for text in chips), node(box)])

    assert [hint] == [p.problem.hint for p in problems]


def test_the_known_names_of_another_kind() -> None:
    """At most six; and where the other document states its kind."""
    chips = [document("Chip", f"c{n}", "spec: {memory: {capacity: 1 GiB}}") for n in range(8)]
    box = document("Server", "box", "spec: {chips: {chip: box, count: 4}}")
    _, (problem,) = build([*(node(text) for text in chips), node(box)])

    assert ("TRN202", "known: c0, c1, c2, c3, c4, c5") == (problem.problem.code, problem.problem.hint)
    assert [("Server", ("kind",))] == [(see.text, see.path) for see in problem.see]


def test_broken_documents() -> None:
    """A reference to a document with errors points to its file, also by a name that another document has as alias."""
    box = document("Server", "box", "spec: {chips: {chip: torn, count: 4}}", "source: page")
    _, (problem,) = build([node(PAGE), node(box)], {"torn": "chips/torn.yaml"})

    assert ("TRN203", "Chip 'torn' cannot be used: its own document has errors", "fix that document first") == (
        problem.problem.code, problem.problem.message, problem.problem.hint)  # fmt: skip
    assert ["chips/torn.yaml"] == [see.file for see in problem.see]


def test_names_given_twice() -> None:
    """Of two documents of one name the first stays; a name is stronger than an alias; a target is not blamed first."""
    first, second = node(ONE), node(WIRE)
    other = node(document("Chip", "other", "spec: {memory: {capacity: 1 GiB}}", "aliases: [one, uno, zwei, zwei]"))
    graph, problems = build([first, second, other, node(PAGE)])

    assert graph.named("one") is first
    assert [
        ("one", ("metadata", "name"), "the name 'one' is taken by another document", "Chip one"),
        ("other", ("metadata", "aliases", 0), "the name 'one' is taken by another document", "Chip one"),
        ("other", ("metadata", "aliases", 1), "the name 'uno' is taken by another document", "Chip one"),
        ("other", ("metadata", "aliases", 3), "the name 'zwei' is given twice", "Chip other"),
    ] == [(p.node.name, p.problem.path, p.problem.message, p.see[0].text) for p in problems]
    assert ["names and aliases are unique in a catalog"] * 3 + ["remove one of them"] == [
        p.problem.hint for p in problems
    ]


def test_an_alias_of_a_context_is_stronger_than_that_of_a_target() -> None:
    context = node(ONE, target=False)
    target = node(document("Chip", "other", "spec: {memory: {capacity: 1 GiB}}", "aliases: [uno]"))
    for nodes in ([context, target], [target, context]):
        _, problems = build([*nodes, node(PAGE)])
        assert [("other", "TRN204")] == [(p.node.name, p.problem.code) for p in problems]


def test_focus() -> None:
    """The documents of the focus, and with them those that use one of them, at any distance."""
    rack = document("UltraServer", "rack", "spec: {servers: {server: box, count: 2}}")
    made = build([node(text) for text in (PAGE, ONE, BOX, rack)])[0]
    focused = made.focused_on(["one"])

    assert (None, None) == (made.focus, made.scope)
    assert ({"one"}, {"one", "box", "rack"}) == (set(focused.focus or ()), set(focused.scope or ()))
    assert ["one"] == [n.name for n in focused.focused()]
    assert ["one", "box"] == [n.name for n in made.focused(*{type(n.spec) for n in made if n.name in ("one", "box")})]
    assert [] == [n.name for n in focused.focused(type(made.named("box").spec))]
    assert {"page", "one", "box", "rack"} == set(made.using(["page"]))
    assert {"rack"} == set(made.using(["rack"]))
    assert "<Graph of 4 documents>" == repr(made)
    assert isinstance(focused, Graph)
