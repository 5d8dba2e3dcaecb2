"""trnspec.yaml: what is read, where it is, and what is refused."""

import json
import math
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path as FilePath
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.rules import stopped_after
from tests.support.tables import tables
from trnspec.yaml import Document, Json, Path, Place, ReadingLimits, read_file, read_text

CORPUS = FilePath(__file__).parents[1] / "data" / "badinput"
EXPECT: dict[str, list[tuple[str, int, int]]] = json.loads((CORPUS / "expect.json").read_text("utf-8"))
# Too large to keep in the repository, and simple to write.
LARGE: dict[str, bytes] = {
    "int_hex_huge.yaml": b"n: 0x" + b"f" * 200_000 + b"\n",
    "long_scalar_2MB.yaml": b"a: " + b"x" * 2_000_000 + b"\n",
    "many_anchors_20000.yaml": b"".join(b"k%d: &a%d v\n" % (n, n) for n in range(20_000)),
    "many_comments.yaml": b"a: 1\n" + b"# c\n" * 50_000,
}


def raw(name: str) -> bytes:
    return LARGE[name] if name in LARGE else (CORPUS / name).read_bytes()


def found(document: Document) -> set[tuple[str, int, int]]:
    """The set of (code, line, column); 0, 0 for the file as a whole."""
    places = [(p.code, p.place or Place(0, 0)) for p in document.problems]
    return {(code, place.line, place.column) for code, place in places}


def codes(text: str) -> set[str]:
    return {p.code for p in read_text(text).problems}


def walk(value: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    yield path, value
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from walk(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from walk(inner, (*path, index))


def offset(text: str, place: Place) -> int:
    """The offset of ``place``; fails when it lies outside the text."""
    starts = [0, *(m.end() for m in re.finditer(r"\r\n|\n|\r", text))]
    assert 1 <= place.line <= len(starts)
    ends = [*starts[1:], len(text)]
    at = starts[place.line - 1] + place.column - 1
    assert starts[place.line - 1] <= at <= ends[place.line - 1]
    return at


def test_expectations_and_corpus_name_the_same_files() -> None:
    """No case is without expectation, and no expectation without case."""
    assert {p.name for p in CORPUS.glob("*.yaml")} | set(LARGE) == set(EXPECT)


@pytest.mark.parametrize("name", sorted(EXPECT))
def test_corpus(name: str) -> None:
    """Each bad file gives exactly the expected problems, each with a hint."""
    document = read_text(raw(name), name)
    assert {tuple(e) for e in EXPECT[name]} == found(document)
    assert all(p.message.isprintable() and p.message.endswith(".") and len(p.message) < 200 for p in document.problems)
    assert all(p.hint for p in document.problems if "more problems of this kind" not in p.message)


DOCUMENTS = tables(__file__)["documents"]


@pytest.mark.parametrize("case", DOCUMENTS, ids=lambda case: repr(case["text"]))
def test_documents(case: dict[str, Any]) -> None:
    document = read_text(case["text"])

    assert set(case["finds"]) == {f"{code} {line}:{column}" for code, line, column in found(document)}
    assert [p.hint for p in document.problems if case.get("hint", "") not in p.hint] == []
    if "data" in case or any(finding.startswith("TRN004") for finding in case["finds"]):
        assert document.data == case.get("data")
    if document.data is not None:
        assert set(document.places) == {path for path, _ in walk(document.data)} | document.rejected


def test_import_does_not_load_the_yaml_library() -> None:
    """The library is imported by the first read, not before."""
    program = "import sys, trnspec.yaml; print([m for m in sys.modules if m.startswith('ruamel')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None), ("~", None), ("null", None), ("Null", None), ("nULL", "nULL"),
        ("true", True), ("FALSE", False), ("tRUE", "tRUE"), ("yes", "yes"), ("no", "no"), ("on", "on"),
        ("0", 0), ("-0", 0), ("+12", 12), ("0o17", 15), ("0x1F", 31), ("-0x1F", "-0x1F"), ("0b1", "0b1"),
        ("1_000", "1_000"), ("12:30", "12:30"), ("1e3", 1000.0), ("-.5", -0.5), ("1.e2", 100.0), ("2.5", 2.5),
        (".", "."), ("+", "+"), ("1.2.3", "1.2.3"), ("2024-12-03", "2024-12-03"), ("47.5 TFLOPS", "47.5 TFLOPS"),
        ("9223372036854775808", 2**63), ("-9223372036854775808", -(2**63)), ("18446744073709551615", 2**64 - 1),
        ("0x0000000000000000000000000000000001", 1), ("NaN", "NaN"), ("5e-324", 5e-324), ("0e-999", 0.0), ("-.00E-999", 0.0),
        ('"1"', "1"), ("'a''b'", "a'b"), ('"\\u00e9\\x41"', "éA"),
    ],
)  # fmt: skip
def test_scalar(text: str, value: Json) -> None:
    """Plain scalars follow the YAML 1.2 core schema; quoted ones are texts."""
    data = read_text(f"a: {text}\n").data
    assert data is not None
    assert (type(data["a"]), data["a"]) == (type(value), value)


