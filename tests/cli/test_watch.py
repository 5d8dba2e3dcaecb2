"""``trnspec validate --watch``: what is new and what is resolved after an edit."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.support.programs import ROOT
from trnspec.api import registry
from trnspec.cli import validate as watch
from trnspec.loading.settings import Settings
from trnspec.loading.store import DocumentStore

HEAD = "api_version: trnspec/v1\nkind: Chip\nmetadata: {name: acme, title: Acme, source: neuron-trn1-2023-02}\n"
WRONG = HEAD + "spec: {memory: {capacity: 8 GiB, bandwidth: 1 parsec}}\n"
RIGHT = WRONG.replace("1 parsec", "1 TB/s")


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "chips").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "other.yaml").write_text("version: 1\n")
    return tmp_path


class Watching:
    """A process that watches a folder, and the lines that it has printed."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "TRNSPEC_PLUGINS": "none"}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "trnspec", "validate", "--watch", "--interval", "0.05", *arguments],
            cwd=folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.lines: queue.Queue[str] = queue.Queue()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            for line in stream:
                self.lines.put(line.rstrip("\n"))

    def until(self, end: str) -> list[str]:
        """The lines up to one that ends so."""
        read = []
        while not read or not read[-1].endswith(end):
            read.append(self.lines.get(timeout=60))
        return read


@pytest.mark.slow
def test_edits_of_a_file(folder) -> None:
    file = folder / "chips" / "acme.yaml"
    file.write_text(WRONG)
    running = Watching(folder)
    try:
        first = running.until("; Ctrl-C ends")
        assert first[0].startswith("chips/acme.yaml:4:45: error TRN111 unknown-unit")
        assert ["1 error in 1 document.", "watching .; Ctrl-C ends"] == first[-2:]

        file.write_text(RIGHT)
        corrected = running.until("no findings.")
        assert corrected[0].endswith(" chips/acme.yaml changed: 0 new, 1 resolved")
        assert corrected[1].startswith("chips/acme.yaml: resolved TRN111: ")
        assert 3 == len(corrected)

        (folder / "chips" / "more.yaml").write_text(WRONG.replace("acme", "more").replace("Acme", "More"))
        added = running.until("in 2 documents.")
        assert added[0].endswith(" chips/more.yaml changed: 1 new, 0 resolved")
        assert added[1].startswith("chips/more.yaml:4:45: error TRN111 unknown-unit")

        running.process.send_signal(signal.SIGINT)
        assert 0 == running.process.wait(30)
    finally:
        running.process.kill()
        running.process.wait()
        running.reader.join()


def test_findings_of_removed_documents_are_resolved(folder, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    file = folder / "chips" / "acme.yaml"
    file.write_text(WRONG)
    store = DocumentStore(registry())
    seen = watch._report(watch._checked([Path()], Settings(), store), Counter(), "")
    file.unlink()
    capsys.readouterr()
    assert Counter() == watch._report(watch._checked([Path()], Settings(), store), seen, "chips/acme.yaml changed")
    out = capsys.readouterr().out.splitlines()
    assert out[0].endswith(" chips/acme.yaml changed: 0 new, 1 resolved")
    assert out[1].startswith("chips/acme.yaml: resolved TRN111: ")


def test_state_of_watched_files(folder) -> None:
    before = watch._state([folder])
    for name in (".hidden.yaml", "notes.txt", ".git/index.yaml"):
        (folder / name).write_text("a: 1\n")
    assert before == watch._state([folder])

    for name in ("chips/new.yaml", "table.csv", "trnspec.toml"):
        (folder / name).write_text("")
    names = {os.path.relpath(f, folder) for f in watch._state([folder]).keys() - before.keys()}
    assert {"chips/new.yaml", "table.csv", "trnspec.toml"} == names


@pytest.fixture
def report(folder, monkeypatch, capsys):
    """The lines that are printed of a document, after those of the earlier ones."""
    monkeypatch.chdir(folder)
    seen = Counter()
    store = DocumentStore(registry())

    def run(text: str) -> list[str]:
        nonlocal seen
        (folder / "chips" / "acme.yaml").write_text(text)
        checked = watch._checked([Path()], Settings(), store)
        assert checked is not None
        seen = watch._report(checked, seen, "x")
        lines = capsys.readouterr().out.splitlines()
        return [lines[0].partition(": ")[2], *(w for x in lines for w in x.split() if w.startswith("TRN"))]

    return run


def test_a_finding_that_moves_is_neither_new_nor_resolved(report) -> None:
    assert ["1 new, 0 resolved", "TRN111"] == report(WRONG)
    assert ["0 new, 0 resolved"] == report("# A comment.\n" + WRONG)


def test_nothing_is_resolved_by_a_file_that_cannot_be_read(report) -> None:
    assert ["1 new, 0 resolved", "TRN111"] == report(WRONG)
    assert ["1 new, 0 resolved", "TRN004"] == report(WRONG + "  power: [\n")
    assert ["0 new, 1 resolved", "TRN004:"] == report(WRONG)
    assert ["0 new, 1 resolved", "TRN111:"] == report(RIGHT)


def test_a_change_is_awaited(folder) -> None:
    before = watch._state([folder])

    def write() -> None:
        for number in range(4):
            (folder / "chips" / f"{number}.yaml").write_text("a: 1\n")
            time.sleep(0.03)

    writer = threading.Thread(target=write)
    writer.start()
    changed, state = watch._wait([folder], before, 0.01)
    writer.join()

    assert 4 == len(changed)
    assert watch._state([folder]) == state


def test_settings_that_cannot_be_used_are_reported_and_awaited(folder, monkeypatch, capsys) -> None:
    monkeypatch.chdir(folder)
    (folder / "chips" / "acme.yaml").write_text(RIGHT)
    (folder / "trnspec.toml").write_text("select = 3\n")

    assert watch._checked([Path()], Settings(), DocumentStore(registry())) is None
    assert capsys.readouterr().err.startswith("not checked: ")
