"""Slips in documents of power, made one at a time: wrong factors, and the power, name or type of another."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

from tests.support.mutations import Change
from trnspec.graph.quotes import POWER_TYPES
from trnspec.model.quotes import Power

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trnspec.graph.graph import Graph

FACTORS = {"power x10": Decimal(10), "power x0.1": Decimal("0.1"), "power x1000": Decimal(1000)}
KINDS = (*FACTORS, "power of one chip", "another's power", "another subject", "another type of power")
PATH = ("spec", "power")


def power_changes(graph: Graph) -> Iterator[Change]:
    """Every slip of these kinds in the power of a catalog.

    A power is replaced by that of another chip or system of the same type only where the two differ by more than half: chips
    of one generation draw nearly the same.
    """
    known = [node for node in graph.of(Power) if node.spec.power is not None]
    for node in known:
        text = node.spec.power.value.text
        number, unit = text.replace(",", "").split()
        for kind, factor in FACTORS.items():
            yield Change(kind, node.name, ((PATH, f"{Decimal(number) * factor:f} {unit}"),), (text,))
        if node.spec.scope == "system":
            yield Change("power of one chip", node.name, ((PATH, f"{Decimal(number) / 8:f} {unit}"),), (text,))
        for other in known:
            ratio = float(other.spec.power.value) / float(node.spec.power.value)
            if other.spec.type == node.spec.type and not 2 / 3 < ratio < 1.5:
                yield Change("another's power", node.name, ((PATH, other.spec.power.value.text),), (text,))
            if other.spec.of != node.spec.of:
                edit = ((("spec", "of"), other.spec.of.name),)
                yield Change("another subject", node.name, edit, (node.spec.of.name,))
        for type_ in POWER_TYPES:
            if type_ != node.spec.type:
                yield Change("another type of power", node.name, ((("spec", "type"), type_),), (node.spec.type,))
