"""Catalogs in which rules report, and what they report."""

import functools
import random
import re
import signal
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

import attrs
from attrs import evolve, frozen

from trnspec.api import graph as load
from trnspec.api import registry
from trnspec.checks.reconcile.hypotheses import Mismatch, explain_case
from trnspec.checks.reconcile.sites import PartsTerm, Site
from trnspec.checks.runner import Checked, check, run
from trnspec.diagnostics import Diagnostic, Location
from trnspec.graph.graph import Graph
from trnspec.loading.files import shipped as shipped_folder
from trnspec.loading.pipeline import LoadResult, link, load_document
from trnspec.model.document import Claim, Node
from trnspec.model.figure import Figure
from trnspec.model.ref import Ref
from trnspec.model.reflection import dotted
from trnspec.plugins.api import Rule
from trnspec.quantities.quantity import Interval, parse
from trnspec.testing import split
from trnspec.yaml import Path as DocumentPath
from trnspec.yaml import read_text

# Small catalogs for tests, made from texts.

KNOWN = registry()


def source(name: str, as_of: str, rank: str = "vendor-chip-page", dating: str = "exact") -> str:
    """The text of a source."""
    return (
        "api_version: trnspec/v1\nkind: Source\n"
        f"metadata: {{name: {name}, title: The page {name}}}\n"
        f"spec: {{publisher: Somebody, as_of: {as_of}, rank: {rank}, dating: {dating}}}\n"
    )


def document(kind: str, name: str, rest: str, metadata: str = "") -> str:
    """The text of a document; ``rest`` begins with its spec."""
    more = f", {metadata}" if metadata else ""
    return f"api_version: trnspec/v1\nkind: {kind}\nmetadata: {{name: {name}, title: T{more}}}\n{rest}\n"


def graph(*texts: str) -> Graph:
    """The graph of some texts, which must be sound."""
    made, problems = link([load_document(read_text(text, f"file-{i}.yaml"), KNOWN) for i, text in enumerate(texts)])

    assert not problems, problems

    return made


# A small catalog without findings, slips in its texts, and every detail of what is found in them.

FILES = [Path(__file__).parents[1] / "data" / f"checked_{name}.txt" for name in ("catalog", "models")]

_QUANTITY = re.compile(r"(?<=[: ])(?P<number>[0-9][0-9,]*(?:\.[0-9]+)?) (?P<unit>[A-Za-z]+(?:/[a-z]+)?)(?=[,}\]\n])")
_COUNT = re.compile(r"(?<=[:\[,] )[1-9][0-9]*(?=[,}\]\n])|(?<=\[)[1-9][0-9]*(?=[,\]])")
_DATE = re.compile(r"(?<= )20[0-9]{2}-[0-9]{2}(?:-[0-9]{2})?(?=[.,}\n])")
_VERDICT = re.compile(r"(?<=verdict: )[a-z-]+")
_WORD = re.compile(r"(?<=[: \[])[a-z][\w.-]+(?=[,}\]\n])")
_CELL = re.compile(r"(?<=,)[0-9.]+(?=[,\n ])")
_OTHER_UNITS = {
    "GB/s": ("GiB/s", "Gbps"), "GiB": ("GB", "MiB"), "MiB": ("MB", "KiB"), "TFLOPS": ("PFLOPS", "GFLOPS"), "TiB": ("TB", "GiB"),
    "TB/s": ("TiB/s", "GB/s"), "Gbps": ("GB/s", "Mbps"), "PFLOPS": ("TFLOPS", "PFLOP/s"), "KiB": ("kB", "MiB"), "W": ("kW", "mW"),
    "GB": ("GiB", "TB"), "USD/h": ("USD/h",), "kW": ("W", "MW"), "GHz": ("MHz", "THz"), "Tbps": ("TB/s", "Gbps"),
}  # fmt: skip
_VERDICTS = ("agrees", "rounded", "superseded", "rejected", "other-scope", "unresolved")


@frozen
class TextSlip:
    """What is written instead at one place of a file."""

    file: str
    line: int
    before: str
    text: str
    after: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} {self.before} -> {self.after}"


