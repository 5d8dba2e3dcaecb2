"""A check after an edit of documents without findings: the same result with less work."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trnspec.api import registry
from trnspec.checks import runner
from trnspec.loading.files import documents_in, shipped
from trnspec.loading.pipeline import Reading, read
from trnspec.yaml import read_file, read_text

KINDS = ("chips", "cores", "links", "servers", "ultraservers", "clusters", "sources", "prices", "models", "power")


@pytest.fixture(scope="module")
def readings() -> dict[Path, Reading]:
    """The shipped catalog without measurements and calibrations, which is spotless."""
    files = [file for kind in KINDS for file in documents_in(shipped() / kind)]
    return {file: read(read_file(file), registry()) for file in files}


def again(readings: dict[Path, Reading], texts: dict[Path, str]) -> tuple[runner.Checked | None, list[Reading]]:
    """The result after some files have other texts; ``None`` if everything has to be checked. And the documents."""
    known = registry()
    new = {file: read(read_text(text, str(file)), known) for file, text in texts.items()}
    names = {file: readings[file].node for file in texts}
    edited = {str(file): (node.name, *node.aliases) for file, node in names.items() if node is not None}
    every = list((readings | new).values())
    return runner._still_spotless(every, known, edited), every


@pytest.mark.slow
def test_the_catalog_is_spotless(readings: dict[Path, Reading]) -> None:
    assert runner.check(readings.values(), registry()).is_spotless


@pytest.mark.parametrize("name", ["chips/trainium2", "sources/neuron-trn2-2024-12", "prices/trn1.2xlarge-on-demand"])
def test_another_comment_changes_nothing(readings: dict[Path, Reading], name: str) -> None:
    file = shipped() / f"{name}.yaml"
    checked, every = again(readings, {file: file.read_text(encoding="utf-8") + "# another\n"})
    assert checked is not None
    assert checked.is_spotless
    assert (len(every), len(every)) == (checked.report.files, sum(checked.report.checked.values()))
    assert checked.report.diagnostics == ()


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("chips/trainium2", "bf16: 667 TFLOPS", "bf16: 677 TFLOPS"),  # a figure
        ("chips/trainium2", "name: trainium2", "name: trainium-2"),  # the name
        ("chips/trainium2", "kind: Chip", "kind: Core"),
        ("cores/neuroncore-v3", "spec:", "sepc:"),
        ("sources/neuron-trn2-2024-12", "as_of: 2024-12", "as_of: 2034-12"),
        ("prices/trn1.2xlarge-on-demand", "server: trn1.2xlarge", "server: trn1.32xlarge"),
    ],
)
def test_what_has_findings_is_checked_as_a_whole(readings: dict[Path, Reading], name: str, old: str, new: str) -> None:
    file = shipped() / f"{name}.yaml"
    text = file.read_text(encoding="utf-8")
    assert old in text
    assert again(readings, {file: text.replace(old, new, 1)})[0] is None


def test_documents_of_plugins_and_waivers_are_checked_as_a_whole(readings: dict[Path, Reading]) -> None:
    file = shipped() / "chips" / "trainium2.yaml"
    text = file.read_text(encoding="utf-8")
    allow = "  allow: [{code: TRN601, at: spec.memory.capacity, reason: It is so.}]\nspec:\n"
    assert again(readings, {file: text.replace("spec:\n", allow, 1)})[0] is None
    foreign = readings | {file: evolve(readings[file], plugin="acme")}
    edited = {str(file): ("trainium2",)}
    assert runner._still_spotless(list(foreign.values()), registry(), edited) is None
    assert runner._still_spotless(list(readings.values()), registry(), {"table.csv": ()}) is None


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_it_is_spotless_only_if_a_full_run_is(readings: dict[Path, Reading], seed: int) -> None:
    """After edits of digits, references and verdicts of one to three documents."""
    draw = random.Random(seed)
    texts = {}
    for file in draw.sample(list(readings), draw.randint(1, 3)):
        text = file.read_text(encoding="utf-8")
        kind = draw.choice(("digit", "digit", "reference", "verdict", "line"))
        if kind == "digit" and (places := [m.start() for m in re.finditer(r"(?<=[ {:.,])[1-9](?=[\d,.]* )", text)]):
            at = draw.choice(places)
            text = f"{text[:at]}{draw.randint(1, 9)}{text[at + 1 :]}"
        elif kind == "reference":
            other = draw.choice(list(readings)).stem
            text = re.sub(r"(source|chip|server|link|core|model): [\w.-]+", f"\\1: {other}", text, count=1)
        elif kind == "verdict":
            text = re.sub(r"verdict: \w+", f"verdict: {draw.choice(('agrees', 'rejected', 'rounded'))}", text, count=1)
        elif kind == "line" and len(lines := text.splitlines(keepends=True)) > 4:
            del lines[draw.randrange(3, len(lines))]
            text = "".join(lines)
        texts[file] = text
    quick, every = again(readings, texts)
    if quick is not None:
        full = runner.check(every, registry())
        assert full.is_spotless
        assert quick.report == full.report
