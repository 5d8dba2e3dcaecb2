"""trnspec.testing: an explanation that lies does not pass."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen

from trnspec.api import registry
from trnspec.builtin import plugin as builtin
from trnspec.catalog.catalog import Catalog
from trnspec.checks.rules import names
from trnspec.diagnostics import Code, Severity
from trnspec.errors import UsageError
from trnspec.evaluation.result import Answer, Evaluation
from trnspec.graph.graph import Graph
from trnspec.loading.settings import Settings
from trnspec.model.document import Node
from trnspec.model.link import Link
from trnspec.model.parts import Parts
from trnspec.model.ref import Ref
from trnspec.plugins.api import API, Command, Evaluator, Exporter, Finding, Kind, Plugin, Registry, Reporter, rule
from trnspec.testing import PluginConformance, check_code, check_rule, diagnose, examples, expected, report, split

KNOWN = registry()
HEAD = "api_version: trnspec/v1\nkind: Link\nmetadata: {name: example, title: Example}\n"
SOUND = HEAD + "spec: {connects: chips}\n"
WRONG = HEAD + "spec: {connects: chips, lanes: {count: 0}}"
MARKED = f"{WRONG}  #! TRN106\n"


def fence(text: str) -> str:
    return "".join(f"    {line}\n" for line in ["```yaml", *text.splitlines(), "```"])


def code(example: str = MARKED, instead: str = SOUND, without: str = "", more: str = "") -> Code:
    """An explanation that reports the truth, unless it is given something else to say."""
    doc = (
        "A number that is too small.\n\n"
        f"Why:\n    It counts nothing.\n\nExample:\n{fence(example)}{more}\nInstead:\n{fence(instead)}\n"
        "Source:\n    JSON Schema 2020-12, Validation, section 6.2.4.\n"
    )
    return Code("TRN106", "out-of-bounds", Severity.ERROR, doc.replace(without, ""))


# check_code.


def test_true_explanation_passes() -> None:
    check_code(code(), registry=KNOWN)


@pytest.mark.parametrize("heading", ["Why:", "Example:", "Instead:", "Source:"])
def test_missing_section(heading: str) -> None:
    with pytest.raises(AssertionError, match=f"TRN106 has no section {heading}"):
        check_code(code(without=heading), registry=KNOWN)


@pytest.mark.parametrize(
    ("example", "marked", "found"),
    [
        (f"{WRONG}\n", r"\[\]", r"\[.*'TRN106', 4.*\]"),
        (SOUND.replace("chips}\n", "chips}  #! TRN106\n"), r"\[.*'TRN106', 4.*\]", r"\[\]"),
        (f"{WRONG}  #! TRN105\n", r"\[.*'TRN105', 4.*\]", r"\[.*'TRN106', 4.*\]"),
        (f"{WRONG}  #! TRN105, TRN106\n", r"\[.*'TRN105', 4.*'TRN106', 4.*\]", r"\[[^)]*'TRN106', 4\)\]"),
        (f"{WRONG}\n# Too few.  #! TRN106\n", r"\[.*'TRN106', 5.*\]", r"\[.*'TRN106', 4.*\]"),
    ],
    ids=["not marked", "not found", "another code", "one too many", "another line"],
)
def test_lying_example(example: str, marked: str, found: str) -> None:
    with pytest.raises(AssertionError, match=f"TRN106, Example: {marked} is marked, {found} is reported"):
        check_code(code(example), registry=KNOWN)


def test_second_example_is_checked_too() -> None:
    with pytest.raises(AssertionError, match=r"TRN106, Example: \[\] is marked, \[.*TRN106.*\] is reported"):
        check_code(code(more=fence(WRONG)), registry=KNOWN)


def test_instead_with_a_finding() -> None:
    with pytest.raises(AssertionError, match=r"TRN106, Instead: \[\] is marked"):
        check_code(code(instead=WRONG), registry=KNOWN)
    with pytest.raises(AssertionError, match="what to write instead has findings"):
        check_code(code(instead=MARKED), registry=KNOWN)


def test_examples_stand_under_their_headings() -> None:
    python = "    ```python\n    spec: {connects: chips}\n    ```\n"
    assert list(examples(code(more=python + fence(SOUND)))) == [
        ("Example", MARKED),
        ("Example", SOUND),
        ("Instead", SOUND),
    ]


def test_instead_as_a_diff() -> None:
    """A diff changes the last example, without its marks; a line that the example does not have is an error."""

    def with_diff(*lines: str) -> Code:
        doc = code(instead="").doc.replace("```yaml\n    ```", "\n    ".join(("```diff", *lines, "```")))
        return Code("TRN106", "out-of-bounds", Severity.ERROR, doc)

    assert list(examples(with_diff(f"-{WRONG.splitlines()[-1]}", f"+{SOUND.splitlines()[-1]}")))[-1] == (
        "Instead",
        SOUND,
    )
    added = with_diff(" kind: Link", "+# Shipped.")
    assert list(examples(added))[-1] == ("Instead", f"{WRONG}\n".replace("Link\n", "Link\n# Shipped.\n"))
    with pytest.raises(AssertionError, match="the diff has 'kind: Chip'"):
        list(examples(with_diff("-kind: Chip")))


def test_split_names_files() -> None:
    assert list(split(SOUND, KNOWN)) == [("links/example.yaml", SOUND)]
    assert list(split("a: 1\n", KNOWN)) == [("example.yaml", "a: 1\n")]
    both = f"{SOUND}# file: links/one.yaml\nb: 2\n# file: two.yaml\nc: 3\n"
    assert list(split(both, KNOWN)) == [
        ("links/example.yaml", SOUND),
        ("links/one.yaml", "b: 2\n"),
        ("two.yaml", "c: 3\n"),
    ]


def test_expected_reads_marks() -> None:
    """A mark is at the end of its line and names one code or several; the line of a file's name does not count."""
    text = (
        "# file: one.yaml\na: 1  #! TRN101\nb: 2  #! TRN102, TRN103\n# file: two.yaml\nc: 3  #! TRN104 not at the end\n"
    )
    assert {("one.yaml", "TRN101", 1), ("one.yaml", "TRN102", 2), ("one.yaml", "TRN103", 2)} == expected(text)
    assert {("links/example.yaml", "TRN106", 4)} == expected(MARKED)
    assert {("three.yaml", "TRN101", 2)} == expected({"three.yaml": "\na: 1  #! TRN101\n"})


