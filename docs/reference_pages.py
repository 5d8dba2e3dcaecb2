"""Pages of the manual that are made from the code when it is built: commands, kinds with their fields, names, formulas."""

from __future__ import annotations

import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import click

import trnspec
from trnspec.api import registry
from trnspec.cli import calibrate_import, group
from trnspec.model.reflection import fields_of, summary

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trnspec.plugins.api import Kind

EXPLANATION = Path(__file__).parent / "explanation"
FORMULAS = (EXPLANATION / "the-performance-model.md", *sorted((EXPLANATION / "performance").glob("*.md")))
"""The pages with formulas, whose functions are linked."""
ENGINE = re.compile(r"`(?:trnspec\.)?(perf\.[\w.]+)`")
"""A name of the engine on such a page."""


def pages() -> dict[str, str]:
    """The text of each page by its name in ``docs/reference/``."""
    kinds = [k for k in registry().kinds.values() if k.spec.__module__.startswith("trnspec.")]
    return {
        "commands.md": _text(_commands()),
        "kinds.md": _text(_kinds(kinds)),
        "api.md": _text(_names()),
        "formulas.md": _text(_formulas()),
    }


def linked(text: str) -> str:
    """A page with formulas, on which each name of the engine is a link to its signature and docstring."""
    return ENGINE.sub(r"{py:obj}`\1 <trnspec.\1>`", text)


def llms(docs: Path) -> str:
    """The text of ``llms.txt``: what trnspec is, and every page with its first sentence, for language models."""
    lines = [
        "# trnspec",
        "",
        "> A checked catalog of AWS Trainium hardware, and performance models that use it. Every figure has a source, a date and a",
        "> precision. `trnspec mcp` serves the same to agents.",
    ]
    for folder, title in (
        ("tutorial", "Tutorials"),
        ("how-to", "How-to guides"),
        ("reference", "Reference"),
        ("explanation", "Explanation"),
    ):
        lines += ["", f"## {title}", ""]
        for page in sorted((docs / folder).rglob("*.md")):
            head, _, rest = page.read_text(encoding="utf-8").partition("\n")
            first = next((p for p in rest.strip().split("\n\n") if p[:1].isalpha() or p.startswith("`")), "")
            sentence = re.split(r"(?<=[.])\s", " ".join(first.split()), maxsplit=1)[0].rstrip(":.")
            text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", sentence)
            address = page.relative_to(docs).with_suffix(".html").as_posix()
            lines.append(f"- [{head.removeprefix('# ')}]({address})" + (f": {text}" if text else ""))
    return _text(lines)


def _text(lines: Iterable[str]) -> str:
    return "\n".join(lines) + "\n"


def _commands() -> Iterator[str]:
    yield from (
        "# Commands",
        "",
        "`trnspec COMMAND --help` prints the same. The exit status is 0 without findings, 1 with findings or without an answer, and",
        "2 after wrong usage.",
    )
    with click.Context(group, info_name="trnspec") as context:
        for name in group.list_commands(context):
            yield from _command(_of(group, context, name), f"trnspec {name}", context)
            if name == "calibrate":
                yield from _command(calibrate_import.command, f"trnspec {name} import", context)


def _of(commands: click.Group, context: click.Context, name: str) -> click.Command:
    command = commands.get_command(context, name)
    assert command is not None, name
    return command


def _command(command: click.Command, name: str, parent: click.Context) -> Iterator[str]:
    """A command, then the commands below it."""
    with click.Context(command, parent=parent, info_name=name.rpartition(" ")[2]) as context:
        heading = "#" * (1 + name.count(" "))
        usage = " ".join([name, *command.collect_usage_pieces(context)])
        yield from ("", f"{heading} {name}", "", "```text", usage, "```", "")
        yield from (inspect.cleandoc(command.help or "").replace("``", "`").replace("*", "\\*"), "")
        options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
        if options:
            yield from ("| option | value | meaning |", "|---|---|---|")
        for option in options:
            names = ", ".join(f"`{o}`" for o in (*option.opts, *option.secondary_opts))
            value = "" if option.is_flag else option.make_metavar(context)
            _, meaning = option.get_help_record(context) or ("", "")
            yield f"| {names} | {_code(value)} | {_cell(meaning)} |"
        examples = getattr(command, "examples", ())
        if examples:
            yield from ("", "Examples:", "", "```sh")
            yield from (line for example, title in examples for line in (f"# {title.rstrip(':.')}", example))
            yield "```"
        if isinstance(command, click.Group):
            for each in command.list_commands(context):
                yield from _command(_of(command, context, each), f"{name} {each}", context)


