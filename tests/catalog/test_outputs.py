"""Outputs of small catalogs: views, tables, queries and their errors, differences, dates.

``tests/data/answers/catalog.txt`` has a line of each wording, and after them the number and a checksum of all lines.  After a change
of an output, ``python tests/catalog/test_outputs.py`` writes it; read the difference.
"""

import re
import sys
from fractions import Fraction
from inspect import signature
from pathlib import Path

import pytest
from attrs import asdict, evolve

# Run as a program, too.
sys.path.extend(map(str, Path(__file__).parents[2].glob("plugins/*/src")))

from collections.abc import Callable, Iterator

from tests.support.rules import KNOWN, document, files, graph, linked, slips, source
from tests.support.small_catalog import CAT, GRAPH
from tests.support.stored import DATA, sample, sampled
from trnspec.catalog.catalog import Catalog
from trnspec.catalog.charts import comparison, history, year
from trnspec.catalog.query.parser import parse_condition, parse_query, parse_term
from trnspec.catalog.tables import CatalogTable, csv_files, json_text, tables
from trnspec.catalog.versions.as_of import as_of
from trnspec.catalog.versions.changes import changed
from trnspec.catalog.versions.diff import differences
from trnspec.catalog.views import DocumentView
from trnspec.errors import TrnspecError
from trnspec.graph.facts import facts
from trnspec.graph.graph import Graph
from trnspec.loading.pipeline import link, load_document
from trnspec.yaml import read_text

STORED = "answers/catalog.txt"

# A catalog with clusters, prices and powers, and what it was before.
PAGES = [source("old", "2022-05-01"), source("mid", "2023-04"), source("new", "2024-06-02"), source("late", "2024-12", dating="not-before"),
         source("blog", "2023-09-09", "third-party")]  # fmt: skip
DATA_OF = read_text(Path(__file__).with_name("outputs.yaml").read_text("utf-8"), "outputs.yaml").data
WIRE, PART, OTHER, BOX, CLUSTER, PRICE, POWER, FORMER, GONE = DATA_OF["documents"].values()
NOW = graph(*PAGES, WIRE, PART, OTHER, BOX, CLUSTER, PRICE, POWER)
THEN = graph(*PAGES[:2], FORMER, document("Chip", "before", "spec: {memory: {capacity: 16 GiB}}", "source: old"), GONE)

ERRORS, OPTIONS, QUERIES, CHANGES, WORDS = (
    DATA_OF[key] for key in ("errors", "options", "queries", "changes", "words")
)
FOUND = [tuple(row) for row in DATA_OF["found"]]
DATES = ["2022", "2022-05", "2023-03", "2023-04", "2023-10", "2024-06-01", "2024-06-02", "2024-11", "2025"]


def error(call: Callable[[], object]) -> str:
    try:
        return str(call())
    except TrnspecError as refused:
        return f"{type(refused).__name__}: {refused}"


def known(made: Graph) -> Iterator[str]:
    """Every fact of every document, with all that is known of it."""
    for node in sorted(made, key=lambda n: (n.kind, n.name)):
        if node.kind != "Source":
            for f in facts(made, node):
                shown = f"{f.text} [{f.source} {f.as_of}] {f.where} {f.verdict} {f.reason} {f.note}"
                claims = "; ".join(f"{c.says} {c.source} {c.where} {c.verdict} {c.reason}" for c in f.conflicting)
                yield f"{node.name} {f.at}: {' '.join(shown.split())} | {' '.join(claims.split())}"


