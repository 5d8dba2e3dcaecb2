"""``trnspec eval``: runs the evaluators; the options of each are its inputs."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from typing import Any

import click
from attrs import asdict, evolve

from trnspec.api import evaluator, registry
from trnspec.cli import eval_csv
from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.complete import of_input
from trnspec.cli.eval_csv import flat, many, ranked
from trnspec.cli.help import (
    CommandGroup,
    GroupedCommand,
    documented,
    former_brief,
    new_option,
    option,
    renamed,
    write_examples,
)
from trnspec.cli.render import emit, format_option, print_sections, show, table_options, versioned_json, width
from trnspec.cli.request import EvalRequest, analysis_options
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation.inputs import Input, docstring, inputs
from trnspec.evaluation.measures import measure
from trnspec.evaluation.page import markdown_page, page
from trnspec.evaluation.result import COMMANDS, Evaluation, Suggestion, plain
from trnspec.evaluation.result import command as suggested
from trnspec.evaluation.sweeps import combinations, expanded, heading, sections
from trnspec.output.reporters.evaluation import refusal, sentence
from trnspec.plots.chart import check
from trnspec.plugins.api import Evaluator
from trnspec.text_table import Column, TextTable, csv, table

MOST = 10_000
"""The maximum number of combinations of a sweep."""

_REFUSED = 1


class Evaluators(CommandGroup):
    """Evaluators as commands; each is imported when it is called.

    Args:
        title: The heading of the evaluators in ``--help``.
        names: The evaluator of each command; by default all without a command of their own.
        examples: Command and explanation of each example.
    """

    def __init__(
        self,
        *args: Any,
        title: str = "Evaluators",
        names: Mapping[str, str] | None = None,
        examples: Sequence[tuple[str, str]],
        **more: Any,
    ) -> None:
        super().__init__(*args, **more)
        self.title, self.names, self.examples = title, names, examples

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  # click passes it
        """The names of the commands."""
        return list(_listed() if self.names is None else self.names)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The evaluator that the arguments name; of one that has a command of its own, with a hint at it."""
        if self.names is None and args[0] in COMMANDS and not ctx.resilient_parsing:
            renamed(f"eval {args[0]}", " ".join(COMMANDS[args[0]]))
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of an evaluator."""
        if self.names is not None:
            if cmd_name not in self.names:
                return None
            cmd_name = self.names[cmd_name]
        elif ctx.resilient_parsing and cmd_name not in _known():
            return None
        if cmd_name == "search":
            from trnspec.cli.search import evaluator_search

            return evaluator_search()
        return evaluator_command(*evaluator(cmd_name))

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002  # click passes it
        """Lists the evaluators in ``--help`` without importing any."""
        listed = {name: name for name in _listed()} if self.names is None else self.names
        if listed:
            with formatter.section(self.title):
                formatter.write_dl([(name, _known()[of].summary) for name, of in listed.items()])
        write_examples(formatter, self.examples)


def _known() -> Mapping[str, Evaluator]:
    return registry().evaluators


def _listed() -> dict[str, Evaluator]:
    """The evaluators without those that ``trnspec plan`` and ``trnspec search`` run."""
    return {name: evaluator for name, evaluator in _known().items() if name not in COMMANDS}


@click.group(
    "eval",
    cls=Evaluators,
    invoke_without_command=True,
    subcommand_metavar="[EVALUATOR [OPTIONS]]",
    add_help_option=True,
    examples=(
        ("trnspec eval", "The evaluators:"),
        ("trnspec eval roofline --on trainium2", "Ridge points of a chip:"),
        ("trnspec eval inference --model llama-3.1-8b --on trn2.48xlarge --tp 8", "Serving latency of a replica:"),
        ("trnspec eval memory --model llama-3.1-8b --on trn2.48xlarge --seq 8192 --tp 4,8", "A sweep:"),
    ),
)
@format_option
@click.pass_context
def command(ctx: click.Context, format_: str) -> None:
    """Run an evaluator: training, memory, inference, roofline, collective, ...

    Without EVALUATOR, list the evaluators; EVALUATOR --help shows the options of one. An option that takes one value
    also takes several, separated by commas (--tp 8,16,32), and ranges (--tp 1..64:x2 multiplies, --batch 8..64:+8 adds):
    each combination is evaluated and printed as a row. Exit
    status 1: no answer, and the output states the reason. Exit status 2: wrong usage.
    """
    if ctx.invoked_subcommand is None:
        listed = table(
            ["evaluator", Column("summary", wrap=True, keep=True)], [(e.name, e.summary) for e in _listed().values()]
        )
        emit(format_, lambda: [listed if listed.rows else "There are no evaluators."], lambda: listed)
    elif format_ != "text":
        raise UsageError(
            f"write --format {format_} after the evaluator: trnspec eval {ctx.invoked_subcommand} --format"
        )


def evaluator_command(
    evaluator: Evaluator,
    provider: str,
    extra: Sequence[click.Option] = (),
    around: Callable[[EvalRequest, Mapping[str, Any], Callable[[], None]], None] | None = None,
) -> GroupedCommand:
    """The command of an evaluator: its inputs as options, and the options that choose catalog and format.

    Args:
        evaluator: The evaluator.
        provider: The plugin that provides it.
        extra: Further options.
        around: Called with the request, the values of further options, and a function that evaluates and prints.
    """
    function = evaluator.load()
    inputs_ = inputs(function, evaluator.name)
    doc = docstring(inspect.getdoc(function) or "")

    @documented(
        evaluator.name,
        *doc.examples,
        params=[
            *map(_option, inputs_),
            *extra,
            *analysis_options(traced=evaluator.trace is not None),
            former_brief(),
        ],
        help=f"{doc.text or evaluator.summary}\n\nProvided by {provider}.",
        short_help=evaluator.summary,
        only_with={_FRAMEWORK: "--framework"},
    )
    @catalog_options
    @table_options
    @format_option
    @option("--full", "Output", "Print the page in full, not its first 40 lines.")
    @option("--plot FILE", "Output", "Also draw a chart: .svg, .png or .pdf; see trnspec plot.")
    @option("--table TITLE", "Output", "The table that --format csv prints.")
    def run(format_: str, **options: Any) -> None:
        if options["plot"] is not None:
            check(options["plot"])
        if options["table"] is not None and format_ != "csv":
            raise UsageError("--table chooses the table of --format csv; the other formats have all tables")
        catalog = {n: options.pop(n) for n in ("catalog", "edition", "as_of", "overlay")}
        more = {str(one.name): options.pop(str(one.name)) for one in extra}
        with _named_as_options(inputs_):
            given, varied = _given(inputs_, {one.name: options.pop(one.name) for one in inputs_})
            request = EvalRequest(
                evaluator=evaluator,
                provider=provider,
                catalog=load_catalog(**catalog),
                given=given,
                varied=varied,
                options={n: v for n, v in catalog.items() if v is not None},
                **options,
            )
            request.check(format_)
            request = evolve(request, varied={**varied, **request.axes()})

            def proceed() -> None:
                (_sweep if request.varied else _one)(request, format_)

            if around is None:
                proceed()
            else:
                around(request, more, proceed)

    run.params.sort(key=_rank)
    return run


@contextmanager
def _named_as_options(inputs_: Sequence[Input]) -> Iterator[None]:
    """Makes ``--global-batch: ...`` of a message about an input, ``global_batch: ...``."""
    try:
        yield
    except UsageError as error:
        name, colon, rest = str(error).partition(": ")
        if not colon or name not in {one.name for one in inputs_}:
            raise
        raise UsageError(f"--{name.replace('_', '-')}: {rest}") from error


_COMMON = "Common"
_FRAMEWORK = "Framework details"
_ADVANCED = ("Workload", "Goal", "System", "Parallelism", "Precision", "Schedule", "Reliability", "Price")
"""The groups whose options are advanced, but for the common ones."""
_COMMON_INPUTS = (
    *("model", "on", "tp", "pp", "dp", "batch", "seq", "global_batch", "prompt", "output", "tokens", "deadline"),
    *("budget", "rate", "isl", "osl", "ttft", "tpot", "objective", "framework", "calibration"),
)
"""In the order of the help."""
_FRAMEWORK_INPUTS = frozenset(
    ("fused_loss", "gathered_inputs", "bucket", "must_fit", "context_buckets", "batch_buckets", "tile")
)
"""Inputs that depend on the software, most of which ``--framework`` sets."""


def _group(given: Input) -> str:
    """The heading of an input in ``--help``; an input of a plugin has the one that it states."""
    if not given.group:
        return "Inputs"
    if given.name in _FRAMEWORK_INPUTS:
        return _FRAMEWORK
    if given.required or given.name in _COMMON_INPUTS:
        return _COMMON
    return f"Advanced: {given.group}" if given.group in _ADVANCED else given.group


def _rank(option: click.Parameter) -> tuple[int, int]:
    """The order in the help: common inputs, output, all others, what belongs to a framework."""
    place = _COMMON_INPUTS.index(option.name) if option.name in _COMMON_INPUTS else len(_COMMON_INPUTS)
    group = vars(option).get("group", "")
    return {_COMMON: 0, "Inputs": 0, "Output": 1, _FRAMEWORK: 3}.get(group, 2), place if group == _COMMON else 0


def _option(given: Input) -> click.Option:
    name = given.name.replace("_", "-")
    help = given.help
    flag = given.type is bool and not given.many and not given.choices
    default = given.unset
    if given.default is not None:
        if flag:
            default = name if given.default else f"no-{name}"
        else:
            default = ",".join(map(plain, given.default)) if given.many else plain(given.default)
    if default and not given.required:
        help = f"{help}  [default: {default}]".lstrip()
    if flag:
        # Without a default only a flag that is given is passed on.
        usage = f"--{name}/--no-{name} {given.name}"
        return new_option(usage, _group(given), help, default=None, required=given.required)
    metavar = f"[{'|'.join(map(str, given.choices))}]" if given.choices else given.metavar or _METAVARS[given.type]
    if len(metavar) > _LONGEST:
        # A line of help is not broken within a metavar. Where the input has one of its own, its help names the values.
        metavar, help = (
            given.metavar or "NAME",
            help if given.metavar else f"{', '.join(map(str, given.choices))}. {help}",
        )
    usage = f"--{name} {metavar}{',...' if given.many else ''} {given.name}"
    complete = of_input(given.name, given.choices)
    return new_option(usage, _group(given), help, multiple=True, required=given.required, shell_complete=complete)


_LONGEST = 60
"""The most characters of a metavar in a line of help."""

_METAVARS = {str: "TEXT", int: "INTEGER", float: "NUMBER", bool: "true|false"}


def _given(inputs_: Sequence[Input], options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """The inputs with one value, and those with several, each of which makes an evaluation."""
    given: dict[str, Any] = {}
    varied: dict[str, list[Any]] = {}
    for one in inputs_:
        texts = options[one.name]
        if texts is None or texts == ():
            continue
        if isinstance(texts, bool):
            given[one.name] = texts
            continue
        values = [value for text in texts for value in _values(one, text)]
        if one.many:
            given[one.name] = tuple(values)
        elif len(values) == 1:
            given[one.name] = values[0]
        else:
            varied[one.name] = values
    return given, varied


def _values(one: Input, text: str) -> Iterator[Any]:
    r"""The values between commas and of ranges; ``\,`` is a comma of a value."""
    parts = [part.replace("\\,", ",").strip() for part in re.split(r"(?<!\\),", text)]
    if len(parts) > 1 and not all(parts):
        raise UsageError(f"{one.name}: {text!r} has an empty value between its commas")
    for part in parts:
        is_word = one.choices and one.type is str
        for each in [part] if is_word else expanded(part, one.name, numeric=one.type in (int, float)):
            yield one.read(each)


def _one(request: EvalRequest, format_: str) -> None:
    def evaluation() -> Evaluation:
        found = request.evaluation()
        if request.plot is not None:
            from trnspec.evaluation.charts import chart

            chart([found]).save(request.plot)
        return found

    print_evaluation(
        request.evaluator.name,
        evaluation,
        format_,
        csv_of=lambda found: eval_csv.one(request, found).selected(request.columns),
        about={"catalog": request.options},
        columns=request.columns,
        catalog=request.catalog_note,
        options=request.context,
        full=request.full,
    )


def print_evaluation(
    name: str,
    evaluate: Callable[[], Evaluation],
    format_: str,
    *,
    csv_of: Callable[[Evaluation], TextTable],
    about: Mapping[str, Any] = {},
    columns: str | None = None,
    **shown: Any,
) -> None:
    """Print an evaluation, or why there is none, which ends the command with exit status 1.

    Args:
        name: The evaluator.
        evaluate: Makes the evaluation.
        format_: ``text``, ``json``, ``csv`` or ``markdown``.
        csv_of: The table of the evaluation for CSV.
        about: What JSON has in addition.
        columns: The columns of the page.
        shown: Other arguments of :func:`~trnspec.evaluation.page.page`: ``catalog``, ``options``, ``full``.
    """
    context = shown.get("options", {})
    try:
        evaluation = evaluate()
    except RefusalError as error:
        if format_ == "json":
            suggestions = {"suggestions": with_commands(error.suggestions, context)} if error.suggestions else {}
            click.echo(versioned_json({"evaluator": name, "refusal": {**refusal(error), **suggestions}}))
        else:
            click.echo(sentence(name, error), err=True)
            for suggestion in error.suggestions:
                click.echo(f"  {suggestion.note or 'try'}: {suggested(suggestion, context)}", err=True)
        click.get_current_context().exit(_REFUSED)
    if format_ == "json":
        suggestions = {"suggestions": with_commands(evaluation.suggestions, context)}
        click.echo(versioned_json({**evaluation.to_dict(), **suggestions, **about}))
    elif format_ == "csv":
        click.echo(csv(csv_of(evaluation)), nl=False)
    elif format_ == "markdown":
        click.echo(markdown_page(evaluation, **shown), nl=False)
    else:
        show(page(evaluation, width(), columns=columns, **shown))


def with_commands(suggestions: Sequence[Suggestion], context: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Suggestions as plain data, each with its command."""
    return [{**asdict(s), "command": suggested(s, context)} for s in suggestions]


