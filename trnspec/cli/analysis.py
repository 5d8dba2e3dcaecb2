"""The options that every evaluator has: figures that are assumed or vary, sensitivities, a target, and a trace."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from attrs import evolve, frozen

from trnspec.cli.complete import figure_of_document
from trnspec.cli.help import new_option
from trnspec.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import click

    from trnspec.catalog.catalog import Catalog
    from trnspec.evaluation.result import Evaluation
    from trnspec.plugins.api import Evaluator

_NAMES = ("assume", "use_claims", "sensitivity", "target", "vary", "trace")


def analysis_options(*, traced: bool) -> list[click.Option]:
    """The options; ``--trace`` only for an evaluator that has a trace."""
    added = [
        new_option("--assume --set PATH=VALUE assume", "Assumptions", "Assume a figure, such as 'trainium2.memory.bandwidth=3 TB/s'; "
                   "repeatable.", multiple=True, shell_complete=figure_of_document),
        new_option("--use-claims", "Assumptions", "Evaluate a figure that is not published at every value that a source "
                   "claims for it.", is_flag=True),
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


@frozen
class Analysis:
    """What one command computes beyond the evaluation.

    Attributes:
        assume: ``PATH=VALUE``.
        use_claims: Whether missing figures are evaluated at the values that are claimed for them.
        sensitivity: The name of an answer, empty for the first; ``None`` for no table.
        target: ``ANSWER=VALUE``.
        vary: The figure that the target changes, and figures with their values, ``PATH=VALUE,...``.
        trace: The file of the timeline.
    """

    assume: tuple[str, ...] = ()
    use_claims: bool = False
    sensitivity: str | None = None
    target: str | None = None
    vary: tuple[str, ...] = ()
    trace: str | None = None

    @classmethod
    def of(cls, options: dict[str, Any]) -> Analysis:
        """The analysis that the options of a command request; they are removed from the options."""
        return cls(**{name: options.pop(name) for name in _NAMES if name in options})

    def check(self, format_: str, *, swept: bool) -> None:
        """Checks options against each other.

        Raises:
            UsageError: Options exclude or need each other.
        """
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
    def table(self) -> str:
        """The beginning of the title of the table that ``--format csv`` prints; empty for the usual one."""
        return "sensitivity of " if self.sensitivity is not None else ""

    @property
    def repeated(self) -> dict[str, Any]:
        """The options that a suggested command repeats."""
        return ({"assume": self.assume} if self.assume else {}) | ({"use_claims": True} if self.use_claims else {})

    @property
    def shown(self) -> dict[str, str]:
        """What the heading of a sweep names: assumptions, a target."""
        shown = {"assume": "; ".join(self.assume), "use_claims": "yes" if self.use_claims else ""}
        shown |= {"target": self.target or "", "vary": "; ".join(self._solved)}
        return {name: text for name, text in shown.items() if text}

    @property
    def _solved(self) -> tuple[str, ...]:
        """The figures to vary that have no values."""
        return tuple(text for text in self.vary if "=" not in text)

    def axes(self, catalog: Catalog) -> dict[str, list[Any]]:
        """The figures that vary, with their values.

        Raises:
            UsageError: A path or a value is invalid.
        """
        texts = [text for text in self.vary if "=" in text]
        if not texts:
            return {}
        from trnspec.evaluation.assumptions import as_mapping
        from trnspec.evaluation.sweeps.axes import figure_axes, from_options

        return figure_axes(catalog.graph, from_options(texts), as_mapping(self.assume))

    @property
    def inputs(self) -> dict[str, Any]:
        """The inputs that every evaluator takes in addition to its own.

        Raises:
            UsageError: An assumption is not ``PATH=VALUE``.
        """
        from trnspec.evaluation.assumptions import as_mapping

        assume = {"assume": as_mapping(self.assume)} if self.assume else {}
        return assume | ({"use_claims": True} if self.use_claims else {})

    def run(
        self,
        evaluator: Evaluator,
        provider: str,
        catalog: Catalog,
        given: Mapping[str, Any],
        combination: Mapping[str, Any],
    ) -> Evaluation:
        """Runs an evaluator for one combination of a sweep, and the requested analysis."""
        from trnspec.evaluation.runner import run, traced
        from trnspec.evaluation.sweeps.axes import with_figures

        inputs = with_figures({**given, **self.inputs}, combination)
        if self.target is not None:
            from trnspec.evaluation.inverse import solve

            return solve(evaluator, provider, catalog, inputs, self.target, *self._solved)
        if self.sensitivity is not None:
            from trnspec.evaluation.sensitivity import sensitivity

            evaluation, table = sensitivity(evaluator, provider, catalog, inputs, self.sensitivity)
            result = evolve(evaluation, tables=(*evaluation.tables, table))
        else:
            result = run(evaluator, provider, catalog, inputs)
        if self.trace is not None and self.trace.endswith(".et"):
            files = traced(evaluator, provider, catalog, inputs, "execution trace")
            _write({f"{self.trace.removesuffix('et')}{name}": content for name, content in files.items()})
        elif self.trace is not None:
            _write({self.trace: _as_json(traced(evaluator, provider, catalog, inputs, "timeline"))})
        return result


def _as_json(data: Mapping[str, Any]) -> bytes:
    """A timeline, one event per line."""
    events = ",\n".join(json.dumps(event) for event in data["traceEvents"])
    others = json.dumps({k: v for k, v in data.items() if k != "traceEvents"})
    return f'{others[:-1]}{", " if len(others) > 2 else ""}"traceEvents": [\n{events}\n]}}\n'.encode()


def _write(files: Mapping[str, bytes]) -> None:
    from pathlib import Path as FilePath

    from trnspec.atomic_write import write

    try:
        write({FilePath(name): content for name, content in files.items()})
    except OSError as error:
        file = error.filename or next(iter(files))
        raise UsageError(f"--trace: {file} cannot be written: {error.strerror or error}") from error
