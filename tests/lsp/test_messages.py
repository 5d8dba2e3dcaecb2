"""Diagnostics of the protocol: their text and the link to the explanation."""

import pytest

from tests.lsp.conftest import CHIP, session
from trnspec.diagnostics import Diagnostic, Location, Severity
from trnspec.lsp.messages import by_file
from trnspec.lsp.positions import TextLines


@pytest.mark.parametrize(
    ("code", "hint", "message", "page", "waived"),
    [
        ("TRN402", "", "it differs", None, True),
        ("TRN106", "write 3", "it differs\nhint: write 3", "TRN106.md", False),
        ("TRN304", "", "it differs", "TRN304.md", False),
        ("ACME01", "", "it differs", None, False),
    ],
)
def test_a_hint_is_part_of_the_message(code, hint, message, page, waived) -> None:
    finding = Diagnostic(code, Severity.ERROR, "it differs", Location(CHIP), hint=hint)
    (found,) = by_file([finding], [CHIP], lambda _: TextLines.of("a: 1"), session().known.codes)[CHIP]

    link = found.code_description
    assert (message, page) == (found.message, None if link is None else link.href.rpartition("/")[2])
    assert waived == found.data["rule"]


def test_a_finding_elsewhere_is_also_where_an_open_document_is_named() -> None:
    here, other, third = (Location(file) for file in (CHIP, "/other.yaml", "/third.yaml"))
    found = [Diagnostic("TRN402", Severity.ERROR, "it differs", other, see=see) for see in ((third, here), (third,))]
    shown = by_file(found, [CHIP], lambda _: TextLines.of("a: 1"), session().known.codes)

    assert {"/other.yaml": 2, CHIP: 1} == {file: len(messages) for file, messages in shown.items()}
    assert "file:///other.yaml" == shown[CHIP][0].related_information[0].location.uri
