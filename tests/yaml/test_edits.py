"""trnspec.yaml.edits: each edit changes what it is to change, and keeps all other characters."""

from __future__ import annotations

import pytest

from trnspec.yaml import Place, read_text
from trnspec.yaml.document import Edit
from trnspec.yaml.edits import apply, cut_text, joined, moving, quoting, removal, renaming, replacement, wrapping


def after(text: str, make, *args) -> str | None:
    """The text after an edit of a document; ``None`` if there is no such edit."""
    edit = make(read_text(text), *args)
    return None if edit is None else apply(text, [edit])[0]


def test_of_two_edits_that_overlap_the_earlier_is_applied() -> None:
    first, second, third = (Edit(Place(1, a), Place(1, b), t) for a, b, t in ((1, 3, "x"), (2, 4, "y"), (4, 5, "z")))

    assert apply("abcdef", [third, second, first]) == ("xczef", [first, third])


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("a: 1\nb: 2\n", ("b",), "a: 1\n"),
        ("a: 1\nb: 2\n", ("a",), "b: 2\n"),
        ("a: 1\nb: 2", ("b",), "a: 1\n"),
        ("a:\n  - 1\n  - 2\n  - 3\n", ("a", 1), "a:\n  - 1\n  - 3\n"),
        ("a:\n  b: 1\n  c: 2\nd: 3\n", ("a", "c"), "a:\n  b: 1\nd: 3\n"),
        ("a:\n  b: 1\nd: 3\n", ("a", "b"), "d: 3\n"),
        ("a: {b: 1, c: 2, d: 3}\n", ("a", "b"), "a: {c: 2, d: 3}\n"),
        ("a: {b: 1, c: 2, d: 3}\n", ("a", "c"), "a: {b: 1, d: 3}\n"),
        ("a: {b: 1, c: 2, d: 3}\n", ("a", "d"), "a: {b: 1, c: 2}\n"),
        ("a: [1, 2, 3]\n", ("a", 0), "a: [2, 3]\n"),
        ("a: [1, 2, 3]\n", ("a", 2), "a: [1, 2]\n"),
        ("a:\n  - b: 1\n    c: 2\n  - d\n", ("a", 0, "c"), "a:\n  - b: 1\n  - d\n"),
        # Not where a comment or the dash of an item would be lost.
        ("a: 1\nb: 2  # why\n", ("b",), None),
        ("a:\n  - b: 1\n    c: 2\n", ("a", 0, "b"), None),
        ("a: 1\n", (), None),
        ("a: 1\n", ("b",), None),
    ],
)
def test_removal(text, path, expected) -> None:
    assert after(text, removal, path) == expected


@pytest.mark.parametrize(
    ("text", "path", "group", "expected"),
    [
        ("a: 1\nb:\n  c: 2\n", ("a",), ("b",), "b:\n  c: 2\n  new: 1\n"),
        ("a: 1\nb:\n  c: 2", ("a",), ("b",), "b:\n  c: 2\n  new: 1\n"),
        ("a:\n  x: 1\n  y: [2]\nb:\n  c: 2\n", ("a",), ("b",), "b:\n  c: 2\n  new:\n    x: 1\n    y: [2]\n"),
        ("a:  {x: 1}\nb:\n    c: 2\nd: 3\n", ("a",), ("b",), "b:\n    c: 2\n    new: {x: 1}\nd: 3\n"),
        ("a: 1\nb: {c: 2}\n", ("a",), ("b",), "b: {c: 2, new: 1}\n"),
        ("a: 1, 2\nb: {c: 2}\n", ("a",), ("b",), 'b: {c: 2, new: "1, 2"}\n'),
        ("a:\r\n  x: 1\r\nb:\r\n  c: 2\r\n", ("a",), ("b",), "b:\r\n  c: 2\r\n  new:\r\n    x: 1\r\n"),
        ("a:\n  x: 1\nb: {c: 2}\n", ("a",), ("b",), None),
        ("a: 1  # why\nb: {c: 2}\n", ("a",), ("b",), None),
        ("a: 1\nb: {}\n", ("a",), ("b",), None),
    ],
)
def test_moving(text, path, group, expected) -> None:
    assert after(text, moving, path, group, "new") == expected


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("a: 1\n", ("a",), "new: 1\n"),
        ('"a": 1\n', ("a",), '"new": 1\n'),
        ("'a': 1\n", ("a",), "'new': 1\n"),
        ("b: {a: 1, c: 2}\n", ("b", "a"), "b: {new: 1, c: 2}\n"),
        ('"\\x61": 1\n', ("a",), None),
        ("- a\n", (0,), None),
    ],
)
def test_renaming(text, path, expected) -> None:
    assert after(text, renaming, path, "new") == expected
    assert after(text, renaming, path, "") is None


