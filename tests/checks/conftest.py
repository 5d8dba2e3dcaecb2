"""Slips of known cause, made in a catalog one at a time: what rules and the hints of their findings are measured by."""

import copy
import functools
import random
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

from attrs import evolve, frozen

from trnspec.checks.reconcile.hypotheses import Explanation, Mismatch, explain, explain_case
from trnspec.checks.reconcile.relations import relations
from trnspec.checks.reconcile.sites import Site
from trnspec.checks.reconcile.suspects import blamed
from trnspec.checks.rules.derived import AGREES as RATIO_AGREES
from trnspec.checks.runner import apply_waivers, run
from trnspec.diagnostics import Diagnostic
from trnspec.errors import UsageError
from trnspec.graph.formulas import value_of
from trnspec.graph.graph import Graph, figure_at
from trnspec.loading.structure import plain, structure
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import FigureShape, NumberShape, dotted, leaves, spread
from trnspec.model.server import Server
from trnspec.model.source import Source
from trnspec.model.transformers.counting import active_parameters_of, parameters_of
from trnspec.model.transformers.model import Model
from trnspec.model.ultraserver import UltraServer
from trnspec.plugins.api import Rule
from trnspec.quantities.quantity import Qualifier, Quantity, parse
from trnspec.quantities.units import Dimension
from trnspec.yaml import Path

CAUSES: dict[str, frozenset[str]] = {
    "unit": frozenset({"decimal-unit", "TRN601", "TRN615"}),
    "x10": frozenset({"decimal-point"}),
    "x1000": frozenset({"prefix", "thousands-point"}),
    "1000 for 1024": frozenset({"decimal-unit", "older-claim"}),  # the claim of a vendor in decimal units
    "thousands point": frozenset({"thousands-point"}),
    "formula": frozenset({"formula"}),
    "bit for byte": frozenset({"bit-byte"}),
    "digits swapped": frozenset({"swapped-digits"}),
    "one digit": frozenset({"one-digit"}),
    "x2": frozenset({"doubled", "halved", "one-direction", "both-directions", "dense-sparse", "wrong-count"}),
    "neighbouring row": frozenset({"swapped-row", "dense-sparse", "part-for-whole", "whole-for-part"}),
    "other generation": frozenset({"neighbour"}),
    "dense for sparse": frozenset({"dense-sparse"}),
    "missing addend": frozenset({"wrong-count", "missing-part"}),
    "count": frozenset({"wrong-count", "TRN501", "TRN502"}),
    "reference": frozenset({"reference", "TRN206", "TRN207", "TRN504", "TRN505", "neighbour", "TRN608"}),
    "dimension": frozenset({"dimension"}),
    "date": frozenset({"TRN307", "TRN308", "TRN310"}),
    "source": frozenset({"TRN307", "TRN308", "TRN309", "TRN310", "TRN311"}),
    "verdict": frozenset({"TRN303", "TRN312"}),
    "topology": frozenset({"TRN501", "TRN502", "TRN503"}),
}
"""The kinds of slips, and the causes that name each of them rightly: identifiers of hypotheses, or codes of rules."""


Place = tuple[str, "Path"]
"""A document by name, and a path in it."""


@frozen
class Slip:
    """One slip.

    Attributes:
        kind: One of :data:`CAUSES`, or a kind of a test.
        name: The document.
        path: The changed place.
        before: What the catalog has there.
        after: What is written instead: a figure as printed, a count, a name, a verdict, a list, or ``None``.
    """

    kind: str
    name: str
    path: Path
    before: Any
    after: Any

    def __str__(self) -> str:
        return f"{self.kind}: {self.name} {dotted(self.path)} {self.before} -> {self.after}"


@frozen
class Result:
    """What is reported of a slip: the first cause, ``none``, or empty where nothing is reported; where; and the hint."""

    slip: Slip
    cause: str
    location: bool
    hint: str = ""

    @property
    def verdict(self) -> str:
        """``right``, ``absent`` or ``misleading``."""
        if self.cause in CAUSES[self.slip.kind]:
            return "right"
        # A finding that names no cause is not misleading.
        return "absent" if self.cause in ("", "none") or self.cause.startswith("TRN") else "misleading"


