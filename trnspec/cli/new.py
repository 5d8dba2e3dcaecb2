"""``trnspec new``: documents of any kind from values by path, prompts, or as a stub; models from their config.json."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path as FilePath
from typing import Any

import click
from attrs import evolve
from click.shell_completion import CompletionItem

from trnspec.api import load_documents, select
from trnspec.atomic_write import write
from trnspec.checks.runner import check
from trnspec.cli.common import here, write_new
from trnspec.cli.formats import known as registry_of
from trnspec.cli.help import CommandGroup, GroupedCommand, documented, new_option, option
from trnspec.cli.render import report_findings
from trnspec.diagnostics import Severity, did_you_mean
from trnspec.errors import UsageError
from trnspec.loading.forms.price_rows import list_text, with_rows
from trnspec.loading.pipeline import load_document
from trnspec.loading.structure import plain_spec
from trnspec.model.document_text import document_text, stub_text
from trnspec.model.figure import Figure
from trnspec.model.key_order import key_order
from trnspec.model.ref import indefinite
from trnspec.model.reflection import (
    ChoiceShape,
    Field,
    FigureShape,
    ListShape,
    ObjectShape,
    RefShape,
    Shape,
    TextShape,
    dotted,
    field_at,
    fields_below,
    fields_of,
    shape_in_document,
    spread,
    summary,
)
from trnspec.model.transformers.huggingface.config import read_config
from trnspec.model.transformers.huggingface.registry import imported
from trnspec.model.transformers.model import Model
from trnspec.plugins.api import Kind, Registry
from trnspec.yaml import Path, read_file, read_text


class Kinds(CommandGroup):
    """A command for each kind of document, those of plugins included, and those that read other files."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the kinds in lower case, in the order of the catalog."""
        return list(dict.fromkeys([name.lower() for name in registry_of(ctx).kinds] + super().list_commands(ctx)))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a kind; one of this module takes precedence."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        registry = registry_of(ctx)
        kind = next((k for name, k in registry.kinds.items() if name.lower() == cmd_name), None)
        if kind is None:
            return None
        return kind_command(kind, registry)


@click.group("new", cls=Kinds)
def command() -> None:
    """Write a new document of the catalog.

    Values are given by path: trnspec new chip NAME --source NAME --set memory.capacity='96 GiB'.
    """


def _params(*, sourced: bool = True) -> list[click.Parameter]:
    """The parameters of all commands: name, title and source of the document, and the file to write."""
    source = new_option("--source NAME", "Document", "The source document that states the figures.")
    return [
        click.Argument(["name"], required=False),
        # Its former form.
        new_option("--name NAME named", "Document", "", hidden=True),
        new_option("--title TEXT", "Document", "Its title; by default the name."),
        *([source] if sourced else []),
        new_option("--output --out FILE", "Output", "Write to this file; it must not exist."),
    ]


@documented(
    "model",
    ("trnspec new model my-model --from config.json", "A model of the Hugging Face Hub, printed:"),
    ("trnspec new model my-model --from config.json --output models/my-model.yaml", "Written to a file:"),
    ("trnspec eval memory --model config.json --on trn2.48xlarge --seq 4096", "Without a document:"),
    ("trnspec new model my-model --from config.json --title 'My model'", "With a title:"),
    of=command,
    params=_params(),
)
@option("--from FILE file", "Input", "The config.json of the model; - for standard input.", required=True)
def model_(  # the parameters above
    name: str | None, file: str, named: str | None, title: str | None, source: str | None, output: str | None
) -> None:
    """Write the document of a model from the config.json of the Hugging Face Hub.

    NAME is by default the name in config.json, where it states one.

    The language model of a multimodal model is imported alone. Keys that are missing take the default of their class, and
    the note of the document says so. A key that may matter and is not known is an error.
    """

    def document() -> str:
        config = read_config(file, sys.stdin.read() if file == "-" else None)
        model = imported(config)
        called, known_as = _named(config, name or named, title)
        return model_document(model.model, name=called, title=known_as, source=source, notes=model.notes)

    write_new(output, document)


_FIRST = ("form", "layers", "hidden", "vocabulary", "context", "positions", "embeddings", "norm")
"""The fields of a model that its document begins with: the best known."""