@pytest.mark.parametrize(
    "text",
    [
        ".inf",
        "-.INF",
        ".nan",
        "1e400",
        "-1e309",
        "1e-400",
        "+.5E-400",
        "-0.1e-400",
        str(2**64),
        str(-(2**63) - 1),
        "9" * 70_000,
    ],
)
def test_number_out_of_range(text: str) -> None:
    """Such a number is reported at its place, and left out without being called missing."""
    document = read_text(f"a: 1\nb: {text}\n")
    assert found(document) == {("TRN010", 2, 4)}
    assert document.data == {"a": 1}
    assert document.rejected == {("b",)}
    assert document.place(("b",)) == Place(2, 4)


# Several problems at once; what is kept of the data.


def test_one_run_reports_all_errors() -> None:
    """Reading goes on after each refusal, and keeps the rest of the data."""
    document = read_text(
        "name: x\nname: y\na: &a 1\nb: *a\nc: !t 2\n<<: *a\n5: z\nn: 1e999\nlist: [1, !x 2, 3]\nlist: 0\nok: true\n"
    )
    assert found(document) == {
        ("TRN005", 2, 1), ("TRN006", 3, 4), ("TRN006", 4, 4), ("TRN008", 5, 4), ("TRN007", 6, 1), ("TRN009", 7, 1),
        ("TRN010", 8, 4), ("TRN008", 9, 11), ("TRN005", 10, 1),
    }  # fmt: skip
    assert document.data == {"name": "x", "list": [1, None, 3], "ok": True}
    assert document.rejected == {("a",), ("b",), ("c",), ("<<",), ("5",), ("n",), ("list", 1)}
    assert [p.see for p in document.problems if p.code == "TRN005"] == [Place(1, 1), Place(9, 1)]


def test_characters_are_counted_not_bytes() -> None:
    """Columns count code points; the byte order mark is not counted."""
    document = read_text("\ufeffé😀: '😀' \nb: {c: 1}\r\nd: 2\r\n".encode())
    assert {p: (s.key, s.value, s.end) for p, s in document.places.items()} == {
        (): (None, Place(1, 1), Place(3, 5)),
        ("é😀",): (Place(1, 1), Place(1, 5), Place(1, 8)),
        ("b",): (Place(2, 1), Place(2, 4), Place(2, 10)),
        ("b", "c"): (Place(2, 5), Place(2, 8), Place(2, 9)),
        ("d",): (Place(3, 1), Place(3, 4), Place(3, 5)),
    }
    assert document.text[0] == "é"


def test_place_of_a_missing_key_is_that_of_its_nearest_ancestor() -> None:
    """The reader is led to the mapping that has to be extended."""
    document = read_text("kind: Chip\nspec:\n  memory:\n    - {a: 1}\n")
    assert document.place(("spec", "memory")) == Place(4, 5)
    assert document.place(("spec", "memory"), key=True) == Place(3, 3)
    assert document.place(("spec", "memory", "x", "y")) == Place(3, 3)
    assert document.place(("spec", "memory", 0, "x")) == Place(4, 7)
    assert document.place(("metadata", "name")) == Place(1, 1)
    assert read_text("").place(("a",)) == Place(1, 1)


def test_empty_values_stand_behind_their_colon() -> None:
    """Also when a comment or a blank line follows."""
    document = read_text("a:\nb: # c\n\n? c\nd: {x: , y}\n")
    assert {p: s.value for p, s in document.places.items()} == {
        (): Place(1, 1), ("a",): Place(1, 3), ("b",): Place(2, 3), ("c",): Place(4, 4), ("d",): Place(5, 4),
        ("d", "x"): Place(5, 7), ("d", "y"): Place(5, 11),
    }  # fmt: skip
    assert document.data == {"a": None, "b": None, "c": None, "d": {"x": None, "y": None}}


@pytest.mark.parametrize(
    ("text", "limits", "expected"),
    [
        ("a: 12345\n", ReadingLimits(bytes=8), ("TRN012", 0, 0)),
        ("a: é\n", ReadingLimits(bytes=5), ("TRN012", 0, 0)),
        ("a: {b: {c: 1}}\n", ReadingLimits(depth=2), ("TRN011", 1, 8)),
        ("a: 1\nb: 2\n", ReadingLimits(nodes=3), ("TRN012", 2, 1)),
        ("a: 12345x\n", ReadingLimits(scalar=5), ("TRN012", 1, 4)),
    ],
)
def test_budget(text: str, limits: ReadingLimits, expected: tuple[str, int, int]) -> None:
    """One less than the text needs is reported; exactly what it needs is not."""
    assert found(read_text(text, limits=limits)) == {expected}
    field = next(f for f in ("bytes", "depth", "nodes", "scalar") if getattr(limits, f) != getattr(ReadingLimits(), f))
    enough = {"bytes": len(text.encode()), "depth": 3, "nodes": 5, "scalar": 6}[field]
    assert read_text(text, limits=ReadingLimits(**{field: enough})).problems == ()


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["[" * 400_000, "{a: " * 200_000, "- " * 400_000, "? " * 400_000, "a: " + ":" * 400_000, "a: " + "x\n " * 200_000,
     "[a," * 200_000, '"' + "\n" * 400_000, "a: |\n" + " \n" * 300_000 + "b: [", "&a " * 200_000, "!" * 900_000, "\t" * 900_000,
     "'" * 900_000, "#" * 900_000, "\r" * 900_000, "a: " + "-" * 900_000, "".join(f"k{n}: v\n" for n in range(60_000)),
     "a: 1\n" * 100_000, "a: " + "\u200b" * 250_000, "a: b\n  " + "c:d\n  " * 100_000 + "e: f\n", "\x07" * 900_000],
    ids=range(21),
)  # fmt: skip
def test_hostile_text_takes_linear_time(text: str) -> None:
    """Deep, long and repetitive texts end with a problem, in linear time: a second or two, not many minutes."""
    with stopped_after(60.0):
        assert read_text(text).problems