def _sweep(request: EvalRequest, format_: str) -> None:
    evaluator, given, varied = request.evaluator, request.given, request.varied
    count = prod(map(len, varied.values()))
    if count > MOST:
        names = [f"--vary {n}" if "." in n else f"--{n.replace('_', '-')}" for n in varied]
        product = " x ".join(f"{len(v)} of {n}" for n, v in zip(names, varied.values(), strict=True))
        raise UsageError(f"{product} are {count:,} combinations; one sweep evaluates at most {MOST:,}")
    rows = combinations(varied, request.evaluation)
    if request.plot is not None and any(isinstance(f, Evaluation) for _, f in rows):
        from trnspec.evaluation.charts import sweep_chart

        sweep_chart(rows).save(request.plot)
    if format_ == "json":
        rows_ = [
            {"combination": c, "refusal": refusal(f)}
            if isinstance(f, RefusalError)
            else {"combination": c, **f.to_dict(), "suggestions": with_commands(f.suggestions, request.context)}
            for c, f in rows
        ]
        about = {"evaluator": evaluator.name, "catalog": request.options, "given": given, "swept": list(varied)}
        click.echo(versioned_json({**about, "rows": rows_}))
    elif format_ == "csv":
        click.echo(csv(ranked(many(request, rows), request.sort).selected(request.columns)), nl=False)
    else:
        fixed = ", ".join(f"{n} {measure(v)}" for n, v in flat(given).items())
        head = heading(evaluator.name, rows) + (f", {fixed}" if fixed else "")
        source = ", ".join(f"{n} {v}" for n, v in request.shown.items())
        head = f"{head}; {source}" if source else head
        print_sections(sections(rows, head, columns=request.columns, sort=request.sort), format_)
    refusals = [f for _, f in rows if isinstance(f, RefusalError)]
    if len(refusals) == len(rows):
        if format_ == "csv":
            click.echo(sentence(evaluator.name, refusals[0]), err=True)
        click.get_current_context().exit(_REFUSED)
