"""trnspec.checks.fixes: edits are applied to targets only, until there are none."""

from pathlib import Path

import pytest

from tests.support.rules import KNOWN
from trnspec.checks import fixes
from trnspec.checks.fixes import Fixed, fix
from trnspec.loading.pipeline import load_document
from trnspec.loading.settings import Settings
from trnspec.yaml import read_text

HEAD = "api_version: trnspec/v1\nkind: Chip\nmetadata: {{name: {0}, title: A{1}}}\nspec: {{{2}}}\n"
MEMORY = "memory: {capacity: 8 GiB}"


def fixed(texts: dict[str, str], targets: tuple[str, ...] = ("one", "two")) -> Fixed:
    """The documents after the edits; each is given by what follows its title, and its spec."""
    readings = [
        load_document(read_text(text, f"{name}.yaml"), KNOWN, target=name in targets) for name, text in texts.items()
    ]
    return fix(readings, KNOWN, Settings(select=("TRN1", "TRN304")))


def chip(name: str, spec: str, more: str = "") -> str:
    return HEAD.format(name, more, spec)


def test_every_target_is_corrected() -> None:
    """And no other document; a correction may reveal another."""
    wrong, nested = "memory: {capcity: 8 GiB}", "memory: {capcity: 8 GIB}"
    found = fixed({"one": chip("one", wrong), "two": chip("two", nested), "other": chip("other", wrong)})

    assert found.texts == {"one.yaml": chip("one", MEMORY), "two.yaml": chip("two", MEMORY)}
    assert sorted((d.where.file, d.code) for d in found.applied) == [
        ("one.yaml", "TRN102"), ("two.yaml", "TRN102"), ("two.yaml", "TRN111"),
    ]  # fmt: skip
    assert not found.checked.report.diagnostics


def test_no_fixes_for_a_valid_catalog() -> None:
    found = fixed({"one": chip("one", MEMORY)})

    assert (found.texts, found.applied, found.stubs) == ({}, (), {})


def test_rounds_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    """The report is that of the last texts."""
    monkeypatch.setattr(fixes, "_ROUNDS", 1)
    found = fixed({"one": chip("one", "memory: {capcity: 8 GIB}")})

    assert found.texts == {"one.yaml": chip("one", "memory: {capacity: 8 GIB}")}
    assert {d.code for d in found.checked.report.diagnostics} == {"TRN111"}


WAIVER = ", allow: [{code: TRN402, reason: old}]"


@pytest.mark.parametrize(
    ("spec", "corrected"),
    [(MEMORY, True), ("memory: {capacity: 8 parsec}", False), ("memory: {capacity: 8 GiB, wings: 2}", False)],
)
def test_unused_waiver_is_removed_without_errors(spec: str, *, corrected: bool) -> None:
    found = fixed({"one": chip("one", spec, WAIVER)})

    assert [d.code for d in found.applied] == ["TRN304"] * corrected
    assert found.texts == ({"one.yaml": chip("one", spec)} if corrected else {})


def test_stubs_of_missing_sources(tmp_path: Path) -> None:
    """Of each source once, near the documents that were checked."""
    (tmp_path / "chips").mkdir()
    texts = {
        name: f"api_version: trnspec/v1\nkind: Chip\nmetadata: {{name: {name}, title: A, source: {source}}}\n"
        f"spec: {{{MEMORY}}}\n"
        for name, source in (("one", "acme-2026-10"), ("two", "acme-2026-10"), ("three", "other-2026-10"))
    }
    readings = [
        load_document(read_text(text, str(tmp_path / "chips" / f"{name}.yaml")), KNOWN, target=name != "three")
        for name, text in texts.items()
    ]
    found = fix(readings, KNOWN, Settings())

    assert list(found.stubs) == [str(tmp_path / "sources" / "acme-2026-10.yaml")]
    assert not [d for d in found.checked.report.diagnostics if "acme-2026-10" in d.message and d.code == "TRN201"]


def test_documents_stay_where_git_cannot_restore_them(tmp_path: Path) -> None:
    file = tmp_path / "box-one.yaml"
    text = "api_version: trnspec/v1\nkind: Price\nmetadata: {{name: box-{0}, title: 'box, {0}', source: s}}\n"
    text += "spec: {{server: box, type: {0}, hourly: {{us-east-2: 1 USD/h}}}}\n"
    readings = [
        load_document(read_text(text.format(n), str(file.with_stem(n))), KNOWN, target=True)
        for n in ("spot", "reserved")
    ]
    lists = [fix(readings, KNOWN, Settings(), *known).lists for known in ((), (bool,))]
    assert [[], [str(file.with_stem("box-prices"))]] == [[*each] for each in lists]
