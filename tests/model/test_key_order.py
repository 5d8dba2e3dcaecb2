"""The canonical order of keys."""

from pathlib import Path

import attrs
import pytest

from tests.support.programs import ROOT
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


@pytest.mark.parametrize(
    ("path", "keys", "expected"),
    [
        ((), ["spec", "kind", "api_version"], ["api_version", "kind", "spec"]),
        (("metadata",), ["title", "name"], ["name", "title"]),
        (("claims", 0), ["reason", "scope", "says", "at"], ["at", "says", "scope", "reason"]),
        (("spec", "memory"), ["bandwidth", "capacity"], ["capacity", "bandwidth"]),
        (("spec", "memory", "bandwidth"), ["note", "value"], ["value", "note"]),
        (("spec", "dies"), ["where", "source"], ["where", "source"]),
        (("spec", "dies"), ["where", "source", "value"], ["value", "source", "where"]),
        # Types and names have the order of the source, and unknown keys stay below the key above them.
        (("spec", "peak", "dense"), ["fp8", "bf16"], ["fp8", "bf16"]),
        (("spec", "other"), ["b", "a"], ["b", "a"]),
        (("spec", "memory"), ["bandwidth", "x", "capacity"], ["capacity", "bandwidth", "x"]),
        # Of several classes the first that has all keys.
        (("spec", "either"), ["kind", "name"], ["name", "kind"]),
        (("spec", "either"), ["count", "kind"], ["kind", "count"]),
        (("spec", "either"), ["x", "name", "kind"], ["x", "name", "kind"]),
    ],
)
def test_order(path, keys, expected) -> None:
    ranks = key_order(Either if path[-1:] == ("either",) else Chip)(path, keys)

    assert expected == [key for _, key in sorted(zip(ranks, keys, strict=True), key=lambda pair: pair[0])]
