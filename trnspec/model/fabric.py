"""How chips are wired: the declared topology of a server or an UltraServer."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from trnspec.model.annotations import Count, Text
from trnspec.model.fields import Bandwidth
from trnspec.model.link import Link
from trnspec.model.ref import Ref
from trnspec.short_repr import short_repr


@frozen(kw_only=True)
class Switch:
    """One level of switches.

    Attributes:
        name: What the switch is called. Example: NeuronSwitch-v1
        count: How many switches (or groups that act as one) stand at this level. Example: 36
        chips: Chips that one of them connects. Example: 4
    """

    __repr__ = short_repr

    name: Text
    count: Count
    chips: Count


@frozen(kw_only=True)
class Topology:
    """The shape in which chips are linked.

    Attributes:
        shape: The family of the shape.
        dimensions: Chips along each dimension of a torus or mesh; the single length of a chain or ring. Example: 4
        levels: The levels of switches, nearest to the chip first, when the shape is switched.
        direct: Chips that each chip reaches by a link of its own beside the switches. Example: 1
    """

    __repr__ = short_repr

    shape: Literal["chain", "ring", "torus", "mesh", "hypercube", "switched", "fully-connected"]
    dimensions: tuple[Count, ...] = ()
    levels: tuple[Switch, ...] = ()
    direct: Count | None = None


@frozen(kw_only=True)
class Fabric:
    """The network among the chips of one server or UltraServer.

    Attributes:
        link: The link it is made of. Example: neuronlink-v3
        topology: How the chips are linked.
        links_per_chip: Links that one chip has in this fabric. Example: 4
        bandwidth: What one chip has over these links, both directions added unless noted. Example: 1,024 GB/s
    """

    __repr__ = short_repr

    link: Ref[Link]
    topology: Topology | None = None
    links_per_chip: Count | None = None
    bandwidth: Bandwidth | None = None
