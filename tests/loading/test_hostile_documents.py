"""Hostile documents: each gives a finding at its line, and every command goes on with the rest."""

import string
from pathlib import Path

import pytest

from tests.support.rules import KNOWN, source
from trnspec.api import validate
from trnspec.checks.runner import check
from trnspec.loading.pipeline import load_document
from trnspec.model.annotations import MOST_PATHS
from trnspec.model.reflection import spread
from trnspec.yaml import read_text

HEAD = "api_version: trnspec/v1\nkind: Chip\nmetadata:\n  name: part\n  title: T\n  source: page\n"
SPEC = "spec: {peak: {dense: {bf16: 190 TFLOPS}}, memory: {capacity: 32 GiB}}\n"
CLAIM = "claims:\n  - at: %s\n    says: 32 GiB\n    source: page\n"


def found(text: str) -> set[tuple[str, int]]:
    """The findings in a document, as (code, line); the source ``page`` exists."""
    readings = [load_document(read_text(text, "part.yaml"), KNOWN)]
    readings += [load_document(read_text(source("page", "2024-01-01"), "page.yaml"), KNOWN, target=False)]
    return check(readings, KNOWN).report.lines()


@pytest.mark.parametrize(
    "at",
    [
        "spec" + ".{a,b}" * 16, "spec" + ".{a,b}" * 33,
        "spec.peak.dense.{" + ",".join(f"a{n}" for n in range(MOST_PATHS + 1)) + "}", "spec." + "a" * 200,
        '"spec.{{a}}"', '"spec.memory.{capacity"', '"spec.memory.capacity}"', '"spec.{memory.capacity}"',
        '"spec.memory.{}"', "spec.memory.capacity,bandwidth",
    ],
)  # fmt: skip
def test_paths(at) -> None:
    """A text that names too many paths, or whose braces do not match, is one error, also in waivers and overrides."""
    waiver = f"  allow:\n    - at: {at}\n      code: TRN401\n      reason: x\n"
    overrides = f"  overrides:\n    - {at}\n"

    assert found(HEAD + SPEC + CLAIM % at) == {("TRN105", 9)}
    assert found(HEAD + waiver + SPEC) >= {("TRN105", 8)}
    assert found(HEAD + overrides + SPEC) == {("TRN105", 8)}


def test_as_many_paths_as_are_allowed() -> None:
    at = "spec.{" + ",".join((string.ascii_letters + string.digits + "-_")[:MOST_PATHS]) + "}"

    assert len(spread(at)) == MOST_PATHS
    assert found(HEAD + SPEC + CLAIM % at) == {("TRN302", 9)}  # one finding for all of them


@pytest.mark.parametrize(
    ("lines", "findings"),
    [
        (['  note: "a\\e[31mb"'], {("TRN003", 7)}),
        (['  note: "a\\x9bb"', '  where: "\\u202e"'], {("TRN003", 7), ("TRN003", 8)}),
        (['  note: "a\\rb"', '  "\\x7f": 1'], {("TRN003", 7), ("TRN003", 8)}),
        (["  note: a\u202eb"], {("TRN003", 7)}),
        (['  note: "tab \\t and line \\n"', "  where: |", "    two", "    lines"], set()),
        (['  note: "an umlaut \\u00e4"'], set()),
    ],
)
def test_control_characters(lines, findings) -> None:
    """They are errors as escapes too, and reach no node; tabs and line ends are text."""
    text = HEAD + "".join(f"{line}\n" for line in lines) + SPEC

    assert found(text) == findings
    node = load_document(read_text(text), KNOWN).node
    assert node is not None
    assert (node.metadata.note is None) == bool(findings)


def test_an_invalid_waiver_accepts_nothing() -> None:
    """A waiver without its path would accept every finding of its code; the others keep their positions."""
    allow = "  allow:\n    - {at: spec, code: TRN601, reason: x}\n    - {at: spec.sbuf, code: TRN601, reason: x}\n"
    spec = SPEC.replace("GiB", "GB")

    assert found(HEAD + allow + spec) == {("TRN105", 8), ("TRN304", 9), ("TRN601", 10)}
    assert found(HEAD + allow.replace("at: spec,", "at: spec.memory.capacity,") + spec) == {("TRN304", 9)}


def test_errors_of_reading_are_not_waived() -> None:
    """A value that is not read is not in the catalog, whatever the reason."""
    allow = "  allow: [{code: TRN111, reason: x}, {code: TRN050, reason: x}]\n"

    assert found(HEAD + allow + SPEC.replace("}}\n", "}, sbuf: 24 MiBB, dies: 2.0}\n")) == {
        ("TRN111", 8), ("TRN304", 7), ("TRN103", 8),
    }  # fmt: skip