def slips(graph: Graph) -> Iterator[Slip]:
    """Every slip of a figure that something determines, and of the dates and sources of the catalog."""
    known = determined(graph)
    for node in graph:
        if isinstance(node.spec, Source):
            yield from _dates(node)
            continue
        if node.kind in ("Calibration", "Measurements", "Price"):  # prices have slips of their own
            continue
        if node.kind == "Model":
            yield from _dimensions(node, known)
            continue
        yield from _references(graph, node)
        yield from _dropped(node)
        yield from _verdicts(node)
        mine = {path: v for path, v in sites(node).items() if (node.name, path) in known}
        for path, value in mine.items():
            if isinstance(value, Figure):
                if value.value.qualifier is Qualifier.EXACT:
                    yield from _figure(graph, node, path, value, sites(node))
            else:
                yield from _count(node, path, value)
        yield from _sources(graph, node)


def _figure(graph: Graph, node: Node[Any], path: Path, figure: Figure, mine: dict[Path, Any]) -> Iterator[Slip]:
    quantity = figure.value
    others = [*_digits(quantity), *_rows(path, quantity, mine), *_generations(graph, node, path, quantity, mine)]
    others += [("x10", _scaled(quantity, factor)) for factor in (Fraction(10), Fraction(1, 10))]
    others += [("x1000", _scaled(quantity, factor)) for factor in (Fraction(1000), Fraction(1, 1000))]
    if "iB" in quantity.unit.symbol and quantity.digits >= _EXACT:
        mixes = (Fraction(1000, 1024), Fraction(1000, 1024) ** 3)
        others += [("1000 for 1024", _printed_like(quantity, mix)) for mix in mixes]
    if re.match(r"[0-9]{1,3},[0-9]{3}(?![,.0-9])", quantity.text):
        others.append(("thousands point", quantity.text.replace(",", ".", 1)))
    if figure.derived is not None:
        yield from (
            Slip("formula", node.name, (*path, "derived"), figure.derived, d) for d in _operands(figure.derived)
        )
    others += [("x2", _scaled(quantity, factor)) for factor in (Fraction(2), Fraction(1, 2))]
    number = _number(quantity)
    others += [(_unit_kind(quantity, unit), f"{number} {unit}") for unit in _spellings(quantity)]
    parts = _parts(graph, node)
    if "stated" in path and parts > 1 and quantity.min_digits > 1:
        others.append(("missing addend", _printed_like(quantity, Fraction(parts - 1, parts))))
    # Where a source, another row or another document has the new value, it would be as right to name that.
    printed = {claimed.value for claimed in _claimed(node, path)}
    rows = {v.value.value for v in mine.values() if isinstance(v, Figure) and v.value.dimension is quantity.dimension}
    alike = {f.value.value for n in graph.of(type(node.spec)) if isinstance(f := figure_at(n, path), Figure)}
    for kind, after in others:
        value = parse(after, None, quantity.table).value
        if kind != "other generation" and value in alike:
            continue
        if value not in printed and (value not in rows or kind in _OF_ROWS):
            yield Slip(kind, node.name, path, quantity.text, after)


_FAR = 1.1
"""Values that differ by this factor are not roundings of each other."""

_GENERATION = re.compile(r"(?:trn|trainium|inf|inferentia)([0-9]?)(?![a-z0-9])")

_EXACT = 4
"""Digits from which a factor of 1.024 is not rounding."""


def _operands(formula: str) -> Iterator[str]:
    """The formula with another value of its last number with a unit."""
    *_, last = [None, *re.finditer(r"(?<![\w.:,])([0-9][0-9,]*(?:\.[0-9]+)?) [A-Z][A-Za-z/]+", formula)]
    if last is not None:
        first = int(last[1][0])
        yield f"{formula[: last.start(1)]}{first % 9 + 1}{formula[last.start(1) + 1 :]}"


def _references(graph: Graph, node: Node[Any]) -> Iterator[Slip]:
    """The core, chip or link of another document of the kind."""
    for path in (("cores", "core"), ("chips", "chip"), ("fabric", "link"), ("links", "link"), ("servers", "server")):
        holder = getattr(node.spec, path[0], None)
        ref = getattr(holder, path[1], None)
        if not isinstance(ref, Ref):
            continue
        for other in graph.of(type(node.spec)):
            value = getattr(getattr(other.spec, path[0], None), path[1], None)
            if (
                isinstance(value, Ref)
                and value.name != ref.name
                and value.name.rstrip("0123456789") == ref.name.rstrip("0123456789")
            ):
                yield Slip("reference", node.name, ("spec", *path), ref.name, value.name)


