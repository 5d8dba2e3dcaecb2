"""Tests that every evaluator must pass; plugin authors import them from ``trnspec.testing``."""

from __future__ import annotations

import functools
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path as FilePath
from typing import Any, ClassVar

from attrs import evolve

from trnspec.api import load, plugins
from trnspec.builtin import plugin as builtin
from trnspec.catalog.catalog import Catalog
from trnspec.catalog.versions.changes import attempt
from trnspec.errors import RefusalError, TrnspecError
from trnspec.evaluation.inputs import bound, call, inputs
from trnspec.evaluation.result import Evaluation, Suggestion, command
from trnspec.evaluation.runner import run, unsound
from trnspec.plugins.api import Evaluator, Plugin, Registry

COUNTED = frozenset(
    (
        "batch", "chips", "cores", "count", "degree", "efficiency", "experts", "factor", "heads", "hops", "layers",
        "links", "mfu", "microbatches", "number", "parameters", "ranks", "ratio", "requests", "sequences", "servers",
        "share", "speedup", "stages", "steps", "tokens", "ultraservers", "utilization",
    )
)  # fmt: skip
"""Words in the name of an answer that has no unit: counts, and ratios of equal quantities."""

MISUSE = "misuse"
"""The reason in ``bad`` for inputs that are not valid."""

_SECONDS = 120


@functools.cache
def _catalog(plugin: Plugin, overlay: str | None) -> Catalog:
    known = Registry.of([builtin] if plugin is builtin else [builtin, plugin])
    return load(registry=known, overlay=overlay)


