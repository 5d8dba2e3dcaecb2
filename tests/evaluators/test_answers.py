"""trnspec.evaluators: what they answer in full, as data: values, intervals, notes, assumptions, tables, figures, refusals.

The calls are those of ``tests/evaluators/calls.py``, on the edition 2026.11.1, which does not change; those of plugins'
chips are on the present catalog.  The expected lines are in ``tests/data/evaluator_answers.json``; after a change of an
answer, ``python tests/evaluators/test_answers.py`` writes them anew, and the difference is to be read.
"""

from __future__ import annotations

import functools
import json
import sys
from collections import Counter
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Run as a program, too.
sys.path.insert(0, str(Path(__file__).parents[1] / "support"))
sys.path.extend(map(str, Path(__file__).parents[2].glob("plugins/*/src")))

from tests.evaluators.calls import BASES, LLAMA, MIXTRAL, Base, calls
from tests.support.engine import everything
from trnspec.api import evaluate, load, trace
from trnspec.catalog.catalog import Catalog
from trnspec.errors import RefusalError, TrnspecError
from trnspec.evaluators.traces.execution import execution
from trnspec.evaluators.training import TrainingQuestion
from trnspec.loading.files import shipped
from trnspec.output.chakra import parsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from trnspec.evaluation.result import Evaluation

STORED = Path(__file__).parents[1] / "data" / "evaluator_answers.json"
DIGITS = 4


@functools.cache
def catalog(*, plugins: bool) -> Catalog:
    return Catalog(everything()) if plugins else load(edition="2026.11.1")


