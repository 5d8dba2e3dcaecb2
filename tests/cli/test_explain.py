"""``trnspec explain``: the manual page of every code."""

from __future__ import annotations

import subprocess

import pytest
from running import ROOT, Here, apart, command, environment

from trnspec.api import registry

KNOWN = registry()


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    return Here(tmp_path, monkeypatch, capsys)


@pytest.mark.parametrize("code", sorted(KNOWN.codes))
def test_page_of_a_code(here, code) -> None:
    """Id, name, severity, then the explanation as it is written."""
    result = here("explain", code)
    known = KNOWN.codes[code]

    assert (result.status, result.err) == (0, "")
    assert f"{code} {known.name} ({known.severity.label})\n\n{known.doc.strip()}\n" == result.out


@pytest.mark.parametrize("name", ["trn402", "aggregate-mismatch"])
def test_by_small_letters_and_by_name(here, name) -> None:
    assert here("explain", name).out.startswith("TRN402 aggregate-mismatch (error)\n")


def test_list(here) -> None:
    """One line for each code, in order."""
    lines = here("explain").out.splitlines()

    assert sorted(KNOWN.codes) == [line.split()[0] for line in lines]
    assert all(line.endswith(c.summary) for line, c in zip(lines, KNOWN.codes.values(), strict=True))


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

    assert (done.stdout.split()[0], done.stderr) == (b"TRN001", b"")


def test_narrow_encoding(tmp_path) -> None:
    """Every page can be written in ASCII, one way or another."""
    result = apart("explain", "TRN009", cwd=tmp_path, PYTHONIOENCODING="ascii")

    assert (result.status, result.err) == (0, "")
    assert result.out.isascii()
