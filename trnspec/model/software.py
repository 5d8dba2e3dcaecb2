"""The kind Software: a framework on a chip, and the releases that support it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from attrs import field, frozen

from trnspec.model.annotations import Count, Least, Name, Text
from trnspec.model.chip import Chip
from trnspec.model.feature import Feature
from trnspec.model.ref import Ref
from trnspec.short_repr import ShortRepr


@frozen(kw_only=True, repr=False)
class Software(ShortRepr):
    """A framework of training or inference on one chip.

    ``beta``, ``supported``, ``maintenance`` and ``ended`` are releases of the SDK: the first in which the framework has
    that status on the chip.

    Attributes:
        framework: The framework; where evaluators know it, its name as their input. Example: nxd-inference
        chip: The chip. Example: trainium2
        phases: The phases that it runs.
        package: The name of its package. Example: neuronx-distributed-inference
        version: The newest version of the package for this chip. Example: 0.10.18399
        beta: The first release with early access. Example: 2.33.0
        supported: The first release with full support. Example: 2.23.0
        maintenance: The first release with critical corrections only. Example: 2.30.0
        ended: The first release without support. Example: 2.34.0
        successor: The software that its publisher recommends instead. Example: vllm-neuron-trainium2
        dtypes: Dtypes of the weights that the source names.
        parallelism: Ways to split a model that the source names.
        logical_cores: The most physical cores in a logical core. Example: 2
        features: Capabilities that sources state in words.
    """

    SHORT: ClassVar[Mapping[str, str]] = {"dtype": "dtypes", "phase": "phases"}

    framework: Name
    chip: Ref[Chip]
    phases: Annotated[tuple[Literal["training", "inference"], ...], Least(1)] = ()
    package: Text | None = None
    version: Text | None = None
    beta: Text | None = None
    supported: Text | None = None
    maintenance: Text | None = None
    ended: Text | None = None
    successor: Ref[Software] | None = None
    dtypes: Annotated[tuple[Literal["fp32", "bf16", "fp16", "fp8", "mxfp8", "mxfp4"], ...], Least(1)] = ()
    parallelism: Annotated[tuple[Literal["tp", "pp", "dp", "ep", "cp", "fsdp", "zero1"], ...], Least(1)] = ()
    logical_cores: Count | None = None
    features: tuple[Feature, ...] = field(factory=tuple)
