"""The types of figures that fields are declared with, and the groups of figures that several kinds share.

The annotations are read by the schema generator, by the structuring converter and by whatever walks a spec, so that
a constraint is written in one place.  To a type checker ``Bandwidth`` is simply a :class:`Figure`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from attrs import frozen

from trnspec.model.annotations import Measures
from trnspec.model.figure import Figure
from trnspec.quantities.units import Dimension
from trnspec.short_repr import ShortRepr

Capacity = Annotated[Figure, Measures(Dimension.INFORMATION)]
DiskCapacity = Annotated[Figure, Measures(Dimension.INFORMATION, decimal=True)]
Bandwidth = Annotated[Figure, Measures(Dimension.BANDWIDTH)]
FlopRate = Annotated[Figure, Measures(Dimension.FLOP_RATE)]
OpRate = Annotated[Figure, Measures(Dimension.OP_RATE)]
Frequency = Annotated[Figure, Measures(Dimension.FREQUENCY)]
Duration = Annotated[Figure, Measures(Dimension.TIME)]
Power = Annotated[Figure, Measures(Dimension.POWER)]
Price = Annotated[Figure, Measures(Dimension.PRICE)]
FlopPerCycle = Annotated[Figure, Measures(Dimension.FLOP_PER_CYCLE)]
IoRate = Annotated[Figure, Measures(Dimension.IO_RATE)]
Ratio = Annotated[Figure, Measures(Dimension.RATIO)]
AnyFigure = Annotated[Figure, Measures(None)]


@frozen(kw_only=True, repr=False)
class Rates(ShortRepr):
    """Peak rates by data type, as printed. A type that is absent has no published rate: it is unknown, not zero.

    Attributes:
        fp64: IEEE double precision. Example: 67 TFLOPS
        fp32: IEEE single precision. Example: 47.5 TFLOPS
        tf32: TensorFloat-32. Example: 190 TFLOPS
        bf16: bfloat16. Example: 190 TFLOPS
        fp16: IEEE half precision. Example: 190 TFLOPS
        fp8: 8-bit floating point, E4M3 or E5M2. Example: 1,299 TFLOPS
        cfp8: Configurable 8-bit floating point of NeuronCore-v2. Example: 190 TFLOPS
        mxfp8: Microscaling 8-bit floating point. Example: 2,517 TFLOPS
        fp6: 6-bit floating point. Example: 4,500 TFLOPS
        mxfp6: Microscaling 6-bit floating point. Example: 4,500 TFLOPS
        fp4: 4-bit floating point. Example: 9 PFLOPS
        mxfp4: Microscaling 4-bit floating point. Example: 2,517 TFLOPS
        int8: 8-bit integer, signed. Example: 380 TOPS
        uint8: 8-bit integer, unsigned. Example: 380 TOPS
        int4: 4-bit integer. Example: 1,248 TOPS
    """

    ORDERED: ClassVar[bool] = False  # documents list them in the order of their source

    fp64: FlopRate | None = None
    fp32: FlopRate | None = None
    tf32: FlopRate | None = None
    bf16: FlopRate | None = None
    fp16: FlopRate | None = None
    fp8: FlopRate | None = None
    cfp8: FlopRate | None = None
    mxfp8: FlopRate | None = None
    fp6: FlopRate | None = None
    mxfp6: FlopRate | None = None
    fp4: FlopRate | None = None
    mxfp4: FlopRate | None = None
    int8: OpRate | None = None
    uint8: OpRate | None = None
    int4: OpRate | None = None


@frozen(kw_only=True, repr=False)
class Peak(ShortRepr):
    """Peak rates, dense and sparse kept apart.

    Attributes:
        dense: Rates on dense operands.
        sparse: Rates counted as if the zeros skipped by structured sparsity were computed.
    """

    dense: Rates | None = None
    sparse: Rates | None = None
