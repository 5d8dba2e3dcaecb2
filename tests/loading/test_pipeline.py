"""trnspec.loading.pipeline: every stage reports and passes on what is sound."""

import re

import pytest
from attrs import evolve

from tests.support.tables import tables
from trnspec.api import registry
from trnspec.builtin import plugin as house
from trnspec.checks.runner import check
from trnspec.diagnostics import Severity
from trnspec.loading.pipeline import load_document
from trnspec.loading.settings import Settings
from trnspec.model.chip import Chip
from trnspec.model.server import Server
from trnspec.plugins.api import API, Finding, Plugin, Registry, rule
from trnspec.yaml import read_text

KNOWN = registry()
# The rules are tested elsewhere; here it is the way to them.
BARE = Registry.of([evolve(house, rules=())])


def text(kind: str, name: str, spec: str, metadata: str = "") -> str:
    return f"api_version: trnspec/v1\nkind: {kind}\nmetadata: {{name: {name}, title: T{metadata}}}\nspec: {spec}\n"


def chip(name: str = "one", bf16: str = "190 TFLOPS", metadata: str = "") -> str:
    spec = f"{{peak: {{dense: {{bf16: {bf16}}}}}, memory: {{capacity: 32 GiB}}}}"
    return text("Chip", name, spec, metadata)


def server(name: str = "box", of: str = "one", metadata: str = "") -> str:
    return text("Server", name, f"{{chips: {{chip: {of}, count: 16}}}}", metadata)


def found(targets: dict[str, str], context: dict[str, str] | None = None, known: Registry = BARE, **settings):
    """What is reported, as (file, code, line)."""
    report = run(targets, context, known, **settings).report
    return {(d.where.file, d.code, d.where.place.line if d.where.place else 0) for d in report.diagnostics}


def run(targets: dict[str, str], context: dict[str, str] | None = None, known: Registry = BARE, **settings):
    readings = [load_document(read_text(t, f), known) for f, t in targets.items()]
    readings += [load_document(read_text(t, f), known, target=False) for f, t in (context or {}).items()]
    return check(readings, known, Settings(**settings))


def test_sound_text() -> None:
    reading = load_document(read_text(chip(), "one.yaml"), BARE)

    assert reading.problems == ()
    assert isinstance(reading.node.spec, Chip)
    assert (reading.name, reading.target, reading.node.target) == ("one", True, True)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (chip(), "one"),
        ("kind: Chip\nmetadata: {name: other}\n", "other"),
        ("kind: Chip\nmetadata: {name: 3}\n", "file"),
        ("kind: [", "file"),
        ("", "file"),
    ],
)
def test_name_of_an_unsound_text(source, name) -> None:
    """What cannot be read is known by the name of its file."""
    assert name == load_document(read_text(source, "chips/file.yaml"), BARE).name


@pytest.mark.parametrize(("source", "code", "line"), tables(__file__)["envelope"])
def test_envelope(source, code, line) -> None:
    """Without version and kind nothing else can be said of a document."""
    assert {("a.yaml", code, line)} == found({"a.yaml": source})


def test_target_replaces_the_context() -> None:
    """Others then see the target, and nothing is reported."""
    checked = run({"mine.yaml": chip(bf16="191 TFLOPS")}, {"theirs.yaml": chip(), "box.yaml": server()})
    seen = checked.graph[checked.graph.named("box").spec.chips.chip]

    assert checked.report.diagnostics == ()
    assert seen.peak.dense.bf16.value.text == "191 TFLOPS"


BROKEN = chip().replace("memory", "mem")


@pytest.mark.parametrize("broken", [BROKEN, "kind: [", "kind: Chip\nmetadata: {name: one}\n", "api_version: &"])
def test_broken_context_is_reported_where_it_is_referred_to(broken) -> None:
    """Its own mistakes are not, nor is a target that does not refer to it."""
    context = {"chips/one.yaml": broken}

    assert {("box.yaml", "TRN203", 4)} == found({"box.yaml": server(), "other.yaml": chip("other")}, context)
    assert set() == found({"other.yaml": chip("other")}, {**context, "box.yaml": server()})


@pytest.mark.parametrize("known", [BARE, KNOWN])
def test_broken_target_is_not_replaced_by_the_context(known) -> None:
    """A target that refers to it is reported so; a context document that does is not reported."""
    context = {"far/one.yaml": chip(metadata=", source: paper"), "else.yaml": server("else")}
    marks = found({"one.yaml": BROKEN, "box.yaml": server()}, context, known, select=("TRN2",))

    assert {("box.yaml", "TRN203", 4)} == marks


