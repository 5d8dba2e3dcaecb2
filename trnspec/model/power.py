"""The kind Power: the power of a chip, a server, an UltraServer or a rack, of one type."""

from __future__ import annotations

from typing import ClassVar, Literal

from attrs import frozen

from trnspec.model import fields
from trnspec.model.annotations import Text
from trnspec.model.quoted import Quoted
from trnspec.model.ref import Ref

PowerType = Literal["tdp", "maximum", "configurable-tdp", "typical", "measured", "nameplate"]
"""Types of power."""

PowerScope = Literal["package", "board", "system", "rack"]
"""Scope of a power: the chip with its memory; the board with regulators; hosts, network and fans; the whole rack."""


@frozen(kw_only=True, repr=False)
class Power(Quoted):
    """The power of one chip, server, UltraServer or rack. The date of a power is that of its source.

    A document without ``power`` has only claims: no source that states one is believed.

    Attributes:
        of: The chip, server, UltraServer or document of another kind that is built of chips. Example: h100-sxm
        type: What the power is a statement of: design power (TDP), maximum, a configured limit, typical load, a
            measurement, or the nameplate of the power supplies. Example: tdp
        scope: What is included; by default the package of a chip, and everything in a system. Example: package
        power: The power of one of it. Example: 700 W
        region: The region or mains voltage, where the figure holds for one only. Example: 200 to 240 V
        load: What ran, of a typical or measured power, or the limit that was set.
        note: A remark for readers.
    """

    KIND: ClassVar[str] = "Power"

    of: Ref[object]
    type: PowerType
    scope: PowerScope | None = None
    power: fields.Power | None = None
    region: Text | None = None
    load: Text | None = None
    note: Text | None = None
