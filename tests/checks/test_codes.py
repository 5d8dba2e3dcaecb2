"""trnspec.checks.codes: every code has an explanation that is true, and every code is emitted."""

import json
import re
from pathlib import Path
from pathlib import Path as FilePath
from typing import Any

import pytest
from attrs import frozen
from click.testing import CliRunner

import trnspec
from tests.support.programs import written
from trnspec.api import registry, validate
from trnspec.builtin import plugin as builtin
from trnspec.checks.baseline import read
from trnspec.checks.codes import CODES
from trnspec.cli import group
from trnspec.diagnostics import FORMER_IDS, FORMER_NAMES, Code, Severity
from trnspec.loading.settings import Settings
from trnspec.model.annotations import Count
from trnspec.model.link import Link
from trnspec.plugins.api import Finding, Kind, Plugin, Registry, Rule, rule
from trnspec.testing import check_code, diagnose, examples, expected
from trnspec.yaml import ReadingLimits, read_text

PACKAGE = FilePath(trnspec.__file__).parent
CODES_FOLDER = PACKAGE / "checks" / "codes"
KNOWN = registry()
ALL = list(KNOWN.codes.values())
EVERY_CODE = pytest.mark.parametrize("code", ALL, ids=lambda code: code.id)

# Codes that an example in YAML cannot show: bytes that give the code, and bytes that do not.
BYTES: dict[str, tuple[bytes, bytes]] = {
    "TRN002": (b"latency: 15 \xb5s\n", "latency: 15 µs\n".encode()),
    "TRN003": (b"title: AWS\0Trainium\n", b"title: AWS Trainium\n"),
    "TRN012": (b"note: " + b"x" * 2_000_000 + b"\n", b"note: " + b"x" * 60_000 + b"\n"),
    "TRN051": (b"\xef\xbb\xbfapi_version: trnspec/v1\n", b"api_version: trnspec/v1\n"),
    "TRN052": (b"kind: Link\rmetadata: {}\n", b"kind: Link\nmetadata: {}\n"),
    "TRN059": (b"kind: Link\r\nmetadata: {}\n", b"kind: Link\nmetadata: {}\n"),
    "TRN053": (b"spec: {connects: chips}", b"spec: {connects: chips}\n"),
}
DOUBTFUL = [code for code in CODES if code.id.startswith("TRN05")]
# Codes that do not depend on the text of a file, or of one that is not checked.
OTHERS = {"TRN001", "TRN190", "TRN203", "TRN900"}
CABLE = """\
api_version: trnspec/v1
kind: Cable
metadata: {name: example, title: Example}
spec: {metres: 11}
"""
LINK = """\
api_version: trnspec/v1
kind: Link
metadata: {name: example, title: Example}
spec: {connects: chips}
"""


def modules() -> list[FilePath]:
    return sorted(PACKAGE.rglob("*.py"))


def emitted() -> set[str]:
    """The codes that are a string literal of a module outside ``codes``."""
    texts = (file.read_text("utf-8") for file in modules() if file.parent.name != "codes")
    return {code for text in texts for code in re.findall(r'"(TRN\d{3})"', text)}


def shown(code: Code, language: str) -> dict[str, str]:
    """The last block of a language under each heading of an explanation."""
    blocks: dict[str, str] = {}
    for part in re.split(r"^(?=[A-Z][a-z]+:$)", code.doc, flags=re.MULTILINE):
        for block in re.findall(rf"^    ```{language}\n(.*?)^    ```$", part, re.MULTILINE | re.DOTALL):
            blocks[part.split(":", 1)[0]] = re.sub(r"^    ", "", block, flags=re.MULTILINE)
    return blocks


def run(code: Code, heading: str) -> dict[str, Any]:
    """What the Python under a heading defines."""
    names: dict[str, Any] = {"frozen": frozen, "rule": rule, "Finding": Finding, "Link": Link, "Count": Count}
    exec(compile(shown(code, "python")[heading], code.id, "exec", dont_inherit=True), names)
    return names


