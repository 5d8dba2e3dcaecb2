"""``trnspec explain``: the manual page of every code."""

from __future__ import annotations

import csv
import io
import json
import subprocess

import pytest
from running import ROOT, Here, apart, command, environment

from trnspec.api import registry

KNOWN = registry()


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    monkeypatch.delenv("COLUMNS", raising=False)
    return Here(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("code", sorted(KNOWN.codes))
def test_page_of_a_code(here, code) -> None:
    """Id, name, severity, then the explanation: as written in Markdown, wrapped in text."""
    result = here("explain", code)
    written = here("explain", code, "--format", "markdown")
    known = KNOWN.codes[code]

    assert (result.status, result.err) == (0, "")
    assert f"# {code} {known.name} ({known.severity.label})\n\n{known.doc.strip()}\n" == written.out
    assert result.out.split() == written.out.removeprefix("# ").split()


def test_text_is_wrapped_and_code_is_not(here) -> None:
    lines = here("explain", "TRN402").out.splitlines()
    fences = [n for n, line in enumerate(lines) if "```" in line]
    prose = [line for n, line in enumerate(lines) if not fences[0] <= n <= fences[-1]]

    assert max(map(len, prose)) <= 80
    assert "    metadata: {name: example, title: Example, source: neuron-trn1-2026-08}" in lines


def test_json(here) -> None:
    known = KNOWN.codes["TRN402"]
    data = json.loads(here("explain", "TRN402", "--format", "json").out)

    assert {"version": 1, "id": "TRN402", "name": known.name, "severity": "error", "doc": known.doc.strip()} == data
    listed = json.loads(here("explain", "--format", "json").out)["rows"]
    assert sorted(KNOWN.codes) == [row["code"] for row in listed]


@pytest.mark.parametrize("name", ["trn402", "aggregate-mismatch"])
def test_by_small_letters_and_by_name(here, name) -> None:
    assert here("explain", name).out.startswith("TRN402 aggregate-mismatch (error)\n")


def test_list(here) -> None:
    """One line for each code, in order."""
    rows = list(csv.reader(io.StringIO(here("explain", "--format", "csv").out)))

    assert ["code", "severity", "name", "summary"] == rows[0]
    assert [[c.id, c.severity.label, c.name, c.summary] for c in KNOWN.codes.values()] == rows[1:]
    assert max(map(len, here("explain").out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("code", "hint"), [("TRN40", "did you mean 'TRN40"), ("agregate-mismatch", "'aggregate-mismatch'")]
)
def test_unknown_code(here, code, hint) -> None:
    result = here("explain", code)

    assert (result.status, result.out) == (2, "")
    assert hint in result.err


def test_reader_that_goes() -> None:
    """``trnspec explain | head -1``."""
    done = subprocess.run(
        f"{' '.join(command('explain'))} | head -1",
        shell=True,
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        check=True,
    )

    assert (done.stdout.split()[0], done.stderr) == (b"code", b"")


def test_narrow_encoding(tmp_path) -> None:
    """Every page can be written in ASCII, one way or another."""
    result = apart("explain", "TRN009", cwd=tmp_path, PYTHONIOENCODING="ascii")

    assert (result.status, result.err) == (0, "")
    assert result.out.isascii()
