"""trnspec.catalog.versions.editions: the same documents give the same bytes, and no byte of them is changed unnoticed."""

import functools
import gzip
import random
import subprocess
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.programs import environment, written
from tests.support.rules import KNOWN, document, graph, source
from tests.support.schema import documents
from trnspec.api import load
from trnspec.catalog.versions import editions
from trnspec.catalog.versions.editions import FOLDER, RELEASED, freeze, part, read, verify, write
from trnspec.errors import EditionError, UnknownNameError, UsageError
from trnspec.graph.graph import Graph
from trnspec.loading.files import shipped
from trnspec.loading.structure import plain, structure
from trnspec.plugins.api import API, Plugin, Registry
from trnspec.yaml import Document, Places

SHIPPED = shipped() / FOLDER


def plains(found: Graph) -> dict[str, object]:
    return {name: plain(node) for name, node in found.nodes.items()}


@functools.cache
def whole() -> Graph:
    return load().graph


@functools.cache
def small(name: str = "2026.11") -> str:
    """A short edition."""
    chip = document("Chip", "part", "spec: {peak: {}, memory: {capacity: 32 GiB}}", "source: page")
    return freeze(graph(source("page", "2024-01-01"), chip, document("Server", "whole", _SERVER, "note: é")), name)


_SERVER = "spec: {chips: {chip: part, count: 4}}"
OTHER = freeze(graph(source("page", "2024-01-01")), "2026.11")


def test_edition_round_trip() -> None:
    found = read(freeze(whole(), "2026.11"), KNOWN)

    assert plains(whole()) == plains(found)
    assert "edition 2026.11: chips/trainium1" == found.nodes["trainium1"].document.file


@given(st.randoms(use_true_random=False))
def test_order_of_documents_is_ignored(chance: random.Random) -> None:
    """Documents in another order, with their keys in another order, give the same bytes."""
    nodes = list(read(small(), KNOWN))
    chance.shuffle(nodes)

    def shuffled(value):
        if isinstance(value, dict):
            keys = list(value)
            chance.shuffle(keys)
            return {k: shuffled(value[k]) for k in keys}
        return [shuffled(v) for v in value] if isinstance(value, list) else value

    again = [structure(n.kind, type(n.spec), n.document, shuffled(plain(n))) for n in nodes]

    assert small() == freeze(Graph({n.name: n for n in again}), "2026.11")


@pytest.mark.slow
@given(st.data())
def test_edition_round_trip_of_random_documents(data) -> None:
    """Whatever the schemas allow can be frozen, and comes back the same."""
    kinds = data.draw(st.lists(st.sampled_from(sorted(KNOWN.kinds)), max_size=3, unique=True))
    nodes = {}
    for name in kinds:
        found = data.draw(documents(name))
        node = structure(name, KNOWN.kinds[name].spec, Document("file", found, Places(), (), ""), found)
        nodes[node.name] = node
    text = freeze(Graph(nodes), "2026.11")
    again = {d["metadata"]["name"]: d for d in verify(text.encode()).documents}

    assert {name: plain(node) for name, node in nodes.items()} == again


@given(st.data())
def test_a_changed_byte_is_refused(data) -> None:
    raw = small().encode()
    at = data.draw(st.integers(0, len(raw) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda b: b != raw[at]))
    with pytest.raises(EditionError):
        verify(raw[:at] + bytes([byte]) + raw[at + 1 :])


def test_broken_documents_are_not_frozen() -> None:
    with pytest.raises(UsageError, match=r"documents with errors: odd \(odd.yaml\)"):
        freeze(Graph({}, {"odd": "odd.yaml"}), "2026.11")


def test_a_kind_that_is_not_installed() -> None:
    with pytest.raises(EditionError, match="the kind Chip, which is not installed"):
        read(small(), Registry.of([Plugin(name="empty", api=API)]))


