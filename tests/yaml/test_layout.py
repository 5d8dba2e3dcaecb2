"""The canonical layout: nothing is lost, and it is a fixed point."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.programs import ROOT
from tests.support.rules import stopped_after
from tests.yaml.scribbles import Scribble
from trnspec.yaml import read_text
from trnspec.yaml.layout import LayoutError, comments, layout

FILES = sorted((ROOT / "catalog").rglob("*.yaml"))
DATA = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 999) | st.sampled_from(["x", "4,800 Gbps", "a # b", "- x: y", "", " "]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcdef"), inner, max_size=4),
    max_leaves=12,
)


def by_name(_, keys) -> list[int]:
    return [sorted(keys).index(key) for key in keys]


def check(data, chance: Random) -> None:
    scribble = Scribble(chance)
    text = scribble.document(data)

    assert read_text(text).data == data, text  # of the test itself

    result = layout(text, by_name)

    assert result == layout(result, by_name)
    assert read_text(result).data == data
    assert Counter(scribble.comments) == Counter(comments(result))


@given(st.sampled_from(FILES), st.integers(0, 2**32))
def test_shipped_documents_written_by_many_hands(file, seed) -> None:
    data = read_text(file.read_text(encoding="utf-8")).data

    assert data is not None

    claims = data.get("claims")
    if isinstance(claims, list):
        data["claims"] = claims[:3]
    check(data, Random(seed))


@given(st.dictionaries(st.sampled_from("abcdef"), DATA, min_size=1), st.integers(0, 2**32))
def test_any_data(data, seed) -> None:
    check(data, Random(seed))


@given(st.dictionaries(st.sampled_from("abcdef"), DATA, min_size=1))
def test_the_order_of_the_keys_does_not_matter(data) -> None:
    """Without comments, blank lines and choice of style, two orders of the same keys give one text."""
    import json

    backwards = json.loads(json.dumps(data), object_pairs_hook=lambda pairs: dict(reversed(pairs)))

    assert layout(json.dumps(data), by_name) == layout(json.dumps(backwards), by_name)


CASES = {
    "spacing": ("a:   1   #x\nb: {c:   2,d: [ 1,2 ]}\n\n\n\n", "a: 1  #x\nb: {c: 2, d: [1, 2]}\n"),
    "indentation": ("a:\n     b: 1\n     c:\n     - d\n", "a:\n  b: 1\n  c:\n    - d\n"),
    "comment of a key moves with it": ("b: 1\n# of a\na: 2\n", "# of a\na: 2\nb: 1\n"),
    "comments at the top stay there": ("# top\n\n# of b\nb: 1\na: 2\n", "# top\n\n# of b\na: 2\nb: 1\n"),
    "comment at the end of a block": ("a:\n  b: 1\n  # end\n# of c\nc: 2\n", "a:\n  b: 1\n  # end\n# of c\nc: 2\n"),
    "comment of the key below a list": ("a:\n- 1\n# of b\nb: 2\n", "a:\n  - 1\n# of b\nb: 2\n"),
    "comment between key and value": ("a: # x\n  1\n", "# x\na: 1\n"),
    "item with a comment": ("a:\n  -\n    # x\n    c: 1\n    b: 2\n", "a:\n  # x\n  - b: 2\n    c: 1\n"),
    "item without a value after a mapping": ("a:\n - b: 1\n - # x\n", "a:\n  - b: 1\n  -  # x\n"),
    "folded text": ("a:\n    b: >-\n       x\n         y\n\n       z\n", "a:\n  b: >-\n    x\n      y\n\n    z\n"),
    "explicit indentation": ("a: |4\n      x\n", "a: |2\n    x\n"),
    "kept line ends": ("b: |+\n    x\n\n\na: 1\n", "a: 1\nb: |+\n  x\n\n\n"),
    "flow mapping of several lines": ("a: {c: 1,\n    b: 2}\n", "a: {b: 2,\n    c: 1}\n"),
    "last line without end": ("a: 1", "a: 1\n"),
    "line ends": ("b: 1\r\na: 2\r\n", "a: 2\nb: 1\n"),
}


@pytest.mark.parametrize("case", CASES)
def test_cases(case) -> None:
    text, expected = CASES[case]

    assert expected == layout(text, by_name)
    assert expected == layout(expected, by_name)


@pytest.mark.parametrize(
    "text", ["", "a: [1", "- a\n", "a: &x 1\n", "a: 1\na: 2\n", "a: 1\n---\nb: 2\n", "? |\n  a\n: 1\n"]
)
def test_refuses_texts_without_layout(text) -> None:
    """Documents with errors, and keys of several lines."""
    with pytest.raises(LayoutError):
        layout(text, by_name)


def test_the_time_of_layout_is_linear_in_keys() -> None:
    """A document of 100,000 keys and values, the most that is read: 3 s; quadratic, more than 50 s."""
    text = "spec:\n" + "".join(f"  k{i}: v{i}\n" for i in range(49_998))
    with stopped_after(15.0):
        assert layout(text, lambda _, keys: [0] * len(keys)) == text


def test_a_tab_after_the_end_of_the_document_is_refused() -> None:
    with pytest.raises(LayoutError, match="after the end of the document"):
        layout("kind: Chip\n...\n\t\n", lambda _, keys: [0] * len(keys))