def views(catalog: Catalog) -> Iterator[str]:
    yield from (repr(catalog), *catalog._repr_markdown_().splitlines())
    for view in catalog:
        yield from (repr(view), *view._repr_markdown_().splitlines())
        for attribute in ("chip_count", "chip_view", "topology"):
            yield f"{view.name}.{attribute}: {error(lambda: getattr(view, attribute))}"  # noqa: B023  # called here
        if view.kind == "Source":
            continue
        for path in ("memory.capacity", "memory.capcity", "launched", "peak.dense.fp8"):
            yield f"{view.name}.total({path}): {error(lambda: view.total(path))}"  # noqa: B023
            yield f"{view.name}.figure({path}): {error(lambda: view.figure(path).value)}"  # noqa: B023
        yield f"{view.name}.draws: {[str(d) for d in view.draws()]}, tdp {[str(d) for d in view.draws('tdp')]}"
    for documents in (catalog.cores, catalog.chips, catalog.links, catalog.servers, catalog.ultraservers, catalog.clusters,
                      catalog.prices, catalog.power, catalog.models, catalog.sources):  # fmt: skip
        yield f"{documents!r} {len(documents)} {documents._ipython_key_completions_()}"
        yield error(lambda: documents["prt"])  # noqa: B023
    yield str([str(q) for q in catalog.servers["box"].prices()])


def test_views_are_compared_by_value() -> None:
    """A view of another catalog with the same values is equal; catalogs are compared by diff."""
    one, two = Catalog(NOW), Catalog(NOW)
    assert one != two
    for view in one:
        assert view == two[view.name], view
    kinds = {kind for view in DocumentView.__subclasses__() for kind in (view, *view.__subclasses__())}
    assert not [kind for kind in kinds if "__eq__" in vars(kind)]
    assert list(signature(Catalog).parameters) == ["graph", "edition", "as_of", "unknown"]


def queries() -> Iterator[str]:
    for text in ERRORS:
        yield from (repr(text), *error(lambda: CAT.query(text)).splitlines())  # noqa: B023  # called here
    for given in OPTIONS:
        yield from (repr(given), *error(lambda: CAT.query("chip", **given)).splitlines())  # noqa: B023
    for text in QUERIES:
        yield str(parse_query(text))


def slips_in_queries() -> Iterator[str]:
    """Each word of valid queries replaced by others: what is found, or the error."""
    texts = [*(text for text, _ in FOUND), *QUERIES]
    for number, text in enumerate(texts):
        words = text.split()
        for index in range(len(words)):
            for other in (WORDS[(7 * number + 5 * index + step) % len(WORDS)] for step in (0, 9)):
                changed_text = " ".join([*words[:index], other, *words[index + 1 :]])
                yield f"{changed_text}: {error(lambda: _names(changed_text))}"  # noqa: B023  # called here


def conditions() -> Iterator[str]:
    """Conditions in which a path alone is true or false, with percentages; columns and sort keys."""
    for text in DATA_OF["conditions"]:
        yield f"{text}: {error(lambda: f'{parse_condition(text)!r} {parse_condition(text)}')}"  # noqa: B023  # called here
        yield f"term {text}: {error(lambda: repr(parse_term(text)))}"  # noqa: B023


def _names(text: str) -> str:
    result = CAT.query(text)
    return f"{[view.name for view in result]} {[view.name for view in result.undecided]} {result.columns}"


def lists() -> Iterator[str]:
    """Catalogs of as many links as are named, and of more."""
    for number in (1, 7, 8, 9, 10):
        yield from (
            Catalog(graph(*(document("Link", f"l{n}", "spec: {connects: chips}") for n in range(number))))
            ._repr_markdown_()
            .splitlines()
        )


def results() -> Iterator[str]:
    for text, given in FOUND:
        result = CAT.query(text, **given)
        yield from (text, repr(result), *str(result).splitlines(), *result._repr_markdown_().splitlines())
        yield f"{dict(result.units)} {[{k: str(v) for k, v in record.items()} for record in result.records()]}"
        yield f"{result[:1]!r} {[view.name for view in result.undecided]}"


def dates() -> Iterator[str]:
    before: set[str] = set()
    for date in DATES:
        made, unknown = as_of(NOW, date)
        lines = [*known(made), *(f"{name}: {reason}" for name, reason in sorted(unknown.items()))]
        yield from (f"as of {date}", *(f"+ {line}" for line in lines if line not in before))
        yield from (f"- {line}" for line in sorted(before - set(lines)))
        before = set(lines)


def changes() -> Iterator[str]:
    node = NOW.named("part")
    for given in CHANGES:
        spec = error(lambda: changed(node, given))  # noqa: B023  # called here
        yield f"{given}: {spec if spec.startswith('UsageError') else ''}"
        if not spec.startswith("UsageError"):
            made = NOW.replace("part", changed(node, given))
            yield from (line for line in known(made) if line not in NOW_KNOWN)


