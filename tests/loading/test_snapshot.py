"""Documents of earlier runs: the same as those of the files, whatever was done to either."""

from __future__ import annotations

import os
import pickle
import random
import re
from pathlib import Path

import pytest
from attrs import evolve
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trnspec.api import registry, validate
from trnspec.graph.graph import Graph
from trnspec.loading import snapshot
from trnspec.loading.files import documents_in, shipped
from trnspec.loading.pipeline import Reading
from trnspec.loading.settings import Settings
from trnspec.loading.snapshot import SnapshotNode, reading, snapshots

OLD = 1_700_000_000_000_000_000


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "trnspec" / f"documents-{snapshot.FORMAT}"


def _values(one: Reading) -> tuple[object, ...]:
    node, document = one.node, one.document
    assert node is not None
    names = (node.name, node.aliases, node.spec_class, node.kind, node.folder, node.positions, node.target)
    return (
        *names,
        (node.metadata, node.spec, node.claims),
        repr(document.data),
        dict(document.places),
        (document.text, document.problems, document.rejected, one.problems, one.name, one.plugin, one.layer),
    )


def test_documents_are_the_same(cache: Path) -> None:
    known = registry()
    files = [str(file) for kind in ("chips", "servers", "models") for file in documents_in(shipped() / kind)]
    expected = [_values(reading(file, known, layer=2)) for file in files]
    for again in (False, True):
        with snapshots(known, enabled=True):
            found = [reading(file, known, layer=2) for file in files]
            assert {isinstance(one.node, SnapshotNode) for one in found} == {again}
            assert {one.node.names_used is not None for one in found if one.node is not None} == {again}
            assert [_values(one) for one in found] == expected
    assert len(list(cache.iterdir())) == 1


def test_a_kept_document_can_be_pickled_and_changed(cache: Path) -> None:
    known, file = registry(), str(shipped() / "chips" / "trainium2.yaml")
    for _ in range(2):
        with snapshots(known, enabled=True):
            node = reading(file, known).node
    assert isinstance(node, SnapshotNode)
    again = pickle.loads(pickle.dumps(node))
    other = evolve(node, metadata=evolve(node.metadata, name="other"))
    assert (again.spec, again.document.text) == (node.spec, node.document.text)
    assert ("other", node.spec, "trainium2") == (other.name, other.spec, node.name)


SOURCE = """api_version: trnspec/v1
kind: Source
metadata: {name: a, title: A}
spec: {publisher: Acme, as_of: 2024-01-01, rank: third-party}
"""


@pytest.mark.parametrize(
    "text",
    [
        SOURCE.replace("2024-01-01", "2024-01-02"),
        SOURCE.replace("Acme", "Adme") + "#",
        SOURCE.replace("name: a", "name: b"),
        SOURCE.replace("\n", "\r\n"),
        "\ufeff" + SOURCE,
        SOURCE.replace("rank", "rnak"),
        SOURCE + SOURCE,
        "",
    ],
)
def test_changes_are_seen(cache: Path, tmp_path: Path, text: str) -> None:
    """Also those that leave the size of a file and the time of its last change as they were."""
    known, file = registry(), tmp_path / "sources" / "a.yaml"
    file.parent.mkdir()
    file.write_text(SOURCE, encoding="utf-8")
    os.utime(file, ns=(OLD, OLD))
    for _ in range(2):
        with snapshots(known, enabled=True):
            assert reading(str(file), known).name == "a"
    file.write_text(text, encoding="utf-8")
    os.utime(file, ns=(OLD, OLD))
    expected = reading(str(file), known)
    for _ in range(2):
        with snapshots(known, enabled=True):
            found = reading(str(file), known)
            assert (expected.problems, expected.name) == (found.problems, found.name)
            assert expected.document.data == found.document.data
            assert expected.node is None or (found.node is not None and found.node.spec == expected.node.spec)


