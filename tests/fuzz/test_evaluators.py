"""Evaluators, those of plugins included, on random valid inputs: at least 2,000 calls with a result.

:func:`trnspec.evaluation.runner.run` rejects a result that is not finite, is outside its interval, or whose parts do not sum
to their answer, by a ``UsageError``, which no input here may cause. Ideal times are lower bounds.
"""

import importlib
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import trnspec
from tests.support.programs import ROOT
from trnspec.builtin import plugin as builtin
from trnspec.errors import RefusalError
from trnspec.evaluation.runner import run
from trnspec.plugins.api import Evaluator

CAT = trnspec.load()
MODELS = sorted(n.name for n in CAT.graph if n.kind == "Model")
CHIPS = ("trainium1", "trainium2", "trainium3")
SYSTEMS = sorted(n.name for n in CAT.graph if n.kind in ("Server", "UltraServer"))
LARGE = [name for name in SYSTEMS if CAT[name].chip_count >= 16]
POWERS = (1, 2, 4, 8, 16, 32, 64)
Draw = random.Random


def _some(draw: Draw, **options: Any) -> dict[str, Any]:
    """A random half of some options."""
    return {name: draw.choice(values) for name, values in options.items() if draw.random() < 0.5}


def _layout(draw: Draw) -> dict[str, Any]:
    return {"on": draw.choice(SYSTEMS), "tp": draw.choice(POWERS), **_some(draw, pp=(1, 2, 4, 8), lnc=(1, 2))}


def _training(draw: Draw) -> dict[str, Any]:
    return {
        "model": draw.choice(MODELS), "seq": draw.choice((1024, 4096, 8192)), "global_batch": draw.choice((64, 256, 1024)),
        "must_fit": False, **_layout(draw),
        **_some(
            draw, dp=(1, 2, 8, 16), zero=(0, 1, 2, 3), microbatch=(1, 2, 4), recompute=("none", "selective", "full"),
            schedule=("1f1b", "gpipe", "zb1p"), flash=(True, False), overlap=(True, False), sequence_parallel=(True, False),
        ),
    }  # fmt: skip


def _memory(draw: Draw) -> dict[str, Any]:
    given = {"model": draw.choice(MODELS), "seq": draw.choice((1, 1000, 8192)), **_layout(draw)}
    training = {
        "mode": "training",
        **_some(draw, dp=(1, 4, 16), zero=(0, 1, 2, 3), recompute=("none", "full"), microbatch=(1, 4)),
    }
    return given | (
        training
        if draw.random() < 0.5
        else {"mode": "inference", **_some(draw, batch=(1, 7, 64), kv_dtype=("bf16", "fp8"))}
    )


def _inference(draw: Draw) -> dict[str, Any]:
    return {
        "model": draw.choice(MODELS), "prompt": draw.choice((1, 100, 2048)), "output": draw.choice((1, 2, 512)),
        **_layout(draw),
        **_some(draw, batch=(1, 3, 32), batching=("continuous", "static"), chunk=(256, 1024), prefix_hit=(0.0, 0.5)),
    }  # fmt: skip


def _roofline(draw: Draw) -> dict[str, Any]:
    size = "x".join(str(draw.choice((1, 64, 1000, 8192))) for _ in range(3))
    model = {
        "model": draw.choice(MODELS),
        "phase": draw.choice(("prefill", "decode", "train")),
        "seq": draw.choice((1, 2048)),
    }
    what = draw.choice(({"matmul": size}, {"intensity": draw.uniform(0.1, 1e4)}, model, {}))
    return {"on": draw.choice(CHIPS), **what, **_some(draw, dtype=("bf16", "fp8", "fp32"))}


def _collective(draw: Draw) -> dict[str, Any]:
    kinds = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "broadcast", "send")
    size = f"{draw.choice((1, 3, 64, 1000))} {draw.choice(('B', 'kB', 'MiB', 'GB'))}"
    return {
        "kind": draw.choice(kinds),
        "size": size,
        "on": draw.choice(SYSTEMS),
        **_some(draw, ranks=POWERS, stride=(1, 2, 4)),
    }


def _search(draw: Draw) -> dict[str, Any]:
    return {"model": draw.choice(MODELS), "seq": 4096, "global_batch": 256, "on": draw.choice(LARGE), "top": 3}


def _plan_train(draw: Draw) -> dict[str, Any]:
    count = draw.choice((8, 64))
    return {"model": draw.choice(MODELS), "tokens": "1e10", "on": draw.choice(SYSTEMS), "count": count, "top": 2}


def _plan_serve(draw: Draw) -> dict[str, Any]:
    rate = draw.choice((0.5, 10.0))
    return {"model": draw.choice(MODELS), "rate": rate, "isl": 512, "osl": 128, "on": draw.choice(SYSTEMS), "top": 2}


def _energy(draw: Draw) -> dict[str, Any]:
    power = f"{draw.randint(1, 9_999)} {draw.choice(('W', 'kW', 'mW'))}"
    return {"on": draw.choice(SYSTEMS), "hours": draw.uniform(0.01, 9_000), "power": power}


def _cost(draw: Draw) -> dict[str, Any]:
    return {"on": draw.choice(SYSTEMS), "hours": draw.uniform(0.01, 9_000)}


INPUTS: dict[str, tuple[Callable[[Draw], dict[str, Any]], int]] = {
    "training": (_training, 200), "memory": (_memory, 300), "inference": (_inference, 150), "roofline": (_roofline, 700),
    "collective": (_collective, 350), "search": (_search, 4), "plan-train": (_plan_train, 4), "plan-serve": (_plan_serve, 3),
    "accuracy": (lambda _: {}, 1), "energy": (_energy, 250), "cost": (_cost, 60),
}  # fmt: skip
"""Inputs of each evaluator, and the number of results to reach."""


def _evaluators() -> dict[str, Evaluator]:
    plugins = [builtin]
    with pytest.MonkeyPatch.context() as patch:
        for name in ("energy", "cost"):
            patch.syspath_prepend(str(ROOT / "plugins" / f"trnspec-{name}" / "src"))
            plugins.append(importlib.import_module(f"trnspec_{name}").plugin)
    return {e.name: e for p in plugins for e in p.evaluators}


EVALUATORS = _evaluators()


def test_every_evaluator_is_called_and_together_2000_times() -> None:
    assert set(EVALUATORS) == set(INPUTS)
    assert sum(count for _, count in INPUTS.values()) >= 2_000


@pytest.mark.slow
@pytest.mark.parametrize("name", INPUTS)
def test_results_of_valid_inputs(name: str) -> None:
    draw, (inputs, count) = random.Random(name), INPUTS[name]
    evaluated, refused = 0, Counter[str]()
    while evaluated < count:
        given = inputs(draw)
        try:
            result = run(EVALUATORS[name], "trnspec", CAT, given)
        except RefusalError as error:
            refused[error.reason] += 1
            assert refused.total() < 20 * count + 100, f"{evaluated} of {count} evaluated: {refused}"
            continue
        evaluated += 1
        answers = {a.name: a for a in result.answers}
        for answer, bound in (("step_time", "ideal_step_time"), ("time", "bound")):
            if answer in answers and bound in answers:
                assert answers[bound].value <= answers[answer].value * (1 + 1e-9), (name, given)
