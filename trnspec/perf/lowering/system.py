"""The system as the engine uses it: the rates of one rank and of its links, and what of them software achieves."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from trnspec.errors import RefusalError
from trnspec.evidence import UsedFigure
from trnspec.topology.shapes import Shape


@frozen(kw_only=True)
class Efficiency:
    """Achieved over published performance.  The defaults are ideal, so that uncalibrated times are lower bounds.

    A "pass" is one read or write of a tensor in device memory; passes count the memory traffic that is not overlapped with
    matrix multiplication.

    Attributes:
        matmul: Share of the peak rate that large matrix multiplications achieve.
        matmul_fp8: The same in 8 bit; ``None`` for that of ``matmul``.
        matmul_fp4: The same in 4 bit; ``None`` for that in 8 bit.
        attention: Share of the peak rate that attention scores and values achieve.
        matmul_passes: Passes over the operands and results of each matrix multiplication.
        hidden_passes: Passes over the residual stream in a layer's forward pass (norms, residuals, dropout).
        score_passes: Passes over the matrix of attention scores where it is written, so not with flash attention.
        head_passes: Passes over the logits, forward and backward together.
        optimizer_passes: Passes over what the optimizer reads and writes in one step, beyond one.
        memory: Share of the device-memory bandwidth that is achieved.
        forward: Least time of a layer's forward pass, due to kernel launches by the host [s].
        backward: Least time of a layer's backward pass [s].
        chip: Share of the rate between the ranks of a chip that collectives achieve.
        server: Share of the rate of the links within a server.
        ultraserver: Share of the rate of the links between the servers of an UltraServer.
        network: Share of the rate of the network between servers.
        call: Fixed time of one collective [s].
        hop: Time of one step of a ring within a server or an UltraServer [s]; the first takes the published latency, if any.
        network_hop: The same over the network [s].
        send: Fixed time of one message between pipeline stages [s].
        overlap: Share of the computation that can overlap with communication of gradients and sharded weights.
        exposed: Share of that communication that is exposed in any case, where a stage is one model chunk.
        tensor_overlap: Share of a layer's computation that can overlap with its tensor-parallel collectives.
        pipeline_overlap: Share of the messages between pipeline stages that the interleaved schedule overlaps with the
            computation of other model chunks.
        exchange: Share of the rate that other collectives achieve which an all-to-all between experts achieves.
        dispatch: Fixed time of one all-to-all between experts besides that of a collective: sorting and permuting tokens,
            and the launch of their kernels [s].
        expert_overlap: Share of the rest of a layer that the all-to-all can overlap with, where software overlaps them.
        step: Fixed time of a step [s].
        causal: 1.0 where attention that writes its scores computes only the causal half, 0.0 where it computes all.
    """

    matmul: float = 1.0
    matmul_fp8: float | None = None
    matmul_fp4: float | None = None
    attention: float = 1.0
    matmul_passes: float = 0.0
    hidden_passes: float = 0.0
    score_passes: float = 0.0
    head_passes: float = 0.0
    optimizer_passes: float = 0.0
    memory: float = 1.0
    forward: float = 0.0
    backward: float = 0.0
    chip: float = 1.0
    server: float = 1.0
    ultraserver: float = 1.0
    network: float = 1.0
    call: float = 0.0
    hop: float = 0.0
    network_hop: float = 0.0
    send: float = 0.0
    overlap: float = 1.0
    exposed: float = 0.0
    tensor_overlap: float = 0.0
    pipeline_overlap: float = 0.0
    exchange: float = 1.0
    dispatch: float = 0.0
    expert_overlap: float = 1.0
    step: float = 0.0
    causal: float = 1.0

    def matmul_share(self, dtype: str) -> float:
        """Share of the peak rate that large matrix multiplications in a compute dtype achieve."""
        four_bit = dtype.endswith(("fp4", "int4"))
        if four_bit and self.matmul_fp4 is not None:
            return self.matmul_fp4
        if (four_bit or dtype.endswith(("fp8", "int8"))) and self.matmul_fp8 is not None:
            return self.matmul_fp8
        return self.matmul


IDEAL = Efficiency()
"""No losses: times computed with it are lower bounds, throughputs upper bounds."""


UNKNOWN = 0.0
"""A rate that is not published. A computation that needs it raises ``RefusalError``; no other rate replaces it."""


@frozen(kw_only=True)
class Level:
    """One level of the hierarchy of links between ranks.

    Attributes:
        name: ``chip``, ``server``, ``ultraserver`` or ``network``.
        ranks: Ranks within one unit of this level.
        rate: Rate of one rank over this level in one direction, when all ranks send and receive concurrently, in B/s;
            :data:`UNKNOWN` where it is not published.
        latency: Time of the smallest message over this level, in s, as published; 0 if none is.
        link: The name of the link.
        place: The document and the attribute of the rate, whether or not it is stated.
        latency_place: The document and the attribute of the latency, whether or not it is stated.
        reduces: Whether its switches can reduce and multicast (in-network reduction).
        shape: The declared topology among the chips; ``None`` for a network, a chip, or if not declared.
    """

    name: str
    ranks: float
    rate: float
    latency: float = 0.0
    link: str = ""
    place: str = ""
    latency_place: str = ""
    reduces: bool = False
    shape: Shape | None = field(default=None, repr=False)


@frozen(kw_only=True)
class LoweredSystem:
    """The system of an evaluation.  Rates and capacities are those of one rank.

    Attributes:
        name: The system as given in the input: ``trn1.32xlarge*32``.
        chip: The name of the chip.
        chips: Chips of all servers.
        servers: Servers.
        ranks: Ranks: logical cores of all chips, or chips if a chip is one rank.
        ranks_per_chip: Ranks that share a chip, and its memory, links and rates.
        lnc: Physical cores of one logical core; 0 if a core of the chip is not a rank.
        rates: Peak dense rate of matrix multiplication by data type, in FLOP/s (or OP/s).
        published: Peak dense rate by data type as published, the denominator of MFU.
        capacity: Device memory, in B, where all ranks of the chip are in use.
        bandwidth: Rate between a rank and its device memory, in B/s.
        sharing: Ranks that share one memory stack; one in use alone reaches all of it.
        host_memory: Memory of the host, in B; :data:`UNKNOWN` if it is not published.
        levels: From the innermost outwards.
        figures_used: The catalog figures used.
        ends: The same system with every figure at the slow end, and at the fast end of its interval.
    """

    name: str
    chip: str
    chips: float
    servers: float
    ranks: float
    ranks_per_chip: float
    lnc: float
    rates: Mapping[str, float]
    published: Mapping[str, float]
    capacity: float
    bandwidth: float
    sharing: float = 1.0
    host_memory: float = UNKNOWN
    levels: tuple[Level, ...]
    figures_used: tuple[UsedFigure, ...] = field(default=(), repr=False)
    ends: tuple[LoweredSystem, LoweredSystem] | None = field(default=None, repr=False)

    def rate(self, dtype: str) -> float:
        """The peak dense rate of matrix multiplication in FLOP/s, of one rank.

        Raises:
            RefusalError: ``unknown-figure``: no rate is published for the type.
        """
        if dtype not in self.rates:
            raise RefusalError(
                "unknown-figure",
                f"{self.chip} has no published dense rate for {dtype}",
                place=f"{self.chip} spec.peak.dense.{dtype}",
                hint=f"types with a rate: {', '.join(self.rates)}",
            )
        return self.rates[dtype]

    def peak(self, dtype: str) -> float:
        """The rate of all ranks that MFU is a share of [FLOP/s]: as published, else that of the tensor engine."""
        return self.ranks * self.published.get(dtype, self.rates[dtype])

    def unknown_link(self) -> RefusalError:
        """The error of a layout that communicates over links whose rate is not published: the innermost such level."""
        missing = next((level for level in self.levels if not level.rate), None)
        link = "a link between servers" if missing is None else f"the links of the level {missing.name}"
        return RefusalError(
            "unknown-figure",
            f"the layout needs {link} of {self.name}, whose rate is not published",
            place="" if missing is None else missing.place,
        )

    def figures_with(self, dtype: str) -> tuple[UsedFigure, ...]:
        """The catalog figures used; of the compute rates only that of a dtype."""
        return tuple(b for b in self.figures_used if ".dense." not in b.at or b.at.endswith(f".{dtype}"))

    def figures_used_for(self, *names: str) -> tuple[UsedFigure, ...]:
        """The figures whose path ends in one of some names: ``bf16``, ``bandwidth``."""
        return tuple(b for b in self.figures_used if b.at.rsplit(".", 1)[-1] in names)