def test_partial_edition_includes_references() -> None:
    """Documents beside it, of a plugin for instance, are not frozen with a catalog."""
    from attrs import evolve

    nodes = {n.name: evolve(n, target=n.name == "trn1.2xlarge") for n in whole()}
    kept = part(Graph(nodes))

    assert {"trn1.2xlarge", "trainium1", "neuroncore-v2", "neuron-trn1-2026-08"} <= set(kept.nodes)
    assert "trainium2" not in kept.nodes
    assert plains(read(freeze(kept, "2026.11"), KNOWN)) == plains(kept)


def test_writing(tmp_path) -> None:
    folder = tmp_path / "catalog" / "editions"
    for name in ("2026.11.10", "2026.11", "2026.11.9"):
        write(folder, name, small(name))

    assert ("2026.11", "2026.11.9", "2026.11.10") == editions.names(folder)
    assert [f"{n}.json" for n in editions.names(folder)] == [
        line.split()[1] for line in (folder / RELEASED).read_text().splitlines()
    ]
    assert {RELEASED, "2026.11.json.gz", "2026.11.9.json.gz", "2026.11.10.json.gz"} == {
        f.name for f in folder.iterdir()
    }


def test_the_next_name_follows_the_last(tmp_path) -> None:
    for name in ("2026.11", "2026.11.1", "2026.11.2"):
        write(tmp_path, name, small(name))
    with pytest.raises(EditionError, match=r"such as 2026\.11\.3$"):
        write(tmp_path, "2026.11", OTHER)


def test_an_edition_is_not_written_over(tmp_path) -> None:
    """The same once more is nothing; something else is refused and leaves all as it was."""
    file = write(tmp_path, "2026.11", small())
    before = {f.name: f.read_bytes() for f in tmp_path.iterdir()}
    write(tmp_path, "2026.11", small())
    with pytest.raises(EditionError, match=r"another name, such as 2026\.11\.1"):
        write(tmp_path, "2026.11", OTHER)

    assert before == {f.name: f.read_bytes() for f in tmp_path.iterdir()}

    file.unlink()
    with pytest.raises(EditionError, match="frozen with other contents"):
        write(tmp_path, "2026.11", OTHER)


def test_failed_write_leaves_no_file(tmp_path, monkeypatch) -> None:
    """The disk is full when the file is to be flushed."""

    def full(number):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write(tmp_path, "2026.11", small())

    assert [] == list(tmp_path.iterdir())


def test_loading(tmp_path) -> None:
    """An edition and the working catalog live side by side."""
    write(
        tmp_path / FOLDER, "2026.11", freeze(whole().replace("trainium1", whole().named("trainium2").spec), "2026.11")
    )
    old, now = load([str(tmp_path)], edition="2026.11"), load()

    assert (96, 32) == tuple(c.chips["trainium1"].memory.capacity.to("GiB") for c in (old, now))
    assert "2026.11" == old.edition
    assert "edition 2026.11" in repr(old)


def test_unknown_editions(tmp_path) -> None:
    with pytest.raises(UnknownNameError, match=r"there is no edition '2026\.11'; there are none in"):
        load([str(tmp_path)], edition="2026.11")
    write(tmp_path / FOLDER, "2026.11", small())
    with pytest.raises(UnknownNameError, match=r"did you mean '2026\.11'"):
        load([str(tmp_path)], edition="2026.1")
    with pytest.raises(UnknownNameError, match=r"no edition '\.\./x'"):
        load([str(tmp_path)], edition="../x")


def test_former_edition_without_compression(tmp_path) -> None:
    written(tmp_path / FOLDER / "2026.11.json", small())
    write(tmp_path / FOLDER, "2026.11", small())

    assert {"2026.11.json", RELEASED} == {f.name for f in (tmp_path / FOLDER).iterdir()}
    assert load([str(tmp_path)], edition="2026.11").edition == "2026.11"


@pytest.mark.parametrize(
    "contents",
    [b"", b"not gzip", gzip.compress(small().encode())[:-20], b"\x1f\x8b\x08" + b"\0" * 20, gzip.compress(b"{}")],
    ids=["empty", "text", "cut", "zeros", "no list"],  # the bytes hold the time: each worker would name them otherwise
)
def test_damaged_compression(tmp_path, contents) -> None:
    file = write(tmp_path / FOLDER, "2026.11", small())
    file.write_bytes(contents)

    with pytest.raises(EditionError, match=r"decompressed|not an edition"):
        load([str(tmp_path)], edition="2026.11")


