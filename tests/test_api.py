"""trnspec.api: which files are checked, and what their names resolve against."""

import shutil
from pathlib import Path

import pytest
from attrs import evolve

from tests.support.programs import ROOT
from trnspec.api import graph, load_documents, owners, registry, search, select, sweep, validate
from trnspec.checks.runner import check
from trnspec.errors import UsageError
from trnspec.loading.files import shipped
from trnspec.loading.pipeline import LoadResult, load_document
from trnspec.loading.precedence import CatalogWarning
from trnspec.loading.settings import Settings
from trnspec.plugins.api import API, Plugin, Registry
from trnspec.yaml import read_file

KNOWN = registry()
FILES = sorted(f.relative_to(ROOT / "catalog").as_posix() for f in (ROOT / "catalog").rglob("*.yaml"))
# The first two of each kind, and some of all.
SOME = sorted(
    {*FILES[::40], *(f for i, f in enumerate(FILES) if FILES[max(i - 2, 0)].split("/")[0] != f.split("/")[0])}
)


@pytest.fixture
def copy(tmp_path: Path, monkeypatch) -> Path:
    """A copy of the shipped catalog; its folder is the current one."""
    shutil.copytree(ROOT / "catalog", tmp_path / "copy")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "copy"


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")

    assert old in text

    file.write_text(text.replace(old, new), encoding="utf-8")


def marks(*paths: str | Path, **settings) -> set[tuple[str, str]]:
    """What is found, as (file, code)."""
    report = validate(map(str, paths), settings=Settings(**settings)).report
    return {(d.where.file, d.code) for d in report.diagnostics}


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """A copy of the catalog, and the reading of each file, once."""
    root = tmp_path_factory.mktemp("copy") / "catalog"
    shutil.copytree(ROOT / "catalog", root)
    known: dict[Path, LoadResult] = {}

    def reading(file: Path, *, target: bool) -> LoadResult:
        if file not in known:
            known[file] = load_document(read_file(file), KNOWN, target=False)
        return targeted(known[file], target)

    def targeted(found: LoadResult, target: bool) -> LoadResult:
        node = found.node and evolve(found.node, target=target)
        return evolve(found, target=target, node=node, parts=tuple(targeted(part, target) for part in found.parts))

    return root, reading


@pytest.mark.slow
@pytest.mark.parametrize("name", SOME)
def test_each_file_alone_is_clean(shared, name) -> None:
    """A file of a copy resolves against the copy first and the shipped catalog second, and nothing is found."""
    root, reading = shared
    chosen = select([str(root / name)], KNOWN, Settings())
    texts = [reading(Path(f), target=True) for f in chosen.targets] + [
        reading(Path(f), target=False) for f in chosen.context
    ]
    checked = check(texts, KNOWN)

    assert checked.report.diagnostics == ()
    assert sum(checked.report.checked.values()) == max(1, len(texts[0].parts))
    assert {root} == {Path(n.document.file).parents[1] for n in checked.graph}


def test_edited_chip_disagrees_with_the_servers(copy: Path) -> None:
    """The chip alone is named; the servers that take part are reported, each in its own file or beside the chip."""
    edit(copy / "chips" / "trainium1.yaml", "bf16: 190 TFLOPS", "bf16: 210 TFLOPS")
    report = validate(["copy/chips/trainium1.yaml"]).report
    mismatches = [d for d in report.diagnostics if d.code == "TRN402"]
    files = {w.file for d in mismatches for w in (d.where, *d.see)}

    assert mismatches
    assert "copy/chips/trainium1.yaml" in files
    assert str(copy / "servers" / "trn1.32xlarge.yaml") in files


@pytest.mark.parametrize("name", ["links/efa.yaml", "sources/neuron-trn2-2026-08.yaml", "chips/trainium2.yaml"])
def test_unrelated_file_is_clean(copy: Path, name) -> None:
    edit(copy / "chips" / "trainium1.yaml", "bf16: 190 TFLOPS", "bf16: 210 TFLOPS")

    assert set() == marks(copy / name)


def test_shipped_catalog_is_the_second_choice(tmp_path: Path) -> None:
    """A file in a folder of its own refers to what is shipped, and may have the name of what is shipped."""
    shutil.copy(ROOT / "catalog" / "servers" / "trn1.32xlarge.yaml", tmp_path)

    assert set() == marks(tmp_path / "trn1.32xlarge.yaml")


