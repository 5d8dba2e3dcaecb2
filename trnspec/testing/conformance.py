"""What every evaluator must keep, as tests; authors of plugins import it from ``trnspec.testing``."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any, ClassVar

from attrs import evolve

from trnspec.api import load, plugins
from trnspec.builtin import plugin as house
from trnspec.catalog.versions.changes import attempt
from trnspec.errors import TrnspecError
from trnspec.evaluation.inputs import bound, call, inputs
from trnspec.evaluation.result import Evaluation, RefusalError
from trnspec.evaluation.runner import run, unsound
from trnspec.plugins.api import Registry

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from trnspec.catalog.catalog import Catalog
    from trnspec.plugins.api import Evaluator, Plugin

COUNTED = frozenset(
    (
        "batch", "chips", "cores", "count", "degree", "efficiency", "experts", "factor", "heads", "hops", "layers",
        "links", "mfu", "microbatches", "number", "parameters", "ranks", "ratio", "requests", "sequences", "servers",
        "share", "speedup", "stages", "steps", "tokens", "ultraservers", "utilization",
    )
)  # fmt: skip
"""Words that tell of an answer without a unit that it has none: what is counted, and quotients of two alike."""

MISUSE = "misuse"
"""What ``bad`` expects where the question itself is wrong."""

_SECONDS = 120


@functools.cache
def _catalog(plugin: Plugin, overlay: str | None) -> Catalog:
    known = Registry.of([house] if plugin is house else [house, plugin])
    return load(registry=known, overlay=overlay)


class EvaluatorConformance:
    """What every evaluator must keep, as tests: subclass it in a test module, name the evaluator, run pytest.

    ```python
    class TestEnergy(EvaluatorConformance):
        plugin = plugin
        name = "energy"
        good = ({"on": "trn1.32xlarge", "hours": 24.0, "power": "500 W"},)
        bad = (({"on": "trn1.32xlarge", "hours": 24.0}, "unknown-figure"),)
    ```

    Attributes:
        plugin: The plugin that gives it.
        name: The name of the evaluator.
        good: Inputs that have an answer.
        bad: Inputs that have none, each with the reason of the refusal, or ``misuse`` where the question is wrong.
        overlay: A YAML file with changes to lay over the catalog, for figures that it does not have.
        dimensionless: Names of answers that have no unit, where their words do not tell.
    """

    plugin: ClassVar[Plugin]
    name: ClassVar[str]
    good: ClassVar[Sequence[Mapping[str, Any]]]
    bad: ClassVar[Sequence[tuple[Mapping[str, Any], str]]] = ()
    overlay: ClassVar[str | os.PathLike[str] | None] = None
    dimensionless: ClassVar[Iterable[str]] = ()

    @property
    def catalog(self) -> Catalog:
        """The catalog that is asked: that of trnspec and of the plugin, with the overlay."""
        return _catalog(self.plugin, None if self.overlay is None else str(self.overlay))

    @property
    def evaluator(self) -> Evaluator:
        """The evaluator under test."""
        found = [e for e in self.plugin.evaluators if e.name == self.name]
        assert found, f"the plugin {self.plugin.name} gives no evaluator {self.name}"
        return found[0]

    def evaluate(self, given: Mapping[str, Any], catalog: Catalog | None = None) -> Evaluation:
        """What it answers, checked as it is for everyone."""
        return run(self.evaluator, self.plugin.name, self.catalog if catalog is None else catalog, given)

    def test_asks_for_what_the_command_line_can_give(self) -> None:
        """Every input has a type, and the docstring tells what it is."""
        for each in inputs(self.evaluator.load(), self.name):
            assert each.help, f"the docstring does not tell what {each.name} is; add it to Args:"

    def test_answers(self) -> None:
        """There is an answer to every good question: finite, within its interval, and its parts sum to it."""
        assert self.good, "name some good inputs"
        for given in self.good:
            function = self.evaluator.load()
            found = call(function, self.catalog, bound(inputs(function, self.name), given, self.name))

            assert list(unsound(found, self.name)) == [], given

    def test_says_what_was_asked(self) -> None:
        """The question has every input that was given, and the title is there."""
        for given in self.good:
            found = self.evaluate(given)

            assert found.title, given
            assert set(given) - set(found.inputs) == set(), f"missing in the question of {given}"

    def test_answers_the_same_again(self) -> None:
        """The same question has the same answer, to the last bit."""
        for given in self.good:
            assert self.evaluate(given) == self.evaluate(given), given

    def test_numbers_have_units(self) -> None:
        """A number has a unit, or the words of its name tell that it has none."""
        for given in self.good:
            found = self.evaluate(given)
            bare = {a.name for a in found.answers if not a.unit and not isinstance(a.value, (str, bool))}
            told = {n for n in bare if n in set(self.dimensionless) or COUNTED & set(n.split("_"))}

            assert bare - told == set(), f"{given}: give each a unit, or list it as dimensionless"

    def test_rests_on_figures_of_the_catalog(self) -> None:
        """What it says of a figure is what the catalog says: the document is there, and prints that."""
        for given in self.good:
            for used in self.evaluate(given).figures_used:
                figures = self.catalog[used.of].figures
                at = used.at.removeprefix("spec.")

                assert at not in figures or figures[at].value.text == used.says, f"{used.of} {at}"

    def test_refuses_rather_than_guesses(self) -> None:
        """Without a figure that it rests on, it refuses, or answers without that figure; it never keeps what is gone."""
        for given in self.good:
            for used in self.evaluate(given).figures_used:
                catalog = self._without(used.of, used.at.removeprefix("spec."))
                if catalog is None:
                    continue
                found, refused, told = self._outcome(given, catalog)
                named = set() if found is None else {(b.of, b.at) for b in found.figures_used}

                assert refused != MISUSE, f"{given} without {used.of} {used.at}: raise RefusalError, not {told}"
                assert (used.of, used.at) not in named, f"{given}: {used.of} {used.at} is gone"

    def _without(self, name: str, at: str) -> Catalog | None:
        """The catalog without one figure; ``None`` where a document of its kind must have it."""
        catalog = self.catalog
        node = catalog.graph.named(name)
        made, wrong = attempt(node, {at: None})
        assert not any(w.key for w in wrong), f"{name} has no {at}: {wrong}"
        return None if wrong else evolve(catalog, graph=catalog.graph.replace(node.name, made.spec))

    def test_refuses_what_has_no_answer(self) -> None:
        """Each bad question is refused for the reason that is expected, in words."""
        for given, reason in self.bad:
            found, refused, told = self._outcome(given)

            assert refused == reason, f"{given} should be refused ({reason}): {told or found}"

    def _outcome(self, given: Mapping[str, Any], catalog: Catalog | None = None) -> tuple[Evaluation | None, str, str]:
        """The evaluation, or why there is none: the reason of the refusal, or :data:`MISUSE`, and the message."""
        try:
            return self.evaluate(given, catalog), "", ""
        except RefusalError as error:
            return None, error.reason, str(error)
        except TrnspecError as error:
            return None, MISUSE, f"{type(error).__name__}: {error}"

    def test_goes_through_json(self) -> None:
        """An evaluation comes back from JSON as it was."""
        for given in self.good:
            found = self.evaluate(given)
            text = json.dumps(found.to_dict(), allow_nan=False)

            assert Evaluation.from_dict(json.loads(text)) == found, given

    def test_runs_from_the_command_line(self) -> None:
        """``trnspec eval`` gives the same answers in a process of its own."""
        given = self.good[0]
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "trnspec"]
            command += ["--no-plugins"] if self.plugin is house else ["--plugin", self.plugin.name]
            command += ["eval", self.name, *_options(given), "--format", "json"]
            command += [] if self.overlay is None else ["--overlay", str(FilePath(self.overlay).resolve())]
            path = os.pathsep.join([*_site(self.plugin, FilePath(folder)), *filter(None, sys.path)])
            done = subprocess.run(  # noqa: S603  # this Python, and options made here
                command,
                env={**os.environ, "PYTHONPATH": path},
                cwd=folder,
                capture_output=True,
                check=False,
                text=True,
                timeout=_SECONDS,
            )

        assert (done.returncode, done.stderr) == (0, "")
        assert Evaluation.from_dict(json.loads(done.stdout)) == self.evaluate(given)


def _options(given: Mapping[str, Any]) -> Iterator[str]:
    """Inputs as a command line gives them; a comma within a text is not one between texts."""
    for name, value in given.items():
        word = name.replace("_", "-")
        if isinstance(value, bool):
            yield f"--{word}" if value else f"--no-{word}"
        elif value is not None:
            values = value if isinstance(value, (list, tuple)) else (value,)
            yield from (f"--{word}", ",".join(str(v).replace(",", "\\,") for v in values))


def _site(plugin: Plugin, folder: FilePath) -> Iterator[str]:
    """A folder with the entry point of a plugin that is not installed, so that the command line finds it."""
    if plugin is house or any(r.name == plugin.name for r in plugins().records):
        return
    places = (
        f"{module}:{name}"
        for module, held in sorted(sys.modules.items())
        for name, value in list(vars(held).items())
        if value is plugin and not re.search(r"(^|\.)(tests?$|tests?\.|test_)", module)
    )
    info = folder / f"trnspec_conformance_{plugin.name.replace('-', '_')}-0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: trnspec-{plugin.name}\nVersion: 0\n")
    (info / "entry_points.txt").write_text(f"[trnspec.plugins]\n{plugin.name} = {next(places)}\n")
    yield str(folder)
