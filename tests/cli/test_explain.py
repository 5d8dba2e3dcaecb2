"""``trnspec explain``: the manual page of every code, and the fields of every kind."""

import pytest

from tests.support.programs import Site
from trnspec.api import registry
from trnspec.model.reflection import ObjectShape

KNOWN = registry()


@pytest.mark.parametrize("code", sorted(KNOWN.codes))
def test_page_of_a_code(here, code) -> None:
    result = here("explain", code)
    written = here("explain", code, "--format", "markdown")
    known = KNOWN.codes[code]

    assert (result.status, result.err) == (0, "")
    page, _, waiver = written.out.partition("\n\nAccept:\n")
    assert f"# {code} {known.name} ({known.severity.label})\n\n{known.doc.strip()}" == page.rstrip("\n")
    assert (f"- {{code: {code}, at: PATH, reason: REASON}}" in waiver) == any(r.code.id == code for r in KNOWN.rules)
    assert result.out.split() == written.out.removeprefix("# ").split()


def field_lines(page: str) -> dict[str, str]:
    """The type of each field on a page, by its path."""
    heads = (line.strip().partition("  ") for line in page.splitlines() if line.startswith("  ") and line[2] != " ")
    return {path: words for path, _, words in heads}


@pytest.mark.parametrize("kind", sorted(KNOWN.kinds))
def test_fields_of_a_kind(here, kind) -> None:
    done = here("explain", kind)
    fields = ObjectShape(KNOWN.kinds[kind].spec).fields.values()

    assert (0, "") == (done.status, done.err)
    assert [f"{f.name}{'*' if f.required else ''}" for f in fields] == list(field_lines(done.out))
    assert [] == [line for line in done.out.splitlines() if len(line) > 80]


def test_built_in_kinds_are_explained_without_plugins(tmp_path) -> None:
    site = Site(tmp_path / "site")
    site.add("bad", "raise ValueError")

    assert (0, "") == ((done := site.run("explain", "chip.peak")).status, done.err)
