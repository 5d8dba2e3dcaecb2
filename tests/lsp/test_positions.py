"""Positions of the protocol and paths of documents."""

import pytest
from lsprotocol.types import Position

from trnspec.diagnostics import Location
from trnspec.lsp.positions import Spot, TextLines, spot_at
from trnspec.yaml import Place, read_text

TEXT = "a: 1\nname: {x: \U0001d54f\u00e9, y: 2}\rlist:\r\n  - one\n"


@pytest.mark.parametrize(("encoding", "column"), [("utf-8", 6 + 4 + 2), ("utf-16", 6 + 2 + 1), ("utf-32", 6 + 1 + 1)])
def test_columns(encoding, column) -> None:
    lines = TextLines.of("name: \U0001d54f\u00e9z", encoding)
    place = Place(1, 9)

    assert Position(0, column) == lines.position(place)
    assert place == lines.place(Position(0, column))


def test_lines_end_where_the_reader_ends_them() -> None:
    lines = TextLines.of("a: x\u2028y\x0bz\rb: 1\r\nc: 2\n")

    assert ["a: x\u2028y\x0bz", "b: 1", "c: 2", ""] == lines.texts
    assert ("b: 1", "") == (lines[2], lines[5])
    assert (Place(4, 1), Place(2, 5)) == (lines.place(Position(9, 9)), lines.place(Position(1, 99)))


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        (Place(1, 1), Spot(("a",), True)),
        (Place(1, 4), Spot(("a",), False)),
        (Place(1, 5), Spot(("a",), False)),  # after the last character
        (Place(2, 8), Spot(("name", "x"), True)),
        (Place(2, 17), Spot(("name", "y"), True)),
        (Place(4, 6), Spot(("list", 0), False)),
        (Place(9, 1), None),
    ],
)
def test_node_at_a_position(place, expected) -> None:
    assert expected == spot_at(read_text(TEXT), place)


def test_range_of_a_finding() -> None:
    lines = TextLines.of("key: value # more")

    assert (5, 10) == _columns(lines, Location("f", Place(1, 6), (), "value"))
    assert (5, 17) == _columns(lines, Location("f", Place(1, 6), (), "another"))
    assert (0, 17) == _columns(lines, Location("f"))


def _columns(lines: TextLines, where: Location) -> tuple[int, int]:
    found = lines.range_at(where)
    return found.start.character, found.end.character
