"""``trnspec sql``."""

import subprocess
import sys

import pytest

from tests.support.programs import apart, environment

pytestmark = pytest.mark.slow


def test_text(here) -> None:
    result = here(
        "sql", 'SELECT name, "memory.capacity" / 1024^3 AS gib, dies, aliases FROM chips ORDER BY gib DESC LIMIT 2'
    )

    assert (0, "") == (result.status, result.err)
    assert result.out.splitlines() == [
        "name       gib  dies  aliases",
        "---------  ---  ----  -------",
        "trainium3  144     -",
        "trainium2   96     2",
    ]


@pytest.mark.parametrize("missing", ["duckdb", "pyarrow"])
def test_without_the_extra(tmp_path, missing) -> None:
    """In a process that cannot import it: one line, status 2."""
    code = f"import sys; sys.modules[{missing!r}] = None; sys.argv = ['trnspec', 'sql', 'SELECT 1']\nfrom trnspec.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=False,
        text=True,
        timeout=60,
    )

    assert (2, "") == (done.returncode, done.stdout)
    assert done.stderr.startswith(f"trnspec: {missing} is not installed")
    assert done.stderr.endswith("pip install 'trnspec[tables]'\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("WITH x AS (DELETE FROM chips RETURNING *) SELECT * FROM x", "read-only"),
        ("EXPLAIN ANALYZE DELETE FROM chips", "write a SELECT"),
        ("PRAGMA version", "write a SELECT"),
        ("CALL pragma_version()", "write a SELECT"),
        ("CHECKPOINT", "write a SELECT"),
        ("DELETE FROM chips RETURNING *", "write a SELECT"),
        ("SET memory_limit = '1TB'", "write a SELECT"),
        ("SELECT string_agg(repeat('ab', 10000)) FROM range(1000000)", "more than 512 MB of memory"),
        ("SELECT * FROM range(100000000)", "more than 64 MB"),
    ],
)
def test_only_small_selects(here, text, words) -> None:
    result = here("sql", text)

    assert (2, "") == (result.status, result.out)
    assert words in result.err


def test_a_query_without_end(here, monkeypatch) -> None:
    monkeypatch.setattr("trnspec.catalog.frames.SQL_SECONDS", 0.2)
    result = here("sql", "SELECT count(*) FROM range(1000000000000000)")

    assert (2, "trnspec: the query took longer than 0.2 s\n") == (result.status, result.err)


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux only")
def test_a_large_value(tmp_path) -> None:
    result = apart("sql", "SELECT repeat('a', 1000000000)", cwd=tmp_path)

    assert (2, "trnspec: the query needs more than 512 MB of memory\n") == (result.status, result.err)
