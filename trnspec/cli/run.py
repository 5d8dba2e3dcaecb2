"""``trnspec run``: evaluates the scenarios of a file and compares them."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any

import click
from attrs import asdict

from trnspec.api import evaluator, registry
from trnspec.catalog.catalog import Catalog
from trnspec.checks.rules.scenarios import invalid_scenario
from trnspec.checks.runner import check_node, document_errors
from trnspec.cli.common import catalog_options, load_catalog
from trnspec.cli.eval_csv import answer_table, flat, ranked
from trnspec.cli.help import documented, option
from trnspec.cli.render import (
    format_option,
    print_sections,
    report_findings,
    table_options,
    versioned_json,
)
from trnspec.diagnostics import Report, Severity
from trnspec.errors import RefusalError, TrnspecError, UsageError
from trnspec.evaluation.measures import measure
from trnspec.evaluation.runner import run
from trnspec.evaluation.scenarios import (
    ScenarioOutcome,
    changed_answers,
    changed_inputs,
    difference_table,
    given,
    resolve,
    rows,
)
from trnspec.evaluation.sweeps import sections
from trnspec.graph.graph import Graph
from trnspec.loading.pipeline import link, load_document
from trnspec.loading.settings import Settings
from trnspec.model.document import Node
from trnspec.model.scenarios import Scenarios
from trnspec.output.reporters.evaluation import cells, refusal
from trnspec.text_table import Block, TextTable, csv, table
from trnspec.yaml import read_file


def _two_names(ctx: click.Context, param: click.Parameter, value: tuple[str, str] | None) -> tuple[str, str] | None:  # noqa: ARG001  # click passes it
    """The names of ``--diff``, which takes an option after one name for the other name."""
    if value is not None and (options := [name for name in value if name.startswith("-")]):
        raise UsageError(f"--diff takes the names of two scenarios, not {options[0]!r}")
    return value


@documented(
    "run",
    ("trnspec run plan.yaml", "All scenarios in one table:"),
    ("trnspec run plan.yaml --diff now faster", "What changes from one scenario to another:"),
    ("trnspec run plan.yaml --only now --format csv", "One scenario, for a spreadsheet:"),
    ("trnspec run plan.yaml --format markdown", "All scenarios, for a design document:"),
)
@click.argument("file", type=click.Path())
@option("--only NAME,...", "Scenarios", "Evaluate only these scenarios; may be repeated.", multiple=True)
@option(
    "--diff A B",
    "Scenarios",
    "Print the inputs and the answers that differ between two scenarios, with the ratios B / A.",
    nargs=2,
    callback=_two_names,
)
@format_option
@table_options
@catalog_options
def command(  # one parameter for each option
    file: str,
    only: tuple[str, ...],
    diff: tuple[str, str] | None,
    format_: str,
    columns: str | None,
    sort: str | None,
    **options: Any,
) -> None:
    """Evaluate the scenarios of FILE, and compare them in one table.

    FILE is a document of the kind Scenarios: named evaluations, each with an evaluator, inputs, assumed figures, and
    possibly a base scenario from which it inherits. An input that is left out has its default. Exit status 1: no
    scenario has an answer. Exit status 2: wrong usage, or an invalid file.
    """
    if diff and only:
        raise UsageError("--diff names the scenarios to evaluate; it cannot be combined with --only")
    if (columns or sort) and (diff or format_ == "json"):
        raise UsageError(
            "--columns and --sort choose what the table of scenarios shows; --diff and JSON have everything"
        )
    if diff and diff[0] == diff[1]:
        raise UsageError(f"--diff compares two scenarios, not {diff[0]} with itself")
    catalog = load_catalog(**options)
    node = _document(file, catalog)
    names = list(diff) if diff else [name.strip() for text in only for name in text.split(",")]
    outcomes = [_outcome(node, name, catalog) for name in dict.fromkeys(names or node.spec.scenarios)]
    chosen = {name: value for name, value in options.items() if value is not None}
    if diff:
        _diff(node, outcomes, catalog.graph, format_, chosen)
    elif format_ == "json":
        _json(node, outcomes, chosen)
    elif format_ == "csv":
        click.echo(csv(ranked(_flat(outcomes), sort).selected(columns)), nl=False)
    else:
        compared, common = rows(outcomes, catalog.graph)
        head = _head(node, common, chosen)
        print_sections(sections(compared, head, columns=columns, sort=sort), format_)
    if all(isinstance(outcome.result, RefusalError) for outcome in outcomes):
        click.get_current_context().exit(1)


def _document(file: str, catalog: Catalog) -> Node[Scenarios]:
    """The scenarios of a file; the findings of an invalid one go to standard error, and the command ends."""
    known = registry()
    loaded = load_document(read_file(file), known)
    node = loaded.node
    linked, problems = link([loaded])
    diagnostics = [d for d, _ in document_errors(problems, linked, known, Settings()) if d.severity is Severity.ERROR]
    if node is not None and not isinstance(node.spec, Scenarios):
        place = loaded.document.place(("kind",))
        raise UsageError(f"{file}:{place.line}:{place.column}: the kind is {node.kind}; trnspec run expects Scenarios")
    if node is not None:
        diagnostics += check_node(invalid_scenario, node, catalog.graph, known)
    if node is None or diagnostics:
        report = Report(tuple(diagnostics), files=1, codes=tuple(known.codes.values()))
        report_findings(report, {loaded.document.file: loaded.document.text})
        click.get_current_context().exit(2)
    return node


def _outcome(node: Node[Scenarios], name: str, catalog: Catalog) -> ScenarioOutcome:
    scenario = resolve(node.spec, name)
    try:
        with redirect_stdout(sys.stderr):
            return ScenarioOutcome(name, scenario, run(*evaluator(scenario.evaluator or ""), catalog, given(scenario)))
    except RefusalError as refusal:
        return ScenarioOutcome(name, scenario, refusal)
    except TrnspecError as error:
        place = node.document.place(("spec", "scenarios", name), key=True)
        where = f"{node.document.file}:{place.line}:{place.column}"
        raise UsageError(f"{where}: the scenario {name}: {error}") from error


def _head(node: Node[Scenarios], common: Mapping[str, Any], chosen: Mapping[str, str]) -> str:
    """Heading of all scenarios: title, shared inputs, catalog."""
    shared = [f"{name} {measure(value)}" for name, value in common.items() if value is not None]
    source = [f"{name.replace('_', ' ')} {value}" for name, value in chosen.items()]
    parts = [node.metadata.title, f"all: {', '.join(shared)}" if shared else "", ", ".join(source)]
    return "; ".join(filter(None, parts))


def _json(node: Node[Scenarios], outcomes: Sequence[ScenarioOutcome], chosen: Mapping[str, str], **more: Any) -> None:
    scenarios: list[dict[str, Any]] = []
    for outcome in outcomes:
        given, found = outcome.scenario, outcome.result
        row: dict[str, Any] = {"name": outcome.name, "evaluator": given.evaluator, "inputs": given.inputs}
        row |= {"assume": given.assume, "use_claims": given.use_claims}
        row |= {"refusal": refusal(found)} if isinstance(found, RefusalError) else {"evaluation": found.to_dict()}
        scenarios.append(row)
    about = {"name": node.name, "title": node.metadata.title, "catalog": chosen, "scenarios": scenarios}
    click.echo(versioned_json({**about, **more}))


def _flat(outcomes: Sequence[ScenarioOutcome]) -> TextTable:
    """One row for each scenario: what it gives, the answers in base units, and why there are none."""
    records = []
    for outcome in outcomes:
        scenario, result = outcome.scenario, outcome.result
        row = {"scenario": outcome.name, "evaluator": scenario.evaluator, **flat(scenario.inputs)}
        row["assume"] = "; ".join(f"{path}={value}" for path, value in scenario.assume.items())
        for group in () if isinstance(result, RefusalError) else cells(result).values():
            row |= group
        records.append(row)
    inputs = dict.fromkeys(name for o in outcomes for name in o.scenario.inputs)
    heads = dict.fromkeys(["scenario", "evaluator", *inputs, "assume", *(h for row in records for h in row)])
    return answer_table(list(heads), records, [o.result for o in outcomes], {"scenario"})


def _diff(
    node: Node[Scenarios], outcomes: Sequence[ScenarioOutcome], graph: Graph, format_: str, chosen: Mapping[str, str]
) -> None:
    one, other = outcomes
    names = (one.name, other.name)
    inputs = changed_inputs(one, other, graph)
    answers, equal = changed_answers(one, other)
    if format_ == "json":
        data = {"inputs": list(map(asdict, inputs)), "answers": list(map(asdict, answers)), "equal": equal}
        _json(node, outcomes, chosen, diff={"of": names, **data})
        return
    if format_ == "csv":
        rows = [
            (what, d.name, d.unit, *d.values, d.ratio)
            for what, ds in (("input", inputs), ("answer", answers))
            for d in ds
        ]
        click.echo(csv(table(["of", "name", "unit", *names, "ratio"], rows)), nl=False)
        return
    tables = [difference_table(what, names, ds) for what, ds in (("input", inputs), ("answer", answers)) if ds]
    notes = [
        f"{o.name} has no answer: {o.result.reason}: {o.result}" for o in outcomes if isinstance(o.result, RefusalError)
    ]
    if equal:
        notes.append(f"Equal: {', '.join(equal)}.")
    if not inputs:
        notes.insert(0, "The inputs are equal.")
    head = f"{node.metadata.title}: {names[0]} and {names[1]}"
    blocks: list[Block] = [head, *tables, *notes]
    print_sections([("", block) for block in blocks], format_)
