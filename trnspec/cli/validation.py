"""What ``trnspec validate`` does, and its command line for the arguments of a hook.

Importing click and parsing with it takes a tenth of the time of checking one changed file. Arguments that it would
interpret further than by their names, and everything that ends with an error, are left to it.
"""

from __future__ import annotations

import errno
import os
import sys
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from attrs import field, frozen

from trnspec.api import plugins, validate_again
from trnspec.cache import observer, verdicts
from trnspec.checks.runner import Checked
from trnspec.errors import TrnspecError, UsageError
from trnspec.loading import processes
from trnspec.loading import settings as settings_
from trnspec.loading.files import documents_in, is_document
from trnspec.loading.selection import STDIN
from trnspec.loading.settings import Settings
from trnspec.loading.snapshot import snapshots
from trnspec.output.reporters import render, use_color
from trnspec.plugins.selection import REPORT
from trnspec.yaml.text import visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

_INTERRUPTED = 130
"""128 plus the number of SIGINT."""


@frozen
class Outcome:
    """A run of the checks.

    Attributes:
        checked: The documents and the findings.
        text: The report.
        color: Whether it is coloured.
        idle: The accepted findings of the baseline that no longer occur, one line each.
    """

    checked: Checked
    text: str
    color: bool
    idle: tuple[str, ...] = field(default=())

    @property
    def status(self) -> int:
        """The exit status."""
        return 0 if self.checked.report.ok else 1

    def store(self, format_: str) -> None:
        """Store the report for a run that would repeat this one, if it depends on nothing but the documents."""
        if format_ in _REPEATABLE and not self.idle and not _is_incomplete(self.checked):
            text = f"{self.text}\n" if self.text else ""
            observer.store(sys.argv[1:], text, self.status, _documents_of(self.checked))


_REPEATABLE = ("text", "json", "sarif", "github")
"""The formats whose output depends on nothing but the documents: JUnit XML has the time of the run."""


def outcome(  # one parameter for each option
    paths: tuple[str, ...],
    given: Settings,
    format_: str,
    *,
    skip_others: bool,
    baseline: FilePath | None = None,
    jobs: int | None = None,
) -> Outcome | None:
    """Check documents; ``None`` if none of the files is a document.

    Args:
        paths: Files, folders, or ``-``; every catalog if empty.
        given: The settings of the command line.
        format_: The report format.
        skip_others: Whether files that other programs use are left out.
        baseline: The file of the accepted findings.
        jobs: The number of processes for many documents; that of TRNSPEC_JOBS or of the cores if omitted.

    Raises:
        UsageError: As :func:`trnspec.api.validate`; TRNSPEC_JOBS is not a number.
    """
    settings = settings_.find(_here()).merged(given)
    if skip_others and paths:
        paths = tuple(_documents(paths))
        if not paths:
            return None
    known = plugins().registry
    number = processes.number_of(jobs)
    with snapshots(known, enabled=verdicts.is_enabled(sys.argv[1:], os.environ), jobs=number):
        checked = validate_again(paths, verdicts.edited, settings=settings, registry=known, every=True, jobs=number)
        idle: list[str] = []
        if baseline is not None:
            from trnspec.checks.baseline import read, without

            checked, idle = without(checked, read(baseline), settings)
        color = sys.stdout is not None and use_color(sys.stdout, os.environ)
        text = render(checked.report, format_, color=color, texts=checked.texts, when=_now())
    return Outcome(checked, text, color, tuple(idle))


def _documents_of(checked: Checked) -> dict[str, tuple[str, ...]]:
    """The names of the document in each file, if nothing was found in any of them."""
    documents = {}
    folders: dict[str, str] = {}
    for node in checked.graph if checked.is_spotless else ():
        folder, name = os.path.split(node.document.file)
        if folder not in folders:
            folders[folder] = os.path.abspath(folder)  # noqa: PTH100  # many files
        documents[os.path.join(folders[folder], name)] = (node.name, *node.aliases)  # noqa: PTH118
    return documents


def _is_incomplete(checked: Checked) -> bool:
    """Whether a plugin or a rule failed, which another run need not repeat."""
    failed = any(record.warning for record in plugins().records)
    return failed or any(d.code == "TRN900" for d in checked.report.diagnostics)


def _documents(paths: Iterable[str]) -> Iterator[str]:
    """The paths without the files, also those in folders, that other programs use."""
    for path in paths:
        if path == STDIN:
            yield path
        elif not FilePath(path).is_dir():
            if is_document(FilePath(path)):
                yield path
        else:
            yield from (str(file) for file in documents_in(FilePath(path)) if is_document(file))


def _here() -> FilePath:
    try:
        return FilePath.cwd()
    except FileNotFoundError:
        raise UsageError("the current folder does not exist") from None


def _now() -> datetime:
    from datetime import UTC, datetime

    return datetime.now(UTC)


def run(arguments: list[str]) -> int | None:
    """Run a command line ``validate [--skip-others] [--format FORMAT] PATH...``.

    Returns:
        The exit status; ``None``, before anything is written, if the command line is another one, or there is an error.
    """
    parsed = _parsed(arguments)
    if parsed is None or sys.stdout is None or sys.platform == "win32":  # click expands patterns on Windows
        return None
    paths, format_, skip_others = parsed
    token = REPORT.set(lambda text: _note(f"warning: {visible(text)}"))
    try:
        if format_ not in plugins().registry.reporters:
            return None
        found = outcome(paths, Settings(), format_, skip_others=skip_others)
    except (TrnspecError, OSError):
        return None
    except KeyboardInterrupt:
        _note("interrupted")
        return _INTERRUPTED
    finally:
        REPORT.reset(token)
    return 0 if found is None else _written(found, format_)


def _written(found: Outcome, format_: str) -> int:
    """Print and store a report; the exit status is that of click where it cannot be printed."""
    try:
        sys.stdout.write(f"{found.text}\n" if found.text else "")
        sys.stdout.flush()
    except OSError as error:
        from trnspec.cli.dispatch import drop_output

        drop_output()
        if error.errno == errno.EPIPE:
            return 1
        _note(f"cannot write to standard output: {error.strerror or error}")
        return 2
    found.store(format_)
    return found.status


def _note(text: str) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"trnspec: {text}\n")


def _parsed(arguments: list[str]) -> tuple[tuple[str, ...], str, bool] | None:
    """The paths, the format, and whether files of other programs are skipped; ``None`` for other arguments."""
    if arguments[:1] != ["validate"]:
        return None
    paths: list[str] = []
    format_, skip_others = "text", False
    rest = iter(arguments[1:])
    for argument in rest:
        if argument == "--skip-others":
            skip_others = True
        elif argument == "--format":
            format_ = next(rest, "")
        elif argument and not argument.startswith("-"):
            paths.append(argument)
        else:
            return None
    return (tuple(paths), format_, skip_others) if paths else None
