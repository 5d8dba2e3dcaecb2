"""Results of parts of a search as files: a header in JSON, which has the hash of the rows, and the rows in Parquet.

The name of a file follows from its contents' inputs: the key of the search and the range of its configurations. The same part
always has the same bytes. A file that was truncated or altered is not a result.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any

from attrs import frozen

from trnspec.atomic_write import write
from trnspec.errors import UsageError, library
from trnspec.evaluators.searching.space import FORMAT, Search
from trnspec.perf.sweep.reductions import EXCESS, Configurations, Selected

_SETS = ("best", "front", "nearest")
_DIGITS = 16
"""Digits of the key in names of files."""


@frozen
class PartResult:
    """Results of a part of a search.

    Attributes:
        first: The first configuration.
        last: The number after the last.
        kept: What was kept.
    """

    first: int
    last: int
    kept: Selected


def name_of(search: Search, first: int, last: int) -> str:
    """The name of the file with the header of a part."""
    digits = len(str(search.size))
    return f"search-{search.header['key'][:_DIGITS]}-{first:0{digits}}-{last:0{digits}}.json"


def save(
    search: Search, kept: Selected, first: int, last: int, folder: FilePath, catalog: Mapping[str, Any]
) -> FilePath:  # what, of which part, and where
    """Write the result of a part: the Parquet file first, so that a header always has its rows.

    Args:
        search: The search.
        kept: What was kept of the part.
        first: The first configuration.
        last: The number after the last.
        folder: Where to; it is created.
        catalog: The options with which the catalog is found again.

    Returns:
        The file with the header.

    Raises:
        UsageError: pyarrow is not installed.
        OSError: A file cannot be written.
    """
    rows = _parquet(kept)
    header = folder / name_of(search, first, last)
    about = {
        **search.header,
        "catalog": dict(catalog),
        "first": first,
        "last": last,
        "counts": {reason: n for reason, n in sorted(kept.counts.items()) if n},
        "ranges": {name: list(kept.ranges[name]) for name in sorted(kept.ranges)},
        "rows": header.with_suffix(".parquet").name,
        "sha256": hashlib.sha256(rows).hexdigest(),
    }
    text = json.dumps(about, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    write({header.with_suffix(".parquet"): rows})
    write({header: text.encode()})
    return header


def _parquet(kept: Selected) -> bytes:
    """The rows in Parquet: the same bytes for the same rows."""
    arrow = library("pyarrow")
    parquet = library("pyarrow.parquet")
    names = [*kept.selection.columns, EXCESS]
    columns: dict[str, list[Any]] = {"set": [], "index": [], **{name: [] for name in names}}
    for which in _SETS:
        rows: Configurations = getattr(kept, which)
        plain = rows.plain()
        columns["set"] += [which] * len(rows)
        columns["index"] += plain["index"]
        for name in names:
            columns[name] += plain.get(name, [None] * len(rows))
    types = {"set": arrow.string(), "index": arrow.int64()}
    table = arrow.table({n: arrow.array(v, types.get(n, arrow.float64())) for n, v in columns.items()})
    sink = io.BytesIO()
    parquet.write_table(table, sink, compression="none")
    return sink.getvalue()


def load(search: Search, header: FilePath) -> PartResult:
    """The result of a part of a search.

    Raises:
        UsageError: It is truncated, altered, or a result of another search.
    """
    about = read_header(header)
    if about["key"] != search.header["key"]:
        raise UsageError(
            f"{header}: a result of another search, catalog or version; its key is {about['key'][:_DIGITS]}"
        )
    rows = header.parent / about["rows"]
    try:
        contents = rows.read_bytes()
    except OSError as error:
        raise UsageError(f"{header}: its rows are missing: {rows.name}: {error.strerror}") from error
    if hashlib.sha256(contents).hexdigest() != about["sha256"]:
        raise UsageError(f"{rows}: truncated or altered: its hash is not that in {header.name}")
    # Without threads: a process that ends while they do is aborted.
    file = library("pyarrow.parquet").ParquetFile(io.BytesIO(contents), pre_buffer=False)
    table = file.read(use_threads=False).to_pydict()
    kept = search.selection.empty()
    for which in _SETS:
        at = [i for i, one in enumerate(table["set"]) if one == which]
        names = getattr(kept, which).columns
        columns = {name: [table[name][i] for i in at] for name in names}
        setattr(kept, which, Configurations.of([table["index"][i] for i in at], columns))
    kept.counts = Counter(about["counts"])
    kept.ranges = {name: (low, high) for name, (low, high) in about["ranges"].items()}
    if kept.evaluated != about["last"] - about["first"]:
        raise UsageError(
            f"{header}: altered: {kept.evaluated:,} configurations are counted, not {about['last'] - about['first']:,}"
        )
    return PartResult(about["first"], about["last"], kept)


_KEYS = frozenset(
    "format engine edition inputs size key catalog first last counts ranges rows sha256".split()  # noqa: SIM905
)
"""The keys of a header."""


def read_header(header: FilePath) -> dict[str, Any]:
    """The header of a result.

    Raises:
        UsageError: The file cannot be read, or is not the header of a result.
    """
    try:
        about = json.loads(header.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{header}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{header}: truncated, or not the result of a search") from error
    if not isinstance(about, dict) or about.get("format") != FORMAT or set(about) != _KEYS:
        raise UsageError(f"{header}: not the result of a search")
    return about


def headers(paths: Iterable[FilePath]) -> list[FilePath]:
    """The headers among some files and folders; a file of rows is that of its header.

    Raises:
        UsageError: There are none.
    """
    found: dict[FilePath, None] = {}
    for path in paths:
        for file in sorted(path.glob("search-*.json")) if path.is_dir() else [path.with_suffix(".json")]:
            found[file] = None
    if not found:
        raise UsageError("there are no results of a search to merge")
    return list(found)


def merged(search: Search, results: Sequence[PartResult]) -> Selected:
    """Results of all parts together; parts that are in others are left out.

    Raises:
        UsageError: Parts are missing, or overlap; the message has the ranges.
    """
    kept, end = search.selection.empty(), 0
    for one in sorted(results, key=lambda r: (r.first, -r.last)):
        if one.last <= end:
            continue
        if one.first != end:
            what = "are missing" if one.first > end else "are in two parts"
            low, high = sorted((end, one.first))
            raise UsageError(f"the configurations {low:,} to {high - 1:,} of {search.size:,} {what}")
        kept.merge(one.kept)
        end = one.last
    if end < search.size:
        raise UsageError(f"the configurations {end:,} to {search.size - 1:,} of {search.size:,} are missing")
    return kept