@functools.cache
def files() -> dict[str, str]:
    """The texts of the catalog by file."""
    return dict(split("".join(f.read_text("utf-8") for f in FILES), KNOWN))


@functools.cache
def _readings() -> dict[str, LoadResult]:
    return {name: load_document(read_text(text, name), KNOWN) for name, text in files().items()}


def checked(changed: dict[str, str] | None = None, *, only: bool = False) -> Checked:
    """The catalog with other texts; models and the other kinds, which have nothing in common, are not checked together.

    Args:
        changed: The other texts by file.
        only: Whether these files alone are to be checked, with the others as context.
    """
    changed = changed or {}
    groups = {name.startswith("models/") for name in changed} or {True, False}
    kept = [
        evolve(reading, target=not only)
        for name, reading in _readings().items()
        if name not in changed and (name.startswith("sources/") or name.startswith("models/") in groups)
    ]
    return check([*kept, *(load_document(read_text(text, name), KNOWN) for name, text in changed.items())], KNOWN)


def linked(slip: TextSlip | None = None) -> Graph:
    """The graph of the catalog, with one slip."""
    changed = [] if slip is None else [load_document(read_text(slip.text, slip.file), KNOWN)]
    kept = [reading for name, reading in _readings().items() if slip is None or name != slip.file]
    return link([*kept, *changed])[0]


def slips(texts: Mapping[str, str], name: str, each: int) -> Iterator[TextSlip]:
    """Slips at every figure, count, date, verdict and reference of a file: ``each`` at a figure or date, one elsewhere.

    Other figures of the same unit and other names are those of all the texts.
    """
    text = texts[name]
    kinds = ((_CELL, _cells),) if name.endswith(".csv") else _KINDS
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        unnamed = re.sub(r"name: [\w.-]+", lambda named: "-" * len(named[0]), line)
        for pattern, others in kinds:
            for match in pattern.finditer(unnamed):
                draw = random.Random(f"{name} {number} {match.start()}")
                found = [o for o in dict.fromkeys(others(match, texts)) if o != match[0]]
                for other in draw.sample(found, min(len(found), 1 if pattern in (_COUNT, _VERDICT, _WORD) else each)):
                    yield TextSlip(name, number, match[0], _replaced(text, number, match, other), other)


def _replaced(text: str, number: int, match: re.Match[str], other: str) -> str:
    lines = text.splitlines(keepends=True)
    line = lines[number - 1]
    lines[number - 1] = line[: match.start()] + other + line[match.end() :]
    return "".join(lines)


def _quantities(match: re.Match[str], texts: Mapping[str, str]) -> Iterator[str]:
    """Powers of two and of ten, one more or less in the last digit, swapped digits, another unit, another row."""
    number, unit = match["number"].replace(",", ""), match["unit"]
    places = len(number.partition(".")[2])
    value = float(number)
    last = 10.0**-places
    for other in (value * 2, value / 2, value * 4, value * 10, value / 10, value * 1.024, value * 1.25):
        yield f"{other:.{max(places, 3)}f}".rstrip("0").rstrip(".") + f" {unit}"
    for other in (value + last, value - last, value + 5 * last, value + 0.4 * last, value - 0.6 * last):
        yield f"{other:.{places + 1}f}".removesuffix(".0") + f" {unit}"
    if len(number) > 1 and "." not in number[:2]:
        yield f"{number[1]}{number[0]}{number[2:]} {unit}"
    yield from (f"{qualifier} {number} {unit}" for qualifier in ("up to", ">="))
    yield f"~{number[0]}{'0' * len(number.partition('.')[0][1:])} {unit}"
    yield from (f"{number} {other}" for other in _OTHER_UNITS.get(unit, ()))
    yield from (m[0] for text in texts.values() for m in _QUANTITY.finditer(text) if m["unit"] == unit)


def _cells(match: re.Match[str], _: Mapping[str, str]) -> Iterator[str]:
    """About 2 % more and less, other powers of ten, and what is not a number."""
    value = float(match[0])
    yield from (f"{value * factor:.6g}" for factor in (1.015, 1.025, 0.985, 0.975, 1.3, 10, 0.1, 1000, 1e18))
    yield from ("0", "-1", "nan", "inf", "x", "", "n/a", "yes", "5 us")