LONG_GONE = {"gone": "a reason of many words, which is so long that it is continued on the next line of the output"}


def long(value: str, origin: str, note: str) -> Graph:
    """Figures and texts whose differences take several lines."""
    names = [f"a_figure_with_a_long_name_{letter}" for letter in "abcd"]
    other = ", ".join(f"{name}: {value}" for name in names)
    same = ", ".join(f"another_long_name_{letter}: 3 GB" for letter in "abcd")
    where = f"a place in this source that takes many words and of which some are on another line of {origin}"
    claims = "" if origin == "old" else (
        f"\nclaims: [{{at: 'spec.other.{{{','.join(names)}}}', says: 1 GB, source: old, verdict: superseded,"
        " reason: It was measured again with another instrument and it is twice as large as it was thought to be.}]"
    )  # fmt: skip
    link = document(
        "Link",
        "wire",
        f"spec: {{connects: chips, other: {{{other}, {same}}}}}{claims}",
        f"source: {origin}, where: {where}, note: {note} {where}",
    )
    gone = document("Link", "gone", "spec: {connects: chips}")
    return graph(*PAGES, link, *([gone] if origin == "old" else []))


def labels() -> Iterator[str]:
    catalog = Catalog(NOW)
    then = catalog.then("2023-04")
    yield from (repr(then), *str(then.diff(catalog)).splitlines(), *str(catalog.diff(catalog, "box")).splitlines())
    yield from str(Catalog(THEN, edition="2022.05").diff(then, "piece", "hall")).splitlines()
    yield from (
        error(lambda: then["hall"]),
        error(lambda: then.chips["hall"]),
        error(lambda: then.diff(catalog, "pat")),
    )
    yield error(lambda: then.query('server where chip = "hall"'))


def small(made: Graph, *names: str) -> dict[str, CatalogTable]:
    """Tables that have rows, with the columns that have values: a new attribute of a kind changes nothing here."""
    found = {}
    for name, table in tables(made).items():
        if table.rows and (not names or name in names):
            kept = [i for i in range(len(table.columns)) if any(row[i] is not None for row in table.rows)]
            rows = tuple(tuple(row[i] for i in kept) for row in table.rows)
            found[name] = evolve(table, columns=tuple(table.columns[i] for i in kept), rows=rows)
    return found


def differences_of_slips() -> Iterator[str]:
    before = linked()
    made = [slip for name in files() if not name.startswith("models/") for slip in slips(files(), name, 1)]
    for slip in made[::4]:
        yield str(slip)
        yield from [line for line in str(differences(before, linked(slip))).splitlines() if line][1:]


def dates_of_slips() -> Iterator[str]:
    """What a slip in the catalog of several dates changes at some dates."""
    texts = {f"{n}s/{re.findall('name: ([a-z-]+)', text)[0]}.yaml": text for n, text in zip(("source",) * 5 + ("chip", "server"), (*PAGES, PART, BOX), strict=True)}  # fmt: skip
    rest = [(f"rest-{i}.yaml", text) for i, text in enumerate((WIRE, OTHER, CLUSTER, PRICE, POWER))]
    dates = ("2022-05", "2023-10", "2024-06-02")
    before = {date: _dated(NOW, date) for date in dates}
    for slip in (slip for name in texts for slip in slips(texts, name, 1)):
        changed_texts = [*(texts | {slip.file: slip.text}).items(), *rest]
        made = link([load_document(read_text(text, name), KNOWN) for name, text in changed_texts])[0]
        yield str(slip)
        for date in dates:
            lines = _dated(made, date)
            yield from (f"{date} + {line}" for line in lines if line not in before[date])
            yield from (f"{date} - {line.partition(':')[0]}" for line in before[date] if line not in lines)


def _dated(made: Graph, date: str) -> list[str]:
    then, unknown = as_of(made, date)
    return [*known(then), *(f"{name}: {reason}" for name, reason in unknown.items())]


