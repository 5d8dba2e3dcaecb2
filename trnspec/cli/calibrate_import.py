"""``trnspec calibrate import``: tables of measurements from the logs and result files of other programs."""

from __future__ import annotations

import sys
from pathlib import Path as FilePath

import click

from trnspec.atomic_write import write
from trnspec.cli.help import documented, option
from trnspec.errors import UsageError
from trnspec.loading.benchmark_logs.formats import FORMATS, WARMUP, imported, table, unstated
from trnspec.loading.benchmark_logs.log import Log
from trnspec.text_table import plural

_LIST = "\n".join(f"{name:<12}{form.summary}" for name, form in FORMATS.items())


@documented(
    "import",
    (
        "trnspec calibrate import nccom-test run.log --set hardware=trn1.32xlarge --out mine.csv",
        "A log of nccom-test on a server:",
    ),
    (
        "trnspec calibrate import torchtitan train.log --set hardware=dgx-h200 --set precision=bf16",
        "A training log, printed:",
    ),
    (
        "trnspec calibrate import torchtitan train.log --set hardware=dgx-h200 --set precision=bf16 --out rows.csv",
        "The same as a file:",
    ),
    ("trnspec eval accuracy --data mine.csv", "The errors of the engine on imported rows:"),
    help=f"""Write the rows of a measurement table from FILE, a log or result in FORMAT; - is standard input.

    \b
    {_LIST.replace(chr(10), chr(10) + "    ")}

    What the file does not state is left empty: --set gives it. Of a training log the row has the median of the steps
    after the warm-up, and its note says how many. `trnspec eval accuracy --data` and `trnspec calibrate` read the rows.
    """,
)
@click.argument("format_", metavar="FORMAT", type=click.Choice(tuple(FORMATS)))
@click.argument("file", metavar="FILE")
@option(
    "--set COLUMN=VALUE settings",
    "Rows",
    "A cell of every row, such as tp=8; it replaces what the file states. May be repeated.",
    multiple=True,
)
@option(
    "--warmup N",
    "Rows",
    f"Steps at the beginning of a training log that are not used.  [default: {WARMUP}]",
    type=click.IntRange(min=0),
)
@option("--out FILE", "Output", "Write to this file.")
def command(format_: str, file: str, settings: tuple[str, ...], warmup: int | None, out: str | None) -> None:
    """See ``help``."""
    if warmup is not None and not FORMATS[format_].steps:
        raise UsageError(f"--warmup: {format_} has no steps; it is an option of training logs")
    given = _given(settings)
    if out is not None and FilePath(out).is_file():
        raise UsageError(f"{out} exists; remove it, or name another file")
    name, text, stem = _read(file, format_)
    rows = imported(format_, Log(name, text), stem, given, WARMUP if warmup is None else warmup)
    if missing := unstated(rows):
        hint = " ".join(f"--set {column}=..." for column in missing)
        click.echo(f"{name}: not stated: {', '.join(missing)}; rows without them are skipped\nhint: {hint}", err=True)
    if out is None:
        sys.stdout.write(table(rows))
        return
    write({FilePath(out): table(rows).encode()})
    click.echo(f"wrote {out}: {plural(len(rows), 'row')}", err=True)


def _given(settings: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for setting in settings:
        column, equals, value = setting.partition("=")
        if not (column and equals and value):
            raise UsageError(f"--set {setting}: expected COLUMN=VALUE, such as hardware=trn2.48xlarge")
        if column in given:
            raise UsageError(f"--set: {column} is given twice")
        given[column] = value
    return given


def _read(file: str, format_: str) -> tuple[str, str, str]:
    """The name of a file in messages, its text, and the beginning of the names of its rows."""
    if file == "-":
        return "standard input", sys.stdin.read(), format_
    path = FilePath(file)
    try:
        return file, path.read_bytes().decode("utf-8-sig"), path.stem
    except UnicodeDecodeError as error:
        raise UsageError(f"{file}: cannot be read: it is not UTF-8 text") from error
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {str(error.strerror).lower()}") from error
