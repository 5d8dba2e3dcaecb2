"""Proportions that differ between siblings and would be expected to be equal; none of them is an error.

Host memory per chip, the ratio of single-precision to half-precision rates, the gain from sparsity: a generation that
is computed from another one with a fixed factor is wrong in the cases listed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from attrs import frozen

from trnspec.checks.reconcile.relations import site
from trnspec.checks.reconcile.sites import Site
from trnspec.graph.composition import chips
from trnspec.graph.graph import Graph
from trnspec.graph.provenance import claims_at
from trnspec.model.chip import Chip
from trnspec.model.document import Node
from trnspec.model.server import Server
from trnspec.model.ultraserver import UltraServer
from trnspec.quantities.quantity import Interval, Quantity, render


@frozen
class Share:
    """One quotient.

    Attributes:
        of: The quotient as text, with the document.
        interval: The quotient in base units, with the rounding of both figures propagated.
        unit: The unit to show it in; empty for a pure number.
        note: The verdict on the claim, if the dividend is a claim.
    """

    of: str
    interval: Interval
    unit: str = ""
    note: str = ""

    def __str__(self) -> str:
        middle = self.interval.middle
        return render(middle, self.unit, 4) if self.unit else f"{float(middle):.4g}"


@frozen
class Proportion:
    """A quotient that differs between siblings beyond rounding.

    Attributes:
        name: The dividend and the divisor.
        shares: The quotients.
        cause: The reason for the difference, with the arithmetic that supports it.
    """

    name: str
    shares: tuple[Share, ...]
    cause: str


def proportions(graph: Graph) -> list[Proportion]:
    """The proportions of a catalog that differ between siblings."""
    candidates = [p for make in _MAKERS for p in make(graph)]
    return [p for p in candidates if _differ(p.shares)]


def _differ(shares: tuple[Share, ...]) -> bool:
    return any(not a.interval.overlaps(b.interval) for i, a in enumerate(shares) for b in shares[i + 1 :])


def _values(node: Node[Any], path: str) -> Iterator[tuple[Site, str]]:
    """The adopted figure and every claim on it that is a quantity, each with the verdict."""
    own = site(node, path)
    if own.value is not None:
        yield own, ""
    for index in claims_at(node).get(own.path, ()):
        said = Site(node, own.path, index)
        if isinstance(said.value, Quantity):
            yield said, node.claims[index].verdict or "agrees"


def _host(graph: Graph) -> Iterator[Proportion]:
    """Host resources per chip of UltraServers of one chip: hosts are sized per server."""
    for path, words in (("stated.host.vcpus", "vCPUs"), ("stated.host.memory", "host memory")):
        by_chip: dict[str, list[tuple[Share, str]]] = {}
        for node in graph.of(UltraServer):
            counted, total = chips(graph, node), site(node, path)
            server = graph.find(node.spec.servers.server)
            if counted is None or total.value is None or server is None:
                continue
            unit = total.value.unit.symbol if isinstance(total.value, Quantity) else ""
            share = Share(f"{total.value} of {node.name}", total.interval.scaled(Fraction(1, counted[0])), unit)
            notes = f"{node.name} has {server.spec.chips.count} chips in a server"
            by_chip.setdefault(counted[1].name, []).append((share, notes))
        for chip, described in by_chip.items():
            cause = "the hosts differ, they are sized by the server and not by its chips: "
            cause += ", ".join(notes for _, notes in described) + "; not an error, and not to be scaled by chips"
            yield Proportion(f"{words} per {chip}", tuple(s for s, _ in described), cause)


def _network(graph: Graph) -> Iterator[Proportion]:
    """Network bandwidth per chip among all systems of one network generation."""
    shares: list[Share] = []
    notes: list[str] = []
    for node in (*graph.of(Server), *graph.of(UltraServer)):
        counted = chips(graph, node)
        path = "network.bandwidth" if isinstance(node.spec, Server) else "stated.network.bandwidth"
        if counted is None or counted[0] == 1 or counted[1].name == "trainium1":
            continue
        for said, verdict in _values(node, path):
            if verdict not in ("other-scope", "agrees"):
                interval = said.interval.scaled(Fraction(1, counted[0]))
                shares.append(Share(f"{said.value} of {node.name}", interval, "Gbit/s", verdict))
        if isinstance(node.spec, UltraServer):
            notes += [
                f"{s.of} is one server's figure, 1 of {node.spec.servers.count}"
                for s in shares
                if s.note == "rejected" and s.of.endswith(node.name)
            ]
    unique = tuple({(s.of, s.note): s for s in shares}.values())
    yield Proportion("network bandwidth per chip", unique, "; ".join(dict.fromkeys(notes)))


def _single(graph: Graph) -> Iterator[Proportion]:
    """Single over half precision: a quarter on the tensor engines, more if other engines are counted."""
    shares, notes = [], []
    for chip in graph.of(Chip):
        fp32, bf16 = site(chip, "peak.dense.fp32"), site(chip, "peak.dense.bf16")
        if fp32.value is None or bf16.value is None:
            continue
        shares.append(Share(f"{fp32.value} / {bf16.value} of {chip.name}", fp32.interval.ratio(bf16.interval)))
        own, half = site(chip, "tensor_peak.dense.fp32"), site(chip, "tensor_peak.dense.bf16")
        if own.value is not None and half.value is not None:
            notes.append(
                f"{own.value} / {half.value} = {float(own.interval.low / half.interval.low):.3g} of {chip.name}"
            )
    cause = "the printed peak counts engines other than the tensor engines, whose own share is " + ", ".join(notes)
    yield Proportion("FP32 over BF16, dense", tuple(shares), cause)


def _sparse(graph: Graph) -> Iterator[Proportion]:
    """Sparse over dense by type: one sparse rate is printed for types whose dense rates differ."""
    for node in (*graph.of(Chip), *graph.of(Server), *graph.of(UltraServer)):
        group = "peak" if isinstance(node.spec, Chip) else "stated.peak"
        for verdict in ("", "superseded"):
            shares: list[Share] = []
            for dtype in ("fp8", "bf16"):
                sides = [
                    [s for s, v in _values(node, f"{group}.{k}.{dtype}") if v == verdict] for k in ("sparse", "dense")
                ]
                if all(sides):
                    sparse, dense = sides[0][0], sides[1][0]
                    words = f"{sparse.value} / {dense.value} for {dtype} of {node.name}"
                    shares.append(Share(words, sparse.interval.ratio(dense.interval), "", verdict))
            if len(shares) > 1:
                cause = (
                    "one sparse rate is printed for both, and dense FP8 is about twice dense BF16: two gains, not one"
                )
                yield Proportion(f"sparse over dense of {node.name}", tuple(shares), cause)


_MAKERS: tuple[Callable[[Graph], Iterator[Proportion]], ...] = (_host, _network, _single, _sparse)
