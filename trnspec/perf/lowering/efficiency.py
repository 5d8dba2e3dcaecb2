"""Achieved over published rates: the numbers that a calibration fits, and their ideal values."""

from __future__ import annotations

from attrs import frozen


@frozen(kw_only=True)
class Efficiency:
    """Achieved over published.  The defaults are ideal, so that an uncalibrated answer is a bound, not an estimate.

    A "pass" is one read or one write of a tensor in device memory; the passes are the memory traffic that is exposed,
    not overlapped with matrix multiplication.

    Attributes:
        matmul: Share of the peak rate that large matrix multiplications reach.
        attention: Share of the peak rate that the products of attention reach.
        matmul_passes: Passes over the operands and results of each matrix multiplication.
        hidden_passes: Passes over the residual stream in a layer's forward computation (norms, residuals, dropout).
        score_passes: Passes over the matrix of attention scores; 0 where it is never written (flash attention).
        head_passes: Passes over the logits, forward and backward together.
        optimizer_passes: Passes over the optimizer's states in one step, beyond one.
        memory: Share of the peak rate of device memory that is reached.
        forward: Least time of a layer's forward computation in s: the host launches its kernels no faster.
        backward: Least time of a layer's backward computation in s.
        chip: Share of the rate between the ranks of a chip that collectives reach.
        server: Share of the rate of the links within a server.
        ultraserver: Share of the rate of the links between the servers of an UltraServer.
        network: Share of the rate of the network between servers.
        call: Constant part of the time of one collective, in s.
        hop: Time of one step of a collective within a server or an UltraServer, in s.
        network_hop: Time of one step over the network, in s, where the catalog has no latency.
        send: Constant part of the time of one message between pipeline stages, in s.
        overlap: Share of the computation that communication of gradients and sharded weights can hide behind.
        exposed: Share of that communication that is exposed in any case.
        tensor_overlap: Share of a layer's computation that its tensor-parallel collectives can hide behind.
        step: Constant part of the time of a step, in s.
        causal: 1.0 where attention computes only the half that causality leaves, 0.0 where it computes all.
    """

    matmul: float = 1.0
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
    step: float = 0.0
    causal: float = 1.0


IDEAL = Efficiency()
"""Ideal (no losses): a lower bound on time, an upper bound on throughput."""