def with_plugin(**more: Any) -> Registry:
    return Registry.of([builtin, Plugin(name="example", api=1, **more)])


def test_codes_that_are_emitted_are_those_that_are_explained() -> None:
    """No finding without an explanation, and no explanation of what is never found."""
    assert emitted() - set(FORMER_IDS) == set(KNOWN.codes)


def test_codes_that_are_mentioned_are_explained() -> None:
    """No comment, hint or example names a code that does not exist."""
    files = [*modules(), *PACKAGE.rglob("*.md")]
    mentioned = {code for file in files for code in re.findall(r"TRN\d{3}(?!\d)", file.read_text("utf-8"))}
    assert mentioned - set(FORMER_IDS) - set(KNOWN.codes) == set()


def test_codes_are_sorted_and_unique() -> None:
    """Each id occurs once, in order, both here and in the registry."""
    ids = [code.id for code in CODES]
    assert sorted(set(ids)) == ids
    assert sorted(KNOWN.codes) == list(KNOWN.codes)


def test_a_page_is_named_after_its_code() -> None:
    assert {file.stem for file in CODES_FOLDER.glob("*.md")} == {code.id for code in CODES}
    assert [code.id for code in CODES if code.page is None or code.page.stem != code.id] == []


@pytest.mark.slow
@EVERY_CODE
def test_explanation_is_true(code: Code) -> None:
    """Its examples give exactly the findings that they mark."""
    check_code(code, registry=KNOWN)


@EVERY_CODE
def test_explanation_shows_the_code(code: Code) -> None:
    """The example marks the code it explains; where YAML cannot show it, a test below does."""
    marks = {mark for heading, text in examples(code) if heading == "Example" for mark in expected(text)}
    assert (code.id in {c for _, c, _ in marks}) == (code.id not in {*BYTES, *OTHERS})


@EVERY_CODE
def test_explanation_has_its_form(code: Code) -> None:
    """One sentence, then the four sections in order, each with something in it, in lines that fit."""
    headings = [line[:-1] for line in code.doc.splitlines() if re.fullmatch(r"[A-Z][a-z]+:", line)]
    assert headings == ["Why", "Example", "Instead", "Source"]
    assert re.fullmatch(r"[A-Z][^\n]*[^.]\.", code.doc.split("\n\n", 1)[0])
    parts = re.split(r"^[A-Z][a-z]+:\n", code.doc, flags=re.MULTILINE)[1:]
    assert [part for part in parts if not re.match(r"    \S", part)] == []
    assert [part for part in (parts[1], parts[2]) if "    ```" not in part] == []
    assert code.doc.count("```") % 2 == 0
    assert code.doc == code.doc.strip()
    assert max(map(len, code.doc.splitlines())) <= 120


def test_explanation_states_the_limits() -> None:
    """The limits in the explanations are those of the reader."""
    limits, size = ReadingLimits(), KNOWN.codes["TRN012"].doc
    assert [n for n in (limits.bytes, limits.nodes, limits.scalar) if f"{n:,}" not in size] == []
    assert f" {limits.depth} levels" in KNOWN.codes["TRN011"].doc.replace("\n   ", "")


@pytest.mark.parametrize("code", DOUBTFUL, ids=lambda code: code.id)
def test_a_doubtful_text_is_not_an_error_and_keeps_its_data(code: Code) -> None:
    """TRN05x: the text is reported and read."""
    assert code.severity < Severity.ERROR
    wrong = [BYTES[code.id][0]] if code.id in BYTES else [text for h, text in examples(code) if h == "Example"]
    assert [text for text in wrong if read_text(text).data is None] == []


# The codes that an example in YAML cannot show.


@pytest.mark.parametrize("code", BYTES)
def test_bytes_give_the_code(code: str) -> None:
    """The bytes of an explanation give its code and no other; the corrected bytes give none."""
    wrong, right = BYTES[code]
    assert {code} == {problem.code for problem in read_text(wrong).problems}
    assert read_text(right).problems == ()


