"""trnspec.yaml: problems of texts, as they are shown, and the data that is kept.

``tests/data/problems.txt`` has a text with each wording of a problem, a line of JSON for each, and the number and a checksum of
the answers for all texts. After a change of a message, ``python tests/yaml/test_syntax.py`` writes it; read the difference.
"""

import json
import re
import zlib
from itertools import islice, product
from pathlib import Path as FilePath
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trnspec.yaml import Place, ReadingLimits, read_text
from trnspec.yaml.syntax import _line

STORED = FilePath(__file__).parents[1] / "data" / "problems.txt"
CORPUS = FilePath(__file__).parents[1] / "data" / "badinput"
SMALL = ReadingLimits(bytes=2_000, depth=5, nodes=60, scalar=50, problems=4)

# Texts whose problems differ in what the messages show: words, quotes, brackets, counts, positions of two things.
TEXTS = [
    # Indentation, tabs.
    "a:\n  b: 1\n\tc: 2\n", "a:\n \t b: 1\n", "a:\tb\n\tc: 1\n", "\ta: 1\n", "a: [\tb,\n\t] \tc\n", "a: b\n\t# c\n\tc: 1\n",
    "a: 1\n  b: 2\n", "a: one\n\n   b : 2\n", "a:\n  b: 1\n c: 2\n", "a:\n    b: 1\n  c: 2\n", "a:\n  - b\n c: 1\n",
    "- a\nb: 1\n", "a:\n  - 1\n  b: 2\n", "a: 1\n- b\n", "a:\n- 1\n  - 2\n", "a: - 1\n", "a: b\n  - c: d\n", "a:\r  b: 1\r c: 2\r", "a: 1\n<<<<<<< HEAD\nb: 2\n=======\n",
    # Colons and spaces.
    "a:\n  b:x\n  c: 1\n", "name: x\nkind:Chip\nspec: 1\n", "name: x\nkind\nspec: 1\n", "a: b: c\n", "a: 'b': c\n", "a: 10:30: x\n",
    "a: x\n  y:z\n  w: 1\n", "a: x\n  b: 1\n", "a: |\n  text\n b: 1\n", "ab\n", "name:x\n", "http://x\n", "a: http://x\nb\nc: 1\n",
    "- a:1\n", "a: 1\nb:\xa0c\nd: 1\n", "- - name:x\n  - b: 1\n  c\n", "a.b-c_d:1\nb: 2\n", "a:/x\nb\nc: 1\n", ": 1\n", "a: 1\n: 2\n", "{: 1}\n", "{a: 1, : 2}\n",
    "- : 1\n", "a:\n  : 1\n", "? \n: 1\n", "a: {b:1, c: d: e}\n", "a: {b: 1, c:2}\n", "? a\nb\nc: 1\n", "a: b\n  c\n  d: e: f\n",
    # Quotes and escapes.
    'a: "abc\nb: "def"\n', "a: 'abc\nb: 'def'\n", "a: 'it's'\n", 'a: "x" y\n', "a: 'x'y: 1\n", 'a: "x"\n  y\n', 'a: "x\n  y" z\n',
    'a: "x\n  y"\n  z: 1\n', 'a: "\\q"\n', 'a: "x\\xZZ"\n', 'a: "\\u12"\n', 'a: "\\ud83d\\ude00"\n', 'a: "\\UFFFFFFFF"\n', 'a: "ok \\\\ud800"\n',
    'a: "\\U0010FFFF\\U00110000"\n', "a: 'abc\n", 'a: "abc\\\n', '"a": 1\n"b: 2\n', "a: 'b' # c\n  d\n", "a: ''x\n", 'a: ["x" y]\n', "a: {'b' c}\n",
    # Brackets.
    "a: [1, 2\nb: 3\n", "a: {x: 1\n", "a: {x: 1\nb: 2\n", "a: [1, {b: 2]\n", "a: [1 2}\n", "a: {b: 1]\n", "a: ]\n", "a: }\n", "a: [b]]\n", "a: {b} c\n",
    "a: [b, c] d\n", "a: [b\n  c: d\n  e: f\n", "[a, b", "{", "a: [,]\n", "a: {,}\n", "a: [1,, 2]\n", "[a]: [b\n", "a: [ [ [ x\n",
    # Indicators.
    "a: @x\n", "a: `x`\n", "a: %x\n", "a: * x\n", "a: & x\n", "a: &\n", "a: *b\n", "a: &b 1\nc: *b\nd: *e\n", "a: !t 1\n", "a: !!str 1\n", "a: !e!x 1\n",
    "a: !<tag:x> 1\n", "&a b: 1\n", "!t b: 1\n", "*a : 1\n", "&a [1]: 2\n", "a: &x [1, &y 2]\n", "a: !x {b: !y 1}\n", "<<: {a: 1}\n", "<<: *a\n",
    "<<: [*a, {b: *c}]\nd: *e\n", "'<<': 1\n", "--- &a\nx: 1\n", "--- !t\nx: 1\n", "--- !t x\n",
    # Keys.
    "a: 1\na: 2\n", "a: 1\n'a': 2\n\"a\": 3\n", "a: {b: 1, b: 2}\nc: {b: 1, d: {e: 1, e: 2}}\n", "1: a\n", "1.5: a\n-2: b\n", "true: a\nnull: b\n~: c\n",
    "yes: a\n'1': b\n", "1e999: a\n", "a : 1\n", "'a' : 1\n", "{a : 1, b: 2}\n", "a  \t: 1\n", "? a\n: 1\n", "? a \n: 1\n", "? [x]\n: 1\n", "? {x: 1}\n: y\n",
    "[a, b]: 1\n", "{a: 1}: 2\n", "{{ x }}: 1\n", "a: {b: 1,600}\n", "a: {{ x }}\n", "? [a, {b: 1}]\n: {c: *x}\nk: 1\nk: {d: 2, d: 3}\n", "file: 1\n\ufb01le: 2\n",
    "\u00b5: 1\n\u03bc: 2\na: 3\n\uff41: 4\n", "b: {\u00b5: 1, \u03bc: 2}\n", "__proto__: 1\n", "? |\n  k\n: 1\n", "a? b: 1\n",
    # Numbers.
    "a: 010\nb: -07\nc: 089\nd: +012\n", "a: 00\nb: 1.10\nc: 8.0\nd: 1.\ne: .50\n", "a: 9007199254740993\nb: -9007199254740993\nc: 9007199254740992\n",
    "a: 18446744073709551616\nb: 18446744073709551615\n", "a: -9223372036854775809\nb: -9223372036854775808\n", "a: 0o2000000000000000000000\n",
    "a: 0o1777777777777777777777\nb: 0o017\nc: 0x1ffffffffffffffff\n", "a: 0xffffffffffffffff\nb: 0x0000000000000000000000000000ff\n", "a: 1e400\nb: -1e309\nc: 1e308\n",
    "a: 1e-400\nb: 0e-400\nc: 0.0e5\n", "a: .inf\nb: -.INF\nc: +.Inf\nd: .nan\ne: .NAN\n", "a: [010, 1.0, {b: 2.50}]\n", "a: 9007199254740993.0\nb: 12345678901234567890.0\n",
    "a: 0.10\nb: -2.0\nc: 1.0e3\nd: 100.00\n", "a: 99999999999999999999999999999999999999999999999999\n", "a: 123456789012345678901234567890123456789012345678901234567890.5\n",
    "0: a\n", "a: 1.7976931348623157e308\nb: 1.7976931348623159e308\n",
    # Documents and directives.
    "", "\n\n", "# c\n", "---\n", "--- # c\n...\n", "null\n", "~\n", "---\nnull\n", "x\n", "'x'\n", "''\n", "12\n", "- a\n- b\n", "[a]\n", "{}\n", "a: 1\n---\n", "a: 1\n---\nb: 2\n",
    "a: 1\n---\nb: [\n", "a: 1\n...\nb: 2\n", "a: 1\n...\n# end\n", "a: 1\n...\n# c\n%YAML 1.1\n---\nb: 1\n", "%YAML 1.2\na: 1\n", "%YAML 1.1\n---\na: 1\n", "%YAML 1.2 # c\n---\na: 1\n",
    "# c\n%TAG !e! tag:x,\n%FOO  \n---\na: 1\n", " %FOO\n---\na: 1\n", "%FOO", "--- a: 1\n", "--- {a: 1}\n", "---a: 1\n", "a: |\n  x\n---\n  y\n",
    # Characters and line ends.
    "a: 1", "a: 1\r\nb: 2\r\n", "a: 1\rb: 2\r", "a: 1\rb: 2\r\nc: 3\rd: 4\n", "a: 1\r\n", "\ufeffa: 1\n", "a: \ufeffb\n", "a: \x07\nb: \x1b[0m\n", "a: b\x85\n", "a: \u2028b\n",
    "a: \u200bb\n'c\u200d': d\n\u00ade: f\n", "a: '\u200b'\nb: x\xa0y\n", "a: '\u202e' # \u2066\n\u200fb: c\n", "a: \ud800\n", "a: \udc80\udcff\ud83d\n", "\u00e9: {\u00fc: 1, \u00fc: 2}\n",
    "a: \U0001f600: b\n", "kind: Chip\n\u041aind: Chip\n",
    # Block scalars.
    "a: |\n  x\n y\n", "a: |9\n  x\n", "a: |x\n  y\n", "a: >-\n  x\nb: >+\n  y\n\n", "a: |\n\tx\n", "a: >\n\n  x\n\n   y\n\n  z\n",
    # Limits.
    "a: {b: {c: {d: {e: 1}}}}\n", "a: {b: {c: {d: 1}}}\n", "a:\n- - - - - 1\n", "".join(f"k{n}: {n}\n" for n in range(40)), "a: [" + "1, " * 70 + "]\n", f"a: {'x' * 51}\nb: '{'y' * 50}'\n",
    f"{'k' * 51}: 1\nb: {{{'l' * 50}: 1}}\n", "a: " + "1\n" * 999, "".join(f"k{n}: 0{n}\n" for n in range(1, 9)), "".join(f"k{n}: 0{n}\n" for n in range(1, 6)) + "a: &b 1\n",
    "a: " + "0" * 60 + "\n", f"a: {'1' * 60}\n", f"{'7' * 45}: 1\n", f"a: {'z' * 45}: b\n",
]  # fmt: skip
# Pieces whose sequences are read in other orders than people write them.
PIECES = (": 1\n", ":\n", "- ", "? ", "\n", "a", "{", "}", "[", "]", ", ", ": ", "#c\n", "  ", "'b'", "&a ", "!t ", "|\n x\n")  # fmt: skip
TEXTS += ["".join(some) for some in islice(product(PIECES, repeat=3), 0, None, 29)]
TEXTS += [f"a: {''.join(some)}" for some in islice(product(PIECES, repeat=3), 7, None, 43)]
TEXTS += ["".join(some) for some in islice(product(PIECES, repeat=4), 0, None, 499)]
TEXTS += ["[? :\n]", "[? #c\n:\n[", "a: [? : b]\n", "{? : 1}\n", "a: {? b, ? }\n"]
RAW = [
    b"a: \xff\n", b"a: \xff\xfe x\nb: \xe9\x07\n\x00\xef\xbb\xbf\nc: \xc2\x85\n", b"a: \x80\x81\x82\x83\x84 \xc0\n", b"\xef\xbb\xbfa: 1\n", b"a: \xed\xa0\x80\n",
    b"\xff\xfea\x00:\x00 \x001\x00\n\x00", b"\xfe\xff\x00a\x00:\x00 \x001\x00\n", b"\x00\x00\xfe\xff\x00\x00\x00a", b"\xff\xfe\x00\x00a\x00\x00\x00", b"a\x00:\x00 \x001\x00\n\x00",
    b"\x7fELF\x02", b"MZ\x90\x00", b"\x1f\x8b\x08", b"PK\x03\x04", b"BZh9", b"\xfd7zXZ\x00", b"\x28\xb5\x2f\xfd", b"\x89PNG\r\n", b"\xff\xd8\xff\xe0", b"GIF89a", b"%PDF-1.7", b"SQLite format 3\x00",
    b"a: 1\n" + bytes(range(1, 9)), b"a: 1\n" + bytes(range(1, 9)) + b"\x0b", b"x" * 180 + b"\x01" * 9, b"x" * 180 + b"\x01" * 10, b"\x00", b"\x00a", b"\x00a: 1", b"ab: 1\x00", b"a: \x00\x00\n", b"a\x00b\x00c",
    b"a: '" + b"x" * 1_994 + b"'\n", b"# " + b"x" * 1_998, b"# " + b"x" * 1_999, b"# " + "\u00e9".encode() * 999, b"#  " + "\u00e9".encode() * 999,
]  # fmt: skip