def _code(text: str) -> str:
    return f"`{text.replace('|', '/')}`" if text else ""


def _cell(text: str) -> str:
    """Text as a cell of a table."""
    return " ".join(text.split()).replace("``", "`").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


def _kinds(kinds: Iterable[Kind]) -> Iterator[str]:
    yield from (
        "# Kinds of documents",
        "",
        "`trnspec explain KIND` prints the same. A document has `api_version`, `kind`, `metadata` and `spec`; the paths below are",
        "those under `spec`, and fields with \\* are required. A figure is a text such as `2.9 TB/s`, or a mapping with `value`,",
        "`source`, `where`, `derived` and `note`. `claims` lists what other sources state ([claims](../explanation/truth.md)).",
    )
    for kind in kinds:
        folder = f"Documents: `{kind.folder}/*.yaml`." if kind.folder else "Documents: in any folder."
        yield from ("", f"## {kind.name}", "", summary(kind.spec).replace("``", "`"), "", folder, "")
        yield from ("| field | type | meaning |", "|---|---|---|")
        yield from _rows(kind.spec, "", set())


def _rows(cls: type, path: str, above: set[type]) -> Iterator[str]:
    """A row for each field, and below it those of its own fields; a class is not repeated inside itself."""
    for one in fields_of(cls).values():
        symbols = one.units()
        units = f" [{', '.join(symbols[:3])}{', ...' if len(symbols) > 3 else ''}]" if symbols else ""
        example = f" Example: `{one.example}`" if one.example else ""
        star = "\\*" if one.required else ""
        yield f"| `{path}{one.name}`{star} | {_cell(one.type_words + units)} | {_cell(one.description)}{example} |"
        if one.cls is not None and one.cls not in above:
            yield from _rows(one.cls, f"{path}{one.name}.", {*above, one.cls})


def _names() -> Iterator[str]:
    yield from ("# Public names", "", "Signatures and docstrings; [the Python API](python.md) introduces them.")
    for name in sorted(trnspec.__all__, key=str.lower):
        found = getattr(trnspec, name)
        if name.startswith("_"):
            continue
        directive = "autoclass" if isinstance(found, type) else "autofunction"
        yield from ("", f"## {name}", "", "```{eval-rst}", f".. {directive}:: trnspec.{name}")
        if isinstance(found, type):
            yield "   :members:"
        yield "```"


def _formulas() -> Iterator[str]:
    """What the pages with formulas name: modules, each followed by its classes, functions and constants."""
    yield from ("# Functions of the performance model", "")
    yield "Signatures and docstrings of what [the performance model](../explanation/the-performance-model.md) names."
    text = "\n".join(page.read_text(encoding="utf-8") for page in FORMULAS)
    names = {f"trnspec.{name}" for name in ENGINE.findall(text)}
    found = {name: pkgutil.resolve_name(name) for name in names}
    modules = {name if isinstance(one, ModuleType) else _module_of(name) for name, one in found.items()}
    for module in sorted(modules):
        yield from ("", f"## {module.removeprefix('trnspec.')}", "", "```{eval-rst}", f".. automodule:: {module}")
        for name, one in sorted(found.items()):
            if not isinstance(one, ModuleType) and _module_of(name) == module:
                yield f".. {_directive(name, module, one)}:: {name}"
        yield "```"


def _module_of(name: str) -> str:
    """The module of a dotted name: all before the first part that begins with a capital, or before the last part."""
    parts = name.split(".")
    return ".".join(parts[: next((i for i, part in enumerate(parts) if part[0].isupper()), len(parts) - 1)])


def _directive(name: str, module: str, found: object) -> str:
    if isinstance(found, type):
        return "autoclass"
    in_class = name.count(".") > module.count(".") + 1
    if callable(found):
        return "automethod" if in_class else "autofunction"
    return "autoproperty" if in_class else "autodata"
