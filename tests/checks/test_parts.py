"""Many documents in several processes: every report is that of one process."""

from __future__ import annotations

import datetime
import os
import random
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import DATA, children

from trnspec import api
from trnspec.api import registry, validate_again
from trnspec.checks.runner import Checked, check
from trnspec.graph.graph import at
from trnspec.loading import processes, snapshot
from trnspec.loading.files import documents_in, shipped
from trnspec.loading.pipeline import Reading, read
from trnspec.loading.snapshot import SnapshotNode, reading, snapshots
from trnspec.model.chip import Chip
from trnspec.output.reporters import render
from trnspec.plugins.api import API, Finding, Plugin, Registry, rule
from trnspec.yaml import Edit, Place, read_file, read_text

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="one process is used"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

KINDS = ("chips", "cores", "links", "servers", "ultraservers", "models", "prices", "power", "measured")
FORMATS = ("text", "json", "sarif", "github", "junit")
WHEN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture(scope="module")
def readings() -> list[Reading]:
    """Chips and systems, with their sources."""
    files = [
        file for kind in ("chips", "cores", "links", "servers", "sources") for file in documents_in(shipped() / kind)
    ]
    return [read(read_file(file), _plugin()) for file in files]


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few documents are many here."""
    monkeypatch.setattr(processes, "LEAST", 3)
    monkeypatch.setattr(api, "LEAST", 3)
    monkeypatch.setattr(processes, "FIRST", 2)


def _slipped(text: str, draw: random.Random) -> str:
    """A document with other digits, a waiver, another reference, or without a line."""
    lines = text.splitlines(keepends=True)
    for index, line in enumerate(lines):
        if "name:" not in line and draw.random() < 0.1:
            lines[index] = re.sub(r"(?<=[ {-])[1-9](?=[\d,.]* ?)", lambda _: str(draw.randint(1, 9)), line, count=1)
    text = "".join(lines)
    what = draw.random()
    if what < 0.2:
        codes = ", ".join(f"{{code: {c}, reason: It is so.}}" for c in draw.sample(("TRN303", "TRN402", "TRN601"), 2))
        text = text.replace("\nspec:", f"\n  allow: [{codes}]\nspec:", 1)
    elif what < 0.3:
        text = re.sub(r"(source|chip|server|link): [\w.-]+", r"\1: elsewhere", text, count=1)
    elif what < 0.4:
        del lines[draw.randrange(3, len(lines))]
        text = "".join(lines)
    return text


def _make(folder: Path, seed: int, share: float) -> None:
    """The shipped catalog with slips, and files that no reader likes."""
    draw = random.Random(seed)
    for kind in KINDS:
        (folder / kind).mkdir(parents=True)
        for file in sorted((shipped() / kind).iterdir()):
            text = file.read_text(encoding="utf-8")
            if file.suffix == ".yaml" and draw.random() < share:
                text = _slipped(text, draw)
            (folder / kind / file.name).write_text(text, encoding="utf-8")
    for file in (DATA / "badinput").rglob("*.yaml"):
        (folder / file.name).write_bytes(file.read_bytes())


def _checked(paths: list[Path], known: Registry, jobs: int, *, enabled: bool = False) -> Checked:
    with snapshots(known, enabled=enabled, jobs=jobs):
        return validate_again(map(str, paths), None, registry=known, jobs=jobs)


def _reports(checked: Checked) -> list[str]:
    return [render(checked.report, format_, texts=checked.texts, when=WHEN) for format_ in FORMATS]


def _compare(one: Checked, two: Checked) -> int:
    assert _reports(one) == _reports(two)
    assert (one.report, one.is_spotless) == (two.report, two.is_spotless)
    return len({d.code for d in one.report.diagnostics})


@pytest.mark.parametrize("around", [False, True])
def test_the_report_is_that_of_one_process(readings: list[Reading], around: bool) -> None:
    draw = random.Random(2)
    known = _plugin()
    given = []
    for each in readings:
        text = _slipped(each.document.text, draw) if draw.random() < 0.4 else each.document.text
        given.append(read(read_text(text, each.document.file), known, target=not around or draw.random() < 0.5))
    given.sort(key=lambda each: not each.target)
    assert _compare(*(check(given, known, jobs=jobs) for jobs in (1, 2))) > 10


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_any_report_is_that_of_one_process(tmp_path_factory: pytest.TempPathFactory, seed: int) -> None:
    folder = tmp_path_factory.mktemp("catalog")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        _make(folder / "catalog", seed, share=random.Random(seed).choice((0.02, 0.1, 0.4)))
        paths = [folder / "catalog"] if seed % 2 else [folder / "catalog" / kind for kind in ("servers", "prices")]
        _compare(*(_checked(paths, registry(), jobs, enabled=bool(seed % 3)) for jobs in (1, 2)))


def _values(node: Any) -> tuple[Any, ...]:
    return (node.name, node.aliases, node.kind, node.target, node.metadata, node.spec, node.claims, node.names_used)


@pytest.mark.parametrize("enabled", [False, True])
@pytest.mark.parametrize("full", [False, True])
def test_documents_of_other_processes(tmp_path, monkeypatch, enabled: bool, full: bool) -> None:
    """They are those that this process would read, with and without the cache, and on a full disk."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    known = _plugin()
    files = [str(file) for file in documents_in(shipped() / "chips")]
    states = {file: Path(file).stat() for file in files}
    expected = [reading(file, known, layer=2) for file in files]
    with snapshots(known, enabled=enabled, jobs=2):
        with monkeypatch.context() as patch:
            if full:
                patch.setattr(snapshot._Spool, "add", lambda *_: None)
            snapshot.fetch(files, states, known, 2, many=True)
        found = [reading(file, known, layer=2) for file in files]
        assert {not full} == {isinstance(one.node, SnapshotNode) for one in found}
        assert [_values(one.node)[:-1] for one in expected] == [_values(one.node)[:-1] for one in found]
        assert [one.document.text for one in expected] == [one.document.text for one in found]
    with snapshots(known, enabled=True):
        assert {enabled} == {isinstance(reading(file, known).node, SnapshotNode) for file in files}


