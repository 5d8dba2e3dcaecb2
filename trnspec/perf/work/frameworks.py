"""Frameworks in training: what each sets in a question, and what it needs of a rank's memory besides the model."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
from attrs import frozen

from trnspec.errors import QuantityError, UsageError
from trnspec.evaluation.inputs import fields_of
from trnspec.evaluation.questions import Question, Software
from trnspec.evaluation.result import Assumption
from trnspec.perf import frameworks as every
from trnspec.perf.frameworks import UNSTATED, TrainingSettings
from trnspec.perf.work.layout import ACTIVATION_BYTES
from trnspec.quantities.quantity import Qualifier, parse
from trnspec.quantities.units import Dimension

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Q = TypeVar("Q", bound=Question)

FRAMEWORKS = {name: one.training for name, one in every.FRAMEWORKS.items() if one.training is not None}
"""The settings of the frameworks of training, by name."""

SETTINGS = tuple(f.name for f in attrs.fields(TrainingSettings))
"""The inputs that a framework sets."""


@frozen(kw_only=True)
class Runtime:
    """What software needs of a rank's memory besides the layout.

    Attributes:
        framework: Name of the framework; empty if unstated.
        gathered_inputs: 1.0 where inputs gathered over tensor-parallel ranks are stored.
        bucket: Buffers of gradients that are being reduced [B].
        reserve: Memory of a rank that the model cannot use [B].
        dropout: 1.0 where dropout masks are stored, one byte per element.
        activation_bytes: Bytes of an activation.
    """

    framework: str = ""
    gathered_inputs: float = 0.0
    bucket: float = 0.0
    reserve: float = 0.0
    dropout: float = 0.0
    activation_bytes: float = ACTIVATION_BYTES

    @property
    def defaults(self) -> dict[str, Any]:
        """The settings of the framework by input, for layouts; its memory settings are in the other attributes."""
        own = {f.name for f in attrs.fields(Runtime)}
        return {n: v for n, v in attrs.asdict(profile(self.framework)).items() if n not in own}


ALLOCATED = Runtime()
"""No reserve and no buckets: what the model and its training step allocate."""


def profile(framework: str | None) -> TrainingSettings:
    """The settings of a framework; those without one for ``None`` or an empty name.

    Raises:
        UsageError: Unknown framework.
        RefusalError: It is not a framework of training.
    """
    return every.known(framework, "training").training or UNSTATED if framework else UNSTATED


def runtime(
    capacity: float,
    *,
    framework: str | None = None,
    reserve: str | None = None,
    gathered_inputs: bool | None = None,
    bucket: str | None = None,
) -> Runtime:
    """What software needs on a rank with some memory; stated values win over those of the framework.

    Args:
        capacity: Memory of the rank, of which a reserve may be a share [B].
        framework: Name of a framework.
        reserve: A size, or a share such as ``5%``.
        gathered_inputs: Whether inputs gathered over tensor-parallel ranks are stored.
        bucket: A size.

    Raises:
        UsageError: Unknown framework, or a text that is not a size.
    """
    default = profile(framework)
    return Runtime(
        framework=framework or "",
        gathered_inputs=float(default.gathered_inputs if gathered_inputs is None else gathered_inputs),
        bucket=size(default.bucket if bucket is None else bucket, "bucket"),
        reserve=size(default.reserve if reserve is None else reserve, "reserve", capacity),
    )


def named_in(text: str) -> str:
    """The framework that a description of software names; empty if none, or if it is a mixture of two."""
    for name, pattern in _NAMED.items():
        if re.search(pattern, text.lower()):
            return name
    return ""


_NAMED = {
    "": "megatron-deepspeed",
    "megatron": "megatron",
    "torchtitan": "torchtitan",
    "nxd": "neuronx-distributed|nxd",
    "deepspeed": "deepspeed",
    "llm-foundry": "llm-foundry",
}
"""Words that name a framework, by framework."""


def runtime_of(question: Question, capacity: float) -> Runtime:
    """What the software of a question needs on a rank with some memory [B]; see :func:`runtime`."""
    stated = {n: getattr(question, n, None) for n in ("framework", "reserve", "gathered_inputs", "bucket")}
    return runtime(capacity, **stated)


def size(text: str, name: str, whole: float | None = None) -> float:
    """A size in B: a quantity such as ``4 GiB``, or, of a whole, a share such as ``5%``.

    Args:
        text: The text.
        name: The input that it is the value of, for messages.
        whole: What a share is of [B]; ``None`` where a share is not accepted.

    Raises:
        UsageError: It is neither, is not exact, or is a share above 100%.
    """
    expected = 'a size such as "4 GiB"' + ("" if whole is None else ', or a share of the memory such as "5%"')
    share = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", text)
    if share is not None and whole is not None and float(share[1]) <= 100.0:
        return float(share[1]) / 100.0 * whole
    try:
        quantity = parse(text, Dimension.INFORMATION)
    except QuantityError as error:
        raise UsageError(f"{name} is {text!r}; expected {expected} ({error})") from error
    if quantity.qualifier is not Qualifier.EXACT:
        raise UsageError(f"{name} is {text!r}, which is not exact; expected {expected}")
    return float(quantity.value)


def resolved(question: Q) -> Q:
    """A question with every unstated input that a framework sets: by its framework, or the default without one.

    An input of several values stays unstated: a search evaluates all of them.
    """
    default = profile(_framework(question))
    cls: Any = type(question)
    one_value = {one.name for one in fields_of(cls) if not one.many}
    unstated = {n: getattr(default, n) for n in SETTINGS if n in one_value and getattr(question, n) is None}
    return attrs.evolve(question, **unstated) if unstated else question  # type: ignore[misc]  # subclasses are attrs classes


def assumptions(
    question: Question, names: Iterable[str] = SETTINGS, described: Mapping[str, tuple[str, str]] | None = None
) -> tuple[Assumption, ...]:
    """What a framework sets in a question, each with its origin; without one the reserve.

    Args:
        question: The inputs as given.
        names: The settings that the evaluator uses.
        described: Settings that are assumptions in any case: value and reason, to which the origin is added.
    """
    framework = _framework(question)
    origin = f"framework {framework}" if framework else "default without a framework"
    rows, default = [], profile(framework)
    for name in names:
        unstated = getattr(question, name, 0) is None
        if described and name in described:
            value, why = described[name]
            rows.append(Assumption(name, value, f"{why}; {origin}" if unstated and framework else why))
        elif unstated and (framework or name == "reserve"):
            why = f"included in memory; {origin}" if name == "reserve" else origin
            rows.append(Assumption(name, _text(getattr(default, name)), why))
    return tuple(rows)


def _framework(question: Question) -> str | None:
    """The training framework of a question; those of serving have settings of their own."""
    return question.framework if isinstance(question, Software) else None


def _text(value: object) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
