"""trnspec.checks.baseline: which findings are accepted, and the file that holds them."""

import json
from collections import Counter
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.support.rules import KNOWN
from tests.support.tables import tables
from trnspec.checks import baseline
from trnspec.checks.baseline import Baseline, accepting, read, without
from trnspec.checks.runner import Checked, check
from trnspec.errors import UsageError
from trnspec.loading.pipeline import load_document
from trnspec.loading.settings import Settings
from trnspec.yaml import read_text

HEAD = "api_version: trnspec/v1\nkind: Chip\nmetadata: {{name: {0}, title: {0}}}\nspec: {{memory: {{capacity: 8 GiB}}, {1}}}\n"
TEXT = st.text('aµ中"\\ \n', max_size=6)


def checked(folder: Path, *, only: tuple[str, ...] = (), **specs: str) -> Checked:
    """The findings in chips, each with some more of its spec."""
    readings = [
        load_document(
            read_text(HEAD.format(name, spec), str(folder / f"{name}.yaml")), KNOWN, target=not only or name in only
        )
        for name, spec in specs.items()
    ]
    return check(readings, KNOWN, Settings(select=("TRN1",)))


def found(run: Checked) -> list[tuple[str, str]]:
    return [(Path(d.where.file).stem, d.code) for d in run.report.diagnostics]


@given(st.dictionaries(st.tuples(TEXT, TEXT, TEXT), st.integers(1, 3), max_size=5))
def test_baseline_round_trip(findings: dict[tuple[str, str, str], int]) -> None:
    """One finding on a line, in order, with a count where it is not 1; in plain letters."""
    one = Baseline(Path("any.json"), Counter(findings))
    text = one.text()
    data = json.loads(text)

    assert data["version"] == 1
    assert [(r["code"], r["document"], r["path"], r.get("count", 1)) for r in data["findings"]] == [
        (*key, findings[key]) for key in sorted(findings)
    ]
    assert all(("count" in row) is (row.get("count", 1) > 1) for row in data["findings"])
    assert text.count("\n  {") == len(findings)
    assert all(letter in text for key in findings for part in key for letter in part if letter.isalpha())


def test_a_file(tmp_path: Path) -> None:
    file = tmp_path / "baseline.json"
    one = Baseline(file, Counter({("TRN101", "Chip/µ", "spec.a"): 2, ("TRN101", "Chip/b", ""): 1}))
    file.write_text(one.text(), encoding="utf-8")

    assert read(file) == one


@pytest.mark.parametrize(("text", "message"), tables(__file__)["a_file_that_is_not_one"])
def test_a_file_that_is_not_one(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "baseline.json"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read(file)
    assert str(caught.value).startswith(str(file))
    assert message in str(caught.value)


def test_the_size_of_a_file_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "baseline.json"
    text = Baseline(file, Counter()).text()
    file.write_text(text, encoding="utf-8")
    monkeypatch.setattr(baseline, "_MOST_BYTES", len(text))
    assert read(file).findings == Counter()
    monkeypatch.setattr(baseline, "_MOST_BYTES", len(text) - 1)
    with pytest.raises(UsageError, match=f"it has more than {len(text) - 1:,} bytes"):
        read(file)


def test_accepted_findings_are_left_out(tmp_path: Path) -> None:
    """Of each kind as many as were accepted; others are new, and those that no longer occur are listed."""
    file = tmp_path / "baseline.json"
    before = accepting(checked(tmp_path, one="wings: 2, dma: {tails: 3}", two="wings: 3"), file)
    kept, idle = without(checked(tmp_path, one="wings: 4, legs: 1", two="power: 1 parsec"), before, Settings())

    assert before.findings == Counter(
        {("TRN101", "Chip/one", "spec.wings"): 1, ("TRN101", "Chip/one", "spec.dma.tails"): 1,
         ("TRN101", "Chip/two", "spec.wings"): 1}
    )  # fmt: skip
    assert (found(kept), kept.report.accepted) == ([("one", "TRN101"), ("two", "TRN111")], 1)
    assert idle == ["TRN101 of Chip/one at spec.dma.tails", "TRN101 of Chip/two at spec.wings"]


@pytest.mark.parametrize(
    ("accepted", "kept", "idle"), [(0, 2, []), (1, 1, []), (2, 0, []), (3, 0, [1]), (4, 0, [2]), (5, 0, [3])]
)
def test_findings_are_counted(tmp_path: Path, accepted: int, kept: int, idle: list[int]) -> None:
    file = tmp_path / "baseline.json"
    run = checked(tmp_path, one="wings: 2")
    twice = Checked(run.graph, type(run.report)(run.report.diagnostics * 2), run.texts)
    rest, lines = without(twice, Baseline(file, Counter({("TRN101", "Chip/one", "spec.wings"): accepted})), Settings())

    assert (len(rest.report.diagnostics), rest.report.accepted) == (kept, 2 - kept)
    assert lines == ["TRN101 of Chip/one at spec.wings" + (f", {n} times" if n > 1 else "") for n in idle]


def test_consequences_of_an_accepted_error_are_new(tmp_path: Path) -> None:
    """An accepted error hides nothing; a baseline has what follows from its findings."""
    alone = checked(tmp_path, one="wings: 2")
    run = evolve(alone, consequences=checked(tmp_path, two="wings: 3").report.diagnostics)
    file = tmp_path / "baseline.json"

    assert found(without(run, accepting(alone, file), Settings())[0]) == [("two", "TRN101")]
    assert found(without(run, accepting(run, file), Settings())[0]) == []


def test_unchecked_documents_are_not_listed(tmp_path: Path) -> None:
    """Documents that only others use, and codes that settings hide; a path without a finding is left out."""
    accepted = {("TRN101", "Chip/one", "spec.a"): 1, ("TRN101", "Chip/two", "spec.a"): 1, ("TRN110", "Chip/two", ""): 1}
    one = Baseline(tmp_path / "baseline.json", Counter(accepted))
    run = checked(tmp_path, only=("two",), one="dies: 1", two="dies: 1")

    assert without(run, one, Settings())[1] == ["TRN101 of Chip/two at spec.a", "TRN110 of Chip/two"]
    assert without(run, one, Settings(ignore=("TRN101",)))[1] == ["TRN110 of Chip/two"]
