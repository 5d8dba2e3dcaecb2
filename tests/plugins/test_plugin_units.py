"""Units of plugins: known where the plugin is, and nowhere else in the same process."""

import copy
import pickle
from fractions import Fraction

import pytest

from tests.support.programs import Site, written
from trnspec.builtin import plugin as builtin
from trnspec.catalog.catalog import Catalog
from trnspec.errors import QuantityError, UsageError
from trnspec.loading.pipeline import link, load_document
from trnspec.plugins.api import API, Plugin, Registry
from trnspec.quantities.units import UNITS, Dimension, Unit
from trnspec.testing import diagnose
from trnspec.yaml import read_text

WORD = Unit("Mword", Dimension.INFORMATION, Fraction(4_000_000), ("Mwords",))
WORDS = Plugin(name="words", api=API, units=(WORD,))
WITH = Registry.of([builtin, WORDS])
WITHOUT = Registry.of([builtin])

PAGE = (
    "api_version: trnspec/v1\nkind: Source\nmetadata: {name: page, title: A page}\n"
    "spec: {publisher: Example, as_of: 2026-01, rank: vendor-chip-page}\n"
)
CHIP = """\
api_version: trnspec/v1
kind: Chip
metadata: {name: wordy, title: Wordy, source: page}
spec:
  peak: {dense: {bf16: 100 TFLOPS}}
  memory:
    capacity: 8,000 Mword
    bandwidth: 1 TB/s
claims:
  - {at: spec.memory.capacity, says: "8,000 Mwords", source: page, verdict: agrees, reason: It is the same.}
"""
FILES = {"sources/page.yaml": PAGE, "chips/wordy.yaml": CHIP}


def catalog(registry: Registry, files: dict[str, str] = FILES) -> Catalog:
    graph, problems = link([load_document(read_text(text, name), registry) for name, text in files.items()])
    assert [] == problems
    return Catalog(graph)


def test_documents_are_written_in_them() -> None:
    """The same two files, in turn, with and without the plugin: neither run knows of the other."""
    for _ in range(2):
        assert set() == diagnose(FILES, registry=WITH)
        assert {("chips/wordy.yaml", "TRN111", 7)} == diagnose(FILES, registry=WITHOUT)


def test_a_formula_in_them_is_underwas() -> None:
    for formula, found in (("4 x 2,000 Mword", set()), ("3 x 2,000 Mword", {("chips/wordy.yaml", "TRN404", 7)})):
        text = CHIP.replace("8,000 Mword\n", f'{{value: "8,000 Mword", derived: "{formula}"}}\n').partition("claims")[0]

        assert found == diagnose({**FILES, "chips/wordy.yaml": text}, registry=WITH)


def test_figures_convert_to_them_and_from_them() -> None:
    """Also a figure printed in a unit of the builtin, for the table travels with the figure; and what is computed."""
    asked = catalog(WITH)
    memory = asked.chips["wordy"].memory
    changed = asked.replace("wordy", {"memory.capacity": "16 GB"}).chips["wordy"].memory.capacity

    assert (32.0, 8000.0) == (memory.capacity.to("GB"), memory.capacity.to("Mword"))
    assert (16_000.0, 4000.0) == ((memory.capacity * 2).to("Mwords"), changed.to("Mword"))


def test_figures_of_another_registry_do_not() -> None:
    plain = CHIP.replace("8,000 Mword\n", "32 GB\n").partition("claims")[0]
    files = {**FILES, "chips/wordy.yaml": plain}

    assert 8000.0 == catalog(WITH, files).chips["wordy"].memory.capacity.to("Mword")
    with pytest.raises(QuantityError, match='unknown unit "Mword"'):
        catalog(WITHOUT, files).chips["wordy"].memory.capacity.to("Mword")
    with pytest.raises(QuantityError, match="measures information"):
        catalog(WITH, files).chips["wordy"].memory.bandwidth.to("Mword")


def test_the_table_is_one_value() -> None:
    """Two registries of the same plugins share what is made for a table; without units it is the table of trnspec."""
    assert WITH.units is Registry.of([builtin, WORDS]).units
    assert WITHOUT.units is UNITS
    assert WITH.units is pickle.loads(pickle.dumps(WITH.units))
    assert UNITS is pickle.loads(pickle.dumps(UNITS)) is copy.deepcopy(UNITS)
    assert "Mword" not in UNITS


@pytest.mark.parametrize(
    ("unit", "message"),
    [
        (Unit("GB", Dimension.INFORMATION, 7), "the unit GB is already defined: GB measures information"),
        (Unit("Mword", Dimension.INFORMATION, 7), "the unit Mword is already defined: Mword measures information"),
        (Unit("word", Dimension.INFORMATION, 4, ("gb",)), "the unit gb differs from GB only in case"),
        (Unit("MWORD", Dimension.INFORMATION, 7), "the unit MWORD differs from Mword only in case"),
        (Unit("Kib", Dimension.INFORMATION, 1), "the unit Kib differs from KiB only in case"),
        (Unit("Gigabit", Dimension.INFORMATION, 1), "the unit Gigabit is ambiguous: it may be read as Gbit/s or Gbit"),
        (Unit("GB/chip", Dimension.INFORMATION, 1), 'the unit GB/chip contains the scope of a figure: write "GB"'),
    ],
)
def test_units_that_could_be_mistaken(unit, message) -> None:
    with pytest.raises(UsageError, match="the plugin other: ") as raised:
        Registry.of([builtin, WORDS, Plugin(name="other", api=API, units=(unit,))])
    assert message in str(raised.value)


# Installed.

HEAD = "from trnspec.quantities.units import Dimension, Unit"


@pytest.fixture
def site(tmp_path) -> Site:
    made = Site(tmp_path / "site")
    made.plugin("words", "units=(Unit('Mword', Dimension.INFORMATION, 4_000_000),)", head=HEAD)
    for name, text in FILES.items():
        written(made.folder / name, text.partition("claims")[0])
    return made


def test_plugin_units_on_the_command_line(site) -> None:
    checked = site.run("validate", ".")
    asked = site.run("query", "chip where memory.capacity = 8,000 Mword", "--catalog", ".", "--format", "csv")
    shown = site.run("show", "wordy", "--catalog", ".")
    alone = site.run("--no-plugins", "validate", ".", "--format", "json")

    assert (0, "") == (checked.status, checked.err), checked.out
    assert (0, ["wordy"]) == (asked.status, [line.partition(",")[0] for line in asked.out.splitlines()[1:]])
    assert "8,000 Mword" in shown.out
    assert ("TRN111", 7) in {(d["code"], d["line"]) for d in alone.data["diagnostics"]}


@pytest.mark.parametrize(
    ("units", "status", "message"),
    [
        ("Unit('MWORD', Dimension.INFORMATION, 3)", "ok", ""),
        ("Unit('tb', Dimension.INFORMATION, 3)", "clash", "the unit tb differs from TB only in case"),
        ("Unit('MWORD', Dimension.TIME, 3), Unit('MWord', Dimension.TIME, 4)", "clash", "the unit MWord differs from"),
        ("'Mword'", "invalid", "units[0] is of type str; a Unit is expected"),
        ("Unit('a b', Dimension.TIME, 3)", "broken", "a unit has 1 to 14 letters"),
    ],
)
def test_records(tmp_path, units, status, message) -> None:
    site = Site(tmp_path / "site")
    site.plugin("more", f"units=({units},)", head=HEAD)
    (record,) = site.run("plugin", "list", "--format", "json").data["plugins"]

    assert status == record["status"]
    assert message in record["message"]
