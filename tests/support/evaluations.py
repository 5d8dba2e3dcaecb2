"""Evaluators of an invented plugin, and tests and inputs of the built-in ones."""

import json
import math
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from tests.support.programs import Site, forked
from trnspec.builtin import plugin as builtin
from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError, UsageError
from trnspec.evaluation.inputs import bound, call, inputs
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, Suggestion, Table, command
from trnspec.evidence import UsedFigure
from trnspec.plugins.api import API, Evaluator, Plugin
from trnspec.testing import EvaluatorConformance

CALLS: list[dict[str, object]] = []


def sweep(
    catalog: Catalog,
    *,
    chip: str,
    times: int = 1,
    share: float = 1.0,
    dtype: Literal["bf16", "fp8"] = "bf16",
    double: bool = False,
    label: str | None = None,
    extra: tuple[int, ...] = (),
) -> Evaluation:
    """The time to read all device memory of a chip.

    It is capacity over bandwidth.

    Args:
        catalog: The catalog.
        chip: Which chip: ``trainium2``.
        times: How often
            it is read.
        share: How much of the bandwidth is reached.
        dtype: What is read.
        double: Read all twice.
        label: What to call it.
        extra: Further seconds.

    Raises:
        RefusalError: The bandwidth is not known.
    """
    CALLS.append({"chip": chip, "times": times, "share": share, "double": double, "label": label, "extra": extra})
    figures = catalog.chips[chip].figures
    if "memory.bandwidth" not in figures:
        raise RefusalError(
            "unknown-figure", f"{chip} states no bandwidth", place=f"{chip} spec.memory.bandwidth", hint="add it"
        )
    if times > 64:
        raise RefusalError("does-not-fit", f"{times} times are too many", place="times")
    capacity, bandwidth = figures["memory.capacity"], figures["memory.bandwidth"]
    ways = times * (2 if double else 1) / share
    time = float(capacity) / float(bandwidth) * ways
    ends = bandwidth.interval
    return Evaluation(
        evaluator="sweep",
        title=f"{chip}, {times} times",
        inputs={
            "chip": chip, "times": times, "share": share, "dtype": dtype, "double": double, "label": label,
            "extra": ", ".join(map(str, extra)),
        },
        answers=(
            Answer("time", time + sum(extra), "s", float(capacity) / float(ends.high) * ways + sum(extra),
                   float(capacity) / float(ends.low) * ways + sum(extra), "rounding of the bandwidth"),
            Answer("read", float(capacity) * times, "B"),
            Answer("fits", True),
            Answer("chips", 1),
        ),
        parts=(Part("time", "reading", time, "capacity over bandwidth"), Part("time", "extra", float(sum(extra)))),
        bottleneck="The bandwidth of the device memory.",
        assumptions=(Assumption("share", f"{share:g}", "the caller"),),
        figures_used=tuple(
            UsedFigure(chip, f.at, f.value.text, f.source_name or f"derived: {f.derived}", f.as_of, tuple(f"{r.says}, {r.verdict}" for r in f.conflicting))
            for f in (capacity, bandwidth)
        ),
        tables=(Table("Reads", ("read", "time"), tuple((n, time / times) for n in range(min(times, 2))), ("", "s")),),
    )  # fmt: skip


def _broken(**more: object) -> Evaluation:
    return Evaluation(**{"evaluator": "broken", "title": "broken", "answers": (Answer("time", 1.0, "s"),), **more})


class MuteError(Exception):
    """An error without a message that can be shown."""

    def __str__(self) -> str:
        raise ValueError


UNSOUND: dict[str, object] = {
    "builtins.dict; an Evaluation is expected": {"seconds": 1.0},
    "time is nan; a finite number": _broken(answers=(Answer("time", math.nan, "s"),)),
    "time is inf; a finite number": _broken(answers=(Answer("time", math.inf, "s"),)),
    "time is None; a finite number": _broken(answers=(Answer("time", None),)),
    "the interval of time is [0.0, inf]": _broken(answers=(Answer("time", 1.0, "s", 0.0, math.inf),)),
    "time is 1.0, which is outside its interval [2.0, 3.0]": _broken(answers=(Answer("time", 1.0, "s", 2.0, 3.0),)),
    "word has an interval and is not a number": _broken(answers=(Answer("word", "yes", "", 0.0, 1.0),)),
    "it answers time twice": _broken(answers=(Answer("time", 1.0, "s"), Answer("time", 1.0, "s"))),
    "the parts of time sum to 0.9": _broken(parts=(Part("time", "a", 0.5), Part("time", "b", 0.4))),
    "the parts of time are a nan": _broken(parts=(Part("time", "a", math.nan),)),
    "it has parts of cost, which is not one of its answers": _broken(parts=(Part("cost", "a", 1.0),)),
    "it has parts of fits, which is not a number": _broken(
        answers=(Answer("fits", True),), parts=(Part("fits", "a", 1.0),)
    ),
    "it has neither answers nor tables": _broken(answers=()),
    "its evaluator is 'other'": _broken(evaluator="other"),
    "its parts are not a tuple of Part": _broken(parts=[Part("time", "a", 1.0)]),
    "its title is not a text": _broken(title=None),
    "its figures_used have conflicting values that are not texts": _broken(
        figures_used=(UsedFigure("a", "b", "c", "d", conflicting=(1,)),)
    ),
    "TypeError: object of type 'int' has no len()": _broken(tables=(Table("T", ("a",), (5,)),)),
    "its tables are not a tuple of Table": _broken(tables=None),
    "its inputs are not a mapping": _broken(inputs=[1]),
    "unit and note of Answer(": _broken(answers=(Answer("time", 1.0, None, note=None),)),
    "at of UsedFigure(": _broken(figures_used=(UsedFigure("trainium2", None, "96 GiB", "x"),)),
    "count is 1000": _broken(answers=(Answer("count", 10**400),)),
    "the parts of time sum to inf": _broken(parts=(Part("time", "a", 1.7e308), Part("time", "b", 1.7e308))),
    "the table T has columns or units that are not texts": _broken(tables=(Table("T", (1,), ((1,),)),)),
    "its inputs have tp = nan": _broken(inputs={"tp": math.nan}),
    "the table T has 2 columns and 1 cells in row 1": _broken(tables=(Table("T", ("a", "b"), ((1,),)),)),
    "the table T has 1 columns and 2 units": _broken(tables=(Table("T", ("a",), ((1,),), ("s", "B")),)),
    "the table T has a value in row 2": _broken(tables=(Table("T", ("a",), ((1,), (math.inf,))),)),
}
"""Invalid results, by a part of the message."""