def test_broken_context(copy: Path) -> None:
    """It is reported where it is referred to, and nowhere else; the shipped document does not hide it."""
    (copy / "chips" / "trainium1.yaml").write_text("kind: [")
    server = "copy/servers/trn1.32xlarge.yaml"

    assert (server, "TRN203") in marks(server)
    # The formula of a scope names the broken document too, which is one finding.
    assert {"TRN203"} == {code for _, code in marks(server)}
    assert set() == marks("copy/servers/trn2.48xlarge.yaml")


def test_named_catalog_comes_before_the_shipped_one(copy: Path, tmp_path: Path) -> None:
    shutil.copy(ROOT / "catalog" / "servers" / "trn1.32xlarge.yaml", tmp_path)
    edit(copy / "chips" / "trainium1.yaml", "name: trainium1", "name: another")
    edit(copy / "chips" / "trainium1.yaml", "aliases: [trainium]", "aliases: [trainium1]")
    checked = validate(["trn1.32xlarge.yaml"], settings=Settings(catalogs=(Path("copy"),)))

    assert checked.graph.named("trainium1").name == "another"


def test_catalogs_of_plugins_are_context(tmp_path: Path) -> None:
    """A document may refer to what any plugin of the registry brings."""
    theirs = tmp_path / "theirs"
    (theirs / "links").mkdir(parents=True)
    text = "api_version: trnspec/v1\nkind: Link\nmetadata: {name: NAME, title: T}\nspec: {connects: chips}\n"
    (theirs / "links" / "wire.yaml").write_text(text.replace("NAME", "wire"))
    (tmp_path / "mine.yaml").write_text(text.replace("NAME", "mine"))
    known = Registry.of([*KNOWN.plugins, Plugin(name="theirs", api=API, catalogs=(theirs,))])

    assert theirs / "links" / "wire.yaml" in map(Path, select([str(tmp_path / "mine.yaml")], known, Settings()).context)
    (tmp_path / "linked.yaml").symlink_to(theirs / "links" / "wire.yaml")
    owner = owners(Registry.of([KNOWN.plugins[0], known.plugins[-1]]))
    files = (theirs / "links" / "wire.yaml", tmp_path / "linked.yaml", tmp_path / "mine.yaml", theirs / "mine.yaml")
    assert ["theirs", "theirs", "", "theirs"] == [owner(str(file)) for file in files]
    assert "" == owners(Registry.of([KNOWN.plugins[0]]))(str(shipped() / "links" / "efa.yaml"))


def test_file_that_vanishes(copy: Path) -> None:
    """It was there when it was selected: one finding, for that file."""
    found = select(["copy/links"], KNOWN, Settings())
    (copy / "links" / "efa.yaml").unlink()
    problems = {(r.document.file, p.code) for r in load_documents(found, KNOWN) for p in r.problems}

    assert {("copy/links/efa.yaml", "TRN001")} == problems


def test_a_document_that_cannot_be_used_replaces_none(tmp_path):
    text = (ROOT / "catalog" / "chips" / "trainium2.yaml").read_text("utf-8")
    (tmp_path / "trainium2.yaml").write_text(text.partition("\nspec:")[0] + "\nspec: 2\n", "utf-8")
    with pytest.warns(CatalogWarning, match=r"the document is left out \(the catalog ") as warned:
        found = graph([str(tmp_path)]).named("trainium2")
    assert __file__ == warned[0].filename
    assert shipped() / "chips" / "trainium2.yaml" == Path(found.document.file)
    (tmp_path / "trainium2.yaml").write_text(text, "utf-8")
    found = graph(settings=Settings(catalogs=(tmp_path,))).named("trainium2")
    assert tmp_path / "trainium2.yaml" == Path(found.document.file)


def test_a_sweep_has_a_row_for_each_value() -> None:
    assert len(sweep("roofline", on=["trainium1", "trainium2"]).rows) == 2
    with pytest.raises(UsageError, match="on has no values to sweep"):
        sweep("roofline", on=[])


@pytest.mark.parametrize(("parts", "message"), [(0, "parts: a number of at least 1 is expected, not 0"), (1, "model")])
def test_a_search_has_at_least_one_part(parts, message) -> None:
    with pytest.raises(UsageError, match=message):
        search(parts=parts)
