"""Parts of a search: merged, in any number, order and place, they have the bytes of the whole."""

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import trnspec
from tests.support.tables import tables
from trnspec.errors import UsageError
from trnspec.evaluation.progress import SearchExecution, distributed, reported
from trnspec.evaluators.searching.files import PartResult, headers, load, merged, name_of, save
from trnspec.evaluators.searching.question import SearchQuestion
from trnspec.evaluators.searching.report import run
from trnspec.evaluators.searching.space import Search, reduced, search_of

CAT = trnspec.load()
QUESTIONS = {
    "training": {
        "model": "llama-3.2-1b", "on": ("trn1.2xlarge*2", "trn2.3xlarge"), "seq": 1024, "global_batch": 8,
        "pareto": ("step_time", "memory"), "where": "mfu > 2 %", "microbatch": (1, 2), "top": 4,
    },
    "serving": {
        "model": "llama-3.1-8b", "on": ("trn1.32xlarge", "trn2.3xlarge"), "prompt": 512, "output": 64,
        "pareto": ("ttft", "tpot", "usd"), "where": "tpot < 1 s and fits", "top": 4, "pp": (1, 2), "batch": (1, 8, 64),
    },
}  # fmt: skip
SEARCHES = {name: search_of(CAT, SearchQuestion(**question)) for name, question in QUESTIONS.items()}
WHOLE = {name: search.kept(0, search.size) for name, search in SEARCHES.items()}


def written(search: Search, kept, folder: Path, ends: tuple[int, int] | None = None) -> dict[str, bytes]:
    """The files of a result."""
    save(search, kept, *(ends or (0, search.size)), folder, {})
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def bytes_of_whole(tmp_path_factory) -> dict[str, dict[str, bytes]]:
    return {name: written(s, WHOLE[name], tmp_path_factory.mktemp(name)) for name, s in SEARCHES.items()}


@pytest.mark.parametrize("mode", SEARCHES)
@settings(max_examples=10)
@given(cuts=st.lists(st.floats(0, 1), max_size=5), order=st.randoms(use_true_random=False))
def test_merges_in_any_order_and_grouping(mode, cuts, order, bytes_of_whole, tmp_path_factory) -> None:
    search = SEARCHES[mode]
    ends = [0, *sorted(int(cut * search.size) for cut in cuts), search.size]
    parts = [search.kept(first, last) for first, last in itertools.pairwise(ends)]
    order.shuffle(parts)
    while len(parts) > 1:
        other = parts.pop(order.randrange(len(parts)))
        parts[order.randrange(len(parts))].merge(other)

    assert bytes_of_whole[mode] == written(search, parts[0], tmp_path_factory.mktemp("merged"))


@pytest.mark.parametrize("mode", SEARCHES)
@pytest.mark.parametrize("count", [1, 2, 64])
def test_parts_in_files(mode, count, tmp_path, bytes_of_whole) -> None:
    search = SEARCHES[mode]
    for number in range(1, count + 1):
        ends = search.part(number, count)
        save(search, search.kept(*ends), *ends, tmp_path / "parts", {})
    kept = merged(search, [load(search, file) for file in headers([tmp_path / "parts"])])

    assert bytes_of_whole[mode] == written(search, kept, tmp_path / "merged")


def test_an_executor_of_threads(bytes_of_whole, tmp_path) -> None:
    search, seen = SEARCHES["serving"], []
    with (
        ThreadPoolExecutor(2) as executor,
        distributed(SearchExecution(executor, 7)),
        reported(lambda *progress: seen.append(progress)),
    ):
        kept = reduced(search)

    assert bytes_of_whole["serving"] == written(search, kept, tmp_path)
    assert (7, (search.size, search.size)) == (len(seen), seen[-1])
    assert kept.feasible > 0


@pytest.mark.slow
@pytest.mark.parametrize("mode", SEARCHES)
def test_two_processes(mode, bytes_of_whole, tmp_path) -> None:
    with ProcessPoolExecutor(2) as executor, distributed(SearchExecution(executor, 5)):
        kept = reduced(SEARCHES[mode])
    assert bytes_of_whole[mode] == written(SEARCHES[mode], kept, tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_dask_with_a_worker_killed_midway(bytes_of_whole, tmp_path) -> None:
    """Of layouts; processes of this machine, above, evaluate parts of both kinds."""
    from distributed import Client, LocalCluster

    from trnspec.evaluators.searching.space import executor

    killed = []

    def kill(done: int, _total: int) -> None:
        if not killed:
            killed.append(done)
            os.kill(workers[0], signal.SIGKILL)

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, memory_limit=0) as cluster:
        with Client(cluster) as client:
            workers = list(client.run(os.getpid).values())
        with (
            executor(cluster.scheduler_address) as (pool, count),
            distributed(SearchExecution(pool, 16)),
            reported(kill),
        ):
            kept = reduced(SEARCHES["training"])

    assert count == 2
    assert 0 < killed[0] < SEARCHES["training"].size
    assert bytes_of_whole["training"] == written(SEARCHES["training"], kept, tmp_path)