def rounded(value: Any) -> Any:
    """Plain data with numbers that do not depend on the last bits of a machine's functions."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {name: rounded(one) for name, one in value.items()}
    return [*map(rounded, value)] if isinstance(value, (list, tuple)) else value


def text(*values: Any) -> str:
    return " | ".join(
        one if isinstance(one, str) else json.dumps(one, ensure_ascii=False) for one in map(rounded, values)
    )


def lines(evaluation: Evaluation, *, brief: bool) -> Iterator[tuple[str, str]]:
    """What an evaluation holds: what it is, and its value.

    Args:
        evaluation: The evaluation.
        brief: Whether to leave out breakdowns, other values of figures, and rows of tables after the second.
    """
    data = evaluation.to_dict()
    for name in ("title", "edition", "as_of", "bottleneck"):
        yield name, text(data[name])
    yield "evidence", text(data["evidence"] and data["evidence"]["kind"] if brief else data["evidence"])
    yield from ((f"input {name}", text(value)) for name, value in data["inputs"].items())
    for row in data["answers"]:
        yield f"answer {row['name']}", text(*(row[name] for name in ("value", "low", "high")))
        yield f"answer {row['name']}, in words", text(*(row[name] for name in ("unit", "kind", "note")))
    if not brief:
        yield from ((f"part {row.pop('of')} {row.pop('name')}", text(*row.values())) for row in data["parts"])
    yield from ((f"assumption {row['name']}", text(row["value"], row["why"])) for row in data["assumptions"])
    for row in data["figures_used"]:
        names = ("says",) if brief else ("says", "source", "as_of", "conflicting")
        yield f"figure {row['of']} {row['at']}", text(*(row[name] for name in names))
    yield from ((f"suggestion {n}", text(*row.values())) for n, row in enumerate(data["suggestions"], 1))
    for table in data["tables"]:
        yield f"table {table['title']}", text(table["columns"], table["units"], table["kind"])
        for n, row in enumerate(table["rows"][: 2 if brief else None], 1):
            yield f"{table['title']} {n}", text(*row)
        yield f"{table['title']}: rows", text(len(table["rows"]))
    yield from ((f"row {n}", text(row)) for n, row in enumerate(data.get("rows", ()), 1) if not brief)


def answered(base: Base, inputs: Mapping[str, Any], *, brief: bool) -> dict[str, str]:
    """The lines of a call by their beginning, or the refusal."""
    try:
        evaluation = evaluate(base.evaluator, catalog(plugins=base.plugins), **inputs)
    except TrnspecError as error:
        found = {"error": type(error).__name__, "message": str(error)}
        if isinstance(error, RefusalError):
            found |= {"reason": error.reason, "place": error.place, "hint": error.hint}
            found |= {
                f"suggestion {n}": text(s.evaluator, dict(s.inputs), s.note) for n, s in enumerate(error.suggestions)
            }
        return found
    found = {}
    for name, value in lines(evaluation, brief=brief):
        assert name not in found
        found[name] = value
    return found


def changes(base: Mapping[str, str], call: Mapping[str, str]) -> list[str]:
    """The lines of a call that differ from those of its base, and the beginnings of those that it has not."""
    if "error" in call:
        return [f"{name}: {value}" for name, value in call.items() if value]
    other = [f"{name}: {value}" for name, value in call.items() if base.get(name) != value]
    return [*other, *(f"- {name}" for name in base if name not in call)]


def actual(base: Base) -> dict[str, list[str]]:
    at_base = answered(base, base.inputs, brief=True)
    found = {"base": [f"{name}: {value}" for name, value in answered(base, base.inputs, brief=False).items()]}
    return found | {name: changes(at_base, answered(base, inputs, brief=True)) for name, inputs in calls(base)}


def timeline(**inputs: Any) -> list[str]:
    """The events of the timeline of a training step."""
    data = trace("training", catalog(plugins=False), **inputs)
    return [text(data["otherData"]), *(text(*event.values()) for event in data["traceEvents"])]


def executed(**inputs: Any) -> list[str]:
    """The files of an execution trace; of the first and the last rank the different nodes, with their number."""
    pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    files = execution(catalog(plugins=False), TrainingQuestion(**inputs))
    ranks = sorted((name for name in files if name.endswith(".et")), key=lambda name: int(name.partition(".")[0]))
    found = [*(f"{name}: {files[name].decode()}" for name in files if name not in ranks), f"ranks: {len(ranks)}"]
    for name in (ranks[0], ranks[-1]):
        nodes = Counter(
            text(node.name, node.type, node.duration_micros, *(getattr(a, a.WhichOneof("value")) for a in node.attr))
            for node in parsed(files[name])
        )
        found += [f"{name}: {number} x {node}" for node, number in nodes.items()]
    return found


def errors(table: str) -> list[str]:
    """The errors of a table of measurements."""
    found = evaluate("accuracy", catalog(plugins=False), data=str(shipped() / "measured" / table), rows=True)
    return [f"{name}: {value}" for name, value in lines(found, brief=False) if name != "input data"]


_TRAINIUM = {"on": "trn1.32xlarge", "seq": 1024, "tp": 8, "pp": 2, "must_fit": False}
_GPT = {"model": "gpt2-large", "on": "trn1.32xlarge", "chips": 2, "seq": 512}
MORE: Mapping[str, Callable[[], list[str]]] = {
    "timeline, one stage": partial(timeline, **_GPT, global_batch=8, zero=1),
    "timeline, recompute": partial(timeline, **_TRAINIUM, model=LLAMA, global_batch=6, recompute="full"),
    "timeline, V-shaped": partial(
        timeline, **_TRAINIUM, model=LLAMA, global_batch=6, schedule="zbv", calibration="none"
    ),
    "execution, ZeRO 3": partial(executed, **_GPT, global_batch=2, tp=2, pp=2, zero=3, must_fit=False),
    "execution, experts": partial(executed, **_TRAINIUM | {"tp": 2}, model=MIXTRAL, global_batch=4, cp=2, ep=8, zero=1),
    "accuracy, training": partial(errors, "training_trn1.csv"),
}
"""Other outputs by name."""


@functools.cache
def expected() -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = json.loads(STORED.read_text("utf-8"))
    return found


@pytest.mark.parametrize("name", BASES)
def test_answers(name: str) -> None:
    assert actual(BASES[name]) == expected()[name]


@pytest.mark.parametrize("name", MORE)
def test_other_outputs(name: str) -> None:
    assert MORE[name]() == expected()[name]["base"]


def test_nothing_else_is_stored() -> None:
    assert list(expected()) == [*BASES, *MORE]


if __name__ == "__main__":
    data = {name: actual(base) for name, base in BASES.items()}
    data |= {name: {"base": lines_of()} for name, lines_of in MORE.items()}
    STORED.write_text(json.dumps(data, indent=0, ensure_ascii=False) + "\n", "utf-8")
