"""Answers of every built-in evaluator to calls with one input changed in turn.

The calls are bases, and each with one input changed, for the inputs that the evaluator declares. An input is given every
choice that it has, both truth values, or the numbers and texts below: its least value, typical ones, and ones that are
rejected. An input that is declared later needs a line here only if it is a text.

They are on the edition 2026.11.1, which does not change; those of plugins' chips are on the present catalog.  A line of ``tests/data/answers/EVALUATOR.txt`` is a call: all answers of a base, and of another
call those that differ from its base.  After a change of an answer, ``python tests/evaluators/test_answers.py`` writes the files;
read the difference.
"""

import functools
import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

# Run as a program, too.
sys.path.extend(map(str, Path(__file__).parents[2].glob("plugins/*/src")))

from collections.abc import Callable, Iterable, Iterator, Mapping

from attrs import frozen

from tests.support.engine import everything
from tests.support.stored import answered, line, same, sums, words, write
from tests.support.stored import read as stored
from trnspec.api import evaluate, load, trace
from trnspec.builtin import plugin
from trnspec.catalog.catalog import Catalog
from trnspec.evaluation.inputs import Input
from trnspec.evaluation.runner import resolved
from trnspec.evaluators.traces import execution
from trnspec.evaluators.training import TrainingQuestion
from trnspec.loading.files import shipped
from trnspec.output.chakra import parsed


@frozen
class Base:
    """A call, and which of its inputs are changed.

    Attributes:
        evaluator: The name of the evaluator.
        inputs: The inputs by name.
        changed: The names of the inputs that are changed in turn, separated by spaces.
        plugins: Whether it needs the chips of plugins.
    """

    evaluator: str
    inputs: Mapping[str, Any]
    changed: str = ""
    plugins: bool = False


def _all_but(evaluator: str, names: str = "") -> str:
    return " ".join(one.name for one in declared(evaluator) if one.name not in names.split())


def declared(evaluator: str) -> tuple[Input, ...]:
    """The inputs of a built-in evaluator."""
    (found,) = (e for e in plugin.evaluators if e.name == evaluator)
    return tuple(resolved(found, "trnspec")[1])


TEXTS: Mapping[str, tuple[str, ...]] = {
    "model": ("mixtral-8x7b", "gpt2-large", "bert-large", "llama-3.1-8"),
    "on": ("trn1.32xlarge", "trainium2", "trn2.48xlarge", "trn2-ultraserver", "trn3-gen1-server", "trn2.48xlarge*2"),
    "calibration": ("none", "trainium1-neuron", "trainium2-nccom-2026-collectives", "trainium9"),
    "era": ("2024", "2026", "later"),
    "reserve": ("0 B", "4 GiB", "5%", "4"),
    "dtype": ("fp8", "fp32", "fp3"),
    "weight_dtype": ("fp8", "bf3"),
    "kv_dtype": ("fp8", "bf3"),
    "bucket": ("25 MiB", "25"),
    "host_link": ("50 GB/s", "50 GiB"),
    "draft": ("llama-3.2-1b", "bert-large"),
    "prefill_on": ("trn1.32xlarge", "trn2.48xlarge", "trainium9"),
    "size": ("0 B", "4 KiB", "1 MiB", "1048575 B", "1 GiB", "~1 MiB", "1 GB/s"),
    "algorithm": ("ring", "mesh", "rdh", "tree", "none"),
    "matmul": ("4096x4096x4096", "1x4096x4096", "4096x4096", "64 x 128 x 256"),
    "where": ("tp = 8", "tp >= 8 and memory < 50 GiB", "tp > 64", "size = 1"),
    "pareto": ("step_time,memory", "ttft,tpot,usd", "usd", "chips,chips"),
    "price": ("21.50 USD/h", "21.50"),
    "region": ("us-west-2", "mars-north-1"),
    "tokens": ("100B", "0", "many"),
    "deadline": ("30d", "1h", "30"),
    "budget": ("1M", "100", "free"),
    "mtbf": ("10d", "10"),
    "checkpoint_rate": ("10 GB/s", "10"),
    "restart": ("0s", "1h", "1"),
    "repair": ("1d", "1"),
    "ttft": ("200ms", "1ms", "1"),
    "tpot": ("200ms", "1ms", "1"),
}
"""The values of inputs that are texts."""