def model_document(spec: Model, *, name: str, title: str, source: str | None = None, notes: Sequence[str]) -> str:
    """The document of a model; fields that have their default are left out."""
    metadata = {"name": name, "title": title} | ({"source": source} if source else {})
    if notes:
        metadata["note"] = " ".join(note if note.endswith(".") else f"{note}." for note in notes)
    fields = plain_spec(spec)
    ordered = {key: fields.pop(key) for key in _FIRST if key in fields} | fields
    return document_text("Model", metadata, ordered, "../../schemas/v1/model.schema.json")


def _named(config: dict[str, Any], name: str | None, title: str | None) -> tuple[str, str]:
    """Name and title of the document.

    Raises:
        UsageError: No name was given, and config.json states none.
    """
    stated = str(config.get("_name_or_path") or "").rstrip("/").rpartition("/")[2]
    if name is None:
        if not stated:
            raise UsageError("config.json states no name; name the document: trnspec new model NAME")
        name = re.sub(r"[^a-z0-9.]+", "-", stated.lower()).strip("-.")
        title = title or stated
    return name, title or name


_MOST_REQUIRED = 3
"""The most values of the example in ``--help``."""


class KindCommand(GroupedCommand):
    """The command of one kind; an option that is a field of the kind is answered with ``--set``."""

    def __init__(self, kind: Kind, **more: Any) -> None:
        super().__init__(kind.name.lower(), **more)
        self.kind = kind

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; the hint for an option that does not exist shows ``--set``."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            flat = error.option_name.lstrip("-").replace("-", "_").replace(".", "_")
            paths = (dotted(path) for path, _ in fields_below(self.kind.spec))
            path = next((p for p in paths if p.replace(".", "_") == flat), "PATH")
            hint = f"values are given by path: --set {path}=VALUE; trnspec explain {self.name} lists the paths"
            raise UsageError(f"no such option: {error.option_name}", hint=hint) from None


def kind_command(kind: Kind, known: Registry) -> click.Command:
    """The command that writes a document of a kind."""
    sourced = _is_sourced(kind)
    params = _params(sourced=sourced)
    if sourced:
        params.append(new_option("--where TEXT", "Document", "The place in the source."))
    text = "A value, by its path below spec: --set memory.capacity='96 GiB'; may be repeated."
    params += [
        new_option("--set PATH=VALUE values", "Document", text, multiple=True, shell_complete=_completed_paths),
        new_option("--stub", "Output", "Write all fields as comments, to be filled in."),
        new_option("--catalog DIR", "Output", "Also resolve names in this catalog."),
    ]

    def callback(  # the parameters above
        name: str | None,
        named: str | None,
        values: tuple[str, ...],
        output: str | None,
        catalog: str | None,
        *,
        stub: bool,
        **metadata: str | None,
    ) -> None:
        exists = output is not None and FilePath(output).exists()
        if exists and (stub or kind.name != "Price"):
            raise UsageError(f"{output} exists; remove it, or name another file")
        name = name or named or (None if output is None else FilePath(output).stem)
        given = {"name": name, "title": metadata.pop("title") or name, **metadata}
        draft = Draft(kind, known, {key: text for key, text in given.items() if text})
        for text in values:
            draft.set(text)
        draft.name()
        if not stub and draft.missing() and on_terminal():
            draft.prompt()
        missing = draft.missing()
        if stub or missing:
            text, failed = draft.stub(), not stub
        else:
            text, name = draft.written(output if exists else None)
            failed = _has_errors(text, output or f"{kind.folder}/{name}.yaml", kind, known, catalog)
        if missing and not stub:
            lacking = ", ".join(_described(kind, path) for path in missing)
            click.echo(f"{indefinite(kind.name)} requires {lacking}: a stub to be filled in", err=True)
            if ("metadata", "source") in missing:
                click.echo("hint: trnspec source lists the sources, trnspec new source writes one", err=True)
        if output is not None and failed and not missing:
            click.echo("nothing was written", err=True)
        elif exists and not missing:
            write({FilePath(str(output)): text.encode()})
            click.echo(f"{output}: a row added. Next: trnspec validate {output}")
        else:
            write_new(output, lambda: text)
        if failed:
            raise click.exceptions.Exit(1)

    added = {"Price": "The price is a row of the list of its server: of FILE if it exists, else of a new list. "}
    required = [(path, field_at(kind.spec, path[1:])) for path in Draft(kind, known, {}).missing() if path[0] == "spec"]
    example = [f"trnspec new {kind.name.lower()} NAME", *(["--source NAME"] if sourced else [])]
    has_lists = any(f is not None and f.type_words.startswith(("list of ", "mapping to ")) for _, f in required)
    example += [f"--set {dotted(p[1:])}='{_example(f)}'" for p, f in required[:_MOST_REQUIRED] if f is not None]
    stub = (
        f"trnspec new {kind.name.lower()} NAME --stub",
        f"A document of the kind {kind.name} with all fields as comments, to be filled in:",
    )
    return KindCommand(
        kind,
        params=params,
        callback=callback,
        help=(
            f"Write the document NAME of the kind {kind.name}.\n\n{summary(kind.spec)} trnspec explain {kind.name.lower()} "
            f"lists the paths of its values. {added.get(kind.name, '')}On a terminal, what is missing is prompted for; elsewhere a stub is written. "
            "Values that are not known are left out."
        ),
        short_help=summary(kind.spec),
        examples=(
            *(
                []
                if has_lists
                else [(" ".join(example), f"A document of the kind {kind.name}, with its required values:")]
            ),
            stub,
            (
                f"trnspec new {kind.name.lower()} --stub --output NAME.yaml",
                "The same, written to a file; its name is that of the document:",
            ),
            (f"trnspec explain {kind.name}", "The paths of its values, with types and units:"),
        ),
    )


