"""The request of one evaluation command: inputs, catalog, analysis and output, and the options of the analysis."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path as FilePath
from typing import Any

import click
from attrs import evolve, frozen

from trnspec.atomic_write import write
from trnspec.catalog.catalog import Catalog
from trnspec.cli.complete import figure_of_document
from trnspec.cli.help import new_option
from trnspec.cli.progress import bar
from trnspec.errors import UsageError
from trnspec.evaluation.progress import reported
from trnspec.evaluation.result import Evaluation
from trnspec.evaluation.runner import as_mapping, run, traced
from trnspec.evaluation.sweeps import figure_axes, from_options, with_figures
from trnspec.plugins.api import Evaluator


def analysis_options(*, traced: bool) -> list[click.Option]:
    """The options of figures that are assumed or vary, sensitivities and a target; ``--trace`` where there is a trace."""
    added = [
        new_option("--assume --set PATH=VALUE assume", "Assumptions", "Assume a figure, such as 'trainium2.memory.bandwidth=3 TB/s'; "
                   "repeatable.", multiple=True, shell_complete=figure_of_document),
        new_option("--use-claims", "Assumptions", "Evaluate a figure that is not published at every value that a source "
                   "claims for it."),
        new_option("--sensitivity [ANSWER]", "Analysis", "Add a table of elasticities of an answer, by default the first: its change "
                   "in percent when a figure or a calibrated parameter grows by 1 %.", is_flag=False, flag_value=""),
        new_option("--target ANSWER=VALUE", "Analysis", "Find the value of --vary at which an answer has this value: 'step_time=20 s'."),
        new_option("--vary PATH[=VALUE,...]", "Analysis", "A figure that has several values, each of which makes rows of a sweep: "
                   "trainium2.memory.bandwidth=2..4TB/s:+1; without values, the figure or calibrated parameter that --target "
                   "changes. Repeatable.", multiple=True, shell_complete=figure_of_document),
        new_option("--trace FILE", "Analysis", "Also write a timeline in the Chrome trace event format, for Perfetto; as FILE.et "
                   "execution traces by Chakra of every rank, with groups, network and system for astra-sim."),
    ]  # fmt: skip
    return added if traced else added[:-1]


@frozen(kw_only=True)
class EvalRequest:
    """An evaluation request from the command line.

    Attributes:
        evaluator: The evaluator.
        provider: The plugin that provides it.
        catalog: The catalog.
        given: The inputs that have one value.
        varied: The inputs and figures that have several values.
        options: The options that chose the catalog.
        table: The title of the table for CSV, or a part of it; nothing for the default.
        columns: The columns to print; nothing for all of them.
        sort: The column of a sweep to sort by.
        full: The page in full.
        plot: The file of the chart; nothing for none.
        assume: ``PATH=VALUE``.
        use_claims: Whether missing figures are evaluated at the values that are claimed for them.
        sensitivity: The name of an answer, empty for the first; ``None`` for no table.
        target: ``ANSWER=VALUE``.
        vary: The figure that the target changes, and figures with their values, ``PATH=VALUE,...``.
        trace: The file of the timeline.
    """

    evaluator: Evaluator
    provider: str
    catalog: Catalog
    given: Mapping[str, Any]
    varied: Mapping[str, Sequence[Any]] = {}
    options: Mapping[str, str] = {}
    table: str | None = None
    columns: str | None = None
    sort: str | None = None
    full: bool = False
    plot: str | None = None
    assume: tuple[str, ...] = ()
    use_claims: bool = False
    sensitivity: str | None = None
    target: str | None = None
    vary: tuple[str, ...] = ()
    trace: str | None = None

    def check(self, format_: str) -> None:
        """Check options against each other.

        Raises:
            UsageError: Options exclude or need each other.
        """
        swept = bool(self.varied) or any("=" in text for text in self.vary)
        if format_ == "json" and (self.columns or self.sort):
            raise UsageError("--columns and --sort choose what a table shows; --format json has everything")
        if self.sort and not swept:
            raise UsageError("--sort sorts a sweep; give an input several values, such as --tp 8,16")
        if len(self._solved) != (self.target is not None):
            if self.target is None:
                example = f"--vary {self._solved[0]}=1..4TB/s:x2"
                raise UsageError(
                    f"--vary needs values, such as {example}, or --target, such as --target 'step_time=20 s'"
                )
            raise UsageError("--target needs one --vary without values: --target 'step_time=20 s' --vary NAME.PATH")
        if self.target is not None and self.sensitivity is not None:
            raise UsageError("--target and --sensitivity exclude each other")
        if swept and self.sensitivity is not None and format_ not in ("csv", "json"):
            raise UsageError("--sensitivity is a table for each combination; use --format csv or json, or no sweep")
        if self.trace is not None and (swept or self.target is not None):
            what = "--target" if self.target is not None else "an input with several values"
            raise UsageError(f"--trace writes the timeline of one evaluation; it cannot be combined with {what}")

    @property
    def context(self) -> dict[str, Any]:
        """The options that suggested commands repeat."""
        assume = {"assume": self.assume} if self.assume else {}
        return {**self.options, **assume, **({"use_claims": True} if self.use_claims else {})}

    @property
    def catalog_note(self) -> str:
        """Changes of the catalog, for the page."""
        text = f" in {self.options['catalog']}" if "catalog" in self.options else ""
        return text + (f", with {self.options['overlay']} applied" if "overlay" in self.options else "")

    @property
    def shown(self) -> dict[str, str]:
        """Parts of the heading of a sweep: catalog, assumptions, a target."""
        shown = {"assume": "; ".join(self.assume), "use_claims": "yes" if self.use_claims else ""}
        shown |= {"target": self.target or "", "vary": "; ".join(self._solved)}
        return {name.replace("_", " "): text for name, text in {**self.options, **shown}.items() if text}

    @property
    def _solved(self) -> tuple[str, ...]:
        """The figures to vary that have no values."""
        return tuple(text for text in self.vary if "=" not in text)

    def axes(self) -> dict[str, list[Any]]:
        """The figures that vary, with their values.

        Raises:
            UsageError: A path or a value is invalid.
        """
        texts = [text for text in self.vary if "=" in text]
        if not texts:
            return {}
        return figure_axes(self.catalog.graph, from_options(texts), as_mapping(self.assume))

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs that every evaluator takes in addition to its own.

        Raises:
            UsageError: An assumption is not ``PATH=VALUE``.
        """
        assume = {"assume": as_mapping(self.assume)} if self.assume else {}
        return assume | ({"use_claims": True} if self.use_claims else {})

    def evaluation(self, combination: Mapping[str, Any] = {}) -> Evaluation:
        """The evaluation of one combination of a sweep, with the analysis; what it prints goes to standard error."""
        with redirect_stdout(sys.stderr), bar() as advance, reported(advance):
            return self._evaluation(combination)

    def _evaluation(self, combination: Mapping[str, Any]) -> Evaluation:
        inputs = with_figures({**self.given, **self.inputs}, combination)
        arguments = (self.evaluator, self.provider, self.catalog, inputs)
        if self.target is not None:
            from trnspec.evaluation.analysis import solve

            return solve(*arguments, self.target, *self._solved)
        if self.sensitivity is not None:
            from trnspec.evaluation.analysis import sensitivity

            evaluation, table = sensitivity(*arguments, self.sensitivity)
            result = evolve(evaluation, tables=(*evaluation.tables, table))
        else:
            result = run(*arguments)
        if self.trace is not None and self.trace.endswith(".et"):
            files = traced(*arguments, "execution trace")
            _write({f"{self.trace.removesuffix('et')}{name}": content for name, content in files.items()})
        elif self.trace is not None:
            _write({self.trace: _as_json(traced(*arguments, "timeline"))})
        return result


def _as_json(data: Mapping[str, Any]) -> bytes:
    """A timeline, one event per line."""
    events = ",\n".join(json.dumps(event) for event in data["traceEvents"])
    others = json.dumps({k: v for k, v in data.items() if k != "traceEvents"})
    return f'{others[:-1]}{", " if len(others) > 2 else ""}"traceEvents": [\n{events}\n]}}\n'.encode()


def _write(files: Mapping[str, bytes]) -> None:
    try:
        write({FilePath(name): content for name, content in files.items()})
    except OSError as error:
        file = error.filename or next(iter(files))
        raise UsageError(f"--trace: {file} cannot be written: {error.strerror or error}") from error
