"""``trnspec search``: the evaluator search, by itself or in parts, and the merge of the results of parts."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import active_children
from pathlib import Path as FilePath
from typing import Any

import click
from attrs import evolve

from trnspec.api import evaluator
from trnspec.catalog.catalog import Catalog
from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.eval import evaluator_command, print_evaluation
from trnspec.cli.eval_csv import table_of
from trnspec.cli.help import GroupedCommand, NamedPath, documented, former_brief, new_option, option
from trnspec.cli.progress import bar
from trnspec.cli.render import format_option, full_option
from trnspec.cli.request import EvalRequest
from trnspec.errors import UsageError
from trnspec.evaluation.inputs import bound, fields_of
from trnspec.evaluation.progress import SearchExecution, distributed, reported
from trnspec.evaluation.result import Evaluation
from trnspec.evaluation.runner import applied, as_mapping, under_assumptions
from trnspec.evaluators.searching.files import PartResult, headers, load, merged, name_of, read_header, save
from trnspec.evaluators.searching.question import SearchQuestion
from trnspec.evaluators.searching.report import report
from trnspec.evaluators.searching.space import Search, executor, reduced, search_of

_INTERRUPTED = 130
_PARTS_PER_WORKER = 8
_LEAST_PARTS = 64
_PART = re.compile(r"([1-9]\d{0,8})/([1-9]\d{0,8})")
_GROUP = "Many machines"


def _options() -> list[click.Option]:
    """The options that do not change the answer."""
    return [
        new_option("--part I/N", _GROUP, "Evaluate only the I-th of N parts, and write its result to the folder --results; see "
                   "trnspec search merge."),
        new_option("--results DIR", _GROUP, "Write the result of the part, or without --part of the whole search, to this "
                   "folder instead of printing it.", type=NamedPath(file_okay=False)),
        new_option("--workers N", _GROUP, "Evaluate in N processes.", type=click.IntRange(1, 4096)),
        new_option("--dask ADDRESS", _GROUP, "Evaluate on the workers of a Dask scheduler, such as tcp://host:8786; needs "
                   "trnspec[dask]."),
    ]  # fmt: skip


class _SearchCommand(click.Group):
    """``trnspec search OPTIONS`` searches; ``trnspec search merge`` is a command of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """The context of the command that the arguments are for."""
        if args[:1] == ["merge"]:
            return super().make_context(info_name, args, parent, **extra)
        return evaluator_search().make_context(info_name, args, parent, **extra)


def evaluator_search() -> GroupedCommand:
    """The command of the evaluator, with the options of parts."""
    command = evaluator_command(*evaluator("search"), extra=_options(), around=_around)
    command.help = f"{command.help}\n\ntrnspec search merge combines the results of parts, see its --help."
    return command


@click.group("search", cls=_SearchCommand)
def command() -> None:
    """Search for the best layout of training, or deployment for serving; merge the results of parts."""


def _around(request: EvalRequest, options: Mapping[str, Any], proceed: Callable[[], None]) -> None:
    """Searches as the options say."""
    if options["part"] is not None or options["results"] is not None:
        _write_part(request, options)
        return
    with _executor(options["workers"], options["dask"]) as (executor, parts):
        how = SearchExecution(executor, parts, interruptible=True)
        with distributed(how):
            proceed()
        if how.interrupted:
            _stop_workers()
    if how.interrupted:
        click.echo("trnspec: interrupted; the result is that of what was evaluated", err=True)
        click.get_current_context().exit(_INTERRUPTED)


@contextmanager
def _executor(workers: int | None, dask: str | None) -> Iterator[tuple[Executor | None, int]]:
    """The executor of parts, and the number of parts."""
    if workers is not None and dask is not None:
        raise UsageError("--workers and --dask exclude each other")
    if dask is not None:
        with executor(dask) as (pool, count):
            yield pool, max(_LEAST_PARTS, _PARTS_PER_WORKER * count)
    elif workers is None or workers == 1:
        yield None, 1
    else:
        with ProcessPoolExecutor(workers, initializer=_ignore_interrupts) as processes:
            yield processes, max(_LEAST_PARTS, _PARTS_PER_WORKER * workers)


def _stop_workers() -> None:
    """Ends the processes that still evaluate parts; nothing else in this process starts any."""
    for child in active_children():
        child.terminate()


