"""Wiring of chips: the declared topology of a server or an UltraServer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from attrs import frozen

from trnspec.model.annotations import Count, Text
from trnspec.model.link import Link, LinkRate
from trnspec.model.ref import Ref
from trnspec.model.source import Source
from trnspec.short_repr import ShortRepr


@frozen(kw_only=True, repr=False)
class Switch(ShortRepr):
    """One level of switches.

    Attributes:
        name: The name of the switch. Example: NeuronSwitch-v1
        count: The number of switches (or of groups that act as one) at this level. Example: 36
        chips: Chips that one of them connects. Example: 4
    """

    name: Text
    count: Count
    chips: Count


@frozen(kw_only=True, repr=False)
class Topology(ShortRepr):
    """The shape in which chips are linked.

    Attributes:
        shape: The shape.
        dimensions: Chips along each dimension of a torus or mesh; the single length of a chain or ring. Example: 4
        levels: The levels of switches, nearest to the chip first, when the shape is switched.
        direct: Chips that each chip reaches by a link of its own, not through the switches. Example: 1
    """

    shape: Literal["chain", "ring", "torus", "mesh", "hypercube", "switched", "fully-connected"]
    dimensions: tuple[Count, ...] = ()
    levels: tuple[Switch, ...] = ()
    direct: Count | None = None


@frozen(kw_only=True, repr=False)
class Fabric(ShortRepr):
    """The network among the chips of one server or UltraServer.

    Attributes:
        link: The type of its links. Example: neuronlink-v3
        topology: How the chips are linked.
        links_per_chip: Links that one chip has in this fabric. Example: 4
        bandwidth: The rate of one chip over all these links.
        source: The source of every value of the fabric that names none, if it is not the source of the document.
        where: The place in it. Example: HGX H100 8-GPU
    """

    RENAMED: ClassVar[Mapping[str, str]] = {"bandwidth": "bandwidth.both"}

    link: Ref[Link]
    topology: Topology | None = None
    links_per_chip: Count | None = None
    bandwidth: LinkRate | None = None
    source: Ref[Source] | None = None
    where: Text | None = None