def test_a_document_that_was_edited_is_read_again(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    known, folder = _plugin(), tmp_path / "chips"
    folder.mkdir()
    for file in documents_in(shipped() / "chips"):
        (folder / file.name).write_bytes(file.read_bytes())
    for title in ("One", "Two"):
        for file in documents_in(folder):
            text = re.sub(r"(?m)^  title: .*$", f"  title: {title}", file.read_text(encoding="utf-8"))
            file.write_text(text, encoding="utf-8")
            os.utime(file, (1_700_000_000, 1_700_000_000))
        checked = _checked([folder], known, 2, enabled=True)
        assert {title} == {node.metadata.title for node in checked.graph if node.target}


MAIN = os.getpid()


def _plugin(*rules: Any) -> Registry:
    return Registry.of([*registry().plugins[:1], Plugin(name="trnspec-evil", api=API, rules=rules)])


@rule("EVIL001", "evil-process", over=Chip, local=True)
def ends_its_process(node, graph):
    """Ends every process but the main one."""
    if os.getpid() != MAIN and node.name.endswith("2"):
        os.kill(os.getpid(), signal.SIGKILL)
    yield Finding(("spec",), node.name)


@rule("EVIL002", "evil-failure", over=Chip, local=True)
def fails(node, graph):
    """Fails for some documents."""
    yield Finding(("spec",), "before")
    if node.name.startswith("inferentia"):
        raise SystemExit


@rule("EVIL003", "evil-loop", over=Chip, local=True)
def loops(node, graph):
    """Does not end."""
    yield Finding(("spec",), "before")
    while node.name == "trainium2":
        pass


class _Text(str):
    """A text that cannot be pickled."""

    __slots__ = ()

    def __reduce__(self) -> str:
        raise TypeError


@rule("EVIL004", "evil-text", over=Chip, local=True)
def is_not_pickled(node, graph):
    """Reports a text that stays in its process."""
    yield Finding(("spec",), _Text("text"), edit=Edit(Place(1, 1), Place(1, 2), "x"))


@rule("EVIL005", "evil-catalog", local=True)
def finds_no_place(graph):
    """Reports something without a place."""
    yield Finding((), f"{len(graph)} documents, {len(graph.focused())} in focus")


@rule("EVIL006", "evil-focus", local=True)
def finds_users(graph):
    """Reports documents with those that use them, if one of both is in focus."""
    for node in graph.of(Chip):
        for user in sorted(graph.users.get(node.name, ())):
            if graph.focus is None or graph.focus & {node.name, user}:
                yield Finding(("spec",), f"used by {user}", see=(at(graph.nodes[user], ()),), node=node)


@rule("EVIL007", "evil-comparison", over=Chip)
def is_not_local(node, graph):
    """Compares documents, in their order."""
    seen = graph.__dict__.setdefault("_seen", [])
    seen.append(node.name)
    yield Finding(("spec",), f"number {len(seen)}")


@pytest.mark.parametrize(
    "rules",
    [
        (fails, ends_its_process),
        (loops,),
        (is_not_pickled, finds_no_place),
        (finds_users, is_not_local),
    ],
)
def test_rules_of_plugins(readings: list[Reading], monkeypatch, capfd, rules: tuple[Any, ...]) -> None:
    monkeypatch.setenv("TRNSPEC_RULE_SECONDS", "0.2" if loops in rules else "60")
    monkeypatch.setenv("TRNSPEC_TRACEBACK", "1")
    known = _plugin(*rules)
    reports, errors = [], []
    for jobs in (1, 2):
        reports.append(check(readings, known, rules=rules, jobs=jobs).report)
        errors.append(capfd.readouterr().err)
    assert reports[0] == reports[1]
    assert errors[0].count("Traceback") == errors[1].count("Traceback")
    assert {each.code.id for each in rules} <= {d.code for d in reports[0].diagnostics}


@pytest.fixture(autouse=True)
def _no_children() -> Iterator[None]:
    before = children()  # other tests of the same process may have left some
    yield
    assert children() <= before
