"""Measurements with PyTorch on the processor: times, rows, and what the command writes; skipped where it is not installed."""

import csv
from math import prod

import numpy as np
import pytest

from tests.support.programs import Here
from trnspec.api import load, validate
from trnspec.measure import kernels, layer
from trnspec.measure.collectives import KINDS, collectives
from trnspec.measure.device import device_of
from trnspec.measure.shapes import SMALL, Layer
from trnspec.measure.timing import Effort, measured
from trnspec.perf.calibration.measured.cells import records

torch = pytest.importorskip("torch", reason="measuring needs PyTorch, the extra measure")


@pytest.fixture(scope="module")
def device():
    """One thread, whose times do not depend on what other processes run."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield device_of("cpu")
    torch.set_num_threads(threads)


def test_times_are_those_of_the_work(device):
    """A product of 512 times the work takes longer, and a batch has as many calls as its least time needs."""
    small, large = (torch.randn(n, n) for n in (64, 512))
    effort = Effort(warmup=1, batches=3, least=2e-3)
    times = [measured(lambda a=a: a @ a, device, effort) for a in (small, large)]
    assert times[0].seconds * 4.0 < times[1].seconds
    assert times[0].calls > times[1].calls
    assert all(t.low <= t.seconds <= t.high for t in times)


def test_kernels(device):
    gemms, copies, attention = (
        [*function(device, SMALL)] for function in (kernels.gemms, kernels.copies, kernels.attention)
    )
    assert [f"gemm-fp32-{m}x{n}x{k}" for m, n, k in SMALL.gemms] == [row["id"] for row in gemms]
    for row in gemms:
        flop = 2.0 * prod(float(row[name]) for name in "mnk")
        assert flop / float(row["time_us"]) / 1e6 == pytest.approx(float(row["tflops_per_chip"]), rel=1e-4)
    assert 2.0 * 2**16 / float(copies[0]["time_us"]) / 1e3 == pytest.approx(float(copies[0]["achieved"]), rel=1e-4)
    assert [("prefill", "yes"), ("decode", "no")] == [(row["phase"], row["causal"]) for row in attention]


def test_a_layer(device):
    """Twice the tokens keep twice the activations; the backward computation has twice the work."""
    one = Layer(batch=1, seq=32, hidden=64, heads=4, kv_heads=2, width=128)
    rows = [*layer.layers(device, SMALL)]
    assert {"layer_forward", "layer_backward"} >= {row["op"] for row in rows}
    weights = layer._LayerWeights(one, device, "fp32")
    kept = [layer._saved(weights, torch.randn(1, seq, 64, requires_grad=True)) for seq in (32, 64)]
    assert kept[1] == pytest.approx(2.0 * kept[0], rel=0.1)
    matrices = sum(w.numel() for w in weights.all if w.dim() == 2)
    assert 2.0 * 32 * matrices + 2.0 * 32 * 33 * 64 == layer.flops(one)


def test_the_computation_of_a_layer(device):
    """The same as in NumPy: norm, causal attention of groups of heads, and a gated network, each added to its input."""
    one = Layer(batch=2, seq=5, hidden=32, heads=4, kv_heads=2, width=24)
    weights = layer._LayerWeights(one, device, "fp32")
    x = torch.randn(one.batch, one.seq, one.hidden)
    qkv, out, up, down = (w.detach().double().numpy() for w in weights.all[:4])

    def normed(a):
        return a / np.sqrt((a * a).mean(-1, keepdims=True))

    def heads(a, number):
        return a.reshape(one.batch, one.seq, number, 8).repeat(one.heads // number, axis=2).transpose(0, 2, 1, 3)

    y = x.double().numpy()
    q, k, v = np.split(normed(y) @ qkv.T, [32, 48], axis=-1)
    scores = heads(q, 4) @ heads(k, 2).swapaxes(-1, -2) / np.sqrt(8.0)
    shares = np.where(np.tril(np.ones((one.seq, one.seq))), np.exp(scores), 0.0)
    attended = shares / shares.sum(-1, keepdims=True) @ heads(v, 2)
    y = y + attended.transpose(0, 2, 1, 3).reshape(y.shape) @ out.T
    gate, wide = np.split(normed(y) @ up.T, 2, axis=-1)
    expected = y + (gate / (1.0 + np.exp(-gate)) * wide) @ down.T
    np.testing.assert_allclose(weights.forward(x).detach().numpy(), expected, rtol=1e-4, atol=1e-5)


def test_collectives_between_two_processes(device):
    rows = collectives(device, SMALL, 2)
    assert [(kind, str(size)) for kind in KINDS for size in SMALL.collectives] == [
        (row["collective"], row["size_bytes"]) for row in rows
    ]
    assert all(float(row["time_us"]) > 0.0 for row in rows)
    assert [] == collectives(device, SMALL, 1)


def test_the_command(tmp_path, monkeypatch, capsys):
    here = Here(tmp_path, monkeypatch, capsys)
    options = ("measure", "--device", "cpu", "--small", "--only", "gemm", "--only", "copy", "--chip", "trainium1")
    done = here(*options, "--out", "mine", "--name", "lab", "--format", "json")
    assert 0 == done.status, done.err
    result = done.data
    assert ("trainium1", 3) == (result["chip"], len(result["rows"]))
    assert {"PyTorch", "Python", "system", "threads"} == set(result["device"]["facts"])
    assert {"gemm", "device2device"} == {each["what"] for each in result["compared"]}
    assert all(0.0 < each["best"] < 1.0 for each in result["compared"] if each["what"] == "gemm")
    assert [] == list(validate([str(tmp_path / "mine")]).report.diagnostics)
    graph = load([str(tmp_path / "mine")]).graph
    assert result["rows"][:2] == [
        {name: text for name, text in row.items() if text}
        for row in records(tmp_path / "mine" / "measured" / "lab-matmul.csv", graph)
    ]
    scored = here("eval", "accuracy", "--data", "mine/measured/lab-matmul.csv", "--format", "csv")
    assert 0 == scored.status, scored.err
    assert {row["id"] for row in result["rows"][:2]} <= {
        c for line in csv.reader(scored.out.splitlines()) for c in line
    }
    again = here(*options, "--out", "mine", "--name", "lab")
    assert (2, True) == (again.status, "exists; --force overwrites it" in again.err)
