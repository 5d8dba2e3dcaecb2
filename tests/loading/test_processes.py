"""Processes of a run: the same results whatever happens to one of them, and everything that they depend on is recorded."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from running import children, environment

from trnspec.cache import observer, verdicts
from trnspec.errors import UsageError
from trnspec.loading import processes

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="one process is used"),
    # Threads of pytest-xdist or of a library; the forks need none of their locks.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]


def _square(number: int) -> int:
    return number * number


def test_each_part_has_its_result() -> None:
    assert [(n, n * n) for n in range(20)] == sorted(processes.each(_square, range(20), 3))


@pytest.mark.parametrize(
    "end",
    [
        lambda: os.kill(os.getpid(), signal.SIGKILL),
        lambda: os.kill(os.getpid(), signal.SIGINT),
        lambda: os._exit(0),
        lambda: sys.exit(0),
        lambda: 1 / 0,
        lambda: lambda: 0,  # cannot be pickled
    ],
)
def test_a_part_without_a_result_is_left_to_the_caller(end, capfd: pytest.CaptureFixture[str]) -> None:
    results = dict(processes.each(lambda number: end() if number == 2 else number, range(5), 2))

    assert {0: 0, 1: 1, 2: None, 3: 3, 4: 4} == results
    assert ("", "") == tuple(capfd.readouterr())


def test_no_more_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    def fork() -> int:
        raise BlockingIOError

    before = len(list(Path("/proc/self/fd").iterdir()))
    with monkeypatch.context() as patch:
        patch.setattr(os, "fork", fork)
        results = dict(processes.each(_square, range(3), 2))

    assert {0: None, 1: None, 2: None} == results
    assert before == len(list(Path("/proc/self/fd").iterdir()))


def test_results_that_are_not_needed_end_their_processes() -> None:
    def wait(number: int) -> int:
        if number:
            signal.pause()
        return os.getpid()

    before = children()  # other tests of the same process may have left some
    results = processes.each(wait, range(3), 3)
    assert next(results)[0] == 0
    results.close()
    assert children() <= before


def test_large_results() -> None:
    results = processes.each(lambda number: bytes([number]) * 3_000_000, range(4), 2)

    assert [(n, {n}, 3_000_000) for n in range(4)] == sorted(
        (n, set(raw or b""), len(raw or b"")) for n, raw in results
    )


@pytest.mark.parametrize(("number", "jobs"), [(1, 2), (17, 2), (300, 1), (1_001, 2), (5_000, 3)])
def test_parts(number: int, jobs: int) -> None:
    first, *others = processes.parts_of(range(number), jobs)

    assert list(range(number)) == sorted([*first, *(item for part in others for item in part)])
    assert len(first) < 2 * processes.FIRST
    assert all(0 < len(part) <= processes.LARGEST for part in others)
    assert max(map(len, others), default=0) - min(map(len, others), default=0) <= 1


@pytest.fixture
def observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(verdicts.VARIABLE, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "folder").mkdir()
    for name in ("imported_by_a_part.py", "table.csv"):
        (tmp_path / name).write_text("0", encoding="utf-8")
        os.utime(tmp_path / name, (1_700_000_000, 1_700_000_000))
    observer.start(["validate", str(tmp_path)])
    yield
    observer.stop()


def test_what_a_part_depends_on_is_recorded(observed, tmp_path: Path) -> None:
    """Files and folders that it reads, and modules that it imports."""
    module, table, folder = (tmp_path / name for name in ("imported_by_a_part.py", "table.csv", "folder"))

    def part(_number: int) -> int:
        __import__("imported_by_a_part")
        list(folder.iterdir())
        return len(table.read_text())

    assert [(0, 1), (1, 1)] == sorted(processes.each(part, range(2), 2))
    current = observer._current
    assert current is not None
    assert current.reason == ""
    assert {str(table)} == set(current.files)
    assert {str(folder)} == set(current.folders)
    assert {str(module): verdicts.stamp(str(module))} == current.modules


def test_a_part_with_effects_is_not_stored(observed, tmp_path: Path) -> None:
    assert [(0, 3)] == list(processes.each(lambda _: (tmp_path / "written").write_text("xyz"), [0], 2))
    current = observer._current
    assert current is not None
    assert "is written" in current.reason


def test_the_number_of_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "_can_fork", lambda: True)

    assert min(len(os.sched_getaffinity(0)), 8) == processes.number_of(None, {})
    assert processes.number_of(None, {"TRNSPEC_JOBS": "3"}) == 3
    assert processes.number_of(5, {"TRNSPEC_JOBS": "3"}) == 5
    for text in ("0", "-1", "x", "257", "\u0663", "1.5"):
        with pytest.raises(UsageError, match="TRNSPEC_JOBS"):
            processes.number_of(None, {"TRNSPEC_JOBS": text})


def test_one_process_in_a_program_with_threads() -> None:
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        assert processes.number_of(4, {}) == 1
    finally:
        end.set()
        thread.join()


INTERRUPTED = """
import os, signal, sys
from trnspec.loading import processes
sys.stdout.write("begun\\n")
sys.stdout.flush()
try:
    list(processes.each(lambda number: signal.pause(), range(4), 2))
except KeyboardInterrupt:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        sys.exit(130)
"""


def test_ctrl_c_ends_all_processes() -> None:
    """A terminal sends the signal to all of them."""
    command = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, env=environment()
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"begun\n"
        # The parts are waiting as soon as there are two.
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while len(children.read_text().split()) < 2:
            pass
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == b""
