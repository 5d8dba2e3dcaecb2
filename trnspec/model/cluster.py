"""The kind Cluster: many servers on one network, such as an EC2 UltraCluster."""

from __future__ import annotations

from typing import Annotated

from attrs import frozen

from trnspec.model.annotations import Least, Pattern, Text
from trnspec.model.chip import Chip
from trnspec.model.fields import Bandwidth
from trnspec.model.parts import CountRange, PartCount, Parts  # read at run time
from trnspec.model.ref import Ref
from trnspec.model.server import Server
from trnspec.short_repr import ShortRepr

CountBound = Annotated[
    str,
    Pattern(
        r"^(over |up to |~)?[0-9]{1,3}(,?[0-9]{3})*$",
        "a count that may be a bound, such as 'over 30,000', or '~30,000'",
        numbers=(1, 2**53),
    ),
]
"""A count as printed. Publishers state bounds for clusters, not counts."""


@frozen(kw_only=True, repr=False)
class Cluster(ShortRepr):
    """Many servers on one network. Its published size is a dated bound, not a count.

    Attributes:
        chip: The chip it is built of. Example: trainium1
        servers: The servers it is built of. Example: trn1.32xlarge
        chips: The number of chips, or a bound of it. Example: over 30,000
        network: The name of the network, as its publisher writes it. Example: petabit-scale EFA
        per_server: The network bandwidth of each server, in one direction. Example: 800 Gbps
    """

    chip: Ref[Chip] | None = None
    servers: Annotated[tuple[Ref[Server], ...], Least(1)] = ()
    chips: CountBound | None = None
    network: Text | None = None
    per_server: Bandwidth | None = None

    def parts(self) -> Parts[Server | Chip]:
        """Its servers, whose number is not published, or its chips where no servers are named."""
        if self.servers or self.chip is None:
            return tuple((None, server) for server in self.servers)
        return ((self.part_chips(), self.chip),)

    def part_chips(self) -> PartCount | None:
        """The number of chips of all parts together, from which the number of its servers follows."""
        return None if self.chips is None else CountRange.parse(self.chips)
