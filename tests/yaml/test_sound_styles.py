"""trnspec.yaml.sound: which texts are read quickly, and that flow collections and lines in any order are read alike."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trnspec.yaml import Limits, read_text
from trnspec.yaml import reader as reader_
from trnspec.yaml.sound import sound_data, usual_text

SMALL = Limits(depth=4, nodes=40, scalar=30)

QUICK = {
    "a: b\n": {"a": "b"},
    "a:\n": {"a": None},
    "a: # c\n": {"a": None},
    "a:\nb: 1\n": {"a": None, "b": 1},
    "a: b # c\n": {"a": "b"},
    "a: b#c\n": {"a": "b#c"},
    "a: b:c\n": {"a": "b:c"},
    "a: 1\nb: 2.5\nc: true\nd: ~\ne: null\n": {"a": 1, "b": 2.5, "c": True, "d": None, "e": None},
    "a: .5\nb: +3\nc: 0x1F\n": {"a": 0.5, "b": 3, "c": 31},
    "a: b]]\nb: c}\n": {"a": "b]]", "b": "c}"},
    "1 2: a\n": {"1 2": "a"},
    "a: {b: c#d}\n": {"a": {"b": "c#d"}},
    "a: 'it''s'\nb: \"x: y\"  # c\n": {"a": "it's", "b": "x: y"},
    '"a": 1\n"b c: d": 2\n': {"a": 1, "b c: d": 2},
    "two words: 1\na/b: 2\nf(x)=y, z: 3\n": {"two words": 1, "a/b": 2, "f(x)=y, z": 3},
    "# c\n\na: 1\n\n  # d\nb: 2\n": {"a": 1, "b": 2},
    "a:\n  b: 1\n  c:\n    d: 2\ne: 3\n": {"a": {"b": 1, "c": {"d": 2}}, "e": 3},
    "a:\n  - 1\n  - x y\nb: 2\n": {"a": [1, "x y"], "b": 2},
    "a:\n- 1\n- 2\nb: 3\n": {"a": [1, 2], "b": 3},
    "a:\n  - b: 1\n    c: 2\n  - b: 3\n": {"a": [{"b": 1, "c": 2}, {"b": 3}]},
    "a:\n- b: 1\n  c:\n  - 2\n- d: 3\n": {"a": [{"b": 1, "c": [2]}, {"d": 3}]},
    "a:\n  - b:\n      c: 1\n": {"a": [{"b": {"c": 1}}]},
    "a: {b: 1, c: x}\n": {"a": {"b": 1, "c": "x"}},
    "a: { b: 1 , c: x }  # d\n": {"a": {"b": 1, "c": "x"}},
    'a: {b: "x, y", c: 1.5}\n': {"a": {"b": "x, y", "c": 1.5}},
    "a: [1, x, 'y', \"z\"]\n": {"a": [1, "x", "y", "z"]},
    "a: []\nb: {}\nc: [[]]\n": {"a": [], "b": {}, "c": [[]]},
    "a: [{b: 1}, [2, {c: 3}]]  # d\n": {"a": [{"b": 1}, [2, {"c": 3}]]},
    "a: {b: [1, 2], c: {d: 'x''y'}}\n": {"a": {"b": [1, 2], "c": {"d": "x'y"}}},
    "a: [1,\n  2]\n": {"a": [1, 2]},
    "a: b\n  c\n  d\ne: 1\n": {"a": "b c d", "e": 1},
    "a:\n  b # c\nd: 1\n": {"a": "b", "d": 1},
    "a:\n  b\n  c\nd: 1\n": {"a": "b c", "d": 1},
    'a: "b\n  c"\n': {"a": "b c"},
    "a: >-\n  b\n  c\n\n  d\n\n\n  e\n": {"a": "b c\nd\n\ne"},
    "a: >\n  b\n  c\n": {"a": "b c\n"},
    "a: |\n  b\n  c\n": {"a": "b\nc\n"},
    "a: |-\n  b\n\n  c\nd: 1\n": {"a": "b\n\nc", "d": 1},
    "a:\n- |-\n  b\n- >-\n  c\n  d\n": {"a": ["b", "c d"]},
    "a: |-\n  b\n\n\n": {"a": "b"},
}  # fmt: skip


@pytest.mark.parametrize("text", QUICK)
def test_quick(text) -> None:
    assert repr(QUICK[text]) == repr(sound_data(text, Limits()))
    assert repr(QUICK[text]) == repr(reader_._read(text, "", Limits(), reader_.best_parser, quick=False).data)


@pytest.mark.parametrize(
    "text",
    [
        *("a: 1", "", "\n", "# c\n", "- a\n", "a\n", "a: &b c\n", "a: *b\n", "a: !b c\n", "a: 1\na: 2\n", "a: {b: 1, b: 2}\n"),
        *("a: [{b: 1, b: 2}]\n", "a: {b: {c: 1, c: 2}}\n", "a: 010\n", "a: 1.0\n", "a: 1e999\n", "a: .inf\n", "a: b: c\n"),
        *("a: b :c\n", "a: b:\n", "a: [b\n", "a: -1\n", "a: [1,]\n", "a: [,]\n", "a: {b}\n", "a: {b: }\n", "a: {b: 1,}\n"),
        *("a: {true: 1}\n", "true: 1\n", "a: {null: 1}\n", "1: a\n", "a: [true: 1]\n", "a: [b: 1]\n", "a: {~: 1}\n"),
        *("a: 'b\n", 'a: "b\\n"\n', "a: 'b' c\n", "a: 'b'#c\n", "a: [1] c\n", "a: {b: 1} c\n", "a: {b: 1}#c\n", "a: [1]#c\n"),
        *("a:\n  b: 1\n c: 2\n", "a: 1\n  b: 2\n", "a:\n  - 1\n  b: 2\n", "a:\n- 1\nb\n", "a: 1\n- b\n", "  a: 1\nb: 2\n", "a:\n -\n"),
        *("a: |\n", "a: |\nb: 1\n", "a: |2\n  b\n", "a: |+\n  b\n\n", "a: >\n  b\n   c\n", "a: >\n  b \n  c\n", "a: |\n   \n  b\n"),
        *("? a\n: 1\n", "<<: {a: 1}\n", "---\na: 1\n", "%YAML 1.2\n---\na: 1\n", "a: @b\n", "a: `b`\n", "a: %b\n", "a: ,b\n"),
        *("a: {b: 010}\n", "a: [010]\n", "a: [1.0]\n", "a: {b: 1.0}\n", "a: [[010]]\n", "a: b # c\n  d\n", "a: b\n  # c\n  d\n"),
        *("a: b\n\n  c\n", 'a: "b\n\n  c"\n', "a:\n  b\n  c: d\n", "a:\n  b: 1\n    c: 2\n", "a: -\n", "a: - b\n", "a: ? b\n"),
        *("a : 1\n", '"a" : 1\n', "'a': 1\n", '"a\\n": 1\n', "a:b\n", "a: [b c: d]\n", "a: [b #c]\n", "a: {b: c:d}\n"),
    ],
)  # fmt: skip
def test_left_to_the_parser(text) -> None:
    """What has a problem, and styles that are not usual."""
    assert sound_data(text, Limits()) is None


@pytest.mark.parametrize(
    ("text", "limits", "quick"),
    [
        # A mapping, and what is below it.
        ("a: {b: {c: 1}}\n", Limits(depth=3), True),
        ("a: {b: {c: 1}}\n", Limits(depth=2), False),
        ("a: {b: 1}\n", Limits(depth=2), True),
        ("a: {b: 1}\n", Limits(depth=1), False),
        ("a: [[1]]\n", Limits(depth=3), True),
        ("a: [[1]]\n", Limits(depth=2), False),
        ("a:\n  b:\n    c: 1\n", Limits(depth=3), True),
        ("a:\n  b:\n    c: 1\n", Limits(depth=2), False),
        ("a:\n  - b: 1\n", Limits(depth=3), True),
        ("a:\n  - b: 1\n", Limits(depth=2), False),
        ("a:\n  {b: [1]}\n", Limits(depth=3), True),
        ("a:\n  {b: [1]}\n", Limits(depth=2), False),
        ("a: [1,\n  [2]]\n", Limits(depth=3), True),
        ("a: [1,\n  [2]]\n", Limits(depth=2), False),
        # Characters.
        ("a: 12345\n", Limits(scalar=8), True),
        ("a: 12345\n", Limits(scalar=7), False),
        ("a: b\n  c\n", Limits(scalar=4), True),
        ("a: b\n  cd\n", Limits(scalar=4), True),
        ("a: b\n  cd\n", Limits(scalar=3), False),
        ("a: |-\n  b\n  c\n", Limits(scalar=5), True),
        ("a: |-\n  bc\n  de\n", Limits(scalar=5), True),
        ("a: |-\n  bcd\n  ef\n", Limits(scalar=5), False),
        # Twice the colons, and the signs before items: more than the keys and values.
        ("a: 1\nb: 2\n", Limits(nodes=5), True),
        ("a: 1\nb: 2\n", Limits(nodes=4), False),
        ("a: [1, 2]\n", Limits(nodes=5), True),
        ("a: [1, 2]\n", Limits(nodes=4), False),
    ],
)  # fmt: skip
def test_limits(text, limits, quick) -> None:
    assert quick == (sound_data(text, limits) is not None)


@pytest.mark.parametrize(("columns", "quick"), [(199, True), (200, False)])
def test_indentation(columns, quick) -> None:
    margin = " " * columns

    assert quick == (sound_data(f"a:\n{margin}b: 1\n", Limits()) is not None)
    assert quick == (sound_data(f"a:\n{margin[:-2]}- b: 1\n", Limits()) is not None)


@pytest.mark.parametrize(("length", "quick"), [(1000, True), (1001, False)])
def test_keys(length, quick) -> None:
    """Keys in quotes and of several words; the length of others is limited by that of a line."""
    assert quick == (sound_data(f'"{"k" * length}": 1\n', Limits()) is not None)
    assert quick == (sound_data(f"k {'k' * (length - 2)}: 1\n", Limits()) is not None)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("a: \u00e9\n", "a: \u00e9\n"),
        (b"a: 1\n", "a: 1\n"),
        ("a: \u00e9\n".encode(), "a: \u00e9\n"),
        *((f"a: {c}\n", None) for c in "\t\r\x07\x7f\u00a0\u200b\u202e\ufeff\ud800"),
        *((f"a: {c}\n".encode(), None) for c in "\t\r\x07\x7f\u00a0\u200b\u202e\ufeff"),
        (b"a: \xff\n", None),
    ],
)
def test_usual_characters(raw, text) -> None:
    assert text == usual_text(raw)


# Differences from the full reader, which none may have.

_WORDS = [
    "b",
    "x y",
    "1",
    "1.5",
    "010",
    "8.0",
    "true",
    "~",
    "'q'",
    '"r, s"',
    "''",
    "''''",
    "-",
    "a:b",
    "c#d",
    "e #f",
    "",
    "g:",
    "5 %",
    "@h",
    "*i",
    "[",
    "}",
]
_KEYS = ["b: ", "c: ", "b : ", "'b': ", '"b": ', "true: ", "1: ", "b:", "d e: ", ""]
_JOINTS = [", ", ",", " , ", ",  ", ",\n  ", " ", ",\n"]
_ENDS = ["", " ", "  # c", "#c", " d", ",", "]", "\n  # c", "\n  e"]


def collection(inner):
    items = st.lists(inner, max_size=3)
    sequence = st.builds(lambda of, joint: f"[{joint.join(of)}]", items, st.sampled_from(_JOINTS))
    pairs = st.lists(st.builds(str.__add__, st.sampled_from(_KEYS), inner), max_size=3)
    return sequence | st.builds(
        lambda of, joint, space: f"{{{space}{joint.join(of)}{space}}}",
        pairs,
        st.sampled_from(_JOINTS),
        st.sampled_from(["", " "]),
    )


flows = st.recursive(st.sampled_from(_WORDS), collection, max_leaves=8)
_LINES = ["a:", "b: x", "c: 1 # c", "- x", "- b: 1", "-", "  c: y", "  - d: 2", "    e: [1, {f: }]", "  g", "    h i", "# c", "  # c", "", "  ", "j: |", "k: >-", "l: |-", "m: >",
          "   n", "o: 'p", "  q'", 'r: "s', '  t"', "two words: u", '"v": w', "    - x: y", "      z: ~", "a: {b: 1,", "  c: 2}", "010: 1", "d: 8.0", "- - e", "f: g: h"]  # fmt: skip


def alike(text: str) -> None:
    quick = sound_data(text, SMALL) if usual_text(text) is not None else None
    full = reader_._read(text, "", SMALL, reader_.c_parser, quick=False)

    if quick is not None:
        assert (repr(full.data), full.problems) == (repr(quick), ())
    document = read_text(text, limits=SMALL)
    assert (repr(full.data), full.problems, dict(full.places)) == (
        repr(document.data),
        document.problems,
        dict(document.places),
    )


@settings(max_examples=100)
@given(flow=st.lists(flows, min_size=1, max_size=2), end=st.sampled_from(_ENDS))
def test_flow_collections(flow, end) -> None:
    alike("".join(f"a{n}: {text}{end}\n" for n, text in enumerate(flow)))


@settings(max_examples=100)
@given(lines=st.lists(st.sampled_from(_LINES), min_size=1, max_size=7))
def test_lines_in_any_order(lines) -> None:
    alike("".join(f"{line}\n" for line in lines))
