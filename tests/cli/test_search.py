"""``trnspec search`` and ``trnspec search merge`` as a user runs them."""

import io
from pathlib import Path

import pytest

from tests.support.programs import Here
from trnspec.cli import progress
from trnspec.evaluation.progress import report, reported

LAYOUTS = ("--model", "llama-3.2-1b", "--on", "trn1.2xlarge*2", "--seq", "1024", "--global-batch", "8", "--top", "3")
SERVING = ("--model", "llama-3.1-8b", "--on", "trn2.3xlarge", "--prompt", "512", "--output", "64", "--top", "3")


def results(here: Here, *args: str | Path) -> dict[str, bytes]:
    """The files that a command writes to a new folder."""
    folder = here.folder / f"results-{len(list(here.folder.iterdir()))}"
    done = here(*args, "--results", folder)
    assert (0, "") == (done.status, done.err)
    return {file.name: file.read_bytes() for file in sorted(folder.iterdir())}


@pytest.mark.parametrize(("args", "formats"), [(LAYOUTS, ("text", "json")), (SERVING, ("csv", "markdown"))])
def test_merged_parts_equal_the_whole(here, args, formats) -> None:
    for number in ("1/3", "3/3", "2/3"):
        done = here("search", *args, "--part", number, "--results", "parts")
        assert (0, "") == (done.status, done.err)
    for format_ in formats:
        alone = here("eval", "search", *args, "--format", format_)
        merged = here("search", "merge", "parts", "--format", format_)
        expected = alone.data if format_ == "json" else alone.out
        if format_ == "json":
            # The options of the catalog are those of the command line.
            expected.pop("catalog")
        assert expected == (merged.data if format_ == "json" else merged.out)
    assert results(here, "search", *args) == results(here, "search", "merge", *(here.folder / "parts").iterdir())


def test_a_valid_part_is_not_evaluated_again(here, monkeypatch) -> None:
    args = ("search", *LAYOUTS, "--part", "1/2", "--results", "parts")
    first = here(*args)
    (rows,) = (here.folder / "parts").glob("*.parquet")
    before = rows.stat().st_mtime_ns, rows.read_bytes()
    again = here(*args)

    assert (first.out, "") == (again.out, again.err)
    assert before == (rows.stat().st_mtime_ns, rows.read_bytes())
    rows.write_bytes(before[1][:99])
    third = here(*args)
    assert (first.out, True) == (third.out, "truncated or altered" in third.err)
    assert before[1] == rows.read_bytes()


def test_damaged_and_missing_parts_are_redone(here) -> None:
    for number in range(1, 5):
        here("search", *LAYOUTS, "--part", f"{number}/4", "--results", "parts")
    files = sorted((here.folder / "parts").glob("*.parquet"))
    files[0].write_bytes(files[0].read_bytes()[:50])
    damaged = here("search", "merge", "parts")
    assert (2, True) == (damaged.status, "run its part again, or merge with --redo" in damaged.err)
    files[0].with_suffix(".json").unlink()
    files[2].with_suffix(".json").unlink()
    missing = here("search", "merge", "parts")
    assert (2, True) == (missing.status, " are missing" in missing.err)
    redone = here("search", "merge", "parts", "--redo", "--results", "merged")

    assert here("search", *LAYOUTS).out == redone.out
    merged = {file.name: file.read_bytes() for file in sorted((here.folder / "merged").iterdir())}
    assert results(here, "search", *LAYOUTS) == merged


def test_the_catalog_of_parts_is_found_again(here) -> None:
    assumed = ("--set", "trainium1.memory.bandwidth=900 GB/s")
    here("search", *LAYOUTS, *assumed, "--part", "1/1", "--results", "parts")

    assert (
        here("search", *LAYOUTS, *assumed).out.splitlines()[:20]
        == here("search", "merge", "parts").out.splitlines()[:20]
    )
    other = here("search", "merge", "parts", "--edition", "2026.11.1")
    assert (2, True) == (other.status, "a result of another search, catalog or version" in other.err)


def test_options_without_an_effect_or_a_figure(here) -> None:
    vllm, offload = here("search", *LAYOUTS, "--framework", "vllm"), here("search", *LAYOUTS, "--offload", "optimizer")

    assert [(1, ""), (1, "")] == [(done.status, done.out) for done in (vllm, offload)]
    assert "sets nothing of training" in vllm.err
    assert "unknown-figure: the rate between a rank and its host is not published" in offload.err


def test_merge_without_parts(here) -> None:
    (here.folder / "empty").mkdir()
    (here.folder / "other.json").write_text("{}")

    for name, message in (
        ("empty", "there are no results"),
        ("other.json", "not the result of a search"),
        ("no", "No such file"),
    ):
        done = here("search", "merge", name)
        assert (2, True) == (done.status, message in done.err)


def test_interrupted_search_prints_results(here, monkeypatch) -> None:
    from trnspec.evaluators.searching import space as reduction

    def interrupt(done: int, total: int) -> None:
        if 0 < done < total:
            raise KeyboardInterrupt

    monkeypatch.setattr(reduction, "report", interrupt)
    done = here("search", *SERVING, "--on", "trn2.3xlarge,trn2.48xlarge")

    assert done.status == 130
    assert "interrupted" in done.err
    assert done.out.startswith("search: llama-3.1-8b on trn2.3xlarge: the most tokens/s per chip of ")
    assert "the others were not evaluated" in " ".join(done.out.split())


def test_rates() -> None:
    assert ["999 /s", "1 k/s", "1.23 k/s", "1 M/s", "1 G/s"] == [progress.rate(n) for n in (999, 1e3, 1234, 1e6, 1e9)]


def test_merge_of_parts_without_feasible_layouts(here) -> None:
    args = (*LAYOUTS, "--where", "step_time < 1 us")
    here("search", *args, "--part", "1/1", "--results", "parts")
    alone, merged = here("search", *args), here("search", "merge", "parts")

    assert (1, 1) == (alone.status, merged.status)
    assert alone.err.splitlines()[:3] == merged.err.splitlines()[:3]
    assert "without the condition 692 are feasible: step_time" in alone.err


class Terminal(io.StringIO):
    """A stream that may be a terminal."""

    def __init__(self, *, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize("terminal", [True, False])
def test_reported_progress_is_shown(monkeypatch, terminal):
    stream = Terminal(terminal=terminal)
    monkeypatch.setattr(progress.sys, "stderr", stream)
    with progress.bar():
        assert stream.getvalue() == ""
    with progress.bar() as advance, reported(advance):
        for done in (1, 5, 10):
            report(done, 10)
    assert terminal == ("100%" in stream.getvalue())
    if not terminal:
        assert stream.getvalue() == ""
    # Nothing is shown outside.
    before = stream.getvalue()
    report(1, 10)
    assert before == stream.getvalue()