def shown(place: Place | None) -> str:
    return "" if place is None else f"{place.line}:{place.column}"


def as_data(text: str | bytes) -> list[Any]:
    """What is read from a text: the text, the data in JSON, the rejected paths, and a list for each problem."""
    document = read_text(text, "file", SMALL)
    data = json.dumps(document.data, ensure_ascii=True, sort_keys=False)
    problems = [
        [p.code, shown(p.place), shown(p.see), ".".join(map(str, p.path)), p.message, p.hint] for p in document.problems
    ]
    return [
        text.decode("latin-1") if isinstance(text, bytes) else text,
        data if len(data) < 200 else f"{len(data)} characters",
        " ".join(sorted(".".join(map(str, path)) for path in document.rejected)),
        *problems,
    ]


def texts() -> list[str | bytes]:
    """Those above, and the hostile files."""
    files = [path.read_bytes() for path in sorted(CORPUS.glob("*.yaml"))]
    return [*TEXTS, *RAW, *(raw for raw in files if len(raw) <= SMALL.bytes)]


def wordings(answer: list[Any]) -> set[tuple[str, ...]]:
    """Code, message and hint of each problem, without names, numbers and what is quoted."""
    return {(p[0], *(re.sub(r"'.*?'|\".*?\"|[\d.,-]*\d\S*", "#", text) for text in p[4:])) for p in answer[3:]}


def stored() -> list[str]:
    """The first text with each wording, and what changes if the answer for any other text does."""
    answers = [as_data(text) for text in texts()]
    kept: list[str] = []
    known: set[tuple[str, ...]] = set()
    for answer in answers:
        if not wordings(answer) <= known:
            known |= wordings(answer)
            kept.append(json.dumps(answer))
    checksum = zlib.crc32("\n".join(map(json.dumps, answers)).encode())
    return [*kept, f"{len(answers)} texts, checksum {checksum:08x}"]


@given(st.text("a\r\n", min_size=1), st.data())
def test_the_line_of_a_place(text: str, data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(text)))
    start, end = _line(text, at)

    assert start <= at <= end
    assert not {"\r", "\n"} & {*text[start:end]}
    assert start == 0 or text[start - 1] in "\r\n"
    assert end == len(text) or text[end] in "\r\n"


def test_problems() -> None:
    assert STORED.read_text("utf-8").splitlines() == stored()


if __name__ == "__main__":
    STORED.write_text("".join(f"{line}\n" for line in stored()), "utf-8")
