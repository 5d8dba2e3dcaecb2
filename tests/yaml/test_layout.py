"""The canonical layout: nothing is lost, and it is a fixed point."""

from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.programs import ROOT
from tests.support.rules import stopped_after
from tests.yaml.conftest import Scribble
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


@pytest.mark.slow
def test_the_time_of_layout_is_linear_in_keys() -> None:
    """A document of 50,000 keys and values, half of what is read: 1.5 s; quadratic, more than 12 s."""
    text = "spec:\n" + "".join(f"  k{i}: v{i}\n" for i in range(24_998))
    with stopped_after(7.0):
        assert layout(text, lambda _, keys: [0] * len(keys)) == text


def test_a_tab_after_the_end_of_the_document_is_refused() -> None:
    with pytest.raises(LayoutError, match="after the end of the document"):
        layout("kind: Chip\n...\n\t\n", lambda _, keys: [0] * len(keys))
