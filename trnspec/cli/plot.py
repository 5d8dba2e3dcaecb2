"""``trnspec plot``: charts of evaluations, and of the catalog."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from pathlib import Path as FilePath
from typing import Any, TypeVar

import click

from trnspec.api import evaluate
from trnspec.atomic_write import write
from trnspec.catalog.charts import ComparisonRow, comparison
from trnspec.catalog.charts import history as drawn
from trnspec.cli.common import catalog_options, graph_for, load_catalog
from trnspec.cli.compare import compared, in_one_unit, ratio_of
from trnspec.cli.compare import rows as compared_rows
from trnspec.cli.complete import documents, figure_of_document
from trnspec.cli.help import CommandGroup, NamedPath, documented, option
from trnspec.cli.show import importance
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation import charts
from trnspec.evaluation.charts import chart, sweep_chart
from trnspec.evaluation.figure_path import figure_path
from trnspec.evaluation.result import Evaluation
from trnspec.evaluation.sweeps import Row
from trnspec.graph.facts import facts
from trnspec.graph.graph import Graph
from trnspec.model.document import Node
from trnspec.output.exporters.svg import Groups, export
from trnspec.perf.lowering.lower import lower
from trnspec.plots.chart import Chart, check
from trnspec.text_table import Number

F = TypeVar("F", bound=Callable[..., Any])


@click.group("plot", cls=CommandGroup)
def command() -> None:
    """Draw a chart as SVG, PNG or PDF: the end of the name of FILE decides.

    Charts of evaluations read what trnspec eval EVALUATOR --format json printed; trnspec eval EVALUATOR --plot FILE draws
    the chart of the evaluator at once. Charts need the extra plot: pip install 'trnspec[plot]'. The same input gives the same bytes
    with one version of matplotlib.
    """


def _output(function: F) -> F:
    file = NamedPath(dir_okay=False)
    output = option("--output -o FILE", "Output", "Write to FILE: .svg, .png or .pdf.", type=file, required=True)
    return output(option("--dark", "Output", "Light on dark.")(function))


def _chart(name: str, *examples: tuple[str, str], **more: Any) -> Callable[[Callable[..., Chart]], click.Command]:
    """Decorator of a function that makes a chart: the command that draws it to the file of :func:`_output`."""

    def command_of(make: Callable[..., Chart]) -> click.Command:
        @documented(name, *examples, of=command, **more)
        @wraps(make)
        def draw(*, output: FilePath, dark: bool, **given: Any) -> None:
            check(output)
            make(**given).save(output, dark=dark)
            click.echo(f"wrote {output}", err=True)

        return draw

    return command_of


# Charts of evaluations.


_CHARTS = {
    "breakdown": (
        "eval training",
        "training",
        "Time by part: stacked bars of one or several evaluations, or of a sweep.",
    ),
    "memory": ("eval training", "training", "Memory of a rank by part, and its capacity."),
    "pareto": ("plan train", "plans", "Plans of a training run: time against cost."),
    "serving": (
        "plan serve",
        "fleet",
        "Percentiles of TTFT and TPOT of a plan against the request rate; of inference, throughput against TPOT.",
    ),
    "accuracy": ("eval accuracy", "errors", "Computed over measured values, by set of measurements."),
}
"""The charts of evaluations: the command whose JSON they read, the name of the file in examples, and the summary."""


def _of_evaluations(kind: str, evaluator: str, file: str, summary: str) -> None:
    """Adds the command of a chart of evaluations."""
    examples = (
        (
            f"trnspec plot {kind} {file}.json --output {kind}.svg",
            f"From what trnspec {evaluator} --format json printed:",
        ),
        (f"trnspec plot {kind} {file}.json --output {kind}.png --dark", "Light on dark:"),
    )
    text = f"{summary}\n\nFILE is what trnspec {evaluator} --format json printed; - is standard input."

    @_chart(kind, *examples, help=text, short_help=summary)
    @click.argument("files", nargs=-1, required=True, metavar="FILE...")
    @_output
    def plot(files: tuple[str, ...]) -> Chart:
        read = [_read(file, evaluator) for file in files]
        rows = [row for some in read for row in some]
        return sweep_chart(rows, kind) if len(read) == 1 and len(rows) > 1 else chart([e for _, e in rows], kind)  # type: ignore[misc]


for _kind, _about in _CHARTS.items():
    _of_evaluations(_kind, *_about)


def _read(file: str, evaluator: str) -> list[Row]:
    """The evaluations in a file: one, or the rows of a sweep.

    Raises:
        UsageError: The file does not have the output of ``trnspec eval --format json``.
    """
    expected = f"{file}: the output of trnspec {evaluator} --format json is expected"
    try:
        text = sys.stdin.read() if file == "-" else FilePath(file).read_text(encoding="utf-8")
        data = json.loads(text)
        if not isinstance(data, Mapping):
            raise UsageError(f"{expected}, not {type(data).__name__}")  # what the user gave
        if "refusal" in data:
            raise UsageError(f"{file}: {data['refusal']['message']}")
        if "swept" not in data:
            return [({}, Evaluation.from_dict(data))]
        return [
            (
                row["combination"],
                RefusalError(row["refusal"]["reason"], row["refusal"]["message"])
                if "refusal" in row
                else Evaluation.from_dict(row),
            )
            for row in data["rows"]
        ]
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UsageError(f"{expected} ({type(error).__name__}: {error})") from error


@_chart(
    "roofline",
    ("trnspec plot roofline trainium1 trainium2 trainium3 --output roofline.svg", "Three chips:"),
    (
        "trnspec plot roofline trainium2 --model llama-3.1-8b --phase decode --batch 16 --output decode.png",
        "Where the parts of a model are:",
    ),
    ("trnspec plot roofline trainium2 --dtype fp8 --output fp8.svg", "Another compute dtype:"),
    ("trnspec plot roofline trainium2 --edition 2026.11 --output edition.svg", "Figures of an edition:"),
)
@click.argument("chips", nargs=-1, required=True, metavar="CHIP...", shell_complete=documents())
@option("--model MODEL", "Workload", "Draw the parts of this model.")
@option(
    "--phase", "Workload", "Phase of the model.", type=click.Choice(["train", "prefill", "decode"]), default="prefill"
)
@option("--batch SEQUENCES", "Workload", "Batch size.", type=click.IntRange(1), default=1)
@option("--seq TOKENS", "Workload", "Sequence length.", type=click.IntRange(1), default=4096)
@option("--dtype DTYPE", "Workload", "Compute dtype.", default="bf16")
@_output
@catalog_options
def roofline(
    chips: tuple[str, ...],
    *,
    model: str | None,
    phase: str,
    batch: int,
    seq: int,
    dtype: str,
    **options: Any,
) -> Chart:
    """Attainable rate against arithmetic intensity.

    Values are those of trnspec eval roofline. With --model, the parts of the model are dots on the line of each chip.
    """
    catalog = load_catalog(**options)
    workload = {} if model is None else {"model": model, "phase": phase, "batch": batch, "seq": seq}
    return chart([evaluate("roofline", catalog, on=c, dtype=dtype, **workload) for c in dict.fromkeys(chips)])


# Charts of the catalog.


@_chart(
    "heatmap",
    ("trnspec plot heatmap sweep.json --answer mfu --output mfu.svg", "From a sweep over two inputs:"),
    ("trnspec plot heatmap sweep.json --x pp --y zero --output times.png", "The first answer, with chosen axes:"),
    ("trnspec plot heatmap sweep.json --answer throughput --output throughput.svg", "Another answer:"),
    ("trnspec plot heatmap sweep.json --output times.svg --dark", "On a dark background:"),
)
@click.argument("file")
@option("--answer NAME", "Chart", "The answer; by default the first.")
@option("--x INPUT", "Chart", "The input of the columns.")
@option("--y INPUT", "Chart", "The input of the rows.")
@_output
def heatmap(file: str, answer: str | None, x: str | None, y: str | None) -> Chart:
    """An answer of a sweep over two inputs, as a grid of cells.

    FILE is what trnspec eval EVALUATOR --format json printed for a sweep; - is standard input.
    """
    return charts.heatmap(_read(file, "eval training"), answer, x, y)


@_chart(
    "timeline",
    ("trnspec plot timeline step.json --output step.svg", "From a trace:"),
    ("trnspec plot timeline step.json --output step.png --dark", "Light on dark:"),
)
@click.argument("file")
@_output
def timeline(file: str) -> Chart:
    """A training step by pipeline stage, with its bubbles.

    FILE is what trnspec eval training --trace wrote; - is standard input.
    """
    try:
        data = json.loads(sys.stdin.read() if file == "-" else FilePath(file).read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{file}: {error}") from error
    return charts.timeline(data)


@_chart(
    "history",
    ("trnspec plot history trainium1.memory.bandwidth --output bandwidth.svg", "What sources state, by date:"),
    ("trnspec plot history trainium1 peak.dense.bf16 --output bf16.pdf", "Document and path as two arguments:"),
    ("trnspec plot history trainium1.peak.dense.bf16 --as-of 2024-03 --output old.svg", "Until a date:"),
    ("trnspec plot history trainium2.memory.bandwidth --output dark.svg --dark", "On a dark background:"),
)
@click.argument("figure", shell_complete=figure_of_document)
@click.argument("path", required=False)
@_output
@catalog_options
def history(figure: str, path: str | None, **options: Any) -> Chart:
    """Values of a FIGURE by source and date, a marker for each verdict.

    FIGURE is a document and a path, such as trainium2.memory.bandwidth; PATH may be an argument of its own, as for trnspec
    source.
    """
    graph = load_catalog(**options).graph
    place = figure_path(graph, figure if path is None else f"{figure}.{path}")
    return drawn(graph, place.node, place.at)


_MOST = 10
"""Figures of a comparison that are drawn by default."""


@_chart(
    "compare",
    ("trnspec plot compare trainium1 trainium2 trainium3 --output chips.svg", "Three chips, relative to the first:"),
    ("trnspec plot compare trainium1 trainium2 --full --output all.png", "Every figure that differs:"),
    ("trnspec plot compare trainium1 trainium2 --baseline trainium2 --output b.svg", "Relative to the second:"),
    ("trnspec plot compare trn1.32xlarge trn2.48xlarge --output servers.pdf", "Two servers:"),
)
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=documents())
@option("--baseline NAME", "Output", "The document that ratios refer to.")
@option("--full", "Output", f"Draw every figure; by default the {_MOST} most important that differ.")
@_output
@catalog_options
def compare(names: tuple[str, ...], baseline: str | None, *, full: bool, **options: Any) -> Chart:
    """Ratios of documents to a baseline, the first NAME by default; figures that are equal are not drawn."""
    graph = graph_for(*names, **options)
    nodes, base = compared(graph, names, baseline)
    most = None if full else _MOST
    return comparison([n.name for n in nodes], base, _compared(graph, nodes, base), _sources(graph, nodes), most)


def _compared(graph: Graph, nodes: Sequence[Node[Any]], base: int) -> list[ComparisonRow]:
    result: list[ComparisonRow] = []
    every = compared_rows(graph, nodes)
    aligned = {at for row in every for at in row.aligns}
    for row in sorted((r for r in every if r.at not in aligned), key=lambda r: importance(r.at)):
        unit, cells = in_one_unit(row)
        ratios = [ratio_of(value, row.values[base]) for value in row.values]
        text = " | ".join(
            "-" if cell is None else cell.text if isinstance(cell, Number) else str(cell) for cell in cells
        ) + (f" {unit}" if unit else "")
        ends = [
            None if r is None else (r.value, (float(r.interval.low), None if r.interval.high is None else float(r.interval.high)))
            for r in ratios
        ]  # fmt: skip
        result.append((row.at, text, ends))
    return result


def _sources(graph: Graph, nodes: Sequence[Node[Any]]) -> list[str]:
    stated = {(f.source, f.as_of) for node in nodes for f in facts(graph, node) if f.source}
    return [f"{name} ({date})" if date else name for name, date in sorted(stated)]


@documented(
    "topology",
    ("trnspec plot topology trn2.48xlarge --output fabric.svg", "The fabric of a server:"),
    (
        "trnspec plot topology trn2.48xlarge --highlight tp=16 --output groups.svg",
        "The same, with groups of 16 tensor-parallel ranks:",
    ),
    ("trnspec plot topology trn2-ultraserver --output ultraserver.svg", "The fabric of an UltraServer:"),
    ("trnspec plot topology trn1.32xlarge --edition 2026.11 --output old.svg", "The fabric in an edition:"),
    of=command,
)
@click.argument("name", shell_complete=documents())
@option(
    "--highlight tp=RANKS",
    "Output",
    "Draw the chips of each tensor-parallel group in one colour; consecutive ranks are a group.",
)
@option("--output -o FILE", "Output", "Write to FILE: .svg.", type=NamedPath(dir_okay=False), required=True)
@catalog_options
def topology(name: str, highlight: str | None, output: FilePath, **options: Any) -> None:
    """Fabric of a server or an UltraServer, as trnspec export svg draws it.

    SVG only; colours follow the light or dark mode of the viewer. It does not need the extra plot.
    """
    if output.suffix.lower() != ".svg":
        raise UsageError(f"{output.name}: a topology is drawn as .svg only")
    graph = graph_for(name, **options)
    groups = None if highlight is None else _groups(graph, name, highlight)
    write({output: export(graph.named(name), graph, groups).text.encode()})
    click.echo(f"wrote {output}", err=True)


def _groups(graph: Graph, name: str, text: str) -> Any:
    degree, _, ranks = text.partition("=")
    if degree.strip() != "tp" or not ranks.strip().isdecimal() or not int(ranks):
        raise UsageError(f"--highlight: tp=RANKS is expected, such as tp=16, not {text!r}")
    system, count = lower(graph, name), int(ranks)
    if count > system.ranks or system.ranks % count:
        raise UsageError(f"--highlight: {count} does not divide the {system.ranks:,} ranks of {name}")
    chips = count / system.ranks_per_chip
    return Groups(chips, f"tensor-parallel groups of {count} ranks ({chips:g} chips), one colour each; colours repeat")