def test_many_documents_are_kept_in_less_memory(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also on a disk that is full for a moment."""
    known = registry()
    files = [str(file) for file in documents_in(shipped() / "chips")]
    expected = [_values(reading(file, known)) for file in files]
    write = os.write
    with snapshots(known, enabled=True), monkeypatch.context() as patch:
        for number, file in enumerate(files):
            patch.setattr(
                os, "write", lambda descriptor, raw, odd=number % 2: write(descriptor, raw[:10] if odd else raw)
            )
            reading(file, known, compacted=True)
    with snapshots(known, enabled=True):
        found = [reading(file, known) for file in files]
        assert {SnapshotNode} == {type(one.node) for one in found}
        assert [_values(one) for one in found] == expected
    assert len(list(cache.iterdir())) == 1


def test_a_file_that_is_gone_is_not_remembered(cache: Path, tmp_path: Path) -> None:
    known, file = registry(), tmp_path / "sources" / "a.yaml"
    file.parent.mkdir()
    file.write_text(SOURCE, encoding="utf-8")
    with snapshots(known, enabled=True):
        reading(str(file), known)
    file.unlink()
    with snapshots(known, enabled=True):
        assert [p.code for p in reading(str(file), known).problems] == ["TRN001"]


@pytest.mark.parametrize("where", [0, 20, 60, -1])
def test_damaged_files_are_not_used(cache: Path, tmp_path: Path, where: int) -> None:
    known, file = registry(), tmp_path / "sources" / "a.yaml"
    file.parent.mkdir()
    file.write_text(SOURCE, encoding="utf-8")
    with snapshots(known, enabled=True):
        reading(str(file), known)
    (pack,) = cache.iterdir()
    raw = bytearray(pack.read_bytes())
    raw[where] ^= 1
    pack.write_bytes(raw)
    with snapshots(known, enabled=True):
        node = reading(str(file), known).node
        assert node is not None
        assert (node.name, node.spec.publisher) == ("a", "Acme")


def test_nothing_is_kept_without_the_cache(cache: Path) -> None:
    with snapshots(registry(), enabled=False):
        reading(str(shipped() / "chips" / "trainium2.yaml"), registry())
    assert not cache.exists()


FOLDERS = ("chips", "cores", "links", "servers", "ultraservers", "prices", "sources", "models", "clusters")


def _edited(file: Path, other: Path, draw: random.Random) -> None:
    """One edit of a file: a digit, a reference, a name, a verdict, a line, or the whole file."""
    text = file.read_text(encoding="utf-8")
    kind = draw.choice(("digit", "digit", "digit", "reference", "name", "verdict", "line", "delete", "restore"))
    lines = text.splitlines(keepends=True)
    if kind == "digit" and (places := [m.start() for m in re.finditer(r"(?<=[ {:.,])[1-9](?=[\d,.]* )", text)]):
        at = draw.choice(places)
        text = f"{text[:at]}{draw.randint(1, 9)}{text[at + 1 :]}"
    elif kind == "reference":
        text = re.sub(r"(source|chip|server|link|core|model): [\w.-]+", f"\\1: {other.stem}", text, count=1)
    elif kind == "name":
        text = text.replace(f"name: {file.stem}", f"name: {draw.choice((file.stem + '-x', other.stem))}", 1)
    elif kind == "verdict":
        text = re.sub(r"verdict: \w+", f"verdict: {draw.choice(('agrees', 'rejected', 'rounded'))}", text, count=1)
    elif kind == "line" and len(lines) > 4:
        del lines[draw.randrange(3, len(lines))]
        text = "".join(lines)
    elif kind == "delete":
        file.unlink()
        return
    elif kind == "restore":
        text = (shipped() / file.parent.name / file.name).read_text(encoding="utf-8")
    file.write_text(text, encoding="utf-8")


def _check_edits(folder: Path, seed: int, edits: int) -> int:
    """Edit files of a copy of the catalog and check one of them: with what is kept, and everything anew."""
    draw, known = random.Random(seed), registry()
    compared = 0
    for kind in FOLDERS:
        (folder / kind).mkdir(exist_ok=True)
        for file in documents_in(shipped() / kind):
            (folder / kind / file.name).write_bytes(file.read_bytes())
    for _ in range(edits):
        files = [file for kind in FOLDERS for file in documents_in(folder / kind)]
        # Half of the edits are in hardware, whose figures are compared with each other.
        systems = [file for file in files if file.parent.name in FOLDERS[:6]]
        file, other = draw.choice(draw.choice((files, systems))), draw.choice(files)
        _edited(file, other, draw)
        checked = [str(each) for each in {file: 0, other: 0} if each.exists() and draw.random() < 0.9]
        chosen = Settings(ignore=draw.choice(((), ("TRN3",))))
        if not checked:
            continue
        with snapshots(known, enabled=True):
            found = validate(checked, settings=chosen, registry=known)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Graph, "focused_on", lambda graph, _: graph)
            expected = validate(checked, settings=chosen, registry=known)
        assert found.report == expected.report
        assert {
            d.where.file: found.texts[d.where.file] for d in found.report.diagnostics if d.where.file in checked
        } == {
            d.where.file: expected.texts[d.where.file] for d in expected.report.diagnostics if d.where.file in checked
        }
        compared += len(expected.report.diagnostics)
    return compared


def test_the_report_is_that_of_a_full_run(cache: Path, tmp_path: Path) -> None:
    assert _check_edits(tmp_path, 5, 4) > 0


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_the_report_is_that_of_a_full_run_after_any_edits(
    cache: Path, tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    _check_edits(tmp_path_factory.mktemp("catalog"), seed, 8)
