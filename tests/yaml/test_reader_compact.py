"""trnspec.yaml.reader: a compact document is the same in less memory."""

from __future__ import annotations

import pickle

import pytest

from trnspec.loading.files import shipped
from trnspec.yaml import Document, read_file, read_text
from trnspec.yaml.reader import CompactDocument, compact


def _parts(document: Document) -> tuple[object, ...]:
    return document.file, document.data, dict(document.places), document.problems, document.text, document.rejected


def test_a_compact_document_is_the_same() -> None:
    document = read_file(shipped() / "chips" / "trainium2.yaml")
    small = compact(document)
    assert isinstance(small, CompactDocument)
    assert _parts(small) == _parts(document)
    assert compact(small) is small
    assert pickle.loads(pickle.dumps(small)) == pickle.loads(pickle.dumps(document))


@pytest.mark.parametrize("text", ["a: 1", "a: 1\na: 2\n", "[", ""])
def test_documents_with_problems_stay_as_they_are(text: str) -> None:
    document = read_text(text)
    assert compact(document) is document
