"""``trnspec diff``: the differences between two catalogs, with ratios, sources and reasons."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path as FilePath

import attrs
import click

from trnspec.api import load, registry
from trnspec.catalog.catalog import Catalog
from trnspec.catalog.versions.diff import Change, Differences, DiffSide, ratio_text
from trnspec.catalog.versions.editions import is_name
from trnspec.catalog.versions.git import files
from trnspec.cli.complete import documents
from trnspec.cli.help import documented, option
from trnspec.cli.render import SCREEN, VERDICTS, colored, formats, full_option, is_colored, versioned_json, width
from trnspec.errors import UsageError
from trnspec.loading.files import SUFFIXES, documents_in
from trnspec.loading.pipeline import link, load_document
from trnspec.plugins.api import Registry
from trnspec.text_table import Block, Column, markdown, rendered, table, wrapped
from trnspec.yaml import Document, read_file, read_text


@documented(
    "diff",
    ("trnspec diff as-of:2023-06 working", "What was published since June 2023:"),
    ("trnspec diff as-of:2024-12 working --name trainium2", "The same for one chip:"),
    ("trnspec diff working working --format json", "No differences, for programs:"),
    ("trnspec diff 2026.11 working --format markdown", "What changed since an edition, as Markdown:"),
)
@click.argument("old", metavar="A")
@click.argument("new", metavar="B")
@option(
    "--name NAME names", "Catalog", "Only this document; may be repeated.", multiple=True, shell_complete=documents()
)
@full_option()
@formats("text", "json", "markdown")
def command(old: str, new: str, names: tuple[str, ...], format_: str, *, full: bool) -> None:
    """Print the differences between the catalogs A and B: documents, figures, counts and texts, with reasons.

    A and B are each an edition (2026.11), 'working' for the shipped catalog, a catalog folder, a date (as-of:2023-03
    for what was published by then), or a git revision (git:HEAD~1, or git:v1:path/to/catalog if the folder is not
    named catalog). Write ./2026.11 for a folder that is named like an edition. Differences of more than a screen are
    counted by document; --name and --full list them. Exit status: 0 no differences, 1 differences, 2 wrong usage.
    """
    differences = open_catalog(old).diff(open_catalog(new), *names, called=(label(old), label(new)))
    writers: dict[str, Callable[[Differences], str]] = {
        "text": lambda d: _text(d) if full or names or str(d).count("\n") < SCREEN else _summary(d),
        "json": lambda d: versioned_json(attrs.asdict(d)),
        "markdown": _markdown,
    }
    click.echo(writers[format_](differences), color=is_colored())
    sys.exit(1 if differences else 0)


_VERDICT = re.compile(rf"\b({'|'.join(VERDICTS)})(?=[:,)]|$)")


def _text(differences: Differences) -> str:
    """The differences as lines; names of documents bold and verdicts coloured on a terminal."""
    if not is_colored():
        return str(differences)
    lines = []
    for line in str(differences).split("\n"):
        is_heading = bool(line) and not line.startswith(" ")
        lines.append(click.style(line, bold=True) if is_heading else _VERDICT.sub(lambda m: colored(m[0]), line))
    return "\n".join(lines)


def _summary(differences: Differences) -> str:
    """The numbers of documents by kind, and of differences by document."""
    d = differences
    blocks: list[Block] = [f"From {d.old} to {d.new}:"]
    for title, present in (("added", d.added), ("removed", d.removed)):
        kinds = Counter(each.kind for each in present)
        if kinds:
            counts = ", ".join(f"{kind} {count}" for kind, count in kinds.most_common())
            blocks.append(wrapped(f"Documents {title}: ", counts, width()))
    parts = (d.figures, d.restated, d.words)
    counted = [Counter(change.of for change in part) for part in parts]
    claims = {each.of: each.added + each.removed + each.judged for each in d.claims}
    names = sorted({*claims, *(name for part in counted for name in part)})
    columns = [Column(title, right=True) for title in ("figures", "other source", "texts", "claims")]
    if names:
        rows = [(name, *(part[name] or None for part in counted), claims.get(name)) for name in names]
        blocks.append(table(["document", *columns], rows))
    if d.unread:
        blocks.append(wrapped("Not compared, because of errors on one side: ", ", ".join(d.unread), width()))
    blocks.append("--name NAME prints the differences of a document, --full all of them.")
    return rendered(blocks, width())


def _markdown(differences: Differences) -> str:
    lines = [f"From {differences.old} to {differences.new}:", ""]
    if not differences:
        return "\n".join([*lines, "no differences."])
    if differences.figures or differences.restated or differences.words:
        changes = (*differences.figures, *differences.restated, *differences.words)
        lines.append(
            markdown(table(["document", "at", "old", "new", "ratio", "source", "reason"], [_cells(c) for c in changes]))
        )
    for title, present in (("Added", differences.added), ("Removed", differences.removed)):
        lines += [f"- {title}: {p.kind} {p.name}{f', {p.reason}' if p.reason else ''}" for p in present]
    lines += [
        f"- Claims of {c.of}: {c.added} added, {c.removed} removed, {c.judged} with another verdict"
        for c in differences.claims
    ]
    lines += [f"- Not compared, because of errors on one side: {n} ({file})" for n, file in differences.unread.items()]
    return "\n".join(lines).rstrip()


def _cells(change: Change) -> list[str]:
    ratio = "" if change.ratio is None else ratio_text(change.ratio)
    sides = [str(s) for s in (change.old, change.new) if s is not None and (s.source or s.derived)]
    why = ": ".join(filter(None, (change.verdict, change.reason)))
    return [change.of, change.at, _says(change.old), _says(change.new), ratio, "; then ".join(sides), why]


def _says(side: DiffSide | None) -> str:
    return "-" if side is None else side.says


# Catalogs. Unlike :func:`trnspec.api.load`, a folder or a revision is opened alone: what it lacks is not taken from the
# shipped catalog, because a comparison has to show that.

WORKING = "working"
AS_OF = "as-of:"
GIT = "git:"


def open_catalog(text: str) -> Catalog:
    """The catalog that a text names.

    Args:
        text: ``2026.11`` (an edition), ``working``, ``as-of:2023-03``, ``git:HEAD~1``, ``git:v1:path/to/catalog``, or a
            folder; write ``./2026.11`` for a folder that is named like an edition.

    Raises:
        UsageError: The text names no catalog.
        UnknownNameError: There is no such edition.
        EditionError: The edition was altered.
    """
    if text == WORKING:
        return load()
    if text.startswith(AS_OF):
        return load(as_of=text.removeprefix(AS_OF))
    if text.startswith(GIT):
        revision, _, folder = text.removeprefix(GIT).partition(":")
        return of_revision(revision, folder or "catalog")
    if is_name(text):
        return load(edition=text)
    if text and FilePath(text).is_dir():
        return of_folder(FilePath(text))
    raise UsageError(
        f"{text!r} is not a folder; write an edition such as 2026.11, working, a catalog folder, as-of:2023-03 or git:HEAD; "
        "trnspec compare compares documents"
    )


def label(text: str) -> str:
    """The label of a catalog in output: ``edition 2026.11``."""
    if text.startswith(AS_OF):
        return f"what was published by {text.removeprefix(AS_OF)}"
    if is_name(text):
        return f"edition {text}"
    return "the working edition" if text == WORKING else text


def of_folder(folder: FilePath) -> Catalog:
    """The catalog in a folder, alone.

    Raises:
        UsageError: It has no documents, or cannot be read.
    """
    return _catalog((read_file(file) for file in documents_in(folder)), registry(), str(folder))


def of_revision(revision: str, folder: str) -> Catalog:
    """The catalog in a folder of a git revision, alone, without touching the working tree.

    Raises:
        UsageError: Git does not know the revision, or it has no documents.
    """
    known = registry()
    texts = files(revision, folder, FilePath.cwd())
    # Hidden folders are skipped, as in a catalog on disk.
    named = {f: t for f, t in sorted(texts.items()) if f.endswith(SUFFIXES) and "/." not in f"/{f}"}
    return _catalog((read_text(t, f"{revision}:{folder}/{f}") for f, t in named.items()), known, f"{revision}:{folder}")


def _catalog(documents: Iterable[Document], known: Registry, what: str) -> Catalog:
    results = [load_document(document, known) for document in documents]
    if not results:
        raise UsageError(f"{what} holds no .yaml files")
    return Catalog(link(results)[0])