NUMBERS: Mapping[str, tuple[float, ...]] = {
    "seq": (1, 1000, 200_000),
    "global_batch": (1, 30, 2048),
    "prompt": (1, 7000, 200_000),
    "output": (1, 100, 200_000),
    "isl": (1, 7000, 200_000),
    "osl": (2, 200_000),
    "context": (0, 5000, 200_000),
    "prefill": (1, 5000),
    "chunk": (1, 512, 100_000),
    "batch": (2, 5, 512, 4096),
    "rate": (0.0, 0.1, 100.0),
    "intensity": (0.0, 100.0, 1000.0),
    "imbalance": (1.5,),
    "capacity_factor": (1.0, 1.25),
    "prefix_hit": (0.5, 1.0),
    "acceptance": (0.0, 0.5, 1.0),
    "spares": (0.0, 0.05),
    "confidence": (0.01, 0.9),
    "percentile": (50.0, 99.9),
    "context_buckets": (1024, 4096),
    "batch_buckets": (8, 64),
    "node_limit": (1, 4),
    "running": (1, 8),
    "count": (1, 2, 5),
    "microbatches": (1, 6),
    "lnc": (1, 2, 3),
    "chips": (1, 8, 17),
    "top": (1,),
    "tile": (128, 512),
}
"""The values of inputs that are numbers; of others, see below."""

DEGREES = (1, 2, 3, 16)


