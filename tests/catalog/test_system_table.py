"""trnspec.catalog.system_table: the contents of the checked documents."""

from tests.support.programs import ROOT
from tests.support.rules import document
from tests.support.rules import graph as small
from trnspec.api import graph, registry
from trnspec.catalog.newest import newest_first
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
    """In a table that fits a terminal."""
    files = [f for kind in ("cores", "chips", "servers", "ultraservers") for f in (ROOT / "catalog" / kind).iterdir()]
    lines = table(*(f.read_text(encoding="utf-8") for f in files))

    names = {node.name for node in graph() if node.kind in ("Chip", "Server", "UltraServer")}
    assert names <= {line.split()[0] for line in lines if line}
    assert max(map(len, lines)) <= 80


def test_documents_without_chips_are_last() -> None:
    """Also after those whose chip has no rate."""
    made = small(
        document("Link", "a", "spec: {connects: chips}"), document("Chip", "b", "spec: {memory: {capacity: 1 GB}}")
    )
    assert [node.name for node in newest_first(made, made)] == ["b", "a"]