def test_structure_mismatch() -> None:
    """TRN190: the first class in its explanation is rejected, the second accepted."""
    code = KNOWN.codes["TRN190"]
    wrong, right = run(code, "Example"), run(code, "Instead")
    refusing = with_plugin(kinds=(Kind("Cable", "cables", wrong["Cable"]),))
    ruled = with_plugin(kinds=(Kind("Cable", "cables", right["Cable"]),), rules=(right["long_cable"],))
    assert {("cables/example.yaml", "TRN190", 4)} == diagnose(CABLE, registry=refusing)
    assert {("cables/example.yaml", "XYZ001", 4)} == diagnose(CABLE, registry=ruled)
    assert set() == diagnose(CABLE.replace("11", "10"), registry=refusing)


def test_rule_failed() -> None:
    """TRN900: the first rule in its explanation fails, the second does not and reports the slow link."""
    code = KNOWN.codes["TRN900"]
    wrong: Rule = run(code, "Example")["slow_link"]
    right: Rule = run(code, "Instead")["slow_link"]
    file, slow = "links/example.yaml", LINK.replace("chips}", "chips, latency: {value: 200 us, derived: 2 x 100 us}}")
    assert (file, "TRN900", 0) in diagnose(LINK, registry=with_plugin(rules=(wrong,)))
    assert set() == diagnose(LINK, registry=with_plugin(rules=(right,)))
    assert {(file, "XYZ002", 4)} == diagnose(slow, registry=with_plugin(rules=(right,)))


# trnspec explain.


WRONG = """\
api_version: trnspec/v1
kind: Power
metadata:
  name: trainium2-tdp-example
  title: Example
  source: semianalysis-2024-12
{allow}spec: {{of: trainium2, type: tdp, power: 5 kW}}
"""
ALLOW = "  allow: [{code: TRN815, reason: A test.}]\n"


def codes(folder: Path, allow: str = "", **settings: object) -> list[tuple[str, Severity]]:
    file = written(folder / "power" / "trainium2-tdp-example.yaml", WRONG.format(allow=allow))
    report = validate([file], settings=Settings(**settings)).report
    return [(d.code, d.severity) for d in report.diagnostics if d.code != "TRN806"]


def test_former_ids_and_names_lead_to_codes_that_exist() -> None:
    known = registry()

    assert {known.code(former).id for former in [*FORMER_IDS, *FORMER_NAMES]} <= set(known.codes)
    assert not {*FORMER_IDS, *FORMER_NAMES} & {*known.codes, *(c.name for c in known.codes.values())}
    assert {former: known.code(former).id for former in FORMER_IDS} == FORMER_IDS


def test_former_id_in_waiver_and_settings(tmp_path) -> None:
    found = ("TRN805", Severity.ERROR)

    assert codes(tmp_path) == [found]
    assert codes(tmp_path, ALLOW) == []
    assert codes(tmp_path, ignore=["TRN815"]) == []
    assert codes(tmp_path, select=["TRN815"]) == [found]
    assert codes(tmp_path, severity={"TRN815": Severity.WARNING}) == [("TRN805", Severity.WARNING)]


def test_former_id_in_baseline(tmp_path) -> None:
    file = tmp_path / "baseline.json"
    row = {"code": "TRN815", "document": "Power/x", "path": "spec.power"}
    file.write_text(json.dumps({"version": 1, "findings": [row]}), encoding="utf-8")

    assert list(read(file).findings) == [("TRN805", "Power/x", "spec.power")]


@pytest.mark.parametrize("topic", ["TRN815", "trn815", "implausible-power", "TRN805", "implausible-quote"])
def test_former_id_is_explained(topic) -> None:
    printed = CliRunner().invoke(group, ["explain", topic])

    assert printed.exit_code == 0
    assert printed.output.startswith("TRN805 implausible-quote (error)")
