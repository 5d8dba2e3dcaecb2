"""``trnspec sql``."""

import sys

import pytest

from tests.support.programs import apart

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


@pytest.mark.parametrize(
    ("line", "missing", "extra"),
    [
        (("sql", "SELECT 1"), "duckdb", "tables"), (("sql", "SELECT 1"), "pyarrow", "tables"), (("lsp",), "lsprotocol", "lsp"),
        (("lsp",), "pygls", "lsp"),
    ],
)  # fmt: skip
def test_without_the_extra(here, monkeypatch, line, missing, extra) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    done = here(*line)

    assert (2, "") == (done.status, done.out)
    assert done.err == f"trnspec: {missing} is not installed; pip install 'trnspec[{extra}]'\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("WITH x AS (DELETE FROM chips RETURNING *) SELECT * FROM x", "read-only"),
        ("SELECT string_agg(repeat('ab', 10000)) FROM range(1000000)", "more than 512 MB of memory"),
        ("SELECT * FROM range(100000000)", "more than 64 MB"),
    ],
)
def test_only_small_selects(here, text, words) -> None:
    result = here("sql", text)

    assert (2, "") == (result.status, result.out)
    assert words in result.err


@pytest.mark.skipif(sys.platform != "linux", reason="the address space is limited on Linux only")
def test_a_large_value(tmp_path) -> None:
    result = apart("sql", "SELECT repeat('a', 1000000000)", cwd=tmp_path)

    assert (2, "trnspec: the query needs more than 512 MB of memory\n") == (result.status, result.err)