def _dimensions(node: Node[Any], known: Collection[Place]) -> Iterator[Slip]:
    for path, value in sites(node).items():
        if isinstance(value, int) and (node.name, path) in known and path[1] != "parameters" and value > 1:
            for other in (2 * value, value // 2, value + 1, value - 1):
                yield Slip("dimension", node.name, path, int(value), other)


_OF_ROWS = ("neighbouring row", "dense for sparse")


def _claimed(node: Node[Any], path: Path) -> Iterator[Quantity]:
    """What other sources say of a figure."""
    for index, claim in enumerate(node.claims):
        value = Site(node, path, index).value
        if path in spread(claim.at) and isinstance(value, Quantity):
            yield value


def _printed_like(quantity: Quantity, factor: Fraction) -> str:
    """A part of a figure with as many decimals: 10.0 for 15/16 of 10.7."""
    step = quantity.ulp
    decimals = max(0, len(str((1 / step).numerator)) - 1) if step < 1 else 0
    number = round(quantity.number * factor / step) * step
    return f"{float(number):,.{decimals}f}{quantity.unit.separator or ' '}{quantity.unit.symbol}"


def _number(quantity: Quantity) -> str:
    """The digits before the unit."""
    return re.findall(r"[0-9.,]+", quantity.text)[0]


def _digits(quantity: Quantity) -> Iterator[tuple[str, str]]:
    """Two neighbouring digits swapped, and another first digit."""
    number, unit = _number(quantity), quantity.unit.symbol
    places = [i for i, c in enumerate(number) if c.isdigit()]
    for one, other in pairwise(places):
        if number[one] != number[other] and not (one == places[0] and number[other] == "0"):
            text = list(number)
            text[one], text[other] = text[other], text[one]
            yield "digits swapped", f"{''.join(text)} {unit}"
    first = places[0]
    another = str((int(number[first]) + 3) % 9 + 1)
    if len(places) > 1 and another != number[first]:
        yield "one digit", f"{number[:first]}{another}{number[first + 1 :]} {unit}"


def _rows(path: Path, quantity: Quantity, mine: dict[Path, Any]) -> Iterator[tuple[str, str]]:
    """The figure of another row of the same table, and the dense rate for the sparse one or the reverse."""
    for other_path, other in mine.items():
        if not isinstance(other, Figure) or other_path == path or not _comparable(quantity, other.value):
            continue
        differing = [(a, b) for a, b in zip(path, other_path, strict=False) if a != b]
        if len(path) == len(other_path) and len(differing) == 1:
            dense = set(differing[0]) == {"dense", "sparse"}
            if dense or path[-1] == differing[0][0]:
                yield "dense for sparse" if dense else "neighbouring row", other.value.text


def _generations(
    graph: Graph, node: Node[Any], path: Path, quantity: Quantity, mine: dict[Path, Any]
) -> Iterator[tuple[str, str]]:
    """The figure at the same path of another document of the kind, where no row of this one has it too."""
    for other in graph.of(type(node.spec)):
        value = sites(other).get(path)
        if other.name == node.name or not isinstance(value, Figure) or not _comparable(quantity, value.value):
            continue
        if not any(isinstance(v, Figure) and v.value.same_value(value.value) for v in mine.values()):
            yield "other generation", value.value.text


def _parts(graph: Graph, node: Node[Any]) -> int:
    count = getattr(getattr(node.spec, "servers", None) or getattr(node.spec, "chips", None), "count", None)
    return int(count) if isinstance(count, int) else 1


def _comparable(one: Quantity, other: Quantity) -> bool:
    """Whether a figure is of the same dimension, exact, and clearly another value."""
    if one.dimension is not other.dimension or other.qualifier is not Qualifier.EXACT or not one.value:
        return False
    # Where the ratio is that of another kind of slip, both causes would be right.
    ratio = other.value / one.value
    while ratio < 1:
        ratio = 1 / ratio
    plain = (
        {Fraction(2) ** n for n in range(1, 8)}
        | {Fraction(n) for n in (10, 100)}
        | {Fraction(b) ** k for b in (1000, 1024) for k in (1, 2, 3)}
    )
    return not one.loose.overlaps(other.loose) and not any(abs(ratio / p - 1) < Fraction(1, 50) for p in plain)


def _spellings(quantity: Quantity) -> Iterator[str]:
    """Other units that are written by mistake: binary for decimal, another prefix, bits for bytes."""
    symbol = quantity.unit.symbol
    table = quantity.table
    if quantity.dimension in (Dimension.INFORMATION, Dimension.BANDWIDTH):
        prefix, rest = symbol[0], symbol[1:]
        swapped = f"{prefix}{rest[1:]}" if rest.startswith("i") else f"{prefix}i{rest}"
        bits = symbol.replace("B", "bit") if "B" in symbol else symbol.replace("bit", "B").replace("bps", "B/s")
        for unit in (swapped, bits):
            if unit != symbol and unit in table:
                yield unit
    for low, high in (("G", "T"), ("T", "P"), ("M", "G")):
        for one, other in ((low, high), (high, low)):
            unit = other + symbol[1:]
            if symbol.startswith(one) and unit in table and len(symbol) > 1:
                yield unit


def _unit_kind(quantity: Quantity, unit: str) -> str:
    ratio = parse(f"1 {unit}", None, quantity.table).value / quantity.unit.factor
    if ratio in (8, Fraction(1, 8)):
        return "bit for byte"
    return "x1000" if ratio >= 1000 or ratio <= Fraction(1, 1000) else "unit"


def _scaled(quantity: Quantity, factor: Fraction) -> str:
    number = quantity.number * factor
    places = 0
    while (number * 10**places).denominator != 1 and places < 6:
        places += 1
    return f"{float(number):,.{places}f}{quantity.unit.separator or ' '}{quantity.unit.symbol}"


def _dropped(node: Node[Any]) -> Iterator[Slip]:
    """A topology without one of its dimensions or levels."""
    for part in ("fabric", "between_servers"):
        fabric = getattr(node.spec, part, None)
        if fabric is None or fabric.topology is None:
            continue
        levels = [{"name": s.name, "count": s.count, "chips": s.chips} for s in fabric.topology.levels]
        for key, items in (("dimensions", list(fabric.topology.dimensions)), ("levels", levels)):
            for index in range(len(items)):
                yield Slip(
                    "topology", node.name, ("spec", part, "topology", key), items, items[:index] + items[index + 1 :]
                )


def _verdicts(node: Node[Any]) -> Iterator[Slip]:
    """Another verdict on a claim whose value is far from the adopted one."""
    for index, claim in enumerate(node.claims):
        if claim.verdict not in (None, "agrees") and _differs(node, index):
            for verdict in ("rounded", "agrees", None):
                if verdict != claim.verdict:
                    yield Slip("verdict", node.name, ("claims", index, "verdict"), claim.verdict, verdict)


def _count(node: Node[Any], path: Path, value: int) -> Iterator[Slip]:
    if value < 2 or value > 10_000:
        return
    for other in {value * 2, value + 1, value - 1}:
        # A change within the rounding of the figures that a count multiplies cannot be noticed.
        if other > 0 and abs(other - value) > value / 20:
            yield Slip("count", node.name, path, int(value), other)


def _dates(node: Node[Source]) -> Iterator[Slip]:
    as_of = node.spec.as_of
    year = int(as_of[:4])
    if node.spec.dating == "exact":
        for other in (year + 5, year - 4):
            yield Slip("date", node.name, ("spec", "as_of"), as_of, f"{other}{as_of[4:]}")


def _sources(graph: Graph, node: Node[Any]) -> Iterator[Slip]:
    source = node.metadata.source
    if source is None or node.kind not in ("Chip", "Server", "UltraServer"):
        return
    for other in graph.of(type(node.spec)):
        page = other.metadata.source
        # The pages of drivers and tools are about every product.
        if page is not None and page.name != source.name and is_about_another(page.name, source.name):
            yield Slip("source", node.name, ("metadata", "source"), source.name, page.name)


def sampled(every: Iterable[Slip], each: int, seed: int) -> list[Slip]:
    """A sample with as many slips of each kind."""
    by_kind: dict[str, list[Slip]] = defaultdict(list)
    for slip in every:
        by_kind[slip.kind].append(slip)
    chosen = random.Random(seed)
    return [s for some in by_kind.values() for s in chosen.sample(some, min(each, len(some)))]


def result_of(graph: Graph, slip: Slip, rules: Iterable[Rule]) -> Result:
    """What is reported of a slip: the finding at its place if there is one, else the first."""
    made = changed(graph, slip).focused_on([slip.name])
    found = findings(made, rules)
    file = graph.named(slip.name).document.file
    # A verdict is reported at the value of its claim, and a dimension at its topology.
    path = slip.path[: {"verdict": 2, "topology": 3}.get(slip.kind)]
    here = [d for d in found if d.where.file == file and d.where.path[: len(path)] == path]
    first = next(iter(here or found), None)
    if first is None:
        return Result(slip, "", location=False)
    cause = _named(slip, first)
    if first.code == "TRN404" and first.where.path[-1] in ("derived", "check"):
        cause = "formula"
    elif first.code == "TRN404":
        causes = _of_formula(made, first)
        cause = causes[0].id if causes else "none"
    for suspect in blamed(made) if slip.kind != "verdict" else ():
        site = suspect.site
        if site.node.document.file == first.where.file and site.place == first.where.path:
            causes = explain(suspect, made)
            cause = causes[0].id if causes else "none"
    return Result(slip, cause, location=bool(here), hint=first.hint or first.message)


def _named(slip: Slip, finding: Diagnostic) -> str:
    """The cause that a finding of a rule names; its code where it names none."""
    if "comma of thousands" in finding.hint:
        return "thousands-point"
    if slip.kind == "dimension":
        number = f"{slip.before:,}"
        values = re.findall(r"[0-9][0-9,]*", f"{finding.message} {finding.hint}")
        is_right = finding.where.path[: len(slip.path)] == slip.path and (
            number in values or str(slip.before) in values
        )
        is_right |= f"likely cause: a wrong dimension: {number} for {dotted(slip.path[1:])} " in finding.hint
        return "dimension" if is_right else "another" if "likely cause" in finding.hint else finding.code
    return finding.code


def _of_formula(graph: Graph, finding: Diagnostic) -> list[Explanation]:
    """The causes of a figure that differs from its formula."""
    node = next(n for n in graph if n.document.file == finding.where.file)
    path = finding.where.path[:-1]
    figure = figure_at(node, path)
    if not isinstance(figure, Figure):
        return []
    for formula in filter(None, (figure.derived, figure.check)):
        wanted = value_of(formula, node, graph)
        if not wanted.overlaps(figure.value.interval):
            return explain_case(Mismatch(Site(node, path), figure.value, (wanted,), (), (), graph))
    return []


def changed(graph: Graph, slip: Slip) -> Graph:
    """The catalog with a slip, by way of plain data, as if it had been read so."""
    node = graph.named(slip.name)
    data = copy.deepcopy(plain(node))
    *above, last = slip.path
    holder: Any = functools.reduce(lambda inside, step: inside[step], above, data)
    if slip.after is None:
        del holder[last]
    elif isinstance(holder, dict) and isinstance(holder.get(last), dict):
        holder[last]["value"] = slip.after
    else:
        holder[last] = slip.after
    if slip.path[0] == "spec":
        return graph.replace(node.name, structure(node.kind, type(node.spec), node.document, data).spec)
    made = structure(node.kind, type(node.spec), node.document, data)
    return Graph({**graph.nodes, node.name: evolve(node, metadata=made.metadata, claims=made.claims)})


def findings(graph: Graph, rules: Iterable[Rule]) -> list[Diagnostic]:
    """What some rules find in a catalog, waivers applied; an idle waiver is no finding here."""
    found = apply_waivers(run(rules, graph), graph)[0]

    assert not [d for d in found if d.code == "TRN900"], found

    return [d for d in found if d.code != "TRN304"]


# Which figures something determines: a slip of another one cannot be noticed.


def sites(node: Node[Any]) -> dict[Path, Figure | int]:
    """Every adopted figure and count that a document states, in the order of its classes."""
    return {
        path: v
        for path, shape, v in leaves(node.spec, ("spec",))
        if isinstance(shape, (FigureShape, NumberShape)) and path in node.document.places
    }


def determined(graph: Graph) -> set[Place]:
    """The figures and counts that other figures determine.

    By a relation between adopted figures or another source, a formula, a printed ratio, a declared topology, the number of
    parameters of a model, or the model that it is built on. Bounds do not determine: a sparse rate is above the dense one.
    """
    found = {(s.node.name, s.path) for relation in relations(graph) for s in relation.sites if s.claim is None}
    for node in graph:
        formulas = graph.figures(node).items()
        found.update((node.name, path) for path, f in formulas if f.derived is not None or f.check is not None)
        for places in (_wired(node), _divided(graph, node), _counted(node), _inherited(graph, node)):
            found.update(places)
    return found


def _divided(graph: Graph, node: Node[Chip]) -> Iterator[Place]:
    for index, ratio in enumerate(getattr(node.spec, "ratios", ())):
        older = graph.find(ratio.over)
        if older is None or ratio.verdict not in RATIO_AGREES:
            continue
        for path in spread(ratio.of):
            if figure_at(node, path) is not None and figure_at(older, path) is not None:
                yield from ((node.name, path), (older.name, path), (node.name, ("spec", "ratios", index, "says")))


def _counted(node: Node[Any]) -> Iterator[Place]:
    """The numbers of parameters of a model, and the dimensions that change one."""
    spec = node.spec
    if not isinstance(spec, Model) or spec.parameters is None:
        return
    counts = (parameters_of, active_parameters_of)
    for path, value in sites(node).items():
        try:
            changes = path[1] == "parameters" or any(c(_with(spec, path[1:], 2 * value)) != c(spec) for c in counts)
        except UsageError:  # contradictory dimensions
            changes = True
        if changes:
            yield node.name, path


def _inherited(graph: Graph, node: Node[Any]) -> Iterator[Place]:
    """The dimensions that a model has in common with its base, in both documents."""
    base = node.spec.base if isinstance(node.spec, Model) else None
    if base is None:
        return
    differing = tuple(path for text in base.differs for path in spread(text))
    for path in sites(node):
        if path[1] != "parameters" and not any(path[: len(other)] == other for other in differing):
            yield node.name, path
            yield graph.node(base.model).name, path


def _with(spec: Any, path: Path, value: int) -> Any:
    step, *below = path
    return evolve(spec, **{str(step): _with(getattr(spec, str(step)), tuple(below), value) if below else value})


def _wired(node: Node[Any]) -> Iterator[Place]:
    if not isinstance(node.spec, (Server, UltraServer)):
        return
    count = ("chips" if isinstance(node.spec, Server) else "servers", "count")
    for part in ("fabric", "between_servers"):
        fabric = getattr(node.spec, part, None)
        if fabric is None or fabric.topology is None:
            continue
        base: Path = ("spec", part, "topology")
        yield node.name, ("spec", *count)
        yield from ((node.name, (*base, key)) for key in ("dimensions", "levels"))
        yield from ((node.name, (*base, "dimensions", i)) for i in range(len(fabric.topology.dimensions)))
        for index in range(len(fabric.topology.levels)):
            yield from ((node.name, (*base, "levels", index, key)) for key in ("count", "chips"))
        if fabric.links_per_chip is not None and fabric.topology.shape != "switched":
            yield node.name, ("spec", part, "links_per_chip")


def is_about_another(page: str, own: str) -> bool:
    """Whether both pages are named after a generation, such as trn1 and trainium2, and after different ones."""
    named = [_GENERATION.findall(name) for name in (page, own)]
    return all(named) and not {number or "1" for number in named[0]} & {number or "1" for number in named[1]}


def _differs(node: Node[Any], index: int) -> bool:
    """Whether the value of a claim is far from the adopted one."""
    claim = node.claims[index]
    if claim.verdict == "other-scope":
        return False
    for path in spread(claim.at)[:1]:
        one, two = Site(node, path, index).value, Site(node, path).value
        if isinstance(one, Quantity) and isinstance(two, Quantity) and one.value and two.value:
            low, high = sorted((one.value, two.value))
            return high > low * _FAR and not one.loose.overlaps(two.loose)
    return False
