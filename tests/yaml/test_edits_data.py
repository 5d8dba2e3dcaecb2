"""trnspec.yaml.edits: the data after an edit is that of the same change of plain data, at every path of many styles."""

import copy
from typing import Any

import pytest

from trnspec.yaml import Document, Path, read_text
from trnspec.yaml.edits import apply, removal, renaming
from trnspec.yaml.layout import LayoutError, comments, layout

DOCUMENTS = [
    "a: 1\nb: x y\nc: 'q'\n",
    "a:\n  b: 1\n  c:\n    d: 2\n    e: 3\nf: 4\n",
    "a:\n    b: 1\n    c: {d: 2, e: [3, 4]}\nf:\n    - 5\n    - 6\n",
    "a:\n- 1\n- 2\n- b: 3\n  c: 4\n- d: 5\nf: 6\n",
    "a:\n  - b: 1\n    c:\n      - d: 2\n        e: 3\n      - f\n  - g\nh: i\n",
    "a: {b: 1, c: {d: 2}, e: [3, {f: 4, g: 5}]}\nh: [[1, 2], [3]]\n",
    "a: >-\n  b\n  c\nd: |\n  e\n  f\ng: 'h\n  i'\nj: k\n  l\n",
    "a: {b: 1,\n    c: 2,\n    d: 3}\ne: [1,\n  2]\n",
    "# top\n\n# of a\na: 1  # end\n\n# of b\nb:\n  # of c\n  c: 2\n  d: 3  # end\n# last\n",
    "a:\n\nb: {c: }\nd: ''\ne: [~, x]\n",
    '"a b": 1\n\'c\': {"d": 2, e: \'f, g\'}\nh: "i: j"\n',
    "a: 1\r\nb:\r\n  c: 2\r\n  d: 3\r\n",
    "a: 1\nb:\n  c: 2",
    "a:\n  b:\n    c:\n      d: 1\n",
    "a: [x: 1, y]\nb: 2\n",
    "f:\n  a: 1, 2\n  b: [c]\n  g: {h: 1}\nd:\n    e: 3\n",
]


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


