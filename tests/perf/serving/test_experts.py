"""Experts in a forward pass: the functions of training, by hand."""

from __future__ import annotations

import pytest
from attrs import evolve

from tests.support.engine import LLAMA_3_8B, MIXTRAL, MODELS, system
from trnspec.perf.experts import SENT
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


def one_pass(d, plan: Deployment, serving: Serving | None = None):
    load = Load(TOKENS, *(0.0 for _ in range(len(Load.__attrs_attrs__) - 1)))
    return run_forward(transformer(d), plan, NUMBERS, serving or Serving(), load)


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


def test_a_call_for_each_sum() -> None:
    called = Serving(call=1e-3)
    for d, plan, calls in (
        (MIXTRAL, PLAN, 2),
        (LLAMA_3_8B, evolve(PLAN, ep=1.0), 2),
        (MODELS["latent"], PLAN, 3 - 3 / 60),
    ):
        more = one_pass(d, plan, called).tensor - one_pass(d, plan).tensor
        assert more == pytest.approx(d.layers * calls * 1e-3, rel=1e-9)


def test_tokens_go_to_each_rank_once() -> None:
    """There and back, over the network, an eighth of the tokens from each rank."""
    found = one_pass(MIXTRAL, PLAN)
    copies = 8 * (1 - (7 / 8) ** 2) * 7 / 8

    carried = TOKENS * MIXTRAL.hidden * 2 / 8 * copies / NETWORK
    assert found.expert == pytest.approx(MIXTRAL.layers * 2 * (carried + 2e-6), rel=1e-12)
    assert one_pass(MIXTRAL, evolve(PLAN, ep=1.0)).expert == 0.0


def test_dispatch_in_8_bit_and_to_some_nodes() -> None:
    """A byte, and 4 for 128 elements, to the experts, 2 back; both experts of a token on one of eight servers."""

    def sent(**changes: float) -> float:
        return one_pass(MIXTRAL, evolve(PLAN, **changes)).expert - MIXTRAL.layers * 2 * 2e-6

    assert (1 + 4 / 128 + 2) / 4 * sent() == pytest.approx(sent(sent=SENT["fp8"]), rel=1e-12)
    assert sent(node_limit=1.0) == pytest.approx(sent() / (8 * (1 - (7 / 8) ** 2)), rel=1e-12)
    assert sent(node_limit=8.0) == sent()
    # Two copies, of which an eighth stays.
    assert sent(per_node=0.0) == pytest.approx(sent() * 2 / (8 * (1 - (7 / 8) ** 2)), rel=1e-12)


def test_ranks_reduce_received_tokens() -> None:
    """Each copy, or that of the one server that has both experts; sent per copy, shared experts have a sum of their own."""

    def reduced(d, **changes: float) -> float:
        return one_pass(d, evolve(PLAN, **changes)).tensor

    whole = MIXTRAL.layers * all_reduce(TOKENS * MIXTRAL.hidden * 2)

    assert [2 * whole, 3 * whole] == pytest.approx(
        [reduced(MIXTRAL, node_limit=1.0), reduced(MIXTRAL, per_node=0.0)], rel=1e-12
    )
    latent = MODELS["latent"]
    whole = latent.layers * all_reduce(TOKENS * latent.hidden * 2)
    assert (1 + 3 / 60 + 57 / 60 * (1 + 8)) * whole == pytest.approx(reduced(latent, ep=1.0, per_node=0.0), rel=1e-12)


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
