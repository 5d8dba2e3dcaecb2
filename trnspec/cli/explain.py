"""``trnspec explain``: the manual page of a code, and the fields of a kind."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterator

import click

from trnspec.api import registry
from trnspec.builtin import plugin
from trnspec.cli.complete import topics
from trnspec.cli.help import documented
from trnspec.cli.render import emit, format_option, versioned_json, width
from trnspec.diagnostics import Code, did_you_mean, present_id
from trnspec.errors import UsageError
from trnspec.model.figure import Figure
from trnspec.model.reflection import Field, field_at, fields_of, summary
from trnspec.plugins.api import Kind, Registry
from trnspec.quantities.units import UnitTable
from trnspec.text_table import Column, table, wrapped

_FIXED = re.compile(r"\s*([-*|>#`]|\d+\. |\w+:$)")
"""A line that is not wrapped: of a list, a table or code, or a heading."""


@documented(
    "explain",
    ("trnspec explain TRN402", "One code:"),
    ("trnspec explain aggregate-mismatch", "The same by its name:"),
    ("trnspec explain chip.memory", "The fields of a part of a kind:"),
    ("trnspec explain figure", "The keys of a figure with a source, a note or a formula:"),
    ("trnspec explain --format json", "All codes, for programs:"),
)
@click.argument("topic", required=False, metavar="[CODE|KIND|KIND.FIELD|figure]", shell_complete=topics)
@format_option
def command(topic: str | None, format_: str) -> None:
    """Explain a code, or list the fields of a kind of document. Without argument, list all codes.

    A kind is written as in documents or in lower case; a path of fields may follow it.
    """
    if topic is None:
        known = registry().codes.values()
        heads = [Column("code", keep=True), Column("severity"), Column("name"), Column("summary", wrap=True, keep=True)]
        listed = table(heads, [(c.id, c.severity.label, c.name, c.summary) for c in known])
        emit(format_, lambda: [listed], lambda: listed)
        return
    # What is built in is explained without importing any plugin.
    page = _page(Registry.of([plugin]), topic, format_) or _page(registry(), topic, format_)
    if page is None:
        raise _unknown(registry(), topic)
    click.echo(page)


def _page(known: Registry, topic: str, format_: str) -> str | None:
    """The page of a code, a kind or a field; ``None`` where there is none."""
    for code in known.codes.values():
        if present_id(topic).upper() == code.id or topic == code.name:
            return _code_page(
                code, format_, _WAIVER.format(code.id) if any(code is r.code for r in known.rules) else ""
            )
    name, _, path = topic.partition(".")
    names = (name.lower(), name.lower().removesuffix("s"))
    kind = next((k for k in known.kinds.values() if k.name.lower() in names), None)
    if name.lower() == "figure":  # its long form, as if it was a kind
        kind = Kind("Figure", "", Figure)
    if kind is None:
        return None
    if format_ != "text":
        raise UsageError(f"the fields of a kind are text; trnspec schema {kind.name} prints its JSON Schema")
    return "\n".join(_fields_page(kind, path, known))


_WAIVER = """

