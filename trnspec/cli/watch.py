"""``trnspec validate --watch``: checks documents whenever they change."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, NoReturn, TypeAlias

import click

from trnspec.api import plugins, validate
from trnspec.checks.runner import Checked
from trnspec.cli.common import here
from trnspec.diagnostics import Report
from trnspec.errors import UsageError
from trnspec.graph.graph import Graph
from trnspec.loading.files import SUFFIXES, documents_among, root_of
from trnspec.loading.store import DocumentStore
from trnspec.output.reporters import use_color
from trnspec.output.reporters.common import tally
from trnspec.output.reporters.text import findings
from trnspec.text_table import escape

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trnspec.diagnostics import Diagnostic
    from trnspec.loading.settings import Settings

State: TypeAlias = "dict[str, tuple[int, int, int]]"
"""Time, size and number of the watched files."""

_WATCHED = (*SUFFIXES, ".csv", ".toml")
"""Documents, tables that they name, and settings."""

_UNUSABLE = ("TRN00", "TRN01")
"""Prefixes of the codes of texts without all of their values."""

_SETTLED = 0.1
"""Seconds without a further change after which documents are read: an editor or git writes several files."""


def watch(paths: tuple[str, ...], given: Settings, interval: float) -> NoReturn:
    """Check documents whenever they change; print the findings that are new, and those that are resolved.

    Args:
        paths: Files and folders; the current folder if empty.
        given: The settings of the command line.
        interval: The time between two looks at the files [s].
    """
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
        while state != before and (later := _after(folders, _SETTLED)) != state:
            state = later
        if state != before:
            return {f for f in state.keys() | before.keys() if state.get(f) != before.get(f)}, state
        # At most a tenth of the time of a processor.
        time.sleep(max(0.0, 9 * (time.monotonic() - begin - interval)))


def _after(folders: Iterable[FilePath], seconds: float) -> State:
    time.sleep(seconds)
    return _state(folders)


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
    unusable = {d.where.file for d in checked.report.diagnostics if d.code.startswith(_UNUSABLE)}
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
    """What identifies a finding: its lines may move."""
    path = ".".join(map(str, diagnostic.where.path))
    return diagnostic.where.file, diagnostic.code, path, diagnostic.message


def _names(files: set[str]) -> str:
    """Up to three names of files."""
    names = sorted(os.path.relpath(f) for f in files)
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more} changed"