LAYOUTS = {
    # Blank lines above the first key of a file or a block are dropped, others are collapsed.
    "b: 1\n\n\n\na: 2\n": "a: 2\nb: 1\n",
    "a: 1\n\n\n\nb: 2\n": "a: 1\n\nb: 2\n",
    "# top\n\n\n\n# of b\nb: 1\na: 2\n": "# top\n\n# of b\na: 2\nb: 1\n",
    "b:\n\n  - 1\n\n\n  - 2\n\na: 1\n": "a: 1\nb:\n  - 1\n\n  - 2\n",
    "a: 1\n\n# end\n\n\n": "a: 1\n\n# end\n",
    "---\nb: 1\na: 2\n": "---\na: 2\nb: 1\n",
    "a:\n    # of c\n    c: 1\n    # of b\n\n    b: 2\n    # end\n": "a:\n  # of b\n\n  b: 2\n  # of c\n  c: 1\n  # end\n",
    # Texts over several lines.
    "a: 'b\n     c\n\n   d'\n": "a: 'b\n  c\n\n  d'\n",
    "a: b\n     c   \n    d\n": "a: b\n  c\n  d\n",
    "a:\n     b\n     c\n": "a:\n  b\n  c\n",
    'a: "b\\\n   c"\n': 'a: "b\\\n  c"\n',
    "a: |1\n  b\n   c\n": "a: |2\n   b\n    c\n",
    "a: >2   # c\n    b\n\n\nc: 1\n": "a: >2  # c\n    b\n\nc: 1\n",
    "b: |\n\n  x\n\n\na: >+\n  y\n\n# c\n": "a: >+\n  y\n\nb: |\n\n  x\n# c\n",
    # Lists, and comments in them.
    "a:\n- - 1\n  - 2\n-   - 3\n": "a:\n  - - 1\n    - 2\n  - - 3\n",
    "a: # b\n  - 1 # c\n  # d\n  - 2\n# e\n": "a:  # b\n  - 1  # c\n  # d\n  - 2\n# e\n",
    "a:\n  - b: 1 # c\n    # d\n    e: 2\n  -\n    f: 3\n  # g\nh:\n": "a:\n  - b: 1  # c\n    # d\n    e: 2\n  - f: 3\n  # g\nh:\n",
    "a:\n  -   # c\n  - 1\n": "a:\n  -  # c\n  - 1\n",
    "a: # x\n  b: # y\n    c: 1\n": "a:  # x\n  b:  # y\n    c: 1\n",
    # Braces and brackets.
    "a: { b : 1 , 'c':  2, d }\n": "a: {b: 1, 'c': 2, d}\n",
    "a: [ 1 ,[ 2,3 ], {c: 1, b: 2} ]  # d\n": "a: [1, [2, 3], {b: 2, c: 1}]  # d\n",
    "a: [x: 1,   y]\n": "a: [x: 1, y]\n",
    "a: {c: 1, # d\n  b: 2}\n": "a: {c: 1, # d\n  b: 2}\n",
    "a: {c: {e: 1,\n  d: 2}, b: [2, {g: 1, f: 2}]}\n": "a: {b: [2, {f: 2, g: 1}], c: {d: 2,\n  e: 1}}\n",
    "{b: 1, a: 2}\n# c\n": "{a: 2, b: 1}\n# c\n",
    # Comments that move with their keys, and those that stay.
    "b: 1\n# of a\na: 2\n": "# of a\na: 2\nb: 1\n",
    "a:\n  b: 1\n  # end\n# of c\nc: 2\n": "a:\n  b: 1\n  # end\n# of c\nc: 2\n",
    "a: # x\n  1\n": "# x\na: 1\n",
    "a:\n  -\n    # x\n    c: 1\n    b: 2\n": "a:\n  # x\n  - b: 2\n    c: 1\n",
    "a:\n - b: 1\n - # x\n": "a:\n  - b: 1\n  -  # x\n",
    "a:\n    b: >-\n       x\n         y\n\n       z\n": "a:\n  b: >-\n    x\n      y\n\n    z\n",
    "b: |+\n    x\n\n\na: 1\n": "a: 1\nb: |+\n  x\n\n\n",
    # Line ends, marks and keys.
    "\ufeffa: 1\r\nb:   2\r": "a: 1\nb: 2\n",
    "a :   1\n": "a: 1\n",
    "? a\n: 1\n": "a: 1\n",
}  # fmt: skip


@pytest.mark.parametrize("text", LAYOUTS)
def test_layout(text) -> None:
    assert LAYOUTS[text] == layout(text, lambda _, keys: [sorted(keys).index(key) for key in keys])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "The file contains no data"),
        ("a: [1", "The [ that opens here is not closed"),
        ("a: 1\na: 2\n", "The key 'a' is repeated; the first value is kept"),
        ("- a\n", "The file contains a list; a mapping with keys is expected"),
        ('? "a\n  b"\n: 1\n', "it has a key of several lines"),
        ("a: &x 1\n", "Anchors are not allowed"),
        ("a: 1\n---\nb: 2\n", "A second document begins here"),
        ("--- {a: 1}\n", "its first line has more than a comment or '---' before the first key"),
    ],
)
def test_refuses_texts_without_layout(text, message) -> None:
    with pytest.raises(LayoutError) as error:
        layout(text, lambda _, keys: range(len(keys)))

    assert str(error.value).startswith(message)


REMOVALS = [3, 6, 10, 8, 8, 15, 4, 7, 1, 7, 5, 4, 3, 0, 5, 8]


def test_how_many_values_can_be_removed() -> None:
    """Those without a comment on their lines, or a dash before them."""
    found = [read_text(text) for text in DOCUMENTS]

    assert [sum(removal(d, p) is not None for p in paths(d)) for d in found] == REMOVALS
