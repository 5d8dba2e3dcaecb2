"""Context of the cursor in a text that cannot be parsed."""

import pytest

from trnspec.lsp.cursor import cursor_at, keys_of
from trnspec.yaml import Place

TEXT = """\
api_version: trnspec/v1
metadata:
  name: x
  allow:
    - {code: TRN402, at: spec.me
    - code: TRN402
      at: spec.
spec:
  memory:
    capacity: 96 GiB
    ba
  cores: {core: neuron, cou
  links:
  - link: a
    cou
  dims: [a, [b, {c: 1
  note: "a, {b: c
claims:
  # a comment
  - {at: spec.cores.count, says: 8, source: neuron-t
  - at: spec.cores.count
    says: 4

    ver
  -
"""
LINES = TEXT.split("\n")


@pytest.mark.parametrize(
    ("line", "path", "key", "typed"),
    [
        (1, (), "api_version", "trnspec/v1"), (3, ("metadata",), "name", "x"),
        (5, ("metadata", "allow", 0), "at", "spec.me"), (7, ("metadata", "allow", 0), "at", "spec."),
        (10, ("spec", "memory"), "capacity", "96 GiB"), (11, ("spec", "memory"), None, "ba"),
        (12, ("spec", "cores"), None, "cou"), (14, ("spec", "links", 0), "link", "a"),
        (15, ("spec", "links", 0), None, "cou"), (16, ("spec", "dims", 0, 0), "c", "1"),
        (17, ("spec",), "note", '"a, {b: c'), (20, ("claims", 0), "source", "neuron-t"),
        (24, ("claims", 0), None, "ver"), (25, ("claims", 0), None, ""), (26, (), None, ""),
    ],
)  # fmt: skip
def test_cursor(line, path, key, typed) -> None:
    cursor = cursor_at(LINES, Place(line, len(LINES[line - 1]) + 1))

    assert (path, key, typed) == (cursor.path, cursor.key, cursor.typed)
    # An item begins after the last dash alone.
    assert (line == 25) is cursor.item


@pytest.mark.parametrize(
    ("line", "keys"),
    [
        (1, "api_version claims metadata spec"), (3, "allow name"), (5, "at code"), (6, "at code"), (7, "at code"),
        (11, "capacity"), (12, "core"), (15, "link"), (16, "c"), (19, ""),
        (20, "at says source"), (21, "at says"), (22, "at says"), (24, "at says"), (25, ""), (26, "api_version claims metadata spec"),
    ],
)  # fmt: skip
def test_keys(line, keys) -> None:
    cursor = cursor_at(LINES, Place(line, len(LINES[line - 1]) + 1))

    assert {*keys.split()} == keys_of(LINES, line, cursor)