class EvaluatorConformance:
    """Tests that every evaluator must pass: subclass it in a test module, name the evaluator, run pytest.

    ```python
    class TestEnergy(EvaluatorConformance):
        plugin = plugin
        name = "energy"
        good = ({"on": "trn1.32xlarge", "hours": 24.0, "power": "500 W"},)
        bad = (({"on": "trn1.32xlarge", "hours": 24.0}, "unknown-figure"),)
    ```

    Attributes:
        plugin: The plugin that defines it.
        name: The name of the evaluator.
        good: Inputs with a result.
        bad: Inputs without one, each with the reason of the refusal, or ``misuse`` for inputs that are not valid.
        overlay: A YAML file with changes of the catalog, for figures that it does not have.
        dimensionless: Names of answers without a unit that contain no word of :data:`COUNTED`.
    """

    plugin: ClassVar[Plugin]
    name: ClassVar[str]
    good: ClassVar[Sequence[Mapping[str, Any]]]
    bad: ClassVar[Sequence[tuple[Mapping[str, Any], str]]] = ()
    overlay: ClassVar[str | os.PathLike[str] | None] = None
    dimensionless: ClassVar[Iterable[str]] = ()

    @property
    def catalog(self) -> Catalog:
        """The catalog: the shipped one and that of the plugin, with the overlay applied."""
        return _catalog(self.plugin, None if self.overlay is None else str(self.overlay))

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator under test."""
        result = [e for e in self.plugin.evaluators if e.name == self.name]
        assert result, f"the plugin {self.plugin.name} defines no evaluator {self.name}"
        return result[0]

    def evaluate(self, given: Mapping[str, Any], catalog: Catalog | None = None) -> Evaluation:
        """The result, checked as for every user."""
        return run(self.evaluator, self.plugin.name, self.catalog if catalog is None else catalog, given)

    def test_asks_for_what_the_command_line_can_give(self) -> None:
        """Every input has a type and a help text."""
        for each in inputs(self.evaluator.load(), self.name):
            assert each.help, f"{each.name} has no help text; describe it in Args: of the docstring"

    def test_answers(self) -> None:
        """Good inputs have results: finite, within their intervals, equal to the sum of their parts."""
        assert self.good, "name some good inputs"
        for given in self.good:
            function = self.evaluator.load()
            result = call(function, self.catalog, bound(inputs(function, self.name), given, self.name))

            assert list(unsound(result, self.name)) == [], given

    def test_says_what_was_asked(self) -> None:
        """The result lists every input that was given, and has a title."""
        for given in self.good:
            result = self.evaluate(given)

            assert result.title, given
            assert set(given) - set(result.inputs) == set(), f"missing in the inputs of the result for {given}"

    def test_answers_the_same_again(self) -> None:
        """Equal inputs have equal results, to the last bit."""
        for given in self.good:
            assert self.evaluate(given) == self.evaluate(given), given

    def test_numbers_have_units(self) -> None:
        """A number has a unit, or its name shows that it has none."""
        for given in self.good:
            result = self.evaluate(given)
            bare = {a.name for a in result.answers if not a.unit and not isinstance(a.value, (str, bool))}
            unitless = {n for n in bare if n in set(self.dimensionless) or COUNTED & set(n.split("_"))}

            assert bare - unitless == set(), f"{given}: give each a unit, or list it as dimensionless"

    def test_rests_on_figures_of_the_catalog(self) -> None:
        """The catalog figures used are in the catalog, with the same text."""
        for given in self.good:
            for used in self.evaluate(given).figures_used:
                figures = self.catalog[used.of].figures
                at = used.at.removeprefix("spec.")

                assert at not in figures or figures[at].value.text == used.says, f"{used.of} {at}"

    def test_refuses_rather_than_guesses(self) -> None:
        """Without a figure it used, it refuses, or has a result that does not use it; it never guesses."""
        for given in self.good:
            for used in self.evaluate(given).figures_used:
                catalog = self._without(used.of, used.at.removeprefix("spec."))
                if catalog is None:
                    continue
                result, refused, message = self._outcome(given, catalog)
                named = set() if result is None else {(b.of, b.at) for b in result.figures_used}

                assert refused != MISUSE, f"{given} without {used.of} {used.at}: raise RefusalError, not {message}"
                assert (used.of, used.at) not in named, f"{given}: {used.of} {used.at} is gone"

    def _without(self, name: str, at: str) -> Catalog | None:
        """The catalog without one figure; ``None`` for a figure that its kind requires."""
        catalog = self.catalog
        node = catalog.graph.named(name)
        changed, wrong = attempt(node, {at: None})
        assert not any(w.key for w in wrong), f"{name} has no {at}: {wrong}"
        return None if wrong else evolve(catalog, graph=catalog.graph.replace(node.name, changed.spec))

    def test_refuses_what_has_no_answer(self) -> None:
        """Bad inputs are rejected for the expected reason."""
        for given, reason in self.bad:
            result, refused, message = self._outcome(given)

            assert refused == reason, f"{given} should be rejected ({reason}): {message or result}"

    def _outcome(self, given: Mapping[str, Any], catalog: Catalog | None = None) -> tuple[Evaluation | None, str, str]:
        """The evaluation, or the reason of the refusal (or :data:`MISUSE`) and the message."""
        try:
            return self.evaluate(given, catalog), "", ""
        except RefusalError as error:
            return None, error.reason, str(error)
        except TrnspecError as error:
            return None, MISUSE, f"{type(error).__name__}: {error}"

    def test_goes_through_json(self) -> None:
        """An evaluation can be stored as JSON and read again."""
        for given in self.good:
            result = self.evaluate(given)
            text = json.dumps(result.to_dict(), allow_nan=False)

            assert Evaluation.from_dict(json.loads(text)) == result, given

    def test_runs_from_the_command_line(self) -> None:
        """The command of the evaluator gives the same result in a process of its own."""
        given = self.good[0]
        with tempfile.TemporaryDirectory() as folder:
            line = [sys.executable, "-m", "trnspec"]
            line += ["--no-plugins"] if self.plugin is builtin else ["--plugin", self.plugin.name]
            line += [*shlex.split(command(Suggestion(self.name, given), {}))[1:], "--format", "json"]
            line += [] if self.overlay is None else ["--overlay", str(FilePath(self.overlay).resolve())]
            path = os.pathsep.join([*_site(self.plugin, FilePath(folder)), *filter(None, sys.path)])
            done = subprocess.run(  # noqa: S603  # this Python, and options made here
                line,
                env={**os.environ, "PYTHONPATH": path},
                cwd=folder,
                capture_output=True,
                check=False,
                text=True,
                timeout=_SECONDS,
            )

        assert (done.returncode, done.stderr) == (0, "")
        assert Evaluation.from_dict(json.loads(done.stdout)) == self.evaluate(given)


def _site(plugin: Plugin, folder: FilePath) -> Iterator[str]:
    """A folder with an entry point, for a plugin that is not installed."""
    if plugin is builtin or any(r.name == plugin.name for r in plugins().records):
        return
    places = (
        f"{module}:{name}"
        for module, held in sorted(sys.modules.items())
        for name, value in list(vars(held).items())
        if value is plugin and not re.search(r"(^|\.)(tests?$|test_|conftest$)", module)
    )
    info = folder / f"trnspec_conformance_{plugin.name.replace('-', '_')}-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: trnspec-{plugin.name}\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[trnspec.plugins]\n{plugin.name} = {next(places)}\n")
    yield str(folder)