Accept:
    A waiver in the document, with its reason:

    ```yaml
    metadata:
      allow:
        - {{code: {}, at: PATH, reason: REASON}}
    ```"""
"""The end of the page of a rule, whose findings can be accepted; ``at`` may be left out."""


def _code_page(code: Code, format_: str, waiver: str) -> str:
    if format_ == "json":
        data = {"id": code.id, "name": code.name, "severity": code.severity.label, "doc": code.doc.strip()}
        return versioned_json(data)
    if format_ == "csv":
        raise UsageError("an explanation is text; --format csv lists all codes")
    head = f"{code.id} {code.name} ({code.severity.label})"
    if format_ == "markdown":
        return f"# {head}\n\n{code.doc.strip()}{waiver}"
    return f"{head}\n\n{_wrapped(code.doc.strip() + waiver)}"


def _wrapped(text: str) -> str:
    """The paragraphs of a text, wrapped to the terminal; code, lists, tables and headings stay as they are."""
    lines: list[str] = []
    paragraph: list[str] = []
    is_code = False
    for line in [*text.split("\n"), ""]:
        is_fence = line.lstrip().startswith("```")
        if not (is_code or is_fence or not line.strip() or _FIXED.match(line)):
            paragraph.append(line)
            continue
        if paragraph:
            indent = paragraph[0][: len(paragraph[0]) - len(paragraph[0].lstrip())]
            lines.append(wrapped(indent, " ".join(paragraph).strip(), width()))
            paragraph = []
        lines.append(line)
        is_code ^= is_fence
    return "\n".join(lines).rstrip()


def _unknown(known: Registry, topic: str) -> UsageError:
    kinds = ["figure", *known.kinds, *map(str.lower, known.kinds)]
    choices = [*known.codes, *(code.name for code in known.codes.values()), *kinds]
    hint = did_you_mean(topic.partition(".")[0], choices) or "trnspec explain lists the codes"
    return UsageError(f"there is no code or kind {topic!r}; {hint}", hint="trnspec show NAME prints a document")


def _fields_page(kind: Kind, path: str, known: Registry) -> Iterator[str]:
    """The description of a kind or of one field, then its fields.

    Raises:
        UsageError: The kind has no such field.
    """
    cls: type | None = kind.spec
    if path:
        field = field_at(kind.spec, tuple(path.split(".")))
        if field is None:
            raise UsageError(_no_field(kind, path))
        cls = field.cls
        yield from _field_lines(field, path, known.units, "", most=sys.maxsize)
    else:
        yield from textwrap.wrap(f"{kind.name}: {summary(kind.spec)}", width())
        if kind.name == "Figure":
            yield from (
                "A figure is written as a text, 820 GB/s, or as a mapping:",
                "{value: 820 GB/s, where: line 24}",
            )
        else:
            yield f"Documents: {kind.folder}/*.yaml" if kind.folder else "Documents: any folder"
    if cls is None:
        return
    start = f"{path}." if path else ""
    yield from ("", "Fields (* required):", "")
    for name, each in fields_of(cls).items():
        yield from _field_lines(each, start + name, known.units, "  ")
    nested = next((name for name, each in fields_of(cls).items() if each.cls is not None), "")
    if nested:
        yield from ("", f"More: trnspec explain {kind.name.lower()}.{start}{nested}")


_FEW = 3


def _field_lines(field: Field, path: str, table: UnitTable, indent: str, *, most: int = _FEW) -> Iterator[str]:
    name = f"{path}{'*' if field.required else ''}"
    units = field.units(table)
    shown = ", ".join(units[:most]) + (", ..." if len(units) > most else "")
    head = (
        f"{indent}{name}  {field.type_words}{f' [{shown}]' if shown else ''}{' ...' if field.cls is not None else ''}"
    )
    inner = f"{indent}    "
    # At spaces only: paths, choices and addresses stay in one piece.
    yield from textwrap.wrap(head, width(), subsequent_indent=inner, break_long_words=False, break_on_hyphens=False)
    text = field.description + (f" Example: {field.example}" if field.example else "")
    yield from textwrap.wrap(
        text, width(), initial_indent=inner, subsequent_indent=inner, break_long_words=False, break_on_hyphens=False
    )


def _no_field(kind: Kind, path: str) -> str:
    above = path.rpartition(".")[0]
    parent = field_at(kind.spec, tuple(above.split(".")))
    cls = kind.spec if not above else parent.cls if parent is not None else None
    names = [f"{above}.{name}" if above else name for name in fields_of(cls)] if cls is not None else []
    hint = did_you_mean(path, names) or (f"fields: {', '.join(names)}" if names else "")
    return f"{kind.name} has no field {path!r}" + (f"; {hint}" if hint else "")
