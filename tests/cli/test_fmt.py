"""``trnspec fmt``."""

import io
import sys
from types import SimpleNamespace

import pytest

from tests.support.programs import Here

UNTIDY = "# chip\r\nkind: Link\r\napi_version: trnspec/v1\r\nspec:   {connects: chips} # s\r\nmetadata: {title: T,name: x}\r\n"
TIDY = "# chip\r\napi_version: trnspec/v1\r\nkind: Link\r\nmetadata: {name: x, title: T}\r\nspec: {connects: chips}  # s\r\n"


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "x.yaml").write_bytes(b"\xef\xbb\xbf" + UNTIDY.encode())
    (tmp_path / "links" / "schema.yml").write_text("version:   2\n")
    return Here(tmp_path, monkeypatch, capsys)


def test_writes_and_keeps_mode_line_ends_and_mark(here) -> None:
    file = here.folder / "links" / "x.yaml"
    file.chmod(0o640)

    done = here("fmt", "links")

    assert (0, "reformatted links/x.yaml\n") == (done.status, done.out)
    assert b"\xef\xbb\xbf" + TIDY.encode() == file.read_bytes()
    assert 0o640 == file.stat().st_mode & 0o777
    again = here("fmt", ".")

    assert (0, "") == (again.status, again.out)
    assert "version:   2\n" == (here.folder / "links" / "schema.yml").read_text()


def test_a_link_keeps_its_target(here) -> None:
    (here.folder / "link.yaml").symlink_to("links/x.yaml")

    assert 0 == here("fmt", "link.yaml").status
    assert (here.folder / "link.yaml").is_symlink()
    assert TIDY.encode() in (here.folder / "links" / "x.yaml").read_bytes()


@pytest.mark.parametrize("option", ["--check", "--diff"])
def test_without_writing(here, option) -> None:
    file = here.folder / "links" / "x.yaml"
    before = file.read_bytes()
    done = here("fmt", option, "links", "links/x.yaml")

    assert 1 == done.status
    assert before == file.read_bytes()
    expected = "+metadata: {name: x, title: T}\r\n" if option == "--diff" else "would reformat links/x.yaml\n"

    assert 1 == done.out.count(expected)


def test_a_file_with_errors_is_not_changed(here) -> None:
    bad = here.folder / "links" / "bad.yaml"
    bad.write_text("api_version: trnspec/v1\nkind: [Link\n")
    done = here("fmt", "links")

    assert 1 == done.status
    assert done.err.startswith("links/bad.yaml:2:7: error TRN004: ")
    assert "reformatted links/x.yaml\n" == done.out
    assert "api_version: trnspec/v1\nkind: [Link\n" == bad.read_text()


def test_standard_input(here, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(UNTIDY.encode())))
    done = here("fmt", "-")

    assert (0, TIDY.replace("\r\n", "\n")) == (done.status, done.out)
    assert 2 == here("fmt", "--check", "-").status
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"kind: [Link\n")))
    assert (1, "") == (here("fmt", "-").status, here("fmt", "-").out)
