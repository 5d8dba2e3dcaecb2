"""The fields of a class as a form."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.model.annotations import Count
from trnspec.model.fields import AnyFigure, Capacity
from trnspec.model.form import entries, missing, nested, value


@frozen(kw_only=True)
class Door:
    """A door.

    Attributes:
        width: Its width. Example: 3
        hinges: Its hinges. Example: 2
    """

    width: float
    hinges: Count | None = None


@frozen(kw_only=True)
class Box:
    """A box.

    Attributes:
        size: Its size. Example: 32 GiB
        door: Its door.
        lock: Another door.
        inner: A box in it.
        sealed: Whether it is sealed.
        marks: Its marks. Example: 4
        doors: Doors as a list.
        label: A number or a word.
        other: Figures by name.
    """

    size: Capacity
    door: Door
    lock: Door | None = None
    inner: Box | None = None
    sealed: bool = False
    marks: tuple[Count, ...] = ()
    doors: tuple[Door, ...] = ()
    label: int | str | None = None
    other: Mapping[str, AnyFigure] = field(factory=dict)


FORM = {entry.path: entry for entry in entries(Box)}


def test_entries() -> None:
    """A class inside itself and lists of objects have no entries."""
    assert ["size", "door.width", "door.hinges", "lock.width", "lock.hinges", "sealed", "marks", "label", "other"] == [
        *FORM
    ]
    assert ("Its size.", "32 GiB", False, True) == (
        FORM["size"].description,
        FORM["size"].example,
        FORM["size"].named,
        FORM["other"].named,
    )


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((), ["size", "door.width"]),
        (("size", "door.width"), []),
        (("size", "door.hinges"), ["door.width"]),
        (("size", "door.width", "lock.hinges"), ["lock.width"]),
    ],
)
def test_missing(given, wanted) -> None:
    """The fields of an optional part are required once it is begun."""
    assert wanted == list(missing(Box, frozenset(given)))


@pytest.mark.parametrize(
    ("path", "text", "parsed"),
    [
        ("size", "1,024 GiB", "1,024 GiB"),
        ("door.width", "2.5", 2.5),
        ("door.hinges", "1,000", 1000),
        ("sealed", "yes", True),
        ("marks", "1, 2,3", [1, 2, 3]),
        ("label", "7", 7),
        ("label", "seven", "seven"),
        ("other", "3 GB/s", "3 GB/s"),
    ],
)
def test_values(path, text, parsed) -> None:
    assert parsed == value(FORM[path], text)


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("size", "32", "has no unit"),
        ("size", "3 GB/s", "expected information, such as 32 GiB"),
        ("door.hinges", "0", "'0' is not an integer >= 1; expected integer >= 1, such as 2"),
        ("door.hinges", "two", "'two' is not"),
        ("sealed", "maybe", "'maybe' is not true or false"),
        ("marks", "1,x", "'x' is not"),
        ("door.hinges", "1,00", "'1,00' is not"),
    ],
)
def test_wrong_values(path, text, message) -> None:
    with pytest.raises(UsageError, match=message.replace("(", r"\(")):
        value(FORM[path], text)


def test_nested() -> None:
    assert {"a": {"b": 1, "c": {"d": 2}}, "e": 3} == nested({"a.b": 1, "a.c.d": 2, "e": 3})
