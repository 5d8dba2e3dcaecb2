"""trnspec.catalog.system_table: the contents of the checked documents."""

from tests.support.programs import ROOT
from trnspec.api import graph, registry
from trnspec.catalog.system_table import contents
from trnspec.loading.pipeline import link, load_document
from trnspec.text_table import rendered
from trnspec.yaml import read_text

KNOWN = registry()
HEAD = "api_version: trnspec/v1\nkind: {}\nmetadata: {{name: {}, title: T, source: paper}}\nspec: "
CHIP = HEAD.format("Chip", "one") + "{peak: {dense: {bf16: 667 TFLOPS}}, memory: {capacity: 96 GiB}}"
SERVER = HEAD.format("Server", "box") + "{chips: {chip: one, count: 16}}"
LINK = HEAD.format("Link", "wire") + "{connects: chips}"


def table(*targets: str, context: tuple[str, ...] = ()) -> list[str]:
    readings = [load_document(read_text(t, f"{i}.yaml"), KNOWN) for i, t in enumerate(targets)]
    readings += [load_document(read_text(t, f"c{i}.yaml"), KNOWN, target=False) for i, t in enumerate(context)]
    return rendered(contents(link(readings)[0]), 80).splitlines()


def test_systems_and_the_rest() -> None:
    """Totals are computed from the parts; what the chip does not state is a dash."""
    assert table(CHIP, SERVER, LINK) == [
        "system  chips     bf16 dense [PFLOPS]  memory [GiB]  bandwidth",
        "------  --------  -------------------  ------------  ---------",
        "one                             0.667            96  -",
        "box     16 x one               10.672         1,536  -",
        "",
        "1 link, 2 figures and 0 other claims.",
    ]


def test_system_table_excludes_the_context() -> None:
    """The context gives the figures and no rows."""
    assert [line.split()[0] for line in table(SERVER, context=(CHIP,))[2:3]] == ["box"]
    assert table(SERVER, context=(CHIP, LINK))[-1].split()[:2] == ["0", "figures"]


def test_every_shipped_system_has_a_row() -> None:
    files = [f for kind in ("cores", "chips", "servers", "ultraservers") for f in (ROOT / "catalog" / kind).iterdir()]
    rows = {line.split()[0] for line in table(*(f.read_text(encoding="utf-8") for f in files)) if line}

    names = {node.name for node in graph() if node.kind in ("Chip", "Server", "UltraServer")}
    assert names <= rows


def test_the_shipped_table_fits_a_terminal() -> None:
    files = [f for kind in ("chips", "servers", "ultraservers") for f in (ROOT / "catalog" / kind).iterdir()]

    assert max(len(line) for line in table(*(f.read_text(encoding="utf-8") for f in files))) <= 80
