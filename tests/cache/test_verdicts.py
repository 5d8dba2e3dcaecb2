"""Verdicts of earlier runs: repeated while nothing they depend on has changed, and never after a change."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running import ROOT

from trnspec.cache import observer, verdicts

OLD = 1_700_000_000
"""A time that is long over: the content of a file that was written just now is not stored."""


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    os.utime(file, (OLD, OLD))


def check(folder: Path) -> str:
    """The place of a run: it reads every file of a folder and one file next to it."""
    texts = [f"{file.name}: {file.read_text()}" for file in sorted(folder.rglob("*.yaml"))]
    try:
        texts.append((folder.parent / "table.csv").read_text())
    except OSError:
        texts.append("no table")
    return "\n".join(texts) + "\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(verdicts.VARIABLE, raising=False)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


class Runs:
    """Runs of a command line; ``checked`` counts those that were not repeated from the cache."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.checked = 0
        self.reason = ""
        self._patch = monkeypatch

    def __call__(self, folder: Path, *arguments: str) -> str:
        given = ["validate", str(folder), *arguments]
        with self._patch.context() as patch:
            patch.setattr(sys, "stdout", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
            if verdicts.replay(given) is not None:
                sys.stdout.seek(0)
                return sys.stdout.read()
            self.checked += 1
            observer.start(given)
            try:
                text = check(folder)
                self.reason = observer.store(given, text, 0)
            finally:
                observer.stop()
            return text


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    return Runs(monkeypatch)


def test_an_unchanged_run_is_repeated(place: Path, runs: Runs) -> None:
    write(place / "catalog" / "a.yaml", "one")
    first = runs(place / "catalog")
    assert (first, "", 1) == (runs(place / "catalog"), runs.reason, runs.checked)


def test_what_was_edited_since_a_run_without_findings(place: Path, runs: Runs) -> None:
    """Of the same command line, if nothing else has changed; a file that is not a document has no names."""
    folder = place / "catalog"
    write(folder / "a.yaml", "one")
    write(place / "table.csv", "1")
    runs(folder)
    assert {} == verdicts.edited
    write(folder / "a.yaml", "two")
    runs(folder)
    assert {str(folder / "a.yaml"): ()} == verdicts.edited
    write(folder / "a.yaml", "three")
    write(folder / "b.yaml", "another file")
    runs(folder)
    assert {} == verdicts.edited
    write(folder / "a.yaml", "four")
    runs(folder)
    assert [str(folder / "a.yaml")] == list(verdicts.edited)
    runs(folder, "--select", "TRN4")
    assert {} == verdicts.edited


def test_other_arguments_are_another_run(place: Path, runs: Runs) -> None:
    write(place / "catalog" / "a.yaml", "one")
    runs(place / "catalog")
    runs(place / "catalog", "--select", "TRN4")
    assert runs.checked == 2


EDITS = st.lists(
    st.tuples(
        st.sampled_from(["a.yaml", "b.yaml", "inner/c.yaml", "../table.csv", "../trnspec.toml"]),
        st.sampled_from(["", "one", "two", None]),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(edits=EDITS)
def test_it_is_never_stale(place: Path, runs: Runs, edits: list[tuple[str, str | None]]) -> None:
    """After any edit, also one that is taken back, a run prints what it prints without a cache."""
    folder = place / "catalog"
    write(folder / "a.yaml", "one")
    for name, text in edits:
        if text is None:
            (folder / name).unlink(missing_ok=True)
        else:
            write(folder / name, text)
        assert check(folder) == runs(folder)


def test_a_new_file_of_settings_is_noticed(place: Path, runs: Runs) -> None:
    write(place / "catalog" / "a.yaml", "one")
    runs(place / "catalog")
    write(place / "trnspec.toml", "ignore = ['TRN4']")
    runs(place / "catalog")
    assert runs.checked == 2


def test_another_version_of_a_plugin_is_noticed(
    place: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    points = tmp_path / "site" / "acme-1.0.dist-info" / "entry_points.txt"
    write(points, "[trnspec.plugins]\nacme = acme:plugin\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    write(place / "catalog" / "a.yaml", "one")
    for _ in range(2):
        runs(place / "catalog")
    write(points, "[trnspec.plugins]\nacme = acme:another\n")
    runs(place / "catalog")
    write(points.parent.with_name("acme-1.1.dist-info") / "entry_points.txt", points.read_text())
    runs(place / "catalog")
    assert runs.checked == 3


def test_another_module_is_noticed(place: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    module = tmp_path / "site" / "acme_rule.py"
    write(module, "LIMIT = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    __import__("acme_rule")
    write(place / "catalog" / "a.yaml", "one")
    try:
        for _ in range(2):
            runs(place / "catalog")
        write(module, "LIMIT = 10\n")
        runs(place / "catalog")
    finally:
        del sys.modules["acme_rule"]
    assert runs.checked == 2


@pytest.mark.parametrize("damage", [lambda raw: raw[:-1], lambda raw: b"", lambda raw: raw[:40] + b"x" + raw[41:]])
def test_a_damaged_entry_is_not_used(place: Path, runs: Runs, damage) -> None:
    write(place / "catalog" / "a.yaml", "one")
    first = runs(place / "catalog")
    (entry,) = Path(verdicts.folder()).iterdir()
    entry.write_bytes(damage(entry.read_bytes()))
    assert (first, 2) == (runs(place / "catalog"), runs.checked)


def test_a_file_that_changes_during_the_run_is_not_stored(place: Path, runs: Runs) -> None:
    file = place / "catalog" / "a.yaml"
    write(file, "one")
    observer.start(["validate"])
    file.read_text()
    write(file, "another")
    reason = observer.store(["validate"], "", 0)
    assert f"{file} changed" == reason


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (lambda folder: (folder / "new").write_text(""), "is written"),
        (lambda folder: subprocess.run([sys.executable, "-c", ""], check=True), "subprocess.Popen"),
    ],
)
def test_a_run_with_other_effects_is_not_stored(place: Path, act, reason: str) -> None:
    observer.start(["validate"])
    act(place)
    assert reason in observer.store(["validate"], "", 0)


def test_without_a_folder_that_can_be_written_nothing_is_stored(
    place: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(place / "catalog" / "a.yaml", "one")
    write(place / "file", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "file"))
    assert runs(place / "catalog") == runs(place / "catalog")
    assert runs.checked == 2


def test_a_full_disk_leaves_nothing(place: Path, runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    write(place / "catalog" / "a.yaml", "one")
    monkeypatch.setattr(os, "replace", full)
    runs(place / "catalog")
    assert "No space left" in runs.reason
    assert [] == list(Path(verdicts.folder()).iterdir())


def test_the_oldest_entries_are_removed(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observer, "MOST_ENTRIES", 3)
    for number in range(5):
        write(place / "cache" / f"{number}", "x")
        os.utime(place / "cache" / f"{number}", (OLD + number, OLD + number))
    observer.prune(str(place / "cache"))
    assert ["2", "3", "4"] == sorted(f.name for f in (place / "cache").iterdir())


def test_concurrent_runs_leave_whole_entries(place: Path) -> None:
    entry = verdicts.packed({"text": "x" * 100_000, "status": 0})
    folder = place / "cache"
    threads = [
        threading.Thread(target=lambda: [observer.write(str(folder), "entry", [entry]) for _ in range(20)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    seen = [verdicts.read(str(folder / "entry")) for _ in range(100)]
    for thread in threads:
        thread.join()
    assert {0} == {e["status"] for e in seen if e is not None}
    assert ["entry"] == [f.name for f in folder.iterdir()]


def test_entries_are_readable_by_the_user_only(place: Path, runs: Runs) -> None:
    write(place / "catalog" / "a.yaml", "one")
    runs(place / "catalog")
    (entry,) = Path(verdicts.folder()).iterdir()
    assert 0o600 == stat.S_IMODE(entry.stat().st_mode)


@pytest.mark.parametrize(
    ("arguments", "environ"),
    [
        (["validate", "--no-cache"], {}),
        (["validate", "-"], {}),
        (["validate"], {verdicts.VARIABLE: "1"}),
        (["show", "trainium2"], {}),
    ],
)
def test_it_can_be_turned_off(arguments: list[str], environ: dict[str, str]) -> None:
    assert not verdicts.is_enabled(arguments, environ)


def test_the_folder_is_that_of_platformdirs(monkeypatch: pytest.MonkeyPatch) -> None:
    platformdirs = pytest.importorskip("platformdirs")
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    assert platformdirs.user_cache_dir("trnspec") == str(Path(verdicts.folder()).parent)


REPEAT = """
import sys
before = set(sys.modules)
sys.argv = ["trnspec", "--no-plugins", "validate", sys.argv[1]]
from trnspec.__main__ import main
try:
    main()
except SystemExit as exit:
    print(exit.code, *sorted(set(sys.modules) - before))
"""
LEAN = {"__future__", "_blake2", "marshal", "time", "trnspec", "trnspec.__main__", "trnspec._version", "trnspec.cache"}


def test_a_repeated_run_imports_nothing_else(place: Path) -> None:
    """The cost of a repeated run is that of starting Python: neither click nor attrs nor ruamel.yaml nor typing."""
    write(place / "page.yaml", (ROOT / "catalog/sources/neuron-trainium-2024-02.yaml").read_text())
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", REPEAT, str(place / "page.yaml")]
    runs = [subprocess.run(command, env=environ, capture_output=True, text=True, check=True) for _ in range(2)]
    (*first, _), (*second, last) = (done.stdout.splitlines() for done in runs)
    assert first == second
    status, *modules = last.split()
    assert "1" == status  # its name is not that of its file
    assert set(modules) <= LEAN | {"trnspec.cache.verdicts"}
