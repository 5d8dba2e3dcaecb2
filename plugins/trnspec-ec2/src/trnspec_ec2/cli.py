"""``trnspec ec2``: compare the EC2 API's records of accelerators with the catalog."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, TypeVar

import click

from trnspec import UsageError

if TYPE_CHECKING:
    from trnspec import Graph
    from trnspec_ec2.reading import Record

F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.argument("file", required=False),
    click.option("--region", metavar="NAME", help="Query EC2 in this region with your own credentials; needs boto3."),
    click.option("--endpoint-url", "endpoint", metavar="URL", help="Query this address instead of the region's."),
    click.option("--type", "types", multiple=True, metavar="NAME", help="Only this instance type; may be repeated."),
    click.option("--as-of", metavar="DATE", help="The date of the records, where they are not queried now."),
    click.option("--catalog", metavar="DIR", help="Compare with the documents in this folder too."),
)


def _options(command: F) -> F:
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.group("ec2")
def ec2() -> None:
    """Check EC2 DescribeInstanceTypes against the catalog; draft documents."""


@ec2.command("audit")
@_options
@click.option("--format", "format_", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--new", "only_new", is_flag=True, help="Print only contradictions that the catalog does not record.")
@click.option("--strict", is_flag=True, help="Exit with 1 for contradictions that the catalog records, too.")
@click.option("-v", "--verbose", is_flag=True, help="List agreements too, and the accelerators of each missing type.")
def audit_(  # noqa: PLR0913, PLR0917  # one parameter for each option
    file: str | None,
    region: str | None,
    endpoint: str | None,
    types: tuple[str, ...],
    as_of: str | None,
    catalog: str | None,
    format_: str,
    only_new: bool,  # noqa: FBT001  # click passes it by name
    strict: bool,  # noqa: FBT001  # the same
    verbose: bool,  # noqa: FBT001  # the same
) -> None:
    """Compare the output of DescribeInstanceTypes with the catalog.

    FILE is what `aws ec2 describe-instance-types` printed, or - for standard input; with --region the API is queried.
    Exit status: 0 no contradictions, or only such as the catalog records; 1 others, with --strict any; 2 misuse.
    """
    from trnspec.api import registry
    from trnspec.checks.reconcile.hypotheses import extra_hypotheses
    from trnspec_ec2 import reporting
    from trnspec_ec2.comparing import audit

    records, name, date = _records(file, region, endpoint, types, as_of)
    known = _graph(catalog)
    with extra_hypotheses(registry().explanations):
        result = audit(records, known)
    origin = reporting.Origin(name, date)
    if format_ == "json":
        click.echo(reporting.data(result, origin, only_new=only_new))
    else:
        click.echo(reporting.text(result, origin, verbose=verbose, only_new=only_new))
    sys.exit(1 if (result.contradictions if strict else result.unrecorded) else 0)


@ec2.command("import")
@_options
@click.option("--out", metavar="DIR", default="drafts", show_default=True, help="The catalog folder to write to.")
@click.option("--source", metavar="NAME", help="The name of the source; one of the catalog, or that of a new one.")
@click.option("--force", is_flag=True, help="Overwrite files that are there.")
def import_(  # noqa: PLR0913, PLR0917  # one parameter for each option
    file: str | None,
    region: str | None,
    endpoint: str | None,
    types: tuple[str, ...],
    as_of: str | None,
    catalog: str | None,
    out: str,
    source: str | None,
    force: bool,  # noqa: FBT001  # click passes it by name
) -> None:
    """Draft catalog files of instance types from the output of DescribeInstanceTypes alone.

    Without --type, those with accelerators that the catalog lacks. Exit status: 0 when all of them were drafted, 1 when
    some cannot be, 2 misuse.
    """
    from trnspec.atomic_write import write
    from trnspec_ec2.drafting import draft, lacking

    records, _, date = _records(file, region, endpoint, types, as_of)
    known = _graph(catalog)
    wanted = records if types else tuple(lacking(records, known))
    folder = FilePath(out)
    drafts = draft(wanted, known, _origin(source, date, region, known), _schemas(folder))
    files = {folder / path: text.encode() for path, text in drafts.files.items()}
    there = [f for f, text in files.items() if f.exists() and not (f.is_file() and f.read_bytes() == text)]
    if there and not force:
        more = f" and {len(there) - 1} more" if len(there) > 1 else ""
        raise UsageError(f"{there[0]}{more} would be overwritten; name another folder with --out, or say --force")
    write(files)
    for path in files:
        click.echo(f"wrote {path}")
    for note in drafts.notes:
        click.echo(f"note: {note}")
    for reason in drafts.left_out:
        click.echo(f"not drafted: {reason}")
    summary = f"{len(files)} files drafted" if files else "Nothing to draft"
    click.echo(f"{summary}; next: trnspec validate {folder}" if files else f"{summary}.")
    sys.exit(1 if drafts.left_out else 0)


def _records(
    file: str | None, region: str | None, endpoint: str | None, types: tuple[str, ...], as_of: str | None
) -> tuple[tuple[Record, ...], str, str]:
    """The records, the name of their origin, and its date, empty where it is not known."""
    from trnspec.diagnostics import did_you_mean
    from trnspec_ec2.reading import MOST_BYTES, parse, records

    if (file is None) == (region is None):
        raise UsageError("name a file, - for standard input, or a region with --region; one of them")
    if endpoint is not None and region is None:
        raise UsageError("--endpoint-url goes with --region")
    date = _date(as_of)
    if region is not None:
        from trnspec_ec2.fetching import fetch

        answer = fetch(region, endpoint, types)
        name = f"EC2 in {region}"
        parsed, date = records(answer.data, name), date or answer.date
    elif file == "-":
        if sys.stdin is None:
            raise UsageError("there is no standard input to read")
        name = "<stdin>"
        parsed = parse(sys.stdin.buffer.read(MOST_BYTES + 1), name)
    else:
        assert file is not None  # there is no region
        name = file
        parsed = parse(_contents(FilePath(file), MOST_BYTES + 1), name)
    names = {r.name for r in parsed}
    for each in types:
        if each not in names:
            hint = did_you_mean(each, names)
            raise UsageError(f"{name} has no instance type {each!r}" + (f"; {hint}" if hint else ""))
    return tuple(r for r in parsed if not types or r.name in types), name, date


def _contents(file: FilePath, most: int) -> bytes:
    """The first bytes of a file, up to a limit."""
    try:
        with file.open("rb") as stream:
            return stream.read(most)
    except FileNotFoundError:
        raise UsageError(f"{file}: there is no such file") from None
    except IsADirectoryError:
        raise UsageError(f"{file}: it is a folder; name a file in it") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"{file}: it cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _date(text: str | None) -> str:
    if text is None:
        return ""
    if not re.fullmatch(r"[0-9]{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12][0-9]|3[01]))?)?", text):
        raise UsageError(f"--as-of {text}: a date such as 2026-08-21, 2026-08 or 2026 is expected")
    return text


def _graph(catalog: str | None) -> Graph:
    from trnspec.api import graph
    from trnspec.cli.common import here

    return graph([catalog] if catalog else [], settings=here())


def _origin(source: str | None, date: str, region: str | None, graph: Graph) -> Any:
    from trnspec.model.annotations import NAME_PATTERN
    from trnspec.model.source import Source
    from trnspec_ec2.drafting import Origin

    if source is not None and not re.fullmatch(NAME_PATTERN.regex, source):
        raise UsageError(f"--source {source}: {NAME_PATTERN.words} is expected")
    known = graph.nodes.get(source or "")
    if source is not None and known is not None and isinstance(known.spec, Source):
        return Origin(source, "")
    if source is not None and source in graph:
        raise UsageError(f"--source {source}: in the catalog that is the name of a {graph.named(source).kind}")
    if not date:
        raise UsageError("a source needs its date: say with --as-of DATE when the API said so, or --source NAME")
    default = "-".join(p for p in ("ec2-api", region, date) if p)
    return Origin(source or default, date, region or "")


def _schemas(folder: FilePath) -> str:
    """The path of the schemas from the folder of a kind: in the nearest parent folder of the catalog that has them."""
    import os

    base = folder.resolve()
    for up in (base, *base.parents):
        if (up / "schemas" / "v1" / "server.schema.json").is_file():
            return FilePath(os.path.relpath(up / "schemas" / "v1", base / "servers")).as_posix()
    return "../../schemas/v1"