def _is_sourced(kind: Kind) -> bool:
    """True if figures of this kind have a source; those of a source have none."""
    return bool(getattr(kind.spec, "SOURCED", True))


def _completed_paths(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  # click passes it
    assert isinstance(ctx.command, KindCommand)
    fields = ((dotted(path), field) for path, field in fields_below(ctx.command.kind.spec))
    return [CompletionItem(f"{p}=", help=f.description) for p, f in fields if p.startswith(incomplete) and not f.cls]


class Draft:
    """A document that is being put together.

    Attributes:
        kind: Its kind.
        known: Kinds and units.
        data: The values by part of the document: ``metadata`` and ``spec``.
    """

    def __init__(self, kind: Kind, known: Registry, metadata: dict[str, str]) -> None:
        self.kind = kind
        self.known = known
        self.data: dict[Any, Any] = {"metadata": dict(metadata), "spec": {}}
        self._given: set[Path] = set()

    def set(self, text: str) -> None:
        """Set the value of ``PATH=VALUE``.

        Raises:
            UsageError: It has another form, or the kind has no such path.
        """
        name, sign, value = text.partition("=")
        if not sign:
            raise UsageError(f"--set {text}: expected PATH=VALUE")
        try:
            paths = spread(name)
        except ValueError as error:
            raise UsageError(f"--set {text}: {error}") from None
        for path in paths:
            full = path if path[0] in self.data else ("spec", *path)
            shape = shape_in_document(self.kind.spec, full)
            if shape is None:
                names = [dotted(p) for p, _ in fields_below(self.kind.spec)]
                hint = did_you_mean(name, names) or f"trnspec explain {self.kind.name.lower()} lists the paths"
                raise UsageError(f"{self.kind.name} has no field {dotted(path)!r}", hint=hint)
            if full in self._given:
                raise UsageError(f"--set: {dotted(path)} is given twice")
            self._given.add(full)
            self.put(full, _value(value, shape))

    def put(self, path: Path, value: Any) -> None:
        """Set the value at a path; a value that has a note or a source becomes a mapping."""
        *above, last = path
        branch = self.data
        for step in above:
            inner = branch.setdefault(step, {})
            if not isinstance(inner, dict):
                inner = branch[step] = {"value": inner}
            branch = inner
        present = branch.get(last)
        branch[last] = (
            {"value": value, **present} if isinstance(present, dict) and not isinstance(value, dict) else value
        )

    def missing(self) -> list[Path]:
        """The paths of required values that were not given."""
        metadata = ("name", *(("source",) if _is_sourced(self.kind) else ()))
        missing = [("metadata", key) for key in metadata if key not in self.data["metadata"]]
        return [*missing, *_missing(self.kind.spec, self.data["spec"], ("spec",))]

    def prompt(self) -> None:
        """Prompt for what is missing, each until it is valid; answers may begin parts with required fields."""
        while missing := self.missing():
            for path in missing:
                self._prompt(path)

    def _prompt(self, path: Path) -> None:
        shape = shape_in_document(self.kind.spec, path)
        assert shape is not None
        while True:
            self.put(path, _value(click.prompt(_described(self.kind, path), err=True), shape))
            problems = load_document(read_text(self.text()), self.known).problems
            found = next((p for p in problems if p.path[: len(path)] == path), None)
            if found is None:
                return
            click.echo(found.message + (f"; {found.hint}" if found.hint else ""), err=True)

    def text(self) -> str:
        """The text of the document."""
        metadata = self.data["metadata"]
        data = self._ordered({**self.data, "metadata": {"title": metadata.get("name", ""), **metadata}}, ())
        return document_text(self.kind.name, data["metadata"], data["spec"], api_version=self.kind.api_version)

    def name(self) -> None:
        """Name a price, which needs no name: as the document of its type is called."""
        spec = self.data["spec"]
        if self.kind.name == "Price" and {"server", "type"} <= spec.keys():
            self.data["metadata"].setdefault("name", f"{spec['server']}-{spec['type']}")

    def written(self, file: str | None) -> tuple[str, str]:
        """The text to write and its name: of the document, of a price as a row of the list in a file or of a new list."""
        text, name = self.text(), self.data["metadata"]["name"]
        node = load_document(read_text(text), self.known).node if self.kind.name == "Price" else None
        if node is None:  # also for a price that is wrong, which is reported
            return text, name
        server = node.spec.server.name
        return list_text([node]) if file is None else with_rows(read_file(file), node), f"{server}-prices"

    def stub(self) -> str:
        """The text of the document, with what is missing as comments."""
        data = self._ordered(self.data, ())
        required = ("name", "title", *(("source",) if _is_sourced(self.kind) else ()))
        metadata = {**dict.fromkeys(required), **data["metadata"]}
        kind = self.kind
        return stub_text(kind.name, kind.spec, metadata, data["spec"], kind.api_version)

    def _ordered(self, value: Any, path: Path) -> Any:
        """Values in the order of the classes, those with numbers as keys as lists."""
        if not isinstance(value, dict):
            return value
        inner = {key: self._ordered(each, (*path, key)) for key, each in value.items()}
        if inner and all(isinstance(key, int) for key in inner):
            return [inner[key] for key in sorted(inner)]
        ranks = dict(zip(inner, key_order(self.kind.spec)(path, [*inner]), strict=True))
        return {key: inner[key] for key in sorted(inner, key=ranks.__getitem__)}


def _missing(cls: type, given: Any, path: Path) -> Iterator[Path]:
    """The required fields; those of a part only where the part is required, or where another field of it is given."""
    for name, field in fields_of(cls).items():
        value = given.get(name) if isinstance(given, dict) else None
        if isinstance(field.shape, ObjectShape) and field.shape.cls is not Figure:
            if field.required or isinstance(value, dict):
                yield from _missing(field.shape.cls, value, (*path, name))
        elif field.required and value is None:
            yield (*path, name)


def _value(text: str, shape: Shape) -> Any:
    """The value of a text as YAML; words, figures and dates are texts, and a list needs no brackets."""
    is_mapping = text.startswith("{")
    if isinstance(shape, (TextShape, ChoiceShape, RefShape, FigureShape)) and not is_mapping:
        return text
    bare = isinstance(shape, ListShape) and not text.startswith("[")
    document = read_text(f"value: [{text}]\n" if bare else f"value: {text}\n")
    return text if document.data is None or document.problems else document.data.get("value")


def _described(kind: Kind, path: Path) -> str:
    """A value that is missing, with its type."""
    if path[0] == "metadata":
        return "NAME" if path[1] == "name" else f"--{path[1]}"
    field = field_at(kind.spec, path[1:])
    return dotted(path[1:]) + ("" if field is None else f" ({field.expected})")


def _example(field: Field) -> str:
    return field.example or (field.shape.words[0] if isinstance(field.shape, ChoiceShape) else field.type_words)


def on_terminal() -> bool:
    """True if prompts can be answered."""
    return sys.stdin is not None and sys.stdin.isatty()


def _has_errors(text: str, file: str, kind: Kind, known: Registry, catalog: str | None) -> bool:
    """Check the document among those of the catalogs, and print what is found; true if that includes errors."""
    folder = FilePath(file).parent
    roots = [FilePath(catalog)] if catalog else []
    # The catalog that the file is written into: the folder above that of its kind.
    if folder.name == kind.folder and any(folder.parent.glob("*/*.yaml")):
        roots.append(folder.parent)
    settings = here()
    settings = evolve(settings, catalogs=(*roots, *settings.catalogs))
    selection = evolve(select(["-"], known, settings), stdin=False)
    loaded = [load_document(read_text(text.encode(), file), known), *load_documents(selection, known)]
    checked = check(loaded, known, settings)
    if checked.report.diagnostics:
        report_findings(checked.report, checked.texts)
    return any(d.severity is Severity.ERROR for d in checked.report.diagnostics)