def calls(base: Base) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The calls of a base with one input changed, each with this input and its value as a text."""
    for one in declared(base.evaluator):
        if one.name in base.changed.split():
            now = base.inputs.get(one.name, one.default)
            for value in _values(one):
                if value != now:
                    yield f"{one.name} {json.dumps(value)}", {**base.inputs, one.name: value}


def _values(one: Input) -> Iterator[Any]:
    """The values of an input; of one that takes several, each alone, and all choices together."""
    values: tuple[Any, ...] = one.choices or tuple(map(one.type, NUMBERS.get(one.name, DEGREES)))
    if one.type is bool:
        values = (False, True)
    elif one.type is str and not one.choices:
        values = TEXTS.get(one.name, ())
    for value in values:
        several = tuple(value.split(",")) if isinstance(value, str) else (value,)
        yield several if one.many else value
    if one.many and one.choices:
        yield one.choices


LLAMA = "llama-3.1-8b"
MIXTRAL = "mixtral-8x7b"

_STEP = {"model": LLAMA, "on": "trn1.32xlarge*4", "seq": 4096, "global_batch": 64, "tp": 8, "pp": 2}
_MEMORY = {"model": LLAMA, "on": "trn1.32xlarge*4", "seq": 4096, "tp": 8, "pp": 2}
_REQUESTS = {"model": LLAMA, "on": "trn2.48xlarge", "batch": 4, "tp": 8}
_LAYOUTS = {
    "model": LLAMA, "on": ("trn1.32xlarge",), "seq": 4096, "global_batch": 64, "tp": (8,), "microbatch": (1,),
    "schedule": ("1f1b",), "recompute": ("none",), "top": 3,
}  # fmt: skip
_DEPLOYMENTS = {
    "model": LLAMA, "on": ("trn2.48xlarge",), "prompt": 1024, "output": 256, "tp": (8,), "pp": (1,), "batch": (1, 8), "top": 3,
}  # fmt: skip
_RUN = {
    "model": LLAMA, "on": ("trn1.32xlarge",), "tokens": "10B", "seq": 4096, "global_batch": 64, "tp": (8,), "pp": (1, 2),
    "microbatch": (1,), "schedule": ("1f1b",), "recompute": ("none",), "zero": (1,), "count": (2, 4), "top": 3,
}  # fmt: skip
_FLEET = {"model": LLAMA, "on": ("trn2.48xlarge",), "rate": 5.0, "tp": (8,), "pools": ("aggregated",), "top": 3}

_EXPERTS = (
    "tp cp ep expert_tp imbalance capacity_factor dispatch dispatch_dtype node_limit expert_overlap"
)  # fmt: skip

BASES: Mapping[str, Base] = {
    "training": Base("training", _STEP, _all_but("training", "capacity_factor dispatch node_limit")),
    "training, experts": Base(
        "training",
        {
            "model": MIXTRAL, "on": "trn2-ultraserver", "seq": 4096, "global_batch": 256, "tp": 8, "pp": 4, "ep": 8,
            "interleave": 2, "schedule": "interleaved", "zero": 1,
        },
        _EXPERTS,
    ),
    "training, does not fit": Base("training", {**_STEP, "model": "llama-3.1-405b", "must_fit": False}),
    "training, offload": Base(
        "training", {**_STEP, "schedule": "zbv", "pp": 4, "uneven": True, "offload": "optimizer", "host_link": "50 GB/s"}
    ),
    "training, GPUs": Base(
        "training",
        {
            "model": MIXTRAL, "on": "p5.48xlarge*8", "seq": 4096, "global_batch": 256, "tp": 2, "pp": 2, "ep": 8,
            "framework": "megatron",
        },
        "framework ep expert_tp dispatch zero overlap",
        plugins=True,
    ),
    "memory": Base("memory", _MEMORY, _all_but("memory")),
    "memory, does not fit": Base(
        "memory",
        {**_MEMORY, "model": "llama-3.1-70b"},
        "model tp zero recompute sequence_parallel offload",
    ),
    "memory, no host": Base("memory", {"model": "gpt2-large", "on": "trainium2", "seq": 1024, "zero": 1}, "offload"),
    "memory, experts": Base("memory", {**_MEMORY, "model": MIXTRAL, "on": "trn2-ultraserver", "pp": 4, "ep": 8}, _EXPERTS),
    "memory, inference": Base(
        "memory",
        {**_MEMORY, "mode": "inference", "on": "trn2.48xlarge", "pp": 1, "batch": 8},
        "model batch context prefill kv_dtype dtype offload tp pp dp lnc reserve",
    ),
    "memory, inference that does not fit": Base(
        "memory",
        {"mode": "inference", "model": "llama-3.1-405b", "on": "trn2.48xlarge", "seq": 100_000, "batch": 64, "prefill": 4096},
    ),
    "inference": Base("inference", _REQUESTS, _all_but("inference", "expert_overlap dispatch node_limit speculate acceptance")),
    "inference, experts": Base(
        "inference",
        {"model": "qwen3-30b-a3b", "on": "trn2.48xlarge", "batch": 8, "tp": 32, "framework": "nxd-inference"},
        "ep tp experts batching tile dispatch node_limit expert_overlap framework context_buckets batch_buckets",
    ),
    "inference, draft": Base("inference", {**_REQUESTS, "draft": "llama-3.2-1b"}, "acceptance speculate batching chunk"),
    "inference, two pools": Base(
        "inference", {**_REQUESTS, "prefill_on": "trn1.32xlarge", "on": "trn2.48xlarge*2"}, "batching kv_dtype prefix_hit on"
    ),
    "inference, GPUs": Base(
        "inference",
        {"model": LLAMA, "on": "p5.48xlarge", "batch": 64, "tp": 2, "framework": "vllm"},
        "framework chunk batching batch",
        plugins=True,
    ),
    "roofline": Base("roofline", {"model": LLAMA, "on": "trainium2"}, _all_but("roofline", "matmul intensity")),
    "roofline, kernels": Base("roofline", {"on": "trainium3", "dtype": "mxfp8"}, "matmul intensity on dtype sparse"),
    "roofline, GPUs": Base("roofline", {"on": "h100"}, "dtype sparse", plugins=True),
    "roofline, backward": Base("roofline", {"model": MIXTRAL, "on": "trn2.48xlarge", "phase": "train"}, "attention batch"),
    "roofline, decode": Base(
        "roofline", {"model": "deepseek-v3", "on": "trn2.48xlarge", "phase": "decode", "batch": 16}, "attention dtype"
    ),
    "collective": Base(
        "collective", {"kind": "all-reduce", "size": "64 MiB", "on": "trn2.48xlarge*2"}, _all_but("collective", "on")
    ),
    "collective, one chip": Base("collective", {"kind": "all-gather", "size": "1 MiB", "on": "trainium2"}, "kind ranks lnc"),
    "collective, network": Base(
        "collective",
        {"kind": "all-to-all", "size": "1 MiB", "on": "trn1.32xlarge*4", "calibration": "none"},
        "kind stride ranks on",
    ),
    "collective, GPUs": Base(
        "collective",
        {"kind": "all-reduce", "size": "1 MiB", "on": "p5.48xlarge*2"},
        "framework kind algorithm launch",
        plugins=True,
    ),
    "search": Base(
        "search",
        _LAYOUTS,
        "batch mode objective where pareto framework offload price price_type top output chips calibration",
    ),
    "search, nothing fits": Base("search", {**_LAYOUTS, "model": "llama-3.1-405b"}),
    "search, serving": Base(
        "search", _DEPLOYMENTS, "objective where pareto dtype prefill_on recompute calibration"
    ),
    "search, GPUs": Base(
        "search", {**_LAYOUTS, "on": ("p5.48xlarge", "p4d.24xlarge"), "framework": "megatron"}, "objective pareto", plugins=True
    ),
    "plan-train, usual batch": Base(
        "plan-train", {"model": "llama-3.2-1b", "on": ("trn2.48xlarge",), "tokens": "10B", "deadline": "2d", "count": (3,), "top": 2}
    ),
    "plan-train, two chips": Base(
        "plan-train", {**_RUN, "on": ("trn1.32xlarge", "trn2.48xlarge"), "tokens": "100B", "deadline": "60d"}, "objective"
    ),
    "plan-train, GPUs": Base(
        "plan-train", {**_RUN, "on": ("p5.48xlarge", "p4d.24xlarge"), "budget": "100k"}, "objective mtbf", plugins=True
    ),
    "plan-train, counts": Base(
        "plan-train",
        {n: v for n, v in _RUN.items() if n != "count"} | {"deadline": "9d", "objective": "chips", "pp": (2,)},
        "objective deadline budget tokens model on global_batch seq confidence evidence",
    ),
    "plan-train, experts": Base(
        "plan-train", {**_RUN, "model": MIXTRAL, "on": ("trn2-ultraserver",), "ep": (8,), "count": (2,)}, f"{_EXPERTS} production_factor"
    ),
    "plan-train": Base(
        "plan-train",
        _RUN,
        _all_but("plan-train", f"{_EXPERTS} lengths"),
    ),
    "plan-serve": Base("plan-serve", _FLEET, "ttft objective prefill_on"),
    "plan-serve, requests": Base(
        "plan-serve", {**_FLEET, "rate": 100.0}, "model rate isl osl tpot confidence percentile evidence running prefix_hit"
    ),
    "plan-serve, software": Base(
        "plan-serve",
        {**_FLEET, "rate": 100.0},
        "calibration era framework reserve dtype weight_dtype kv_dtype chunk context_buckets draft",
    ),
    "plan-serve, systems": Base(
        "plan-serve", {**_FLEET, "rate": 100.0}, "on lnc tp pp ep pools price price_type region top"
    ),
    "plan-serve, pools": Base(
        "plan-serve",
        {**_FLEET, "rate": 100.0, "pools": ("disaggregated",), "prefill_on": "trn1.32xlarge", "draft": "llama-3.2-1b"},
        "rate isl confidence running acceptance speculate",
    ),
    "plan-serve, experts": Base(
        "plan-serve",
        {**_FLEET, "model": "qwen3-30b-a3b", "on": ("trn2.48xlarge",), "tp": (32,), "tpot": "60ms", "rate": 20.0},
        "ep pools calibration",
    ),
    "plan-serve, several chips": Base(
        "plan-serve",
        {**_FLEET, "model": "llama-3.1-70b", "on": ("trainium2", "trn1.32xlarge", "trn2.48xlarge"), "tp": (), "ttft": "9s", "tpot": "200ms"},
        "objective rate",
    ),
    "plan-serve, narrow types": Base(
        "plan-serve", {**_FLEET, "pp": (2,), "weight_dtype": ("fp8",), "kv_dtype": ("fp8",), "chunk": (512,), "rate": 50.0}
    ),
    "plan-serve, GPUs": Base(
        "plan-serve",
        {**_FLEET, "on": ("p5.48xlarge",), "pools": ("aggregated", "disaggregated"), "tp": (2,), "objective": "energy", "rate": 100.0, "isl": 2731},
        plugins=True,
    ),
}  # fmt: skip
"""The bases by name."""


@functools.cache
def catalog(*, plugins: bool) -> Catalog:
    return Catalog(everything()) if plugins else load(edition="2026.11.1")


def of_calls(name: str) -> Iterator[tuple[str, str]]:
    """The answers of a base, and of each of its calls what differs; last a checksum of all that is not a number."""
    base, checksums = BASES[name], []

    def answer(inputs: Mapping[str, Any]) -> dict[str, str]:
        found = answered(lambda: evaluate(base.evaluator, catalog(plugins=base.plugins), **inputs))
        checksums.append(found.pop("words", ""))
        return found

    at_base = answer(base.inputs)
    yield name, line(at_base)
    for call, inputs in calls(base):
        yield f"{name}: {call}", line(answer(inputs), at_base)
    yield f"{name}: words", words(checksums)


def by_name(rows: Iterable[tuple[str, float]]) -> str:
    """The number and the sum of the values of each name."""
    found: dict[str, list[float]] = {}
    for name, value in rows:
        found.setdefault(name, []).append(value)
    return "; ".join(f"{name} {sums(values)}" for name, values in found.items())


def timeline(**inputs: Any) -> str:
    """The events of the timeline of a training step, by name: their durations, their starts, and what counters show."""
    events = trace("training", catalog(plugins=False), **inputs)["traceEvents"]
    timed = [(f"{event['tid']} {event['name']}", event) for event in events if "dur" in event]
    counted = [event for event in events if event["ph"] == "C"]
    shown = [value for event in counted for value in event["args"].values()]
    return "; ".join(
        (
            by_name((name, event["dur"]) for name, event in timed),
            f"starts {sums(event['ts'] for _, event in timed)}",
            f"counters {sums(shown)} at {sums(event['ts'] for event in counted)}",
        )
    )


def executed(**inputs: Any) -> str:
    """The nodes of the first and the last rank of an execution trace, by name, with their durations and sizes."""
    pytest.importorskip("google.protobuf", reason="protobuf is not installed")
    files = execution(catalog(plugins=False), TrainingQuestion(**inputs))
    ranks = sorted((name for name in files if name.endswith(".et")), key=lambda name: int(name.partition(".")[0]))
    found = [f"{len(files)} files, {len(ranks)} ranks"]
    for name in (ranks[0], ranks[-1]):
        nodes = parsed(files[name])
        sizes = sums(getattr(a, a.WhichOneof("value")) for node in nodes for a in node.attr)
        found.append(
            f"{name}: {by_name((node.name, float(node.duration_micros)) for node in nodes)}; attributes {sizes}"
        )
    return "; ".join(found)


def errors(table: str) -> str:
    """The errors of a table of measurements."""
    data = str(shipped() / "measured" / table)
    found = answered(lambda: evaluate("accuracy", catalog(plugins=False), data=data, rows=True))
    return line({name: text for name, text in found.items() if name != "words"})  # it has the path of the table


_TRAINIUM = {"on": "trn1.32xlarge", "seq": 1024, "tp": 8, "pp": 2, "must_fit": False}
_GPT = {"model": "gpt2-large", "on": "trn1.32xlarge", "chips": 2, "seq": 512}
MORE: Mapping[str, Callable[[], str]] = {
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


def found_in(file: str) -> Iterator[tuple[str, str]]:
    """The cases of a stored file, in order."""
    if file == OTHERS:
        yield from ((name, made()) for name, made in MORE.items())
    else:
        yield from (case for name, base in BASES.items() if file_of(base) == file for case in of_calls(name))


def file_of(base: Base) -> str:
    return f"answers/{base.evaluator}.txt"


OTHERS = "answers/others.txt"
FILES = [*dict.fromkeys(map(file_of, BASES.values())), OTHERS]


@pytest.mark.parametrize("name", BASES)
def test_answers_of_calls(name: str) -> None:
    expected = stored(file_of(BASES[name]))

    assert [case for case in of_calls(name) if not same(expected[case[0]], case[1])] == []


@pytest.mark.parametrize("name", MORE)
def test_answers_of_traces_and_tables(name: str) -> None:
    assert same(stored(OTHERS)[name], MORE[name]())


@pytest.mark.parametrize("file", FILES)
def test_stored_cases_are_called(file: str) -> None:
    names = [
        n
        for name, base in BASES.items()
        if file_of(base) == file
        for n in (name, *(f"{name}: {c}" for c, _ in calls(base)), f"{name}: words")
    ]

    assert [*stored(file)] == (names or [*MORE])


if __name__ == "__main__":
    for each in FILES:
        write(each, dict(found_in(each)))
