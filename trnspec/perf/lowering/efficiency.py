"""Achieved over published performance: the parameters that a calibration fits, ideal by default."""

from __future__ import annotations

from attrs import frozen


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