def test_diagnose_resolves_against_the_shipped_catalog() -> None:
    sourced = SOUND.replace("Example}", "Example, source: neuron-trainium-2024-02}")
    assert set() == diagnose(sourced, registry=KNOWN)
    assert {("links/example.yaml", "TRN201", 3)} == diagnose(sourced.replace("2024-02", "2024-32"), registry=KNOWN)


# Rules and plugins of others.

UNLIT = HEAD + "spec: {connects: servers}"


@rule("ABC01", "unlit", over=Link)
def unlit(link: Node[Link], graph: Graph) -> Iterator[Finding]:
    """A link between servers that is called an example."""
    if link.name == "example" and link.spec.connects == "servers":
        yield Finding(("spec",), "it is not lit")


@rule("DEF01", "unlanes", over=Link)
def unlanes(link: Node[Link], graph: Graph) -> Iterator[Finding]:
    """A link that is called an example and has no lanes."""
    if link.name == "example" and link.spec.lanes is None:
        yield Finding(("spec",), "it has no lanes")


def test_diagnose_looks_at_the_plugins_that_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    one, two = (Plugin(name=r.code.id.lower(), api=API, rules=(r,)) for r in (unlit, unlanes))
    monkeypatch.setattr("trnspec.testing.helpers.installed", lambda: Registry.of([builtin, one, two]))

    assert {"ABC01", "DEF01"} == {code for _, code, _ in diagnose(f"{UNLIT}\n")}
    assert {("links/example.yaml", "ABC01", 4)} == diagnose(f"{UNLIT}\n", plugins=[one])
    assert {("links/example.yaml", "DEF01", 4)} == diagnose(f"{UNLIT}\n", plugins=iter([two]))
    assert set() == diagnose(f"{UNLIT}\n", plugins=())
    with pytest.raises(UsageError, match="not both"):
        diagnose(UNLIT, plugins=[one], registry=KNOWN)


def stated(rule_: Any, example: str) -> Any:
    """The rule with an explanation whose example is this."""
    return evolve(rule_, code=evolve(rule_.code, doc=code(example).doc))


def test_rule_that_is_in_no_plugin_yet() -> None:
    check_rule(stated(unlit, f"{UNLIT}  #! ABC01\n"))
    with pytest.raises(AssertionError, match="ABC01, Example"):
        check_rule(stated(unlit, f"{UNLIT}\n"))


def failing(plugin: Plugin) -> set[str]:
    """The tests of the conformance class that a plugin fails."""
    case = type("Case", (PluginConformance,), {"plugin": plugin})()
    failed = set()
    for name in (n for n in dir(case) if n.startswith("test_")):
        try:
            getattr(case, name)()
        except (AssertionError, UsageError):
            failed.add(name)
    return failed