def test_an_edition_with_new_hashes_is_not_the_released_one(tmp_path) -> None:
    """Whoever alters an edition and computes all hashes anew is found out by the list."""
    file = write(tmp_path / FOLDER, "2026.11", small())
    file.write_bytes(gzip.compress(OTHER.encode()))

    assert "2026.11" == verify(gzip.decompress(file.read_bytes())).name
    with pytest.raises(EditionError, match="not the released one"):
        load([str(tmp_path)], edition="2026.11")


def test_list_has_the_hash_of_the_text(tmp_path) -> None:
    """In the form of sha256sum: hash, two spaces, name."""
    import hashlib

    write(tmp_path, "2026.11", small())
    line = (tmp_path / RELEASED).read_text()

    assert f"{hashlib.sha256(small().encode()).hexdigest()}  2026.11.json\n" == line


@pytest.mark.parametrize(
    "line", ["x", f"{'0' * 64} 2026.11.json", f"{'0' * 64}  ../x.json", f"{'0' * 64}  2026.11.json\n" * 2]
)
def test_a_damaged_list(tmp_path, line) -> None:
    (tmp_path / RELEASED).write_text(line)
    with pytest.raises(EditionError, match=f"{RELEASED}:[12]:1"):
        editions.released(tmp_path)


def test_released_editions_are_unaltered() -> None:
    """Every edition in the catalog is sound, entered in the list, and can be read; every entry has its file."""
    released = editions.released(SHIPPED)

    assert set(released) == set(editions.names(SHIPPED))
    for name in released:
        verify(editions.checked(SHIPPED, name))
        read(editions.checked(SHIPPED, name), KNOWN)


@pytest.mark.parametrize(
    "name", ["2026.13", "2026.00", "9999.99", "2026.1", "2026.11.", "2026.11." + "1" * 5000, "2026.11\n"]
)
def test_refuses_invalid_edition_name(name) -> None:
    with pytest.raises(UsageError, match="year and month"):
        editions.named(name)


FREEZER = """
import pathlib, sys, time
from trnspec.catalog.versions import editions
from trnspec.errors import EditionError

folder, name, text, mark = pathlib.Path(sys.argv[1]), *sys.argv[2:]
create = editions.create
def slow(*args):
    create(*args)
    pathlib.Path(mark).touch()
    time.sleep(0.5)
editions.create = slow
editions.write(folder, name, text)
"""


@pytest.mark.parametrize("name", ["2027.01", "2026.12"])
def test_two_freezes_at_once(tmp_path, name) -> None:
    """One process is in the middle of a freeze while this one freezes another edition, or other contents."""
    folder, mark = tmp_path / "editions", tmp_path / "mark"
    first = subprocess.Popen([sys.executable, "-c", FREEZER, folder, "2026.12", "one", mark], env=environment())
    while not mark.exists() and first.poll() is None:
        time.sleep(0.01)
    if name == "2026.12":
        with pytest.raises(EditionError, match="frozen with other contents"):
            write(folder, name, "two")
    else:
        write(folder, name, "two")

    assert 0 == first.wait(60)
    assert {"2026.12": "one", "2027.01": "two"} == {"2027.01": "two"} | {
        n: gzip.decompress(editions.file_of(folder, n).read_bytes()).decode() for n in editions.names(folder)
    }
    assert {*editions.names(folder)} == editions.released(folder).keys()
    assert {f.name for f in folder.iterdir()} == {*(f"{n}.json.gz" for n in editions.released(folder)), RELEASED}


def test_an_edition_under_another_name(tmp_path) -> None:
    write(tmp_path / FOLDER, "2026.11", small())
    (tmp_path / FOLDER / "2026.12.json").write_text(small(), encoding="utf-8")
    with pytest.raises(EditionError, match=r"2026\.12\.json contains the edition 2026\.11"):
        load([str(tmp_path)], edition="2026.12")
