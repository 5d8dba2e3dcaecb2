"""The software of a question: what its framework sets where the caller states nothing, and the graphs compiled for serving."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import evolve, field, frozen

from trnspec.errors import RefusalError
from trnspec.evaluation import questions
from trnspec.evaluation.inputs import fields_of
from trnspec.evaluation.result import Assumption
from trnspec.graph.graph import Graph
from trnspec.perf.frameworks import SERVING, SETTINGS, Setting, check_framework, training_settings
from trnspec.perf.lowering.machine import LoweredSystem
from trnspec.perf.serving.static_graphs import powers_of_two, tile_of

if TYPE_CHECKING:  # deployment imports this module
    from trnspec.evaluators.deployment import InferenceQuestion

Q = TypeVar("Q", bound=questions.SoftwareInputs)


def resolve_training(question: Q) -> Q:
    """A question with every unstated input that a framework sets: by its framework, or the default without one.

    An input of several values stays unstated: a search evaluates all of them.
    """
    default = training_settings(question.framework)
    cls: Any = type(question)
    one_value = {one.name for one in fields_of(cls) if not one.many}
    unstated = {n: getattr(default, n) for n in SETTINGS if n in one_value and getattr(question, n) is None}
    return evolve(question, **unstated) if unstated else question


def training_assumptions(
    question: questions.SoftwareInputs,
    names: Iterable[str] = SETTINGS,
    described: Mapping[str, tuple[str, str]] | None = None,
) -> tuple[Assumption, ...]:
    """Settings of a framework in a question, each with its origin; without one the reserve.

    Args:
        question: The inputs as given.
        names: The settings that the evaluator uses.
        described: Settings that are assumptions in any case: value and reason, to which the origin is added.
    """
    framework = question.framework
    origin = f"framework {framework}" if framework else "default without a framework"
    rows, default = [], training_settings(framework)
    for name in names:
        unstated = getattr(question, name, 0) is None
        if described and name in described:
            value, why = described[name]
            rows.append(Assumption(name, value, f"{why}; {origin}" if unstated and framework else why))
        elif unstated and (framework or name == "reserve"):
            why = f"included in memory; {origin}" if name == "reserve" else origin
            setting = getattr(default, name)
            text = ("yes" if setting else "no") if isinstance(setting, bool) else str(setting)
            rows.append(Assumption(name, text, why))
    return tuple(rows)


def system_assumptions(system: LoweredSystem) -> tuple[Assumption, ...]:
    """Assumptions on the rank and on the links of each level."""
    rank = f"a logical core of {int(system.lnc)} physical cores" if system.lnc else "a chip"
    links = (
        (level, f"{level.rate / 1e9:,.4g} GB/s per rank and direction" if level.rate else "not published")
        for level in system.levels
    )
    return (
        Assumption("rank", f"{rank}, {int(system.ranks_per_chip)} per chip", "the input lnc, or the chip's default"),
        *(Assumption(f"link_{level.name}", rate, f"{level.link}, {level.place}") for level, rate in links),
    )


SERVING_DEFAULTS: Mapping[str, str] = {"batching": "continuous", "experts": "selected"}
"""The values of options of serving without a framework."""

MAX_BATCH = 1 << 24
"""The largest batch that powers of two are listed for."""


@frozen
class ServingSoftware:
    """Settings of the framework of a question about serving.

    Attributes:
        settings: The settings of the framework that no option replaces, by the name of the option.
        batches: The batch buckets; none for exact batches.
        columns: The columns of a tile as given; ``None`` for those of the core, if the framework counts them.
    """

    settings: Mapping[str, Setting] = field(factory=dict)
    batches: tuple[int, ...] = ()
    columns: int | None = None

    def tile(self, graph: Graph, chip: str) -> int | None:
        """The columns of a tile of the tensor engine of a chip; ``None`` if narrow shards are not counted.

        Args:
            graph: The catalog.
            chip: Name of the chip, whose core states the array of its tensor engine.
        """
        if "tile" not in self.settings:
            return self.columns
        return tile_of(graph, chip)

    def assumptions(self, question: InferenceQuestion) -> Iterator[Assumption]:
        """Each value that the framework sets, with its origin."""
        for name, setting in self.settings.items():
            value = getattr(question, name)
            if value is not None:
                text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
                yield Assumption(name, text, f"{question.framework}: {setting.origin}")


def resolve_serving(question: InferenceQuestion, *, neuron: bool) -> tuple[InferenceQuestion, ServingSoftware]:
    """The question with the settings of its framework, where no option is given.

    Raises:
        RefusalError: The framework does not run on the system, or no bucket holds a request.
    """
    settings: dict[str, Setting] = {}
    if question.framework is not None:
        check_framework(question.framework, "inference")
        framework = SERVING[question.framework]
        if framework.neuron != neuron:
            runs = [name for name, other in SERVING.items() if other.neuron == neuron]
            raise RefusalError(
                "framework",
                f"{question.framework} runs on {'Neuron devices' if framework.neuron else 'GPUs'}, not on {question.on}",
                place="framework",
                hint=" or ".join(runs),
            )
        settings = {name: s for name, s in framework.settings.items() if getattr(question, name) is None}
    total = question.prompt + question.output
    values: dict[str, Any] = {n: v for n, v in SERVING_DEFAULTS.items() if getattr(question, n) is None}
    values |= {n: s.value for n, s in settings.items() if n not in _RESOLVED}
    batches = _increasing(question.batch_buckets)
    contexts = _increasing(question.context_buckets)
    if "batch_buckets" in settings:
        batches = powers_of_two(int(settings["batch_buckets"].value), MAX_BATCH)
    if "context_buckets" in settings:
        contexts = powers_of_two(int(settings["context_buckets"].value), total)
    for name, buckets, needed in (("context_buckets", contexts, total), ("batch_buckets", batches, question.batch)):
        if buckets and needed > buckets[-1]:
            what = "prompt + output" if name == "context_buckets" else "the batch"
            raise RefusalError(
                "no-bucket", f"{what} is {needed:,}; the largest of {name} is {buckets[-1]:,}",
                place=name, hint=f"a bucket of at least {needed}",
            )  # fmt: skip
    shown = powers_of_two(batches[0], question.batch) if "batch_buckets" in settings else batches
    values |= {"context_buckets": contexts or None, "batch_buckets": shown or None}
    return evolve(question, **values), ServingSoftware(settings, batches, question.tile)


_RESOLVED = ("context_buckets", "batch_buckets", "tile")
"""Settings whose value depends on the request or on the chip."""


def _increasing(buckets: tuple[int, ...] | None) -> tuple[int, ...]:
    return tuple(sorted(set(buckets or ())))
