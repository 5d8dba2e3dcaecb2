"""``trnspec eval``: what the evaluators answer; the options of each are the inputs of its function."""

from __future__ import annotations

import inspect
import json
import re
import shlex
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve, frozen

from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.render import Column, format_option, show, table, width, wrapped, written
from trnspec.errors import UsageError
from trnspec.evaluation.inputs import Input, inputs, parts
from trnspec.evaluation.result import Evaluation, RefusalError
from trnspec.plugins.api import Evaluator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from click.shell_completion import CompletionItem


MOST = 10_000
"""The most combinations of one sweep."""

_REFUSED = 1


class Evaluators(click.Group):
    """The evaluators of this installation; each is imported when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click passes it
        """Their names."""
        return list(_known())

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command that is made of the evaluator of that name."""
        if ctx.resilient_parsing and cmd_name not in _known():
            return None
        from trnspec.api import evaluator

        return made(*evaluator(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # the same
        """The evaluators in ``--help``, without importing any."""
        known = _known()
        if known:
            with formatter.section("Evaluators"):
                formatter.write_dl([(e.name, e.summary) for e in known.values()])


def _known() -> Mapping[str, Evaluator]:
    from trnspec.api import registry

    return registry().evaluators


@click.group(
    "eval",
    cls=Evaluators,
    invoke_without_command=True,
    subcommand_metavar="[EVALUATOR [OPTIONS]]",
    add_help_option=True,
)
@click.pass_context
def command(ctx: click.Context) -> None:
    """Evaluate: ask the catalog a question that takes a computation.

    Without EVALUATOR the evaluators are listed; EVALUATOR --help tells what each asks for. An option that takes one
    value takes several with commas (--tp 8,16,32): every combination is evaluated, one row each. Exit status 1 means
    that there is no answer, and the output says why.
    """
    if ctx.invoked_subcommand is None:
        known = _known()
        rows = [(e.name, e.summary) for e in known.values()]
        show(
            [table(["evaluator", Column("what it answers", fold=True, keep=True)], rows)]
            if rows
            else ["There are no evaluators."]
        )


def made(evaluator: Evaluator, giver: str) -> click.Command:
    """The command of an evaluator: its inputs as options, and what chooses catalog and format."""
    function = evaluator.load()
    asked = inputs(function, evaluator.name)
    text, _ = parts(inspect.getdoc(function) or "")

    def run(format_: str, table: str | None, **options: Any) -> None:
        if table is not None and format_ != "csv":
            raise UsageError("--table tells which table --format csv prints; the other formats have all of them")
        catalog = {n: options.pop(n) for n in ("catalog", "edition", "as_of", "overlay")}
        given, varied = _given(asked, options)
        asked_of = {n: v for n, v in catalog.items() if v is not None}
        asking = Asking(evaluator, giver, load_catalog(**catalog), given, asked_of, table)
        if varied:
            _sweep(asking, varied, format_)
        else:
            _one(asking, format_)

    function_: Callable[..., Any] = catalog_options(format_option(run))
    shared = list(reversed(function_.__click_params__))  # type: ignore[attr-defined]  # where click keeps them
    shared.append(click.Option(["--table"], metavar="TITLE", help="Which table --format csv prints."))
    options = [_option(i) for i in asked]
    return click.Command(
        evaluator.name,
        params=[*options, *shared],
        callback=run,
        help=f"{text or evaluator.summary}\n\nComes with {giver}.",
        short_help=evaluator.summary,
    )


def _option(asked: Input) -> click.Option:
    word = asked.name.replace("_", "-")
    help = asked.help
    if asked.default is not None and asked.type is not bool:
        shown = ",".join(map(str, asked.default)) if asked.many else str(asked.default)
        help = f"{help}  [default: {shown}]".lstrip() if shown else help
    if asked.type is bool and not asked.many and not asked.choices:
        if asked.default is not None and not asked.required:
            help = f"{help}  [default: {word if asked.default else f'no-{word}'}]".lstrip()
        # Nothing is passed on where nothing was said, so that only what was said is shown as given.
        return click.Option([f"--{word}/--no-{word}", asked.name], default=None, required=asked.required, help=help)
    metavar = f"[{'|'.join(map(str, asked.choices))}]" if asked.choices else _METAVARS[asked.type]
    return click.Option(
        [f"--{word}", asked.name],
        multiple=True,
        required=asked.required,
        metavar=f"{metavar},..." if asked.many else metavar,
        help=help,
        shell_complete=_completer(asked.choices),
    )


_METAVARS = {str: "TEXT", int: "INTEGER", float: "NUMBER", bool: "true|false"}


def _completer(
    choices: Sequence[Any],
) -> Callable[[click.Context, click.Parameter, str], list[CompletionItem]] | None:
    if not choices:
        return None

    def complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:  # noqa: ARG001  # click passes it
        from click.shell_completion import CompletionItem

        return [CompletionItem(str(c)) for c in choices if str(c).startswith(incomplete)]

    return complete


def _given(asked: Sequence[Input], options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The inputs with one value, and those with several of which each makes an evaluation."""
    given: dict[str, Any] = {}
    varied: dict[str, list[Any]] = {}
    for each in asked:
        found = options[each.name]
        if found is None or found == ():
            continue
        if isinstance(found, bool):
            given[each.name] = found
            continue
        values = [_read(each, t) for text in found for t in _split(each, text)]
        if each.many:
            given[each.name] = tuple(values)
        elif len(values) == 1:
            given[each.name] = values[0]
        else:
            varied[each.name] = values
    return given, varied


def _split(asked: Input, text: str) -> list[str]:
    r"""The values between commas; ``\,`` is a comma of a value."""
    found = [part.replace("\\,", ",").strip() for part in re.split(r"(?<!\\),", text)]
    if len(found) > 1 and not all(found):
        raise UsageError(f"--{asked.name.replace('_', '-')}: {text!r} has an empty value between its commas")
    return found


def _read(asked: Input, text: str) -> Any:
    try:
        return asked.read(text)
    except UsageError as error:
        raise UsageError(f"--{str(error).replace(asked.name, asked.name.replace('_', '-'), 1)}") from None


@frozen
class Asking:
    """What is asked of whom.

    Attributes:
        evaluator: The evaluator.
        giver: Who brings it.
        catalog: The catalog, a :class:`trnspec.catalog.catalog.Catalog`.
        given: The inputs that have one value.
        options: The options that chose the catalog.
        table: The title of the table that is wanted, or words of it; nothing for what CSV has without.
    """

    evaluator: Evaluator
    giver: str
    catalog: Any
    given: Mapping[str, Any]
    options: Mapping[str, str]
    table: str | None = None

    @property
    def beside(self) -> str:
        """What was done to the catalog, for people."""
        told = f" in {self.options['catalog']}" if "catalog" in self.options else ""
        return told + (f", with {self.options['overlay']} laid over it" if "overlay" in self.options else "")

    def evaluation(self, more: Mapping[str, Any] = {}) -> Evaluation:
        """What the evaluator finds; what it prints is no part of the answer and goes to standard error."""
        from contextlib import redirect_stdout

        from trnspec.cli.eval_page import is_command
        from trnspec.evaluation.runner import run

        with redirect_stdout(sys.stderr):
            found = run(self.evaluator, self.giver, self.catalog, {**self.given, **more})
        if not self.options:
            return found
        # A command that is an answer asks the same catalog.
        chosen = shlex.join(w for n, v in self.options.items() for w in (f"--{n.replace('_', '-')}", v))
        return evolve(
            found,
            answers=tuple(evolve(a, value=f"{a.value} {chosen}") if is_command(a.value) else a for a in found.answers),
        )


def _one(asking: Asking, format_: str) -> None:
    from trnspec.output.reporters.evaluation import refusal, sentence

    try:
        found = asking.evaluation()
    except RefusalError as error:
        if format_ == "json":
            click.echo(_json({"evaluator": asking.evaluator.name, "refusal": refusal(error)}))
        else:
            click.echo(sentence(asking.evaluator.name, error), err=True)
        click.get_current_context().exit(_REFUSED)
    if format_ == "json":
        click.echo(_json({**found.to_dict(), "asked_of": asking.options}))
    elif format_ == "csv":
        from trnspec.cli.eval_csv import one

        click.echo(written(one(asking, found), "csv"), nl=False)
    else:
        from trnspec.cli.eval_page import markdown, page

        if format_ == "markdown":
            click.echo(markdown(found, asking.beside), nl=False)
        else:
            show(page(found, width(), asking.beside, rows=asking.evaluator.rows))


def _json(data: Mapping[str, Any]) -> str:
    return json.dumps({"version": 1, **data}, indent=2, ensure_ascii=False)


def _sweep(asking: Asking, varied: Mapping[str, Sequence[Any]], format_: str) -> None:
    from math import prod

    from trnspec.cli.eval_csv import flat, many
    from trnspec.cli.eval_page import marked, swept
    from trnspec.evaluation.sweep import combinations
    from trnspec.output.reporters.evaluation import measure, refusal, sentence

    evaluator, given = asking.evaluator, asking.given
    count = prod(map(len, varied.values()))
    if count > MOST:
        told = " x ".join(f"{len(v)} of --{n.replace('_', '-')}" for n, v in varied.items())
        raise UsageError(f"{told} are {count:,} combinations; one sweep evaluates at most {MOST:,}")
    rows = combinations(varied, asking.evaluation)
    if format_ == "json":
        told_ = [
            {"combination": c, "refusal": refusal(f)}
            if isinstance(f, RefusalError)
            else {"combination": c, **f.to_dict()}
            for c, f in rows
        ]
        head = {"evaluator": evaluator.name, "asked_of": asking.options, "given": given, "swept": list(varied)}
        click.echo(_json({**head, "rows": told_}))
    elif format_ == "csv":
        click.echo(written(many(asking, rows), "csv"), nl=False)
    elif format_ == "markdown":
        told = marked(rows)
        click.echo(written(swept(rows), "markdown") + (f"\n{told}\n" if told else ""), nl=False)
    else:
        rest = ", ".join(f"{n} {measure(v)}" for n, v in flat(given).items())
        head_ = f"{len(rows)} combinations" + (f", {rest}" if rest else "")
        chosen_ = ", ".join(f"{n.replace('_', ' ')} {v}" for n, v in asking.options.items())
        note = marked(rows)
        head_ = wrapped(f"{evaluator.name}: ", f"{head_}; {chosen_}" if chosen_ else head_)
        whole = "--format json" if evaluator.rows else "--format csv"
        show([head_, swept(rows, whole), *([wrapped("", note)] if note else [])])
    refused = [f for _, f in rows if isinstance(f, RefusalError)]
    if len(refused) == len(rows):
        if format_ == "csv":
            click.echo(sentence(evaluator.name, refused[0]), err=True)
        click.get_current_context().exit(_REFUSED)