INSTALLED = "test_is_installed_and_used"
"""Fails for every plugin here: none of them is installed; tests/test_skeleton.py has some that are."""


def test_plugin_that_conforms(tmp_path: Path) -> None:
    (tmp_path / "wire.yaml").write_text(SOUND.replace("example", "wire").replace("Example", "Wire"))
    plugin = Plugin(
        name="one",
        api=API,
        rules=(stated(unlit, f"{UNLIT}  #! ABC01\n"),),
        catalogs=(tmp_path,),
        evaluators=(Evaluator("size", "The size.", "tests.testing.test_helpers:size"),),
    )

    assert {INSTALLED} == failing(plugin)


def size(catalog: Catalog, *, of: str = "chips") -> Evaluation:
    """The size of a folder.

    Args:
        catalog: The catalog.
        of: The folder.
    """
    return Evaluation(
        evaluator="size", title=f"Size of {of}", inputs={"of": of}, answers=(Answer("count", len(catalog.graph)),)
    )


def number(catalog, *, of: str = "chips"):
    """The size of a folder.

    Args:
        catalog: The catalog.
        of: The folder.
    """
    return len(catalog.graph)


def annotated(catalog: Catalog, *, of: str) -> int:
    """The size of a folder.

    Args:
        catalog: The catalog.
        of: The folder.
    """
    return len(of)


@frozen(kw_only=True)
class Pile:
    """A pile of links.

    Attributes:
        link: The link. Example: efa-v3
        count: How many.
    """

    link: Ref[Link]
    count: int

    def parts(self) -> Parts[Link]:
        return ((self.link, self.count),)  # type: ignore[return-value]  # swapped


@rule("ABC02", "complaint")
def complaint(graph: Graph) -> Iterator[Finding]:
    """It always complains."""
    yield Finding(("spec",), "there is something", node=next(iter(graph)))


@pytest.mark.parametrize(
    ("more", "failed"),
    [
        ({"rules": (unlit,)}, {"test_explanations_tell_the_truth"}),
        ({"rules": (complaint,)}, {"test_explanations_tell_the_truth", "test_trnspec_has_no_findings_beside_it"}),
        (
            {"evaluators": (Evaluator("size", "The size.", "operator:no_such"),)},
            {"test_functions_return_what_is_expected"},
        ),
        ({"evaluators": (Evaluator("size", "", size),)}, {"test_fits_beside_trnspec"}),
        ({"kinds": (Kind("Pile", "piles", Pile),)}, {"test_fits_beside_trnspec"}),
    ],
)
def test_plugin_that_does_not_conform(more: dict[str, Any], failed: set[str]) -> None:
    assert failed == failing(Plugin(name="one", api=API, **more)) - {INSTALLED}


@pytest.mark.parametrize(
    "more",
    [
        {"evaluators": (Evaluator("size", "The size.", number),)},
        {"evaluators": (Evaluator("size", "The size.", annotated),)},
        {"exporters": (Exporter("text", ".txt", "Text.", one=lambda node, graph: "text"),)},
        {"exporters": (Exporter("text", ".txt", "Text.", all=lambda graph: "text"),)},
        {"reporters": (Reporter("count", "A count.", lambda report, **_: 1),)},
        {"commands": (Command("say", "Say it.", size),)},
    ],
)
def test_functions_that_return_something_else(more: dict[str, Any]) -> None:
    case = type("Case", (PluginConformance,), {"plugin": Plugin(name="one", api=API, **more)})()
    with pytest.raises((AssertionError, UsageError)):
        case.test_functions_return_what_is_expected()


@pytest.mark.parametrize("more", [{"api": API + 1}, {"kinds": (Kind("Chip", "chipses", Link),)}])
def test_plugin_that_does_not_fit(more: dict[str, Any]) -> None:
    assert "test_fits_beside_trnspec" in failing(Plugin(**{"name": "one", "api": API, **more}))


def test_plugin_whose_catalog_is_wrong(tmp_path: Path) -> None:
    (tmp_path / "wire.yaml").write_text(WRONG.replace("example", "wire"))

    assert {INSTALLED, "test_catalogs_have_no_findings"} == failing(Plugin(name="one", api=API, catalogs=(tmp_path,)))


def test_report_follows_settings() -> None:
    assert {("TRN106", 4)} == report(WRONG + "\n", registry=KNOWN).lines()
    assert set() == report(WRONG + "\n", registry=KNOWN, settings=Settings(ignore=("TRN1",))).lines()


def test_check_rules_of_trnspec() -> None:
    check_rule(names.name_file_mismatch)
