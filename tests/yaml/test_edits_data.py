"""trnspec.yaml.edits: the data after an edit is that of the same change of plain data, at every path of many styles."""

import copy
from typing import Any

import pytest

from tests.support.tables import tables
from trnspec.yaml import Document, Path, read_text
from trnspec.yaml.edits import apply, removal, renaming
from trnspec.yaml.layout import LayoutError, comments, layout

TABLES = tables(__file__)
DOCUMENTS = TABLES["documents"]


def paths(document: Document) -> list[Path]:
    return [path for path in document.places if path]


def parent(data: Any, path: Path) -> Any:
    for step in path[:-1]:
        data = data[step]
    return data


def without(data: Any, path: Path) -> Any:
    """The data without a value, and without the collections that would be empty."""
    changed = copy.deepcopy(data)
    while path:
        above = parent(changed, path)
        del above[path[-1]]
        if above:
            break
        path = path[:-1]
    return changed


def edited(text: str, edit: Any) -> str:
    changed, applied = apply(text, [edit])
    assert applied == [edit]
    return changed


@pytest.mark.parametrize("text", DOCUMENTS)
def test_removal(text) -> None:
    document = read_text(text)
    assert document.data is not None
    for path in paths(document):
        edit = removal(document, path)
        if edit is not None:
            changed = edited(text, edit)
            assert without(document.data, path) == (read_text(changed).data or {}), (path, changed)
            assert not changed.strip() or comments(text) == comments(changed)


@pytest.mark.parametrize("text", DOCUMENTS)
def test_renaming(text) -> None:
    document = read_text(text)
    for path in paths(document):
        edit = renaming(document, path, "new")
        assert (edit is None) == isinstance(path[-1], int)
        if edit is not None:
            changed = copy.deepcopy(document.data)
            above = parent(changed, path)
            pairs = [("new" if key == path[-1] else key, value) for key, value in above.items()]
            above.clear()
            above.update(pairs)
            found = read_text(edited(text, edit)).data
            assert changed == found
            assert list(parent(changed, path)) == list(parent(found, path))


@pytest.mark.parametrize(("text", "expected"), TABLES["layouts"])
def test_layout(text, expected) -> None:
    assert expected == layout(text, lambda _, keys: [sorted(keys).index(key) for key in keys])


@pytest.mark.parametrize(("text", "message"), tables(__file__)["refuses_texts_without_layout"])
def test_refuses_texts_without_layout(text, message) -> None:
    with pytest.raises(LayoutError) as error:
        layout(text, lambda _, keys: range(len(keys)))

    assert str(error.value).startswith(message)


REMOVALS = [3, 6, 10, 8, 8, 15, 4, 7, 1, 7, 5, 4, 3, 0, 5, 8]


def test_how_many_values_can_be_removed() -> None:
    """Those without a comment on their lines, or a dash before them."""
    found = [read_text(text) for text in DOCUMENTS]

    assert [sum(removal(d, p) is not None for p in paths(d)) for d in found] == REMOVALS