def _counts(match: re.Match[str], _: Mapping[str, str]) -> Iterator[str]:
    count = int(match[0])
    yield from (
        str(other) for other in (count + 1, count - 1, 2 * count, count // 2, 4 * count, 3 * count) if other > 0
    )


def _dates(match: re.Match[str], _: Mapping[str, str]) -> Iterator[str]:
    year, rest = int(match[0][:4]), match[0][4:]
    yield from (
        f"{year + 1}{rest}", f"{year - 1}{rest}", f"{year}-12", f"{year}-01", f"{year - 40}{rest}",
        f"{year + 90}{rest}", f"{year}-13",
    )  # fmt: skip


def _verdicts(_: re.Match[str], __: Mapping[str, str]) -> Iterator[str]:
    yield from _VERDICTS


def _words(match: re.Match[str], texts: Mapping[str, str]) -> Iterator[str]:
    """The names of other documents of the folder, and other types."""
    folder = next((name.partition("/")[0] for name in texts if Path(name).stem == match[0]), "")
    yield from (Path(name).stem for name in texts if name.startswith(f"{folder}/"))
    if not folder:
        yield from {
            "tdp": ["maximum", "typical"],
            "typical": ["measured"],
            "spot": ["on-demand"],
            "on-demand": ["spot"],
        }.get(match[0], [])


_KINDS = ((_QUANTITY, _quantities), (_COUNT, _counts), (_DATE, _dates), (_VERDICT, _verdicts), (_WORD, _words))


def described(diagnostics: Iterable[Diagnostic]) -> Iterator[str]:
    """Every detail of findings, a line for each; the date of today is written TODAY."""
    today = date.today().isoformat()  # as the rules have it
    for d in diagnostics:
        parts = [f"{d.code} {d.severity.label} {_placed(d.where)} {dotted(d.where.path)}: {d.message}"]
        parts += [f"hint: {d.hint}"] if d.hint else []
        parts += [f"see: {'; '.join(map(_placed, d.see))}"] if d.see else []
        parts += [f"edit: {d.edit}"] if d.edit is not None else []
        yield " | ".join(parts).replace(today, "TODAY")


def _placed(where: Location) -> str:
    place = "" if where.place is None else f":{where.place.line}:{where.place.column}"
    file = where.file.removeprefix(f"{shipped_folder()}/")
    return f"{file}{place} [{where.text}]"


# The shipped catalog with one thing changed: what the tests of the rules work on.

SOURCE = "neuron-trn1-2023-02"


@functools.cache
def shipped() -> Graph:
    """The shipped catalog."""
    return load()


@functools.cache
def bare() -> Graph:
    """The shipped catalog without any claims."""
    return unclaimed(shipped())


def rule(code: str) -> Rule:
    """The rule of that code."""
    return next(r for r in KNOWN.rules if r.code.id == code)


def path(text: str) -> DocumentPath:
    """``spec.memory.capacity`` as a path."""
    return tuple(int(step) if step.isdigit() else step for step in text.split("."))


def put(graph: Graph, name: str, at: str, value: Any) -> Graph:
    """The graph with another value below ``spec``: a text becomes a figure, anything else stays what it is."""
    return graph.replace(name, _put(graph.named(name).spec, path(at), value))


def _put(spec: Any, steps: DocumentPath, value: Any) -> Any:
    step, *rest = steps
    old = getattr(spec, str(step))
    if rest:
        return attrs.evolve(spec, **{str(step): _put(old, tuple(rest), value)})
    return attrs.evolve(spec, **{str(step): Figure(value=parse(value)) if isinstance(value, str) else value})


def claim(graph: Graph, name: str, at: str, says: int | str, **more: Any) -> Graph:
    """The graph with one more claim, the last of its document."""
    node = graph.named(name)
    source = Ref(more.pop("source", SOURCE))
    claims = (*node.claims, Claim(at=at, says=says, source=source, **more))
    return Graph({**graph.nodes, node.name: attrs.evolve(node, claims=claims)})


def unclaimed(graph: Graph, *names: str) -> Graph:
    """The graph without the claims of some documents, or of all."""
    chosen = names or tuple(graph.nodes)
    return Graph({**graph.nodes, **{n: attrs.evolve(graph.named(n), claims=()) for n in chosen}})


def beside(*texts: str) -> Graph:
    """Documents beside those of the shipped catalog; each text may hold several, as an example does."""
    files = [file for text in texts for file in split(text, KNOWN)]
    readings = [load_document(read_text(text, name), KNOWN) for name, text in files]
    graph = link([r for r in readings if r.node is not None])[0]
    return Graph({**shipped().nodes, **graph.nodes})


def findings(code: str, graph: Graph) -> list[Diagnostic]:
    """What one rule finds."""
    return run([rule(code)], graph)


def found(code: str, graph: Graph) -> set[tuple[str, str]]:
    """Where one rule finds something: document and path."""
    names = {node.document.file: node.name for node in graph}
    return {(names.get(d.where.file, d.where.file), dotted(d.where.path)) for d in findings(code, graph)}


def sites(graph: Graph, name: str, *paths: str) -> tuple[Site, ...]:
    """Sites of one document, by paths below ``spec``."""
    node: Node[Any] = graph.named(name)
    return tuple(Site(node, ("spec", *path(p))) for p in paths)


def term(graph: Graph, part: tuple[str, str], *counts: tuple[str, str], factor: int = 1) -> PartsTerm:
    """A term of a sum: the part and the counts as (document, path)."""
    return PartsTerm(tuple(sites(graph, *c)[0] for c in counts), sites(graph, *part)[0], Fraction(factor))


def interval(low: str, high: str | None = None) -> Interval:
    """The interval of one printed figure, or from the value of one to that of another."""
    return parse(low).interval if high is None else Interval(parse(low).value, parse(high).value)


def causes(text: str, *wanted: Interval | str, at: tuple[str, str] | Site | None = None, **more: Any) -> dict[str, str]:
    """What is reported about a figure that should have agreed with others: sentences by explanation."""
    graph = more.pop("graph", Graph({}))
    site = at if isinstance(at, Site) else sites(bare(), *(at or ("trainium1", "memory.stacks.capacity")))[0]
    expected = tuple(w if isinstance(w, Interval) else parse(w).interval for w in wanted)
    case = Mismatch(site, parse(text), expected, tuple(more.pop("terms", ())), tuple(more.pop("shares", ())), graph)
    assert not more
    return {e.id: e.sentence for e in explain_case(case)}


BANDWIDTH = ("trn2.48xlarge", "fabric.bandwidth.both")
PEAK = ("trainium1", "peak.dense.bf16")
FP32 = ("trainium1", "peak.dense.fp32")
SERVER_PEAK = ("trn1.32xlarge", "stated.peak.dense.bf16")
ULTRA_PEAK = ("trn2-ultraserver", "stated.peak.dense.bf16")


def of_server(graph: Graph | None = None, part: str = "peak.dense.bf16", server: str = "trn1.32xlarge") -> PartsTerm:
    graph = graph or bare()
    chip = graph.named(server).spec.chips.chip.name
    return term(graph, (chip, part), (server, "chips.count"))


def of_ultraserver(graph: Graph | None = None, part: str = "peak.dense.bf16") -> PartsTerm:
    counts = (("trn2-ultraserver", "servers.count"), ("trn2u.48xlarge", "chips.count"))
    return term(graph or bare(), ("trainium2", part), *counts)


def efa() -> PartsTerm:
    return term(bare(), ("trn2u.48xlarge", "network.bandwidth"), ("trn2-ultraserver", "servers.count"))


# A limit for what could run away: far above what it takes on a slow machine, and far below quadratic time.


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Fails after that much processor time, where the system has such a timer."""
    if not hasattr(signal, "setitimer"):
        yield
        return

    def stop(*_: object) -> NoReturn:
        raise AssertionError(f"still running after {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)