RAISED: dict[str, BaseException] = {
    "KeyError: 'no'": KeyError("no"), "ZeroDivisionError: division by zero": ZeroDivisionError("division by zero"),
    "SystemExit: 3": SystemExit(3), "GeneratorExit": GeneratorExit(),
    "RecursionError: two lines": RecursionError("two\nlines"), "MuteError: its message cannot be shown": MuteError(),
}  # fmt: skip
"""Errors of an evaluator, by a part of the message."""


def broken(catalog: Catalog, *, how: str) -> Evaluation:
    """It fails as requested.

    Args:
        catalog: The catalog.
        how: One of the keys above, or ``misuse``.
    """
    if how == "misuse":
        raise UsageError("that is not how it is used")
    if how in RAISED:
        raise RAISED[how]
    return UNSOUND[how]


def bare(catalog: Catalog) -> Evaluation:
    """It has no inputs, and prints."""
    print("nothing was asked")  # noqa: T201  # a plugin may print
    return Evaluation(
        evaluator="bare", title="bare", tables=(Table("T", ("a", "b"), ((1, 2.5), (2, None)), ("", "s")),)
    )


plugin = Plugin(
    name="samples",
    api=API,
    evaluators=(
        Evaluator("sweep", "The time to read all device memory.", "tests.support.evaluations:sweep"),
        Evaluator("broken", "It breaks.", broken),
        Evaluator("bare", "It asks for nothing.", bare),
        Evaluator("absent", "It is not there.", "trnspec_nowhere:run"),
    ),
)


def keywords(run):
    """The function of an evaluator with its inputs as keywords, checked as :func:`trnspec.evaluate` does."""
    return lambda catalog, **given: call(run, catalog, bound(inputs(run, "x"), given, "x"))


def parts(found: Evaluation, of: str) -> dict[str, float]:
    """The parts of an answer by name."""
    return {p.name: p.value for p in found.parts if p.of == of}


def assumed(found: Evaluation) -> dict[str, str]:
    """The values of assumptions by name."""
    return {a.name: a.value for a in found.assumptions}


def table(found: Evaluation, title: str) -> Table:
    """The table of a title."""
    return next(t for t in found.tables if t.title == title)


def install(folder, monkeypatch) -> Site:
    """The plugin above as an installed distribution ``trnspec-samples 1.0``, in this process too."""
    site = Site(folder)
    site.add("samples", "from tests.support.evaluations import plugin\n")
    monkeypatch.syspath_prepend(str(folder))
    return site


class BuiltinConformance(EvaluatorConformance):
    """The tests of a built-in evaluator: equal inputs are evaluated once, and its command runs in a fork of this process."""

    plugin = builtin
    _found: ClassVar[dict[str, Evaluation]] = {}

    def evaluate(self, given: Mapping[str, Any], catalog: Catalog | None = None) -> Evaluation:
        if catalog is not None:
            return super().evaluate(given, catalog)
        key = f"{self.name} {given}"
        if key not in self._found:
            self._found[key] = super().evaluate(given)
        return self._found[key]

    def test_answers_the_same_again(self) -> None:
        for given in self.good:
            assert self.evaluate(given) == super().evaluate(given), given

    def test_runs_from_the_command_line(self, tmp_path: Path) -> None:
        given = self.good[0]
        line = shlex.split(command(Suggestion(self.name, given), {}))[1:]
        done = forked("--no-plugins", *line, "--format", "json", cwd=tmp_path, path=tmp_path)

        assert (0, "") == (done.status, done.err)
        assert Evaluation.from_dict(json.loads(done.out)) == self.evaluate(given)
