"""Experts in a forward pass: the functions of training, by hand."""

from __future__ import annotations

import pytest
from attrs import evolve

from tests.support.engine import MIXTRAL, MODELS, system
from trnspec.perf.lowering.machine import machine
from trnspec.perf.lowering.system import IDEAL
from trnspec.perf.serving.forward_pass import Deployment, Load, Serving, run_forward
from trnspec.perf.work.transformer import transformer

NVLINK, NETWORK = 450e9, 50e9
NUMBERS = machine(
    system((("server", 8.0, NVLINK, 0.0), ("network", float("inf"), NETWORK, 2e-6)), 64), IDEAL, "bf16"
)  # fmt: skip
TOKENS = 256.0
PLAN = Deployment(tp=8.0, dp=8.0, ep=8.0)


def one_pass(d, plan: Deployment):
    load = Load(TOKENS, *(0.0 for _ in range(len(Load.__attrs_attrs__) - 1)))
    return run_forward(transformer(d), plan, NUMBERS, Serving(), load)


def all_reduce(size: float) -> float:
    return 2 * 7 / 8 * size / NVLINK


@pytest.mark.parametrize(
    ("name", "ep", "results"),
    [
        # Attention and 8 (1 - (7/8)^2) copies; with all experts on every rank one sum.
        ("mixtral", 8.0, 1 + 8 * (1 - (7 / 8) ** 2)),
        ("mixtral", 1.0, 2),
        # 57 of 60 layers have a shared expert and 8 routed ones, 3 a dense network.
        ("latent", 8.0, 1 + 3 / 60 + 57 / 60 * (1 + 8 * (1 - (7 / 8) ** 8))),
        ("latent", 1.0, 2),
        ("llama-8b", 1.0, 2),
    ],
)
def test_ranks_reduce_every_copy(name, ep, results) -> None:
    d = MODELS[name]
    found = one_pass(d, evolve(PLAN, ep=ep))

    assert found.tensor == pytest.approx(d.layers * results * all_reduce(TOKENS * d.hidden * 2), rel=1e-12)


def test_halves_of_the_tokens_overlap() -> None:
    """The all-to-all of one half is hidden by the rest of the layer of the other; both read the weights."""
    *inner, network = NUMBERS.levels
    slow = evolve(NUMBERS, levels=(*inner, evolve(network, seconds_per_byte=64 * network.seconds_per_byte)))
    model, plan = transformer(MIXTRAL), evolve(PLAN, expert_overlap=1.0)

    def passed(tokens: float, plan: Deployment, numbers=NUMBERS):
        return run_forward(model, plan, numbers, Serving(), Load(tokens, *(0.0 for _ in range(5))))

    apart, together = passed(65536.0, PLAN), passed(65536.0, plan)
    # Compute-bound: weights take no time, and all of it is hidden.
    assert apart.expert > 0.0 == together.expert
    assert together.matrices == apart.matrices
    assert together.total == pytest.approx(apart.total - apart.expert, rel=1e-12)
    # Twice the latencies of the network; what the rest of the layer does not hide remains.
    apart, together = passed(65536.0, PLAN, slow), passed(65536.0, plan, slow)
    rest = apart.total - apart.expert
    assert together.total == pytest.approx(apart.expert + MIXTRAL.layers * 2 * 2e-6, rel=1e-9)
    assert together.expert == pytest.approx(together.total - rest, rel=1e-9)
    # Bound by memory: reading the weights twice takes longer than the all-to-all.
    assert passed(16.0, plan) == passed(16.0, PLAN)
    assert passed(1.0, plan, slow) == passed(1.0, PLAN, slow)


def test_bytes_on_the_same_links_add_up() -> None:
    """With free computation an all-to-all hides behind tensor-parallel collectives on other links only."""
    one_server = system((("server", 64.0, NVLINK, 0.0), ("network", float("inf"), NETWORK, 0.0)), 64)
    model, load = transformer(MIXTRAL), Load(65536.0, *(0.0 for _ in range(5)))

    for numbers, same in ((machine(one_server, IDEAL, "bf16"), True), (NUMBERS, False)):
        free = evolve(numbers, seconds_per_flop=0.0, seconds_per_byte=0.0, score=0.0, head=0.0)
        apart, together = (
            run_forward(model, evolve(PLAN, expert_overlap=overlap), free, Serving(), load) for overlap in (0.0, 1.0)
        )
        assert apart.expert > 0.0 < apart.tensor
        expected = apart.total if same else max(apart.expert + MIXTRAL.layers * 2 * 2e-6, apart.tensor)
        assert together.total == pytest.approx(expected, rel=1e-9)
