"""The canonical order of keys."""

from pathlib import Path

import attrs
import pytest

from tests.support.programs import ROOT
from tests.support.tables import tables
from trnspec.api import registry
from trnspec.loading.rewriting import formatted
from trnspec.model.chip import Chip
from trnspec.model.key_order import key_order

FILES = [*sorted((ROOT / "catalog").rglob("*.yaml")), *sorted((ROOT / "plugins").glob("*/src/*/catalog/**/*.yaml"))]


def test_shipped_documents_are_formatted() -> None:
    """Every tenth of them, so that this stays quick; the hook and CI format what changes."""
    kinds = registry().kinds
    texts: dict[Path, str] = {file: file.read_text(encoding="utf-8") for file in FILES[::10]}

    assert len(texts) > 40
    assert [] == [file for file, text in texts.items() if formatted(text, kinds) != text]


One = attrs.make_class("One", {"name": attrs.field(type=str), "kind": attrs.field(type=str)})
Two = attrs.make_class("Two", {"kind": attrs.field(type=str), "count": attrs.field(type=int)})
Either = attrs.make_class("Either", {"either": attrs.field(type=One | Two)})


@pytest.mark.parametrize(("path", "keys", "expected"), tables(__file__)["order"])
def test_order(path, keys, expected) -> None:
    ranks = key_order(Either if path[-1:] == ["either"] else Chip)(tuple(path), keys)

    assert expected == [key for _, key in sorted(zip(ranks, keys, strict=True), key=lambda pair: pair[0])]
