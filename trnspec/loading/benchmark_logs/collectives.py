"""Tables that nccl-tests and nccom-test print: a row for each size, of nccl-tests in place and out of place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from trnspec.loading.benchmark_logs.log import Cells, Log, number, shown

DTYPES = {"float": "fp32", "half": "fp16", "bfloat16": "bf16", "double": "fp64"}
"""Data types of NCCL as tables name them; others have the same name."""

_TESTS = re.compile(
    r"\b(all_reduce|all_gather|reduce_scatter|alltoallv?|broadcast|reduce|scatter|gather|sendrecv|hypercube)_perf"
)
_NCCL_HEAD = re.compile(r"#\s+(size\s+count\s+type\b.*)")
_RANK = re.compile(
    r"#\s+Rank\s+(\d+)\s+(?:Group\s+(\d+)\s+)?Pid\s+\d+ on\s+(\S+)\s+device\s+\d+\s+\[[^\]]*\]\s+(.+?)\s*$"
)
_LIBRARY = re.compile(r"nccl-library=(\d+)(\d\d)(\d\d)\b")
_ROW = re.compile(r"(?:^|[\s:>])(\d+)\s+(\d+)\s+((?:u?int|fp?|bf|bfloat|float)\d\w*|half|float|double)\s+(\S.*)$")
_NCCOM_HEAD = re.compile(r"(size\(B\)\s+count\(elems\)\s+type\b.*)")
_WORKERS = re.compile(r"(?:-r|--nworkers)[ =](\d+)")
_GIBI = 2.0**30 / 1e9

COLLECTIVES = (
    (r"all_?r", "all_reduce"),
    (r"all_?g", "all_gather"),
    (r"all_?to", "all_to_all"),
    (r"red", "reduce_scatter"),
    (r"perm", "permute"),
    (r"send", "sendrecv"),
    (r"b(?:road)?cast", "broadcast"),
)
"""Operations of nccom-test by how the argument begins: it takes abbreviations such as ``allr``."""


def nccl_tests(log: Log) -> list[Cells]:
    """The rows of a log of nccl-tests. ``size`` is the whole buffer, as ``size_bytes`` of a measurement table.

    Ranks are stated where the log lists all of them. Sizes of 0 are not measurements.

    Raises:
        UsageError: There is no table, or a row of it has too few columns.
    """
    rows: list[Cells] = []
    test = version = ""
    heads: list[str] = []
    ranks: dict[int, tuple[str, str, str]] = {}
    for line, text in log.lines():
        if found := _TESTS.search(text):
            test = found[1]
        if found := _LIBRARY.search(text):
            version = ".".join(str(int(part)) for part in found.groups())
        if found := _RANK.search(text):
            if int(found[1]) == 0 and ranks and heads:
                ranks, heads = {}, []  # the next test of the file
            ranks[int(found[1])] = (found[2] or "0", found[3], found[4])
        elif found := _NCCL_HEAD.search(text):
            heads = found[1].split()
        elif heads and (found := _ROW.search(text)):
            cells = _cells(log, line, found, heads)
            if int(found[1]):
                common = {"collective": test.replace("alltoall", "all_to_all"), **_ranks(ranks)}
                rows += _both(log, line, heads, cells, {**common, "framework_version": version})
    if not rows:
        raise log.problem(
            1,
            "there is no table of nccl-tests; expected a line '# size count type ...' and rows below it",
            "the output of all_reduce_perf and others, also with the prefixes of mpirun",
        )
    return rows


def _cells(log: Log, line: int, found: re.Match[str], heads: Sequence[str]) -> list[str]:
    """The cells of a row, one for each head."""
    cells = [*found.groups()[:3], *found[4].split()]
    if len(cells) != len(heads):
        raise log.problem(line, f"the row has {len(cells)} columns; expected {len(heads)}: {' '.join(heads)}")
    return cells


def _ranks(ranks: Mapping[int, tuple[str, str, str]]) -> dict[str, str]:
    """The number of ranks and a note, if all are listed and in one group."""
    if not ranks or sorted(ranks) != [*range(len(ranks))] or len({group for group, _, _ in ranks.values()}) > 1:
        return {}
    hosts = len({host for _, host, _ in ranks.values()})
    devices = ", ".join(dict.fromkeys(device for _, _, device in ranks.values()))
    return {"ranks": str(len(ranks)), "note": f"{hosts} {'host' if hosts == 1 else 'hosts'}, {devices}"}


def _both(
    log: Log, line: int, heads: Sequence[str], cells: Sequence[str], common: Mapping[str, str]
) -> Iterator[Cells]:
    """The result out of place, and the one in place."""
    size = number(log, line, "size", cells[0])
    starts = [i for i, head in enumerate(heads) if head == "time"]
    for start, place in zip(starts, ("out of place", "in place"), strict=False):
        time, algbw, busbw = cells[start : start + 3]
        wrong = cells[start + 3] if heads[start + 3 : start + 4] == ["#wrong"] else ""
        if not time[0].isdigit():
            continue  # not every test runs in place
        notes = [common["note"]] if "note" in common else []
        if wrong.isdigit() and int(wrong):
            notes.append(f"{wrong} wrong values")
        yield {
            **common,
            "id": f"{cells[0]}-{place.replace(' ', '-')}",
            "size_bytes": shown(size),
            "dtype": DTYPES.get(cells[2], cells[2]),
            "time_us": shown(number(log, line, "time", time)),
            "algbw_GBps": shown(number(log, line, "algbw", algbw)),
            "busbw_GBps": shown(number(log, line, "busbw", busbw)),
            "launch": f"nccl-tests, {place}",
            "note": "; ".join(notes),
        }


def nccom_test(log: Log) -> list[Cells]:
    """The rows of a log of nccom-test.

    Operation and number of workers are stated where the log has the command. Older versions print GiB/s under the name
    GB/s: bandwidths that are size over time in GiB/s are converted, and a note says so.

    Raises:
        UsageError: There is no table, or a row of it has too few columns.
    """
    rows: list[Cells] = []
    command: dict[str, str] = {}
    heads: list[str] = []
    for line, text in log.lines():
        if "nccom-test" in text:
            command = _command(text)
        elif found := _NCCOM_HEAD.search(text):
            heads = found[1].split()
        elif heads and (found := _ROW.search(text)):
            cells = _cells(log, line, found, heads)
            rows.append(_nccom_row(log, line, dict(zip(heads, cells, strict=True)), command))
    if not rows:
        raise log.problem(
            1,
            "there is no table of nccom-test; expected a line 'size(B) count(elems) type ...' and rows below it",
        )
    return rows


def _command(text: str) -> dict[str, str]:
    """Operation and workers of a command; of profilers, the command that is profiled."""
    words = text[text.rindex("nccom-test") :].split()[1:]
    workers = _WORKERS.search(" ".join(words))
    operation = next((name for word in words for begin, name in COLLECTIVES if re.match(begin, word)), "")
    return {"collective": operation, "ranks": workers[1] if workers else ""}


def _nccom_row(log: Log, line: int, cells: Mapping[str, str], command: Mapping[str, str]) -> Cells:
    times = [head for head in cells if head.startswith("time")]
    chosen = next((head for head in ("time:avg(us)", "time(us)") if head in cells), times[0] if times else "")
    if not chosen.endswith("(us)") or "algbw(GB/s)" not in cells or "busbw(GB/s)" not in cells:
        raise log.problem(line, f"the columns are {' '.join(cells)}; expected time(us), algbw(GB/s) and busbw(GB/s)")
    size, time = (number(log, line, head, cells[head]) for head in ("size(B)", chosen))
    algbw, busbw = (number(log, line, head, cells[head]) for head in ("algbw(GB/s)", "busbw(GB/s)"))
    rate = size / time * 1e-3 if time else 0.0
    notes = [] if chosen in ("time(us)", "time:avg(us)") else [f"{chosen} of several times"]
    # Two printed digits differ by less than 1 % from about 1 GB/s; GiB/s differ by 7 %.
    if algbw >= 1.0 and abs(algbw * _GIBI / rate - 1.0) < 0.01:
        algbw, busbw = algbw * _GIBI, busbw * _GIBI
        notes.append("bandwidths were printed in GiB/s")
    return {
        **command,
        "id": cells["size(B)"],
        "size_bytes": shown(size),
        "dtype": cells["type"],
        "time_us": shown(time),
        "algbw_GBps": shown(algbw),
        "busbw_GBps": shown(busbw),
        "note": "; ".join(notes),
    }