@pytest.mark.parametrize("invalid", ["verdict: Rejected", "where: ''", "reason: 5, verdict: rejected"])
def test_an_invalid_claim_contradicts_nothing(invalid) -> None:
    claim = f"claims:\n  - {{at: spec.memory.capacity, says: 33 GiB, source: page, {invalid}}}\n"

    assert len(found(HEAD + SPEC + claim)) == 1


@pytest.mark.parametrize(
    ("lines", "findings"),
    [
        ("metadata: {name: part, title: T, source: Page}\n" + SPEC, {("TRN105", 3)}),
        ("metadata: {name: part, title: T, source: !!str page}\n" + SPEC, {("TRN008", 3)}),
        ("metadata: {name: part, title: T}\nspec: {memory: {capacity: {value: 32 GiB, source: 5}}}\n", {("TRN103", 4)}),
    ],
)
def test_an_invalid_source_is_not_a_missing_one(lines, findings) -> None:
    assert found(HEAD.partition("metadata")[0] + lines) == findings


WRONG = """api_version: trnspec/v1
kind: Server
metadata: {name: odd, title: T, source: llama-3.1-8b}
spec:
  chips: {chip: neuroncore-v3, count: 16}
  fabric: {link: trainium2, topology: {shape: torus, dimensions: [4, 4]}}
  network: {link: trainium2, bandwidth: {value: 3.2 Tbps, source: neuronlink-v3}}
claims:
  - {at: spec.network.bandwidth, says: 3 Tbps, source: trainium2, verdict: unresolved, reason: x}
"""

COMMANDS = [
    "show odd", "show odd --format json", "show odd --reasons", "compare odd trn2.48xlarge", "tree odd", "export json odd",
    "export svg odd", "export dot odd", "export astra-sim odd", "export calculon odd", "export llm-analysis odd", "source",
    "query server", "list servers", "audit odd", "eval roofline --on odd --matmul 64x64x64",
    "eval collective --kind all-reduce --on odd --size 1GB", "show odd --as-of 2024-12", "edition freeze 2099.01",
    "check odd network.bandwidth 3Tbps",
]  # fmt: skip


@pytest.mark.slow
def test_no_command_breaks_on_references_to_other_kinds(here, monkeypatch) -> None:
    """Every reference of the document names a document of another kind."""
    (here.folder / "mine").mkdir()
    (here.folder / "mine" / "odd.yaml").write_text(WRONG)
    monkeypatch.setenv("TRNSPEC_PLUGINS", "none")
    errors = {(f["code"], f["line"]) for f in here("validate", "mine", "--format", "json").data["diagnostics"]}

    assert errors == {("TRN202", 3), ("TRN202", 5), ("TRN202", 6), ("TRN202", 7), ("TRN202", 9)}
    for command in COMMANDS:
        result = here(*command.split(), "--catalog", "mine")
        assert result.status in (0, 1, 2), command
        assert "Error:" not in result.err, (command, result.err)
        assert "broke" not in result.err, (command, result.err)


def test_names_of_shipped_documents_of_another_kind(tmp_path) -> None:
    """A chip takes the name of a shipped server, and another the name of a chip as an alias: one finding each."""
    text = HEAD.replace("page", "neuron-trn1-2026-08") + SPEC
    (tmp_path / "chip.yaml").write_text(text.replace("part", "trn3-gen1-server"))
    (tmp_path / "other.yaml").write_text(text.replace("part", "other\n  aliases: [trainium2]"))
    found = [
        (d.code, d.where.path, Path(d.see[0].file).stem)
        for d in validate([str(tmp_path)]).report.diagnostics
        if d.code.startswith("TRN2") and d.code != "TRN205"
    ]

    assert found == [
        ("TRN204", ("metadata", "name"), "trn3-gen1-server"),
        ("TRN204", ("metadata", "aliases", 0), "trainium2"),
    ]


def test_many_unknown_keys(tmp_path) -> None:
    """The first hundred are listed; the search for similar names takes no quadratic time."""
    keys = ", ".join(f"k{i}: 1" for i in range(3_000))
    (tmp_path / "part.yaml").write_text(HEAD + SPEC.replace("{peak", "{" + keys + ", peak"))
    found = validate([str(tmp_path / "part.yaml")]).report.diagnostics
    unknown = [d.message for d in found if d.code == "TRN101"]

    assert unknown[:2] == ["unknown key 'k0' in spec", "unknown key 'k1' in spec"]
    assert unknown[100:] == ["at least 900 more problems of this kind follow from here"]


def test_documents_with_references_to_other_kinds_are_shown(here, monkeypatch) -> None:
    (here.folder / "odd.yaml").write_text(WRONG)
    monkeypatch.setenv("TRNSPEC_PLUGINS", "none")

    assert 0 == here("show", "odd", "--catalog", ".").status
    assert {} == here("export", "json", "odd", "--catalog", ".").data["sources"]
