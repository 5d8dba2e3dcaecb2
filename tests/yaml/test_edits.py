"""trnspec.yaml.edits: each edit changes what it is to change, and keeps all other characters."""

import pytest

from tests.support.tables import tables
from trnspec.yaml import Place, read_text
from trnspec.yaml.document import Edit
from trnspec.yaml.edits import apply, cut_text, item, joined, quoting, removal, renaming, replacement

TABLES = tables(__file__)


def after(text: str, make, *args) -> str | None:
    """The text after an edit of a document; ``None`` if there is no such edit."""
    edit = make(read_text(text), *args)
    return None if edit is None else apply(text, [edit])[0]


def test_of_two_edits_that_overlap_the_earlier_is_applied() -> None:
    first, second, third = (Edit(Place(1, a), Place(1, b), t) for a, b, t in ((1, 3, "x"), (2, 4, "y"), (4, 5, "z")))

    assert apply("abcdef", [third, second, first]) == ("xczef", [first, third])


@pytest.mark.parametrize(("text", "path", "expected"), TABLES["removal"])
def test_removal(text, path, expected) -> None:
    assert after(text, removal, tuple(path)) == expected


@pytest.mark.parametrize(("text", "path", "expected"), TABLES["renaming"])
def test_renaming(text, path, expected) -> None:
    assert after(text, renaming, tuple(path), "new") == expected
    assert after(text, renaming, tuple(path), "") is None


@pytest.mark.parametrize(("text", "path", "content", "expected"), TABLES["item"])
def test_item(text, path, content, expected) -> None:
    document = read_text(text)
    edit = item(document, tuple(path), *content)

    assert (None if edit is None else apply(text, [edit])[0]) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a:\n  - {x: 1}\n  - {x: 2}\n", "a:\n  - x: 3\n  - {x: 2}\n"),
        ("a:\n  - {x: 1}\nb: 2\n", "a:\n  - x: 3\nb: 2\n"),
        ("a: [{x: 1}, {x: 2}]\n", None),
    ],
)
def test_item_instead_of_the_first(text, expected) -> None:
    assert after(text, lambda document: item(document, ("a",), "x: 3", instead=0)) == expected


def test_replacement_of_the_only_occurrence() -> None:
    text = "a: 5 gb of 5 Gb\nb: 5 gb\n"

    assert after(text, replacement, ("a",), "gb", "GB") == "a: 5 GB of 5 Gb\nb: 5 gb\n"
    assert after(text, replacement, ("a",), "5", "6") is None
    assert after(text, replacement, ("a",), "tb", "TB") is None
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


@pytest.mark.parametrize(("text", "whole"), tables(__file__)["a_text_that_the_comma_of_a_number_ends"])
def test_a_text_that_the_comma_of_a_number_ends(text: str, whole: str) -> None:
    """In braces and without quotes; nothing ends it in block style."""
    assert cut_text(read_text(text, "a.yaml"), ("a",)) == whole


def test_places_at_other_paths() -> None:
    places = read_text("a: 1\nb: 2\n").places
    moved = places.renamed([(("c",), ("a",)), (("c",), ("b",)), (("d",), ("b",))])

    assert {("c",): places["a",], ("d",): places["b",]} == dict(moved)