@pytest.mark.parametrize(
    ("text", "keys", "expected"),
    [
        ("a: 1 GB\n", ["b"], "a: {b: 1 GB}\n"),
        ("a: 1, 2\n", ["b", "c"], 'a: {b: {c: "1, 2"}}\n'),
        ("a: [1]\n", ["b"], "a: {b: [1]}\n"),
        ("a:\n  x: 1\n  y: 2\nz: 3\n", ["b"], "a:\n  b:\n    x: 1\n    y: 2\nz: 3\n"),
        ("a:\n  x: 1\n\n  y: 2\n", ["b", "c"], "a:\n  b:\n    c:\n      x: 1\n\n      y: 2\n"),
        ("a: >-\n  x\n  y\n", ["b"], None),
        ("a: {x: 1,\n  y: 2}\n", ["b"], None),
        ("a: 1\n", [], None),
    ],
)
def test_wrapping(text, keys, expected) -> None:
    assert after(text, wrapping, ("a",), keys) == expected


def test_replacement_of_the_only_occurrence() -> None:
    text = "a: 5 gb of 5 Gb\nb: 5 gb\n"

    assert after(text, replacement, ("a",), "gb", "GB") == "a: 5 GB of 5 Gb\nb: 5 gb\n"
    assert after(text, replacement, ("a",), "5", "6") is None
    assert after(text, replacement, ("c",), "5", "6") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: {b: 4,800 Gbps}\n", 'a: {b: "4,800 Gbps"}\n'),
        ("a: {b: 4,800 Gbps , c: 1}\n", 'a: {b: "4,800 Gbps" , c: 1}\n'),
        ("a: {b: 4,800 Gbps x}\n", None),
        ("a: {b: 4,801 Gbps}\n", None),
    ],
)
def test_quoting(text, expected) -> None:
    assert after(text, quoting, Place(1, 8), "4,800 Gbps") == expected


def test_joined_edits_cover_the_text_between_them() -> None:
    text = "a: 1\nb: 2\nc: 3\n"
    document = read_text(text)
    edits = [renaming(document, ("c",), "z"), renaming(document, ("a",), "x")]

    assert joined(document, edits) == Edit(Place(1, 1), Place(3, 2), "x: 1\nb: 2\nz")
    assert joined(document, [*edits, None]) is None
    assert joined(document, []) is None


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("{a: 1,979 TFLOPS / 2}", "1,979 TFLOPS / 2"),
        ("{a: 4 x 3,200 Gbps, b: 1}", "4 x 3,200 Gbps"),
        ("{a: 4 x 1,500,000 us / 3,000,000}", "4 x 1,500,000 us / 3,000,000"),
        ("{a: 4 x 3,20 Gbps}", ""),
        ('{a: "4 x 3,200 Gbps"}', ""),
        ("{a: 4 x 320 Gbps, b: 1}", ""),
        ("a: 4 x 3,200 Gbps\n", ""),
    ],
)
def test_a_text_that_the_comma_of_a_number_ends(text: str, whole: str) -> None:
    """In braces and without quotes; nothing ends it in block style."""
    assert cut_text(read_text(text, "a.yaml"), ("a",)) == whole
