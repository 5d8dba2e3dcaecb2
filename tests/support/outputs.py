"""Results that exporters and reporters write."""

from typing import Any

from hypothesis import strategies as st

import trnspec
from trnspec.diagnostics import Code, Diagnostic, Location, Report, Severity
from trnspec.yaml import Place

# A server with any fabric, for the tests of what draws and writes fabrics.

CAT = trnspec.load()

TOPOLOGIES = st.one_of(
    st.tuples(st.sampled_from(["torus", "mesh"]), st.lists(st.integers(1, 4), min_size=1, max_size=4)),
    st.tuples(
        st.sampled_from(["ring", "chain", "fully-connected"]), st.lists(st.integers(1, 12), min_size=1, max_size=1)
    ),
    st.tuples(st.just("hypercube"), st.lists(st.integers(0, 5), min_size=1, max_size=1)),
)


def with_topology(shape: str, dims: list[int]) -> trnspec.Catalog:
    """The catalog with another fabric in trn1.32xlarge."""
    count = 2 ** dims[0] if shape == "hypercube" else 1
    for size in dims if shape != "hypercube" else []:
        count *= size
    dimensions = {"dimensions": dims} if shape != "hypercube" or dims[0] else {}
    changes = {"chips.count": count, "fabric.topology": {"shape": shape, **dimensions}}
    return CAT.replace("trn1.32xlarge", changes)


# Reports for the tests of the reporters: three by hand, and a strategy for any other.

SERVER = "catalog/servers/trn1.32xlarge.yaml"
CHIP = "catalog/chips/trainium1.yaml"
AGGREGATE = Diagnostic(
    "TRN402",
    Severity.ERROR,
    "stated 3.4 PFLOPS, but 16 x 190 TFLOPS = 3.04 PFLOPS",
    Location(SERVER, Place(2, 18), ("spec", "stated", "bf16"), "3.4 PFLOPS"),
    hint="write 3.04 PFLOPS, or add a claim\nand say whose figure it is",
    see=(Location(CHIP, Place(14, 20), ("spec", "peak", "dense", "bf16"), "190 TFLOPS"),),
    name="aggregate-mismatch",
)
UNUSED = Diagnostic("TRN901", Severity.WARNING, "the waiver suppresses nothing", Location(SERVER, Place(5, 3)))
NOTE = Diagnostic("TRN950", Severity.INFO, "50% of the figures have a date", Location(CHIP), name="few-dates")
CODE = Code(
    "TRN402", "aggregate-mismatch", Severity.ERROR, "A total is not the sum.\nOf its parts.\n\nWhy\n---\nIt is."
)
CHECKED = {"Chip": 4, "Server": 10}
CLEAN = Report((), checked=CHECKED, files=14, codes=(CODE,))
FULL = Report((NOTE, UNUSED, AGGREGATE), checked=CHECKED, files=14, waived=3, codes=(CODE,))
TEXTS = {SERVER: "spec:\n  stated: {bf16: 3.4 PFLOPS}\n"}


def one(where: Location, message: str = "m", **more: Any) -> Report:
    """A report with a single error."""
    return Report((Diagnostic("TRN001", Severity.ERROR, message, where, **more),), checked={"Chip": 1})


# Left to chance, the characters that some format treats in its own way would hardly ever come up.
NASTY = "\x00\x1b\t\n\r\x85\xa0\u2028\u202e\ud800\udfff\ufeff\ufffe\U000e0001:,%~01/\\{}[]()<>&\"'\u6f22"
texts = st.text(st.sampled_from(NASTY) | st.characters(exclude_categories=()), max_size=12)
places = st.none() | st.builds(Place, st.integers(1, 9), st.integers(1, 300))
locations = st.builds(
    Location, texts, places, st.lists(texts | st.integers(0, 99), max_size=3).map(tuple), texts | st.just("key")
)
severities = st.sampled_from(Severity)
diagnostics = st.builds(
    Diagnostic, texts, severities, texts, locations, texts, st.lists(locations, max_size=2).map(tuple), texts
)
counts = st.integers(0, 10**6)
reports = st.builds(
    Report,
    st.lists(diagnostics, max_size=4).map(tuple),
    st.dictionaries(texts, counts, max_size=2),
    counts,
    counts,
    st.lists(st.builds(Code, texts, texts, severities, texts), max_size=2).map(tuple),
)
