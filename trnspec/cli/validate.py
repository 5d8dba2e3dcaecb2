"""``trnspec validate``: the checks, which pre-commit runs; with ``--watch`` whenever a document changes."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path as FilePath
from typing import NoReturn, TypeAlias

import click

from trnspec.api import plugins, validate
from trnspec.checks.baseline import read, without
from trnspec.checks.runner import Checked
from trnspec.cli.common import catalogs_option, here
from trnspec.cli.complete import codes
from trnspec.cli.formats import FormatName
from trnspec.cli.help import NamedPath, documented, option
from trnspec.cli.render import show
from trnspec.diagnostics import Diagnostic, Report, Severity
from trnspec.errors import UsageError
from trnspec.graph.graph import Graph
from trnspec.loading.files import SUFFIXES, documents_among, documents_in, root_of
from trnspec.loading.selection import STDIN
from trnspec.loading.settings import Settings
from trnspec.loading.store import DocumentStore
from trnspec.output.reporters import render, use_color
from trnspec.output.reporters.common import tally
from trnspec.output.reporters.text import findings
from trnspec.text_table import escape


@documented(
    "validate",
    ("trnspec validate my-catalog", "Check the documents of a folder:"),
    ("trnspec validate --format github chips/acme-1.yaml", "Check one file, with annotations for GitHub:"),
    ("trnspec validate --ignore TRN6 --table", "Check the shipped catalog without the codes TRN6xx, and list it:"),
    ("trnspec validate --watch my-catalog", "Check the documents of a folder whenever one changes:"),
)
@click.argument("paths", nargs=-1, metavar="[PATH]...", type=click.Path(readable=False))
@option("--format format_", "Output", "Report format.", type=FormatName(exports=False), default="text")
@option("--table", "Output", "Print the main figures of the checked documents first.")
@option(
    "--select CODE",
    "Findings",
    "Report only codes with this prefix; may be repeated.",
    multiple=True,
    shell_complete=codes,
)
@option(
    "--ignore CODE",
    "Findings",
    "Do not report codes with this prefix; may be repeated.",
    multiple=True,
    shell_complete=codes,
)
@option(
    "--severity CODE=LEVEL",
    "Findings",
    "Change the severity of a code: info, warning or error; may be repeated.",
    multiple=True,
)
@option(
    "--baseline FILE",
    "Findings",
    "Do not report the findings that trnspec baseline wrote to FILE; list those that no longer occur.",
    type=NamedPath(dir_okay=False),
)
@option("--skip-others", "Catalog", "Skip the YAML files of other programs, as pre-commit hooks do.")
@catalogs_option("Also resolve names in this catalog, and check it if no PATH is given; may be repeated.")
@option(
    "--watch watching",
    "Watch",
    "Keep running, and check again when a document, a table or the settings change; print new and resolved findings.",
)
@option(
    "--interval SECONDS",
    "Watch",
    "Time between two checks for changes; longer if a check takes long.",
    type=click.FloatRange(min=0.05, max=3600),
    default=0.5,
)
@click.option("--jobs", type=click.IntRange(min=1), hidden=True, expose_value=False)  # without effect
@click.option("--no-cache", is_flag=True, hidden=True, expose_value=False)  # without effect
def command(  # noqa: PLR0913, PLR0917  # one parameter for each option
    paths: tuple[str, ...],
    format_: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    severity: tuple[str, ...],
    catalogs: tuple[str, ...],
    table: bool,  # noqa: FBT001  # click passes it by name
    baseline: FilePath | None,
    skip_others: bool,  # noqa: FBT001
    watching: bool,  # noqa: FBT001
    interval: float,
) -> None:
    """Check catalog files and all documents that refer to them.

    PATH is a file, a folder, or - for standard input. Names are resolved in the catalog of the file, those of --catalog
    and of the settings, the shipped one and those of plugins. Without PATH all these catalogs are checked. Exit status:
    0 no findings, 1 findings, 2 wrong usage.

    With --watch, PATH is a file or a folder, by default the current folder; YAML files of other programs
    are skipped, changes of the catalogs that names are resolved in count too, and Ctrl-C ends the command with exit status 0.
    """
    given = Settings(
        select=_codes(select),
        ignore=_codes(ignore),
        severity=dict(_severity(text) for text in severity),
        catalogs=tuple(FilePath(c) for c in catalogs),
    )
    if watching:
        if table or baseline is not None or format_ != "text":
            raise UsageError("--watch prints findings as text; it excludes --format, --table and --baseline")
        watch(paths, given, interval)
    if table and format_ != "text":
        raise UsageError(f"--table is printed with --format text only, not with --format {format_}")
    empty = (f for f in given.catalogs if f.is_dir() and not any(documents_in(f)))
    if not paths and (folder := next(empty, None)) is not None:  # as for such a PATH
        raise UsageError(f"{folder} holds no .yaml files")
    settings = here().merged(given)
    if skip_others and paths:
        named = [path for path in paths if path != STDIN]
        found = documents_among(named, plugins().registry.kinds, settings.catalogs)
        paths = (*map(str, found), *(path for path in paths if path == STDIN))
        if not paths:
            sys.exit(0)
    checked = validate(paths, settings=settings, registry=plugins().registry, every=True)
    stale: list[str] = []
    if baseline is not None:
        checked, stale = without(checked, read(baseline), settings)
    if table:
        from trnspec.catalog.system_table import contents

        show(contents(checked.graph))
        click.echo()
    color = use_color(sys.stdout, os.environ)
    text = render(checked.report, format_, color=color, texts=checked.texts, when=datetime.now(UTC))
    if text:
        click.echo(text, sys.stdout, color=color)  # click would write UTF-8 where the encoding is ASCII
    for line in stale:
        click.echo(f"no longer occurs: {line}", err=True)
    if stale:
        click.echo(f"trnspec baseline {baseline} removes what no longer occurs", err=True)
    sys.exit(0 if checked.report.ok else 1)


def _codes(values: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(code.strip().upper() for value in values for code in value.split(",") if code.strip())


def _severity(text: str) -> tuple[str, Severity]:
    code, equals, label = text.partition("=")
    if not equals:
        raise UsageError(f"--severity {text}: write CODE=LEVEL, for instance TRN402=warning")
    try:
        return code.strip().upper(), Severity.of(label.strip())
    except ValueError as error:
        raise UsageError(f"--severity {text}: {error}") from error


# Watching.

State: TypeAlias = "dict[str, tuple[int, int, int]]"
"""Time, size and number of the watched files."""

_WATCHED = (*SUFFIXES, ".csv", ".toml")
"""Documents, tables that they name, and settings."""

_UNUSABLE = ("TRN001", "TRN002", "TRN003", "TRN004", "TRN011", "TRN012", "TRN013", "TRN014", "TRN015", "TRN016")
"""Codes of texts of which a part, or all, is not read; the others below TRN050 reject a single value."""

_SETTLED = 0.1
"""Seconds without a further change after which documents are read: an editor or git writes several files."""


def watch(paths: tuple[str, ...], given: Settings, interval: float) -> NoReturn:
    """Check documents whenever they change; print the findings that are new, and those that are resolved."""
    known = plugins().registry
    kinds = [kind.folder for kind in known.kinds.values()]
    named = [FilePath(p) for p in paths or (".",)]
    if missing := next((p for p in (*named, *given.catalogs) if not p.exists()), None):
        raise UsageError(f"{missing}: no such file or folder")
    folders = [*(p if p.is_dir() else root_of(p, kinds) for p in named), *given.catalogs]
    seen: Counter[tuple[str, ...]] = Counter()
    store = DocumentStore(known)
    try:
        state = _state(folders)
        checked = _checked(named, given, store)
        if checked is not None:
            seen = _report(checked, seen, "")
        click.echo(f"watching {', '.join(dict.fromkeys(map(str, named)))}; Ctrl-C ends", err=True)
        while True:
            changed, state = _wait(folders, state, interval)
            checked = _checked(named, given, store)
            if checked is not None:
                seen = _report(checked, seen, _names(changed))
    except KeyboardInterrupt:
        sys.exit(0)


def _wait(folders: Iterable[FilePath], before: State, interval: float) -> tuple[set[str], State]:
    """The files that changed, and the state after it."""
    while True:
        begin = time.monotonic()
        time.sleep(interval)
        state = _state(folders)
        while state != before:
            time.sleep(_SETTLED)
            earlier, state = state, _state(folders)
            if state == earlier:
                break
        if state != before:
            return {f for f in state.keys() | before.keys() if state.get(f) != before.get(f)}, state
        # At most a tenth of the time of a processor.
        time.sleep(max(0.0, 9 * (time.monotonic() - begin - interval)))


def _state(folders: Iterable[FilePath]) -> State:
    """Time, size and number of the files in some folders, but for hidden ones."""
    state: State = {}
    for folder in folders:
        for where, inner, names in os.walk(folder):
            inner[:] = [name for name in inner if not name.startswith(".")]
            for name in names:
                if name.endswith(_WATCHED) and not name.startswith("."):
                    file = os.path.join(where, name)  # noqa: PTH118  # many files
                    try:
                        status = os.stat(file)  # noqa: PTH116
                    except OSError:
                        continue
                    state[file] = (status.st_mtime_ns, status.st_size, status.st_ino)
    return state


def _checked(named: Iterable[FilePath], given: Settings, store: DocumentStore) -> Checked | None:
    """The result of a check; ``None`` if it is not possible now, which is printed."""
    try:
        settings = here().merged(given)
        files = list(documents_among((p for p in named if p.exists()), store.registry.kinds, settings.catalogs))
        if not files:
            click.echo("there is no document", err=True)
            return Checked(Graph({}), Report(()), {})  # the findings of documents that were removed are resolved
        return validate(files, settings=settings, registry=store.registry, store=store)
    except UsageError as error:
        click.echo(f"not checked: {error}", err=True)
        return None


def _report(checked: Checked, before: Counter[tuple[str, ...]], changed: str) -> Counter[tuple[str, ...]]:
    """Print what is new and what is resolved; all present findings."""
    color = sys.stdout is not None and use_color(sys.stdout, os.environ)
    now: Counter[tuple[str, ...]] = Counter(map(_key, checked.report.diagnostics))
    rest, fresh = Counter(before), []
    for diagnostic in checked.report.diagnostics:
        if rest[_key(diagnostic)] > 0:
            rest[_key(diagnostic)] -= 1
        else:
            fresh.append(diagnostic)
    # Of a file that cannot be read at present, nothing is resolved.
    unusable = {d.where.file for d in checked.report.diagnostics if d.code in _UNUSABLE}
    held = Counter({key: count for key, count in rest.items() if key[0] in unusable})
    resolved = sorted((rest - held).elements())
    if changed:
        click.echo(f"{time.strftime('%H:%M:%S')} {escape(changed)}: {len(fresh)} new, {len(resolved)} resolved")
    if fresh:
        click.echo(findings(fresh, color=color, texts=checked.texts), color=color)
    for file, code, _, message in resolved:
        click.echo(escape(f"{file}: resolved {code}: {message}"))
    click.echo(tally(checked.report))
    return now + held


def _key(diagnostic: Diagnostic) -> tuple[str, ...]:
    """The identity of a finding, without its lines, which may move."""
    path = ".".join(map(str, diagnostic.where.path))
    return diagnostic.where.file, diagnostic.code, path, diagnostic.message


def _names(files: set[str]) -> str:
    """Up to three names of files."""
    names = sorted(os.path.relpath(f) for f in files)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more} changed"