def test_a_part_whose_result_is_lost_is_evaluated_again(bytes_of_whole, tmp_path, monkeypatch) -> None:
    """A race of Dask, which cannot be caused: its error, once, instead of the first part; twice it is no such race."""
    with ThreadPoolExecutor(1) as pool, distributed(SearchExecution(pool, 4)):
        submit, lost = pool.submit, [0]
        monkeypatch.setattr(pool, "submit", lambda do, *ends: submit(len, lost.pop()) if lost else submit(do, *ends))
        kept = reduced(SEARCHES["training"])
        lost += [0] * 8
        with pytest.raises(TypeError):
            reduced(SEARCHES["training"])

    assert bytes_of_whole["training"] == written(SEARCHES["training"], kept, tmp_path)


@pytest.mark.parametrize(("workers", "parts"), [(0, 1), (3, 3)])
def test_the_workers_of_a_scheduler_are_counted(workers, parts) -> None:
    from distributed import LocalCluster

    from trnspec.evaluators.searching.space import executor

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        executor(cluster.scheduler_address) as (_, count),
    ):
        assert parts == count


def test_no_scheduler(monkeypatch) -> None:
    from trnspec.evaluators.searching import space as reduction

    monkeypatch.setattr(reduction, "TIMEOUT", "1s")
    with pytest.raises(UsageError, match="no Dask scheduler at nonsense"), reduction.executor("nonsense://a:1"):
        pass


ARGS = ("search", "--model", "llama-3.2-1b", "--on", "trn1.2xlarge*2", "--seq", "1024", "--global-batch", "8")


@pytest.mark.slow
def test_a_killed_part_is_evaluated_again(tmp_path) -> None:
    command = [sys.executable, "-m", "trnspec", *ARGS, "--part", "2/3", "--results"]
    subprocess.run([*command, tmp_path / "expected"], check=True, capture_output=True)
    expected = {f.name: f.read_bytes() for f in (tmp_path / "expected").iterdir()}
    folder = tmp_path / "killed"
    for delay in (0.3, 0.7, 1.1):
        process = subprocess.Popen([*command, folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
    subprocess.run([*command, folder], check=True, capture_output=True)

    assert expected == {f.name: f.read_bytes() for f in folder.iterdir() if not f.name.startswith(".")}


def test_damaged_results_are_rejected(tmp_path) -> None:
    search = SEARCHES["training"]
    ends = search.part(1, 2)
    header = save(search, search.kept(*ends), *ends, tmp_path, {})
    rows = header.with_suffix(".parquet")
    text, contents = header.read_bytes(), rows.read_bytes()

    assert load(search, header).kept.evaluated == ends[1]
    for damage in (contents[:-1], contents[:100], b"", contents[:-9] + bytes([contents[-9] ^ 1]) + contents[-8:]):
        rows.write_bytes(damage)
        with pytest.raises(UsageError, match="truncated or altered"):
            load(search, header)
    rows.unlink()
    with pytest.raises(UsageError, match="its rows are missing"):
        load(search, header)
    rows.write_bytes(contents)
    for damage in (text[: len(text) // 2], b"", b"\xff\xfe", b"[]", b"{}"):
        header.write_bytes(damage)
        with pytest.raises(UsageError, match="not the result of a search"):
            load(search, header)
    for change in (1, -1):
        about = json.loads(text)
        about["counts"][""] += change
        header.write_text(json.dumps(about))
        with pytest.raises(UsageError, match=r"altered: .* configurations are counted"):
            load(search, header)
    header.write_bytes(text)
    with pytest.raises(UsageError, match="a result of another search"):
        load(search_of(CAT, SearchQuestion(**QUESTIONS["training"] | {"seq": 2048})), header)


@pytest.mark.parametrize(("ends", "fault"), tables(__file__)["parts_that_overlap_or_leave_gaps"])
def test_parts_that_overlap_or_leave_gaps(ends, fault) -> None:
    search = SEARCHES["training"]
    ends = [(first, search.size if last is None else last % search.size) for first, last in ends]
    results = [PartResult(*each, search.selection.empty()) for each in ends]
    if not fault:
        merged(search, results)
        return
    expected = fault.format(size=f"{search.size:,}", last=f"{search.size - 1:,}")
    with pytest.raises(UsageError, match=f"^the configurations {expected}$"):
        merged(search, results)


def test_part_name_depends_on_all_inputs() -> None:
    search = SEARCHES["training"]
    others = [
        search_of(CAT, SearchQuestion(**QUESTIONS["training"] | {"top": 5})),
        search_of(CAT.replace("trainium1", {"spec.memory.bandwidth": "821 GB/s"}), SearchQuestion(**QUESTIONS["training"])),
    ]  # fmt: skip
    names = [name_of(search, 0, 5), name_of(search, 0, 6), *(name_of(other, 0, 5) for other in others)]

    assert len(set(names)) == 4
    assert name_of(search, 0, 5) == name_of(search_of(CAT, SearchQuestion(**QUESTIONS["training"])), 0, 5)


def test_interrupted_search_keeps_results() -> None:
    def interrupt(done: int, total: int) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    question = SearchQuestion(**QUESTIONS["serving"])
    with pytest.raises(KeyboardInterrupt), reported(interrupt):
        run(CAT, question)
    how = SearchExecution(interruptible=True)
    with distributed(how), reported(interrupt):
        found = run(CAT, question)
    stated = {a.name: a.value for a in found.assumptions}["interrupted"]

    size = SEARCHES["serving"].size
    assert how.interrupted
    assert size // 2 < found["evaluated"] < size
    assert f"{found['evaluated']:,} of {size:,} deployments" == stated
