"""The quick reader agrees with the builder on every text."""

from __future__ import annotations

import random
from pathlib import Path as FilePath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runaway import stopped_after
from running import ROOT

from trnspec.yaml import Limits
from trnspec.yaml import reader as reader_
from trnspec.yaml.reader import best_parser, c_parser, pure_parser
from trnspec.yaml.sound import sound_data

CORPUS = sorted((FilePath(__file__).parents[1] / "data" / "badinput").iterdir())
CATALOG = sorted((ROOT / "catalog").rglob("*.yaml"))
SAMPLE = random.Random(7).sample(CATALOG, 12)
PIECES = (
    *("&a ", "*a", "!!str ", "<<: {a: 1}", "0x1F", "007", "1.50", "-0", ".inf", "1e999", "~", "yes", "null", "true"),
    *(
        "\t",
        "\u00a0",
        "\u200b",
        "\u202e",
        "\r\n",
        "\ufeff",
        "\x07",
        '"\\ud800"',
        '"\\x41"',
        "'",
        '"',
        "{",
        "}",
        "[",
        "]",
    ),
    *(
        ": ",
        ":",
        " : ",
        "- ",
        "? ",
        "#",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "\n",
        "  ",
        "a: 1\n",
        "12345678901234567890123",
    ),
)


def same(text: str | bytes, limits: Limits, parser=best_parser) -> bool:
    """Reads a text both ways; whether the quick reader was enough."""
    quick = reader_._read(text, "file", limits, parser, quick=True)
    full = reader_._read(text, "file", limits, parser, quick=False)
    assert repr(full.data) == repr(quick.data)
    assert (full.problems, full.rejected, full.text) == (quick.problems, quick.rejected, quick.text)
    if isinstance(quick.places, reader_._LazyPlaces):
        # Looked up in parts of the text, the last ones first, before all are known.
        for path in [*reversed(full.places)][: reader_._MOST_PARTS]:
            assert full.places[path] == quick.places[path]
            assert quick.places.get((*path, "none")) is None
    assert dict(full.places) == dict(quick.places)
    return isinstance(quick.places, reader_._LazyPlaces)


@pytest.mark.parametrize("parser", [c_parser, pure_parser])
def test_hostile_texts(parser) -> None:
    small = Limits(bytes=50_000, nodes=2_000, depth=16, scalar=200, problems=5)
    quick = [file.name for file in CORPUS if file.stat().st_size < 100_000 and same(file.read_bytes(), small, parser)]
    assert 0 < len(quick) < len(CORPUS)


def test_the_catalog_is_read_quickly() -> None:
    assert all(same(file.read_bytes(), Limits()) for file in SAMPLE)


STYLES = """\
# a comment
a: word  # of a value
"quoted: key": 'it''s'
two words:
  the value is on the next line
  and on another
list:
- {b: 1, c: "x, y", d: [2, {e: null}], f: 3 % of g}
- [1, 2.5,
   three]
- h: >-
    folded
    lines

    of a text
  i: |
    - verbatim
- "a text
  in quotes"
"""


def test_other_styles_are_read_quickly() -> None:
    assert same(STYLES, Limits())
    every = [at for at, character in enumerate(STYLES) if character in " \n:,'\""]
    changed = [STYLES[:at] + piece + STYLES[at + 1 :] for at in every for piece in ("", " ", ": ", "\n", "#")]
    assert 0 < sum(same(text, Limits()) for text in changed) < len(changed)


@pytest.mark.parametrize(
    "character", ["\r", "\r\n", "\t", "\x07", "\x85", "\u2028", "\ufeff", "\u200b", "\u202e", "\x7f"]
)
def test_other_characters_are_left_to_the_parser(character: str) -> None:
    for text in (f"a: b{character}\nc: d\n", f"a: b # {character}\n", f"a: \u00e4{character}\n"):
        assert not same(text, Limits())
        assert not same(text.encode(), Limits())


@pytest.mark.parametrize(
    "text",
    [
        "a: " + " " * 400_000 + "b\n",
        "a: b" + " c" * 200_000 + "\n",
        "a: {" + "b, " * 100_000 + "c: d\n",
        "a:\n" + "  b\n" * 200_000,
        "a: >-\n" + "  b\n" * 200_000,
        "a: '" + "'" * 400_000 + "\n",
    ],
    ids=["spaces", "words", "flow", "lines", "block", "quotes"],
)
def test_long_texts(text: str) -> None:
    with stopped_after(2):
        sound_data(text, Limits(scalar=1_000_000, nodes=10_000_000))


def test_places_are_those_of_a_copy() -> None:
    import pickle

    document = reader_.read_file(SAMPLE[0])
    assert document == pickle.loads(pickle.dumps(document))


@settings(max_examples=150)
@given(data=st.data())
def test_mutated_documents(data) -> None:
    text = data.draw(st.sampled_from(SAMPLE)).read_text("utf-8")[:1500]
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(text)))
        cut = data.draw(st.sampled_from([0, 0, 1, 5]))
        text = text[:at] + data.draw(st.sampled_from(PIECES)) + text[at + cut :]
    same(text, Limits(depth=8, scalar=120))
