"""The averages over a model's layers: their totals are those of its dimensions, for every model of the catalog."""

import math

import pytest
from attrs import NOTHING, astuple, evolve, fields

from tests.support.engine import LLAMA_3_8B, MODELS, SYSTEMS, forward_flops, layer_flops, parameters, shipped
from trnspec.model.transformers.counting import dimensions, layers_of, sizes
from trnspec.model.transformers.counting import parameters as counted
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.model.transformers.model import Model
from trnspec.perf.lowering.machine import IDEAL, machine
from trnspec.perf.roofline import pieces
from trnspec.perf.training.microbatch import attention_scores, layer_seconds_per_token
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.transformer import attended_keys, span, transformer

ALL = {node.name: dimensions(node.spec) for node in shipped().graph.of(Model)} | {
    # Multi-token prediction is not part of the forward pass.
    f"made-{n}": evolve(d, mtp_layers=0.0)
    for n, d in MODELS.items()
}
NAMES = tuple(ALL)
MACHINE = evolve(machine(SYSTEMS[0], IDEAL, "bf16"), seconds_per_flop=1.0, score=1.0)
"""A machine that takes a second for a FLOP."""


def close(expected: float, actual: float, rel: float = 1e-12) -> None:
    assert math.isclose(expected, actual, rel_tol=rel, abs_tol=0.0), (expected, actual)


@pytest.mark.parametrize("name", NAMES)
def test_parameters(name):
    """All of them: layers, embedding, output and what lies outside."""
    close(counted(ALL[name]), parameters(transformer(ALL[name])))


def test_results_of_the_residual_stream():
    """Each layer adds two, but those of a single operation; without a dense network, experts or none stand in for it."""
    for node in shipped().graph.of(Model):
        attended, recurrent, dense, with_experts = layers_of(node.spec)
        networks = dense + with_experts if dense else node.spec.layers
        assert 2 * node.spec.layers == attended + recurrent + networks + ALL[node.name].absent_results, node.name
    known = {f.name: f.default for f in fields(Dimensions) if f.default not in (NOTHING, 0.0)}
    assert known == {"causal": 1.0}


def test_sizes_are_exact():
    """Integers or fractions, also those that a model does not have."""
    rounded = [n.name for n in shipped().graph.of(Model) if any(isinstance(v, float) for v in astuple(sizes(n.spec)))]
    assert [] == rounded


def test_routed_experts_of_their_own_size():
    """Nemotron 3 Super: a shared expert of two matrices, and matrices from 4,096 to 1,024 and back."""
    assert 2 * 4096 * 5376 + 2 * 4096 * 1024 == ALL["nemotron-3-super"].shared_weights


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seq", [128.0, 4096.0, 131072.0])
def test_forward_work(name, seq):
    """Matrices of all layers and scores, as ``trnspec.perf.work.transformer`` counts them, causal or not, windows or none."""
    d = ALL[name]
    model = transformer(d)
    for convention, causal in (("full", 0.0), ("causal", 1.0)):
        expected = forward_flops(d, 1.0, seq, convention)
        close(expected.matrices, d.layers * 2.0 * model.weights)
        keys = attended_keys(model, seq, 0.5 * causal * model.causal, 0.0)
        close(expected.scores, d.layers * 2.0 * model.scores * keys)
        # The same in time, on a machine that takes a second a FLOP.
        one = evolve(MACHINE, achieved=evolve(IDEAL, causal=causal))
        alone = Layout(seq=seq, global_batch=1.0, flash=0.0)
        close(expected.matrices, d.layers * layer_seconds_per_token(model, alone, one))
        close(expected.scores, d.layers * attention_scores(model, alone, one)[0])


@pytest.mark.parametrize("name", NAMES)
def test_layers_add_up(name):
    """Some dense ones, some with experts: the average times all of them is their sum."""
    d = ALL[name]
    model = transformer(d)
    dense, expert = d.layers - d.expert_layers, d.expert_layers
    one = {kind: layer_flops(d, 1.0, 512.0, kind).matrices for kind, many in ((0.0, dense), (1.0, expert)) if many}
    close(sum(many * one[kind] for kind, many in ((0.0, dense), (1.0, expert)) if many), d.layers * 2.0 * model.weights)
    # What a rank keeps and what is routed: all elements of matrices in the layers.
    held = d.layers * d.attention_weights + dense * d.mlp_weights
    held += expert * (d.experts * d.expert_weights + d.shared_weights + d.router_weights)
    close(held, d.layers * (model.whole + model.routed))
    assert expert * d.active == pytest.approx(d.layers * model.dispatched, rel=1e-12)


@pytest.mark.parametrize("name", [n for n, d in ALL.items() if not d.expert_layers])
def test_bytes_of_the_residual_stream(name):
    """Operands and results of a layer's matrices, each once; scores are apart."""
    d = ALL[name]
    model = transformer(d)
    sizes = {"sequences": 1.0, "seq": 1.0, "convention": "full", "element_bytes": 1.0, "kv_bytes": 1.0, "logits": 0.0}
    one, two = (
        sum(p.count * p.traffic for p in pieces(d, tokens=tokens, **sizes) if p.name in ("projections", "mlp"))
        for tokens in (1.0, 2.0)
    )
    close(two - one, d.layers * (2.0 * d.hidden * (model.results + model.shared) + model.split))


@pytest.mark.parametrize("convention", ["full", "causal"])
def test_windows(convention):
    """A windowed layer meets what its window shows; of every second layer the mean."""
    causal = float(convention == "causal")
    d = evolve(LLAMA_3_8B, window=1024.0, windowed_layers=16.0)
    model = transformer(d)
    for seq in (512.0, 1024.0, 4096.0):
        expected = (span(seq, 0.0, 1.0, convention) + span(seq, 1024.0, 1.0, convention)) / 2.0
        close(expected, attended_keys(model, seq, 0.5 * causal, 0.0))
    # By hand: all of 4,096 tokens meet 1,024, but the first 1,024, which meet half as many on average.
    windowed = transformer(evolve(d, windowed_layers=32.0))
    close((3072 * 1024 + 1024 * 512) / 4096, attended_keys(windowed, 4096.0, 0.5, 0.0))


@pytest.mark.parametrize(("convention", "read"), [("full", 1024.0), ("causal", 4096.0)])
def test_keys_read_in_a_window(convention, read):
    """Decoding reads the keys within the window, a prefill those of the whole sequence."""
    d = evolve(LLAMA_3_8B, window=1024.0, windowed_layers=32.0)
    sizes = {"seq": 4096.0, "convention": convention, "element_bytes": 0.0, "kv_bytes": 2.0, "logits": 0.0}
    (scores,) = (p for p in pieces(d, tokens=1.0, sequences=3.0, **sizes) if p.name == "scores")
    assert 3.0 * read * 2 * 8 * 128 * 2.0 == scores.traffic
