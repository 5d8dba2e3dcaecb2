"""All export formats over all systems of the shipped catalog; run as a program, this module writes what they answer."""

from pathlib import Path

import pytest

import trnspec
from tests.support.engine import everything
from tests.support.stored import DATA, sample, sampled
from trnspec.builtin import plugin
from trnspec.catalog.catalog import Catalog
from trnspec.errors import TrnspecError, UsageError
from trnspec.output.exporters.exported import Export, ExportAssumption, ExportError, Used, markdown
from trnspec.yaml import read_file

CAT = trnspec.load()
FORMATS = {e.name: e for e in plugin.exporters}
OF_FABRICS = ("dot", "svg", "calculon", "astra-sim", "llm-analysis", "aiconfigurator")
"""The formats that need the fabric of a system, and name the figures that they use."""
OF_SYSTEMS = (*OF_FABRICS, "infragraph", "blis")
"""The formats that take a system, with or without a fabric."""
SYSTEMS = [*CAT.servers, *CAT.ultraservers]
FABRICLESS = {name for name, server in CAT.servers.items() if server.fabric is None}
STORED = "answers/exports.txt"

REFUSED = {
    **{(f, n): "no-fabric" for f in OF_FABRICS for n in FABRICLESS},
    # What a chip has to the switch of a server alone is not adopted; nor is what the racks have to each other.
    **{
        (f, n): "unknown-figure"
        for f in ("calculon", "llm-analysis", "aiconfigurator")
        for n in ("trn3-gen1-server", "trn3-gen2-server")
    },
    **{("aiconfigurator", n): "unknown-figure" for n in ("trn3-gen1-ultraserver", "trn3-gen2-ultraserver")},
    **{("astra-sim", n): "unknown-figure" for n in ("trn3-gen1-server", "trn3-gen2-server", "trn3-gen1-ultraserver")},
    ("astra-sim", "trn3-gen2-ultraserver"): "not-expressible",
}


def outcome(format: str, name: str) -> str:
    """The reason of the error, or an empty text."""
    try:
        result = CAT[name].export(format)
    except ExportError as error:
        return error.reason if f"{name} cannot be exported to {format}: " in str(error) else str(error)
    assert result.text.endswith("\n")
    assert CAT[name].export(format) == result, "the same document gives the same export"
    return ""


@pytest.mark.parametrize("format", FORMATS)
def test_every_system(format) -> None:
    expected = {name: REFUSED.get((format, name), "") for name in SYSTEMS}

    assert expected == {name: outcome(format, name) for name in SYSTEMS}


def exports(format: str) -> list[str]:
    """The exports of all systems, those of plugins too, and the messages of those that are refused."""
    catalog, lines = Catalog(everything()), list[str]()
    for name in (*catalog.servers, *catalog.ultraservers):
        try:
            made = catalog[name].export(format)
            lines += [*made.text.splitlines(), *map(str, made.assumptions)]
        except ExportError as error:
            lines += [str(error), error.hint]
    return [line[:160] for line in sample(format, lines, 3)]


@pytest.mark.parametrize("format", OF_SYSTEMS)
def test_answers(format) -> None:
    assert sampled(STORED, format) == exports(format)


def test_other_kinds_are_refused() -> None:
    reasons = {(f, n): outcome(f, n) for f in OF_FABRICS for n in ("trainium2", "neuroncore-v3", "trn1-ultracluster")}

    assert {"no-fabric"} == {r for (_, n), r in reasons.items() if n == "trainium2"}
    assert {"no-chips"} == {r for (_, n), r in reasons.items() if n != "trainium2"}


@pytest.mark.parametrize("format", OF_SYSTEMS)
@pytest.mark.parametrize("name", ["trn1.32xlarge", "trn2-ultraserver"])
def test_every_figure_that_is_used_is_in_the_catalog(format, name) -> None:
    made = CAT[name].export(format)

    assert made.used
    for used in made.used:
        figure = CAT[used.of].figure(used.at)
        assert (used.text, used.source, used.as_of) == (figure.value.text, figure.source_name, figure.as_of)
        if figure.derived is not None:
            assert any(a.field == used.field and figure.derived in a.says for a in made.assumptions), used


@pytest.mark.parametrize("format", [name for name in OF_SYSTEMS if FORMATS[name].inline])
def test_the_assumptions_stand_in_the_file(format) -> None:
    """JSON and the pictures escape some signs; without these the sentences are there word for word."""
    made = CAT["trn2-ultraserver"].export(format)
    text = made.text.replace('\\"', '"').replace("&gt;", ">").replace("&lt;", "<").replace("- -", "--")

    assert made.assumptions
    assert [] == [a for a in made.assumptions if str(a) not in text]


def test_the_page_beside_a_file() -> None:
    used = Used("rate", "1 GB/s", "chip", "memory.bandwidth", "page", "2024-02")
    made = Export("", (ExportAssumption("rate", "peak"), ExportAssumption("", "all of it")), (used,))

    expected = [
        "# Title",
        "",
        "## Assumptions",
        "",
        "- `rate`: peak",
        "- all of it",
        "",
        "## Figures",
        "",
        "| field | figure | document | at | source | date |",
        "|---|---|---|---|---|---|",
        "| `rate` | 1 GB/s | chip | memory.bandwidth | page | 2024-02 |",
    ]
    assert "\n".join([*expected, ""]) == markdown(made, "Title")


def test_only_json_takes_the_whole_catalog() -> None:
    assert '"name": "trainium2"' in CAT.export().text
    with pytest.raises(UsageError, match="exports one document at a time"):
        CAT.export("svg")


CAT_WITH_PLUGINS = Catalog(everything())
TABLE = read_file(Path(__file__).with_name("refusals.yaml")).data
CASES = [pytest.param(name, case, id=f"{name} {case['says'][0]}") for name, cases in TABLE.items() for case in cases]


@pytest.mark.parametrize(("format", "case"), CASES)
def test_refusal(format, case) -> None:
    catalog = CAT_WITH_PLUGINS
    for name, change in case.get("change", {}).items():
        catalog = catalog.replace(name, change)
    with pytest.raises(TrnspecError) as caught:
        catalog[case["of"]].export(format, use=case.get("use"))

    assert getattr(caught.value, "reason", None) == case.get("reason")
    message = str(caught.value)
    assert [] == [part for part in case["says"] if (part.removeprefix("!") in message) == part.startswith("!")]


if __name__ == "__main__":
    (DATA / STORED).write_text("".join(f"{line}\n" for format in OF_SYSTEMS for line in exports(format)), "utf-8")