def _ignore_interrupts() -> None:
    """In a worker: Ctrl-C goes to the process that collects what was found."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


# Parts.


def _write_part(request: EvalRequest, options: Mapping[str, Any]) -> None:
    """Evaluates a part and writes its result, unless it is there."""
    if request.varied or request.target or request.use_claims or request.sensitivity is not None:
        raise UsageError("--part and --results are for one search, without --target, --use-claims and --sensitivity")
    search, context = _search(request)
    first, last = search.part(*_part_of(options["part"])) if options["part"] else (0, search.size)
    folder = options["results"] or FilePath()
    file = folder / name_of(search, first, last)
    if file.exists():
        try:
            load(search, file)
        except UsageError as error:
            click.echo(f"trnspec: {error}; evaluated again", err=True)
        else:
            click.echo(str(file))
            return
    with (
        _executor(options["workers"], options["dask"]) as (executor, parts),
        bar() as advance,
        reported(advance),
        distributed(SearchExecution(executor, parts)),
    ):
        kept = reduced(search, first, last)
    click.echo(str(save(search, kept, first, last, folder, context)))


def _part_of(text: str) -> tuple[int, int]:
    match = _PART.fullmatch(text.strip())
    if match is None or int(match[1]) > int(match[2]):
        raise UsageError(f"--part: {text!r}; I/N is expected, such as 3/64: the third of 64 parts")
    return int(match[1]), int(match[2])


def _search(request: EvalRequest) -> tuple[Search, dict[str, Any]]:
    """The search of a request, and the options with which to find its catalog again."""
    options = {**request.options, **({"assume": list(request.assume)} if request.assume else {})}
    return _search_of(request.catalog, request.given, request.inputs), options


def _search_of(catalog: Catalog, given: Mapping[str, Any], assumptions: Mapping[str, Any]) -> Search:
    used: Any = applied(catalog, dict(assumptions))[0]
    return search_of(used, SearchQuestion(**bound(fields_of(SearchQuestion), given, "search")))


@documented(
    "merge",
    ("trnspec search merge results", "The result of the parts in a folder:"),
    ("trnspec search merge results --results merged", "Write the merged result as well:"),
    ("trnspec search merge results --redo", "Evaluate missing and truncated parts, too:"),
    ("trnspec search merge results --full --format markdown", "The complete page, for a design document:"),
    of=command,
    params=[former_brief()],
)
@click.argument("files", nargs=-1, required=True, type=NamedPath())
@option("--redo", "Input", "Evaluate parts that are missing, truncated or altered, here.")
@option("--results DIR", "Output", "Also write the merged result to this folder.", type=NamedPath(file_okay=False))
@full_option()
@format_option
@catalog_options
def merge(
    files: tuple[FilePath, ...],
    *,
    redo: bool,
    results: FilePath | None,
    full: bool,
    format_: str,
    **catalog: str | None,
) -> None:
    """Combine the results of parts of a search, and print its result.

    FILES are results that trnspec search --part wrote, or folders of them. The catalog is that of the parts, unless options
    choose another. A result that is truncated, or missing, is an error; --redo evaluates it again.
    """
    found = headers(files)
    about = _first_header(found)
    options = {**about["catalog"], **{name: value for name, value in catalog.items() if value is not None}}
    assume = options.pop("assume", ())
    assumptions: dict[str, Any] = {"assume": as_mapping(assume)} if assume else {}
    repeated = {**options, **({"assume": tuple(assume)} if assume else {})}
    loaded = load_catalog(**options)
    search = _search_of(loaded, _tuples(about["inputs"]), assumptions)
    parts = list(_loaded(search, found, redo=redo))
    kept = merged(search, _completed(search, parts) if redo else parts)
    if results is not None:
        save(search, kept, 0, search.size, results, about["catalog"])

    def evaluation() -> Evaluation:
        found = under_assumptions(loaded, lambda used: report(used, search, kept), **assumptions)
        return evolve(found, edition=loaded.edition or "", as_of=loaded.as_of or "")

    print_evaluation("search", evaluation, format_, csv_of=table_of, full=full, options=repeated)


def _first_header(files: list[FilePath]) -> dict[str, Any]:
    """The header of the first file that has one."""
    error: UsageError | None = None
    for file in files:
        try:
            return read_header(file)
        except UsageError as unreadable:
            error = error or unreadable
    assert error is not None
    raise error


def _tuples(inputs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in inputs.items()}


def _loaded(search: Search, files: list[FilePath], *, redo: bool) -> Iterator[PartResult]:
    """The results in some files; those that are not valid are left out if they are evaluated again."""
    for file in files:
        try:
            yield load(search, file)
        except UsageError as error:
            if not redo:
                raise UsageError(f"{error}; run its part again, or merge with --redo") from None
            click.echo(f"trnspec: {error}; evaluated again", err=True)


def _completed(search: Search, parts: list[PartResult]) -> list[PartResult]:
    """The parts, and those that are missing between them, evaluated here."""
    done, end = [], 0
    for one in [*sorted(parts, key=lambda r: (r.first, -r.last)), None]:
        first = search.size if one is None else one.first
        if first > end:
            done.append(PartResult(end, first, search.kept(end, first)))
        if one is not None and one.last > end:
            done.append(one)
            end = one.last
    return done
