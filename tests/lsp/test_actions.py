"""Code actions: applied to the text, they give what their title says."""

from pathlib import Path

import pytest
from lsprotocol import types

from tests.lsp.conftest import CHIP, edited, lines_of, session, spot_in
from tests.support.tables import tables
from trnspec.lsp import actions
from trnspec.lsp.checking import QuickCheck
from trnspec.lsp.messages import by_file
from trnspec.model.chip import Chip

URI = Path(CHIP).as_uri()


def findings(result: QuickCheck) -> list[types.Diagnostic]:
    return by_file(result.diagnostics, [CHIP], lambda _: lines_of(result), session().known.codes)[CHIP]


def applied(result: QuickCheck, action: types.CodeAction) -> QuickCheck:
    """The document after an edit of one place."""
    (edit,) = action.edit.changes[URI]
    lines = lines_of(result)
    texts = list(lines.texts)
    begin, end = edit.range.start, edit.range.end
    assert begin.line == end.line
    if begin.line == len(texts):
        texts.append("")
    line = texts[begin.line]
    texts[begin.line] = line[: begin.character] + edit.new_text + line[end.character :]
    return edited(Path(CHIP).read_text(encoding="utf-8"), "\n".join(texts))


@pytest.mark.parametrize(("old", "new", "fixed"), tables(__file__)["spelling"])
def test_spelling(old, new, fixed) -> None:
    wrong = edited(old, new)
    (finding,) = findings(wrong)
    action = next(iter(actions.fixes(finding, URI, lines_of(wrong))))
    after = applied(wrong, action)

    assert "quickfix" == action.kind
    assert (wrong.document.text.replace(new, fixed), ()) == (after.document.text, after.diagnostics)


@pytest.mark.parametrize("text", ["", "x" * 61, "a\nb", "a\n" + 60 * "b", "x" * 60])
def test_titles_have_texts_that_fit_on_a_line(text) -> None:
    result = edited()
    data = {"edit": {"text": text, "start": (1, 1), "end": (1, 2)}, "hint": "shorten"}
    begin = types.Position(0, 0)
    finding = types.Diagnostic(types.Range(begin, begin), "wrong", code="TRN101", data=data)
    (action,) = actions.fixes(finding, URI, lines_of(result))
    assert action.title == (f"Replace with {text}" if text == "x" * 60 else "Fix TRN101: shorten")


def test_waiver() -> None:
    wrong = edited("value: 157.3 TFLOPS", "value: 150 TFLOPS")
    (finding,) = findings(wrong)
    (action,) = actions.waiver(finding, URI, wrong.document, lines_of(wrong))
    after = applied(wrong, action)

    assert () == after.diagnostics
    assert [("TRN404", "spec.tensor_peak.dense.fp32")] == [(w.code, w.at) for w in after.node.metadata.allow]
    assert [] == [*actions.waiver(finding, "file:///other.yaml", wrong.document, lines_of(wrong))]
    finding.data["rule"] = False
    assert [] == [*actions.waiver(finding, URI, wrong.document, lines_of(wrong))]


@pytest.mark.parametrize("words", ["bandwidth: 2.9", "2.9 TB/sec"])
def test_claim(words) -> None:
    result = edited()
    spot, _ = spot_in(result, words, 2)
    (action,) = actions.claim(spot, Chip, URI, result.document, lines_of(result))
    data = applied(result, action).document.data

    assert "refactor.rewrite" == action.kind
    assert {"at": "spec.memory.bandwidth", "says": None, "source": None, "where": None} == data["claims"][0]
    assert len(result.document.data["claims"]) + 1 == len(data["claims"])


def test_first_claim() -> None:
    text = Path(CHIP).read_text(encoding="utf-8")
    result = edited(text, text[: text.index("claims:")])
    spot, _ = spot_in(result, "2.9 TB/sec")
    (action,) = actions.claim(spot, Chip, URI, result.document, lines_of(result))

    assert "spec.memory.bandwidth" == applied(result, action).document.data["claims"][0]["at"]


def test_new_source() -> None:
    wrong = edited("source: neuron-driver-fca19f7", "source: brand-new-page")
    (finding,) = findings(wrong)
    (action,) = actions.new_source(finding, URI, session().known)
    create, edit = action.edit.document_changes

    assert create.uri.endswith("/catalog/sources/brand-new-page.yaml")
    assert create.uri == edit.text_document.uri
    assert "kind: Source\nmetadata:\n  name: brand-new-page\n" in edit.edits[0].new_text


def test_edits_of_findings() -> None:
    """The edit that ``trnspec fix`` applies, also over several lines; it is the only action for the finding."""
    wrong = edited("  memory:\n", "  memori:\n")
    (finding,) = [f for f in findings(wrong) if f.code == "TRN102"]
    (action,) = actions.fixes(finding, URI, lines_of(wrong))

    assert ("Replace with memory", True) == (action.title, action.is_preferred)
    assert () == applied(wrong, action).diagnostics