@pytest.mark.skipif(sys.platform == "win32", reason="pipes and devices as files")
def test_unreadable_files(tmp_path: FilePath) -> None:
    """Whatever cannot be read is a problem, never an exception and never a wait."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    names = [tmp_path, tmp_path / "none", tmp_path / "pipe", tmp_path / "loop", "/dev/zero", "a\0b"]
    for name in [*map(str, names), "x" * 9999]:
        document = read_file(name)
        assert (document.data, found(document)) == (None, {("TRN001", 0, 0)})
        assert document.problems[0].hint


def test_no_more_than_the_limit_is_read(tmp_path: FilePath) -> None:
    """A sparse file of a terabyte costs nothing."""
    path = tmp_path / "huge.yaml"
    with path.open("wb") as stream:
        stream.truncate(2**40)
    assert found(read_file(path)) == {("TRN012", 0, 0)}


# Properties.

_TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
_LEAF = st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_JSON = st.dictionaries(
    _TEXT,
    st.recursive(
        _LEAF | _TEXT, lambda v: st.lists(v, max_size=4) | st.dictionaries(_TEXT, v, max_size=4), max_leaves=12
    ),
    min_size=1,
    max_size=5,
)
_RAW = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def emit(value: Any, indent: int | None) -> str:
    """JSON that is YAML too: characters that YAML does not allow are escaped, the others stand as they are."""
    text = json.dumps(value, ensure_ascii=False, indent=indent)
    return _RAW.sub(lambda m: f"\\u{ord(m.group()):04x}", text) + "\n"


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(value=_JSON, indent=st.sampled_from([None, 2]))
def test_json_is_read_back(value: dict[str, Any], indent: int | None) -> None:
    """Data survives, no error is reported, and each place holds the text of its value and of its key."""
    text = emit(value, indent)
    document = read_text(text)
    assert document.data == value
    assert {p.code for p in document.problems} <= {"TRN050", "TRN054", "TRN055"}
    assert set(document.places) == {path for path, _ in walk(value)}
    for path, inner in walk(value):
        span = document.places[path]
        piece = text[offset(text, span.value) : offset(text, span.end)]
        assert json.loads(piece) == inner
        if span.key is not None:
            assert json.JSONDecoder().raw_decode(text, offset(text, span.key))[0] == path[-1]
        else:
            assert path == () or isinstance(path[-1], int)


_BITS = ["a", "b: ", ": ", ":", "- ", "? ", "{", "}", "[", "]", ", ", "\n", "\n  ", "\n\t", "# c\n", "&a ", "*a", "!t ",
         "<<: ", "|\n", ">\n", '"', "'", "---\n", "...\n", "%YAML 1.1\n", "\r", "é", "\u200b", "\xa0", "\0", "1e400",
         "010", "8.0", "\\ud800", "\\U00110000", "kind: Chip\n", "😀"]  # fmt: skip
_YAMLISH = st.lists(st.sampled_from(_BITS), max_size=25).map("".join)


@settings(max_examples=100)
@given(text=_YAMLISH | st.text() | st.binary())
def test_reader_never_raises_and_positions_are_in_range(text: str | bytes) -> None:
    """Any text ends in data or a problem, and every place can be shown."""
    document = read_text(text)
    assert document.data is not None or document.problems
    for problem in document.problems:
        for place in (problem.place, problem.see):
            assert place is None or offset(document.text, place) >= 0
    for span in document.places.values():
        assert offset(document.text, span.value) <= offset(document.text, span.end)
    for path, value in walk(document.data) if document.data is not None else ():
        assert path in document.places
        assert not isinstance(value, float) or math.isfinite(value)


def test_problems_of_one_code_are_cut_and_counted() -> None:
    """A flood becomes a number, and the data is complete all the same."""
    document = read_text("".join(f"k{n}: 01\n" for n in range(30)), limits=ReadingLimits(problems=10))
    assert len(document.problems) == 11
    assert document.problems[-1].message.startswith("20 more")
    assert document.data == {f"k{n}": 1 for n in range(30)}
    assert codes("a: 1\n") == set()
