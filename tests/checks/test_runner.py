"""trnspec.checks.runner: what a run counts, and on which documents it reports."""

import pytest

from tests.support.rules import KNOWN
from trnspec.checks.runner import check, document_errors
from trnspec.checks.runner import run as run_rules
from trnspec.loading.pipeline import link, load_document
from trnspec.loading.settings import Settings
from trnspec.model.chip import Chip
from trnspec.plugins.api import rule
from trnspec.yaml import read_text

CHIP = "api_version: trnspec/v1\nkind: Chip\nmetadata: {{name: {0}, title: A{2}}}\nspec: {{memory: {{capacity: 8 GiB}}{1}}}\n"
WAIVER = ", allow: [{code: TRN301, reason: ours}, {code: TRN402, reason: old}]"
SERVER = """\
api_version: trnspec/v1
kind: Server
metadata: {name: box, title: A}
spec: {chips: {chip: two, count: 4}, stated: {memory: {capacity: 48 GiB}}}
"""


def run(texts: dict[str, str], targets: tuple[str, ...], **settings: tuple[str, ...]):
    readings = [
        load_document(read_text(text, f"{name}.yaml"), KNOWN, target=name in targets) for name, text in texts.items()
    ]
    return check(readings, KNOWN, Settings(**settings))


def found(run) -> list[tuple[str, str]]:
    return [(d.where.file, d.code) for d in run.report.diagnostics]


def test_counts_checked_documents() -> None:
    texts = {"one": CHIP.format("one", "", ""), "two": CHIP.format("two", "", ""), "box": SERVER, "broken": "kind: [\n"}
    report = run(texts, ("one", "two", "box", "broken")).report
    part = run(texts, ("one", "box")).report

    assert (report.checked, report.files) == ({"Chip": 2, "Server": 1}, 4)
    assert (part.checked, part.files) == ({"Chip": 1, "Server": 1}, 2)


def test_findings_of_targets_are_reported() -> None:
    """And those that point into them, wherever they are; not those of other documents alone."""
    texts = {"one": CHIP.format("one", "", ""), "two": CHIP.format("two", "", ""), "box": SERVER}
    every = found(run(texts, ("one", "two", "box"), select=("TRN3", "TRN4")))

    assert every == [("box.yaml", "TRN301"), ("box.yaml", "TRN402"), ("one.yaml", "TRN301"), ("two.yaml", "TRN301")]
    assert found(run(texts, ("one",), select=("TRN3", "TRN4"))) == [("one.yaml", "TRN301")]
    # Of two figures that disagree the one of a target is reported, but not if another total agrees with it.
    assert found(run(texts, ("two",), select=("TRN4",))) == [("two.yaml", "TRN402")]
    texts["good"] = SERVER.replace("box", "good").replace("48", "32")
    assert found(run(texts, ("two",), select=("TRN3", "TRN4"))) == [("box.yaml", "TRN402"), ("two.yaml", "TRN301")]
    assert found(run(texts, ("box",), select=("TRN4",))) == [("box.yaml", "TRN402")]


@pytest.mark.parametrize("local", [True, False])
def test_local_rules_run_in_the_scope_of_a_graph_alone(local) -> None:
    graph, _ = link(load_document(read_text(CHIP.format(name, "", ""), name), KNOWN) for name in ("one", "two"))
    seen: list[str] = []

    @rule("ABC001", "seen", over=Chip, local=local)
    def see(node, graph):
        """It notes the documents."""
        seen.append(node.name)
        yield from ()

    assert [] == run_rules([see], graph.focused_on(["one"]))
    assert (["one"] if local else ["one", "two"]) == seen


def test_waivers_are_counted_where_they_accept_something() -> None:
    """An idle one is reported of targets; settings apply to what is waived, too."""
    texts = {"one": CHIP.format("one", "", WAIVER), "two": CHIP.format("two", "", WAIVER)}
    whole, part = (run(texts, targets) for targets in (("one", "two"), ("one",)))

    assert (whole.report.waived, found(whole)) == (2, [("one.yaml", "TRN304"), ("two.yaml", "TRN304")])
    assert (part.report.waived, found(part)) == (1, [("one.yaml", "TRN304")])
    box = SERVER.replace("title: A", "title: A, allow: [3, {code: TRN402, reason: old}]")
    box = box.replace("stated: {memory: {capacity: 48 GiB}}", "availability: {regions: [us-east-2, 7]}")
    idle = [d.where.path for d in run({"box": box}, ("box",)).report.diagnostics if d.code == "TRN304"]
    assert idle == [("metadata", "allow", 1)]  # after the rejected one; the region shifts no waiver
    ignored = run(texts, ("one", "two"), ignore=("TRN301", "TRN304"))
    assert (ignored.report.waived, found(ignored)) == (0, [])


def test_errors_of_documents_in_reading_order() -> None:
    """Each with whether its document is lost, which settings do not hide; not those that follow from another error."""
    texts = {
        "box": SERVER,
        "one": CHIP.format("one", ", cores: {core: box, count: 1}", ""),
        "six": CHIP.format("six", ", cores: {core: seven, count: 1}", ""),
        "two": CHIP.format("two", "", "").partition("{memory")[0] + "3\n",
        "twin": CHIP.format("one", "", ""),
    }
    graph, diagnostics = link(load_document(read_text(text, name), KNOWN) for name, text in texts.items())
    every, lost = (
        [(d.where.file, d.code, lost) for d, lost in document_errors(diagnostics, graph, KNOWN, settings)]
        for settings in (Settings(), Settings(ignore=("TRN1", "TRN2")))
    )
    assert "TRN203" in {d.code for d in diagnostics}
    assert every == [
        ("one", "TRN202", False),
        ("six", "TRN201", False),
        ("twin", "TRN204", True),
        ("two", "TRN103", True),
    ]
    assert lost == every[2:]
