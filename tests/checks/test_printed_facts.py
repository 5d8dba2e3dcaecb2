"""Facts that sources print are in the catalog, from that source, at the place that ``tests/data/facts`` names."""

import csv
import functools
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from attrs import frozen

from tests.support.programs import DATA, ROOT
from tests.support.tables import tables
from trnspec.api import graph as load
from trnspec.errors import QuantityError
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import inherited
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import dotted, leaves, spread
from trnspec.model.sourced import Origin, origin_of
from trnspec.quantities.quantity import Quantity, parse
from trnspec.yaml import Path


@frozen
class Saying:
    """What a document has from a source at a path: an adopted value or a claim."""

    name: str
    path: str
    value: Any
    source: str
    where: str


def sayings(node: Node[Any]) -> Iterator[Saying]:
    """Everything a document says, adopted or claimed, with its source."""
    meta = node.metadata
    own = meta.source.name if meta.source else ""
    for path, _, value in leaves(node.spec, ("spec",)):
        if isinstance(value, Figure):
            if value.derived is None:
                source = value.source.name if value.source else own
                yield Saying(
                    node.name,
                    dotted(path),
                    value.value,
                    _source_of(node, path, source),
                    value.where or meta.where or "",
                )
        elif path[1:2] == ("features",):
            feature = node.spec.features[int(path[2])]
            yield Saying(node.name, dotted(path), str(value), feature.source.name, feature.where or "")
        else:
            origin = origin_of(value) or Origin()
            around = inherited(node, path)
            name = around[0].name if around[0] is not None else ""
            places = around[1] or meta.where
            source, where = (origin.source.name, origin.where) if origin.source is not None else (name, places)
            if origin.derived is None:
                yield Saying(
                    node.name, dotted(path), value.name if isinstance(value, Ref) else value, source, where or ""
                )
    for claim in node.claims:
        for path in spread(claim.at):
            yield Saying(node.name, dotted(path), claim.says, claim.source.name, claim.where or "")


def _source_of(node: Node[Any], path: Path, source: str) -> str:
    """A printed ratio names its source beside it."""
    if path[1:2] == ("ratios",):
        return str(node.spec.ratios[int(path[2])].source)
    return source


_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ORDINALS = ("zeroth", "first", "second", "third", "fourth", "fifth")
_UNITS = {"TFLOP": "TFLOPS", "Gigabit": "Gbps", "microseconds": "us", "Tb": "Tbps"}


@functools.cache
def _quantity(value: str, unit: str) -> Quantity | None:
    """The figure of a row, whose unit may stand in the column of the value; compared with every saying of its source."""
    unit = re.sub(r"/(device|chip)$", "", unit).split(" ")[0]
    parts = re.match(r"([^A-Za-z%]*(?:up[- ]to )?[\d,.]+)[ -]?([A-Za-z]*)( \(.*)?$", value, re.IGNORECASE)
    texts = [f"{value} {_UNITS.get(unit, unit)}"]
    if value.endswith("%"):
        texts.append(f"{int(value[:-1]) / 100}x")
    elif parts is not None and parts[2] and unit not in ("elements", "lanes", "DMA", "CC-Core", "processing"):
        texts.append(f"{parts[1].lower()} {_UNITS.get(parts[2], parts[2])}")
    return next((quantity for text in texts if (quantity := _parsed(text)) is not None), None)


@functools.cache
def _parsed(text: str) -> Quantity | None:
    try:
        return parse(text)
    except QuantityError:
        return None


def _number(text: str) -> int | None:
    """A whole number, in digits or as a word."""
    word = text.strip().lower()
    for words in (_WORDS, _ORDINALS):
        if word in words:
            return words.index(word)
    digits = word.replace(",", "").removesuffix("x")
    return int(digits) if digits.isdigit() else None


def _tokens(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+|\d+", text.lower()))


def says(fact: Mapping[str, str], saying: Saying) -> bool:
    """Whether a saying is the fact: the same number with as many digits, in the same unit, or the same words."""
    wanted, value = _quantity(fact["value"], fact["unit"]), saying.value
    if wanted is not None:
        value = _parsed(value) if isinstance(value, str) else value
        return isinstance(value, Quantity) and _same(wanted, value)
    number = _number(fact["value"])
    if number is not None:
        if isinstance(value, str):
            digits = re.findall(r"\d[\d,]*", value)
            return len(digits) == 1 and int(digits[0].replace(",", "")) == number
        return value == number
    if not isinstance(value, str):
        return False
    of = f"{value} {saying.name}" if saying.path == "spec.version" else value
    return _tokens(f"{fact['value']} {fact['unit']}") <= _tokens(of) or _tokens(fact["value"]) == _tokens(value)


def _same(a: Quantity, b: Quantity) -> bool:
    return (a.number, a.unit, a.qualifier, a.ulp) == (b.number, b.unit, b.qualifier, b.ulp)


def stands_at(line: int, where: str) -> bool:
    """Whether a line is among those that a place in a source names."""
    numbers = [(int(a), int(b or a)) for a, b in re.findall(r"(\d+)(?: to (\d+))?", where)]
    return any(first <= line <= last for first, last in numbers)


def missing(fact: Mapping[str, str], source: str, line: int | None, graph: Graph) -> list[str]:
    """The paths of the place of a fact at which the catalog does not have it from a source, and a line of it if one is given."""
    name, _, paths = fact["place"].partition(": ")
    found = {
        saying.path
        for saying in sayings(graph.named(name))
        if saying.source == source and says(fact, saying) and (line is None or stands_at(line, saying.where))
    }
    return [path for path in paths.split(", ") if f"spec.{path}" not in found]


SOURCES = json.loads((DATA / "facts-sources.json").read_text("utf-8"))
FACTS = [
    row for f in sorted((DATA / "facts").glob("*.csv")) for row in csv.DictReader(f.read_text("utf-8").splitlines())
]


def is_of_five(fact) -> bool:
    """Whether a row is of one of the five documents whose every fact must be in the catalog, with its line."""
    return fact["source"].startswith("sources/00")


FIVE = [f for f in FACTS if is_of_five(f)]


@pytest.fixture(scope="module")
def graph():
    return load([str(f) for f in ROOT.glob("plugins/*/src/*/catalog")])


def lacking(fact, graph) -> list[str]:
    file = max((s for s in SOURCES if fact["source"].startswith(s)), key=len)
    line = re.match(r":(\d+)", fact["source"][len(file) :])
    return missing(fact, SOURCES[file], int(line[1]) if line and is_of_five(fact) else None, graph)


def test_every_fact_is_at_its_place(graph) -> None:
    """All of the five documents; of the others 96 % have a place."""
    placed = [f for f in FACTS if f["place"]]

    assert len({f["source"].partition(":")[0] for f in FIVE}) == 5
    assert (len(FIVE), [f for f in FIVE if not f["place"]]) == (108, [])
    assert len(placed) >= 0.96 * len(FACTS) > 600
    assert [(f["subject"], f["value"], lack) for f in placed if (lack := lacking(f, graph))] == []


@pytest.mark.parametrize("change", tables(__file__)["absent_value_is_not_found"], ids=str)
def test_absent_value_is_not_found(graph, change) -> None:
    """A row that is altered in one column is nowhere, so that no row is found by accident."""
    fact = next(f for f in FIVE if f["value"] == "190" and f["place"].startswith("trainium1: peak.dense.bf16"))

    assert lacking(fact, graph) == []
    assert lacking(fact | change, graph) != []
