"""The tools of the server, and the server on standard input and output."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

from trnspec._version import __version__
from trnspec.api import registry
from trnspec.errors import TrnspecError
from trnspec.mcp.arguments import declared, described, options
from trnspec.mcp.commands import answer

INSTRUCTIONS = (
    "A checked catalog of AWS Trainium chips, servers, UltraServers, links, models and prices, and performance models that "
    "use it. Every figure has a unit, an interval of its rounding, a source and a date; conflicting values of other sources "
    "are listed with a verdict. Quote a figure with its source and date. An evaluation has a kind of evidence: 'ideal' is a "
    "bound, 'estimate' comes from a calibration of this chip, 'extrapolated' lies outside its range, and 'transferred' comes "
    "from another chip; quote the interval with the value. Call evaluators before evaluate or plan to learn the inputs."
)

Name = Annotated[str, Field(description="Name or alias of a document: trainium2, trn2.48xlarge, llama-3.1-8b.")]
Inputs = Annotated[
    dict[str, Any],
    Field(
        description="Inputs by name, as the tool evaluators lists them: {'model': 'llama-3.1-8b', 'on': 'trn2.48xlarge', "
        "'tp': 8}. A list of values makes a sweep. 'set' assumes figures: ['trainium2.memory.bandwidth=3 TB/s']."
    ),
]


def find(
    query: Annotated[
        str,
        Field(
            description="KIND, or KIND where CONDITION: 'chip', 'server where memory.capacity > 1 TiB and network.bandwidth "
            ">= 1 Tbps'. Kinds: chip, core, server, ultraserver, cluster, link, model, price, source and others."
        ),
    ],
    columns: Annotated[
        list[str] | None,
        Field(description="Paths to return: ['name', 'memory.capacity', 'peak.dense.bf16 / memory.bandwidth']."),
    ] = None,
    sort: Annotated[list[str] | None, Field(description="Paths to sort by; '-path' descending.")] = None,
) -> dict[str, Any]:
    """Find documents of the catalog by a condition, with chosen figures in base units.

    Paths of a chip give the totals of servers and UltraServers. An unknown figure satisfies no comparison; such documents are
    under 'undecided'. 'figures' has interval, source and date of each value.
    """
    more = [f"--columns={','.join(columns)}"] if columns else []
    more += [f"--sort={','.join(sort)}"] if sort else []
    return answer(["query"], [query], options=more)


def show(
    name: Name,
    as_of: Annotated[str | None, Field(description="Only what was published by this date: '2025-06'.")] = None,
) -> dict[str, Any]:
    """Show every figure of one document with interval, source, date, conflicting values and their verdicts."""
    return answer(["show"], [name], options=[f"--as-of={as_of}"] if as_of else [])


def compare(
    names: Annotated[list[str], Field(description="Two to six documents; the first is the baseline.", min_length=2)],
) -> dict[str, Any]:
    """Compare documents side by side: each figure in base units with interval, source, date, and ratio to the first."""
    return answer(["compare"], names)


def check(
    name: Name,
    figure: Annotated[str, Field(description="Path of a figure: memory.bandwidth, peak.dense.bf16, chips.count.")],
    value: Annotated[str, Field(description="A quantity with its unit, or a count: '46 TB/s'.")],
) -> dict[str, Any]:
    """Check a value against the catalog: agrees, rounded or differs, by what factor, the likely causes, and all sources."""
    return answer(["check"], [name, figure, value])


def audit(
    name: Name,
    figure: Annotated[str | None, Field(description="Path of one figure; all figures if omitted.")] = None,
) -> dict[str, Any]:
    """Audit a document: where sources disagree, which value is adopted and why, and what is unresolved."""
    return answer(["audit"], [name, figure] if figure else [name])


def evaluators(
    name: Annotated[
        str | None, Field(description="One evaluator, with its inputs; all, without inputs, if omitted.")
    ] = None,
) -> dict[str, Any]:
    """List the evaluators, or the inputs of one: type, choices, unit, default and help text."""
    if name is None:
        return {"evaluators": [{"name": e.name, "summary": e.summary} for e in registry().evaluators.values()]}
    evaluator, known = declared(name)
    return {"name": name, "summary": evaluator.summary, "inputs": [described(one) for one in known]}


def evaluate(
    evaluator: Annotated[
        str, Field(description="training, inference, memory, search, roofline, collective or of a plugin.")
    ],
    inputs: Inputs,
) -> dict[str, Any]:
    """Run an evaluator: answers with interval and kind of evidence, parts, assumptions, and the figures used with sources."""
    _, known = declared(evaluator)
    return answer(["eval", evaluator], options=[*options(known, inputs)])


def plan(
    phase: Annotated[Literal["train", "serve"], Field(description="What is planned.")],
    inputs: Inputs,
) -> dict[str, Any]:
    """Plan a training run or a serving fleet: systems, counts and layouts by time and cost, with intervals.

    The inputs are those of the evaluators plan-train and plan-serve.
    """
    _, known = declared(f"plan-{phase}")
    return answer(["plan", phase], options=[*options(known, inputs)])


TOOLS = (find, show, compare, check, audit, evaluators, evaluate, plan)


def _reporting(tool: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """The tool, whose errors the client reads; those of other types are defects, which the library hides."""

    @wraps(tool)
    def call(**arguments: Any) -> dict[str, Any]:
        try:
            return tool(**arguments)
        except TrnspecError as error:
            raise ToolError(str(error)) from error

    return call


def server() -> MCPServer[Any]:
    """The server with its tools; none of them writes anything."""
    made: MCPServer[Any] = MCPServer("trnspec", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    for tool in TOOLS:
        made.add_tool(_reporting(tool), annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False))
    return made


def run() -> None:
    """Serves on standard input and output until the client closes them."""
    server().run("stdio")