def test_text_at_a_finding() -> None:
    """It is cut from the line of the finding, whatever ends the lines."""
    source = "# a\r# b\r\n" + server(of="none")
    (diagnostic,) = run({"box.yaml": source}, select=("TRN201",)).report.diagnostics

    assert (diagnostic.code, diagnostic.where.place.line, diagnostic.where.text) == ("TRN201", 6, "none")


@rule("ABC01", "each-server", over=Server, severity=Severity.WARNING)
def each_server(node, graph):
    """Looks at servers."""
    yield Finding(("spec", "chips", "count"), f"{node.name} has {graph[node.spec.chips.chip].peak.dense.bf16.value}")


@rule("ABC02", "whole-graph")
def whole_graph(graph):
    """Looks at all."""
    yield Finding((), f"{len(graph)} nodes")
    yield Finding(("metadata", "name"), "by name", node=graph.named("one"), key=True)


@rule("ABC03", "fails", over=Chip)
def fails(node, graph):
    """Fails after it has found something."""
    yield Finding(("spec",), "found before")
    raise ZeroDivisionError("by nothing")


def with_rules(*rules) -> Registry:
    return Registry.of([evolve(house, rules=()), Plugin(name="test", api=API, rules=rules)])


def test_rule_over_the_graph() -> None:
    assert {("<catalog>", "ABC02", 0), ("one.yaml", "ABC02", 3)} == found(
        {"one.yaml": chip()}, known=with_rules(whole_graph)
    )


def test_rule_that_fails_is_a_finding() -> None:
    """What it found before stays, and the other rules run."""
    checked = run({"one.yaml": chip(), "box.yaml": server()}, known=with_rules(fails, each_server))

    assert {"ABC01", "ABC03", "TRN900"} == {d.code for d in checked.report.diagnostics}
    (failure,) = (d.message for d in checked.report.diagnostics if d.code == "TRN900")
    assert re.fullmatch(
        r"rule ABC03 fails of the plugin test failed at \S+test_pipeline\.py:\d+: ZeroDivisionError: by nothing",
        failure,
    )


def test_finding_in_the_context_is_not_shown() -> None:
    """Unless a target takes part in it."""
    assert set() == found(
        {"two.yaml": chip("two")}, {"one.yaml": chip(), "box.yaml": server()}, with_rules(each_server)
    )


# Waivers.

WAIVED = ", allow: [{code: ABC01, reason: R}]"
AT = ", allow: [{{code: ABC01, at: {}, reason: R}}]"


@pytest.mark.parametrize(
    ("metadata", "codes", "waived"),
    [
        ("", {"ABC01"}, 0),
        (WAIVED, set(), 1),
        (AT.format("spec.chips.count"), set(), 1),
        (AT.format("spec.chips"), set(), 1),
        (AT.format("spec.chips.{chip,count}").replace("at: ", "at: '").replace("}, reason", "}', reason"), set(), 1),
        (AT.format("spec.chips.chip"), {"ABC01", "TRN304"}, 0),
        (WAIVED.replace("ABC01", "ABC09"), {"ABC01", "TRN304"}, 0),
    ],
)
def test_waiver(metadata, codes, waived) -> None:
    """It accepts its code at its place and below; one that accepts nothing is itself a finding."""
    report = run({"box.yaml": server(metadata=metadata)}, {"one.yaml": chip()}, with_rules(each_server)).report

    assert (codes, waived) == ({d.code for d in report.diagnostics}, report.waived)


@pytest.mark.parametrize(
    ("settings", "expected", "ok"),
    [
        ({}, [("ABC01", Severity.WARNING)], False),
        ({"ignore": ("ABC",)}, [], True),
        ({"select": ("TRN",)}, [], True),
        ({"severity": {"ABC": Severity.INFO}}, [("ABC01", Severity.INFO)], True),
        ({"severity": {"ABC01": Severity.ERROR}}, [("ABC01", Severity.ERROR)], False),
    ],
)
def test_settings(settings, expected, ok) -> None:
    report = run({"one.yaml": chip(), "box.yaml": server()}, known=with_rules(each_server), **settings).report

    assert expected == [(d.code, d.severity) for d in report.diagnostics]
    assert ok == report.ok