def charts() -> Iterator[str]:
    """The history of every figure, and ratios with a baseline."""
    for node in (node for node in NOW if node.kind != "Source"):
        for at in (*(fact.at for fact in facts(NOW, node)), "memory.capcity"):
            made = error(lambda: asdict(history(NOW, node, at)))  # noqa: B023  # called here
            yield f"{node.name} {at}: {_rounded(made)}"
    claims = ", ".join(f"{{at: spec.memory.capacity, says: {says} GiB, source: {name}, where: line {n}}}" for n, (says, name) in
                       enumerate([(32, "old"), (32, "old"), (32, "old"), (30, "mid"), (32, "mid"), (31, "mid"), (31, "mid")]))  # fmt: skip
    many = graph(
        *PAGES,
        document(
            "Chip", "many", f"spec: {{peak: {{}}, memory: {{capacity: 32 GiB}}}}\nclaims: [{claims}]", "source: new"
        ),
    )
    yield _rounded(str(asdict(history(many, many.named("many"), "memory.capacity"))))
    none: tuple[None, ...] = (None, None)
    ratios = {"a": (Fraction(1), (0.9, 1.1)), "b": (Fraction(2), (1.9, None)), "c": (Fraction(0), (0.0, 0.1))}
    rows = [(at, f"{at} text", (ratios[one], *(ratios.get(other) for other in others)))
            for at, one, others in (("x", "a", "bc"), ("y", "a", "b-"), ("z", "a", "aa"), ("w", "a", "-b"), ("v", "a", "--"))]  # fmt: skip
    for base in range(3):
        yield _rounded(error(lambda: asdict(comparison(["one", "two", "three"], base, rows, ["s1", "s2"]))))  # noqa: B023
    yield error(lambda: asdict(comparison(["one", "two"], 0, [("x", "t", none), rows[2]], [])))
    yield from (
        f"{text}: {_rounded(str(year(text)))}"
        for text in ("2024", "2023", "2024-02", "2024-12", "2024-12-31", "2023-01-01")
    )


def _rounded(text: str) -> str:
    return re.sub(r"\d+\.\d+", lambda number: f"{float(number[0]):.6g}", text)


NOW_KNOWN = set(known(NOW))
OUTPUTS: dict[str, Callable[[], Iterator[str]]] = {
    "views of the first catalog": lambda: views(CAT),
    "views of the second catalog": lambda: views(Catalog(NOW)),
    "tables": lambda: (line for name, text in csv_files(small(NOW), {"edition": "2026.12"}).items() for line in (name, *text.splitlines())),
    "tables of the first catalog": lambda: (line for name, text in csv_files(small(GRAPH), {}).items() if name != "tables.json"
                                            for line in text.splitlines()),
    "tables in JSON": lambda: iter(json_text(small(NOW, "links", "clusters"), {"edition": None}).splitlines()),
    "queries": queries,
    "results": results,
    "dates": dates,
    "changes": changes,
    "labels": labels,
    "lists": lists,
    "conditions": conditions,
    "slips in queries": slips_in_queries,
    "differences of slips": differences_of_slips,
    "dates of slips": dates_of_slips,
    "charts": charts,
    "long differences": lambda: iter(str(differences(long("1 GB", "old", "A first note."), long("2 GB", "new", "Another note."), unknown=({}, LONG_GONE))).splitlines()),
    "differences": lambda: iter([*str(differences(THEN, NOW)).splitlines(), *str(differences(NOW, THEN, called=("now", "then"))).splitlines(),
                                 *map(repr, differences(THEN, NOW, unknown=({"box": "no source"}, {"rope": "gone"})).added),
                                 *map(repr, differences(THEN, Graph(NOW.nodes, {"before": "b.yaml"}), ["before", "rope"]).unread.items())]),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTPUTS)
def test_outputs_by_wording(name) -> None:
    assert sampled(STORED, name) == sample(name, OUTPUTS[name](), 6)


if __name__ == "__main__":
    lines = [line for name, made in OUTPUTS.items() for line in sample(name, made(), 6)]
    (DATA / STORED).write_text("".join(f"{line}\n" for line in lines), "utf-8")
