"""Measurements on a device of known speed, a stand-in for PyTorch: rates, numbers of calls, and what is measured."""

import json
import sys
from unittest.mock import MagicMock

import pytest
from attrs import evolve

from tests.support.engine import everything
from trnspec.errors import UsageError
from trnspec.measure import collectives, kernels, layer, timing
from trnspec.measure.device import Device, chip_of, device_of
from trnspec.measure.layer import flops
from trnspec.measure.shapes import FULL, SMALL
from trnspec.measure.timing import QUICK, Effort, Timing, measured

CPU, GPU = (Device(kind=kind, name="NVIDIA H200", count=1) for kind in ("cpu", "cuda"))


@pytest.fixture
def torch(monkeypatch):
    module = MagicMock(__version__="2.8.0")
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


@pytest.fixture
def seconds(monkeypatch):
    """The clock of the processor."""
    now = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: now[0])
    return now


def test_batches_of_the_processor(seconds):
    """Two calls of warm-up, one that is timed, and batches of 5 calls that take 3, 1 and 2 ms each."""
    taken = iter([1e-3] * 3 + [3e-3] * 5 + [1e-3] * 5 + [2e-3] * 5)

    def call() -> None:
        seconds[0] += next(taken)

    found = measured(call, CPU, Effort(warmup=2, batches=3, least=5e-3))
    assert (5, 3, None) == (found.calls, found.batches, next(taken, None))
    assert pytest.approx((2e-3, 1e-3, 3e-3)) == (found.seconds, found.low, found.high)
    assert "median of 3 batches of 5 calls; 1000 to 3000 us" == found.note


@pytest.mark.parametrize(
    ("effort", "each", "warmup", "calls", "batches"),
    [(Effort(), 1e-3, 5, 5, 15), (QUICK, 1e-3, 1, 1, 3), (Effort(), 0.0, 5, 10_000, 15)],
)
def test_the_calls_of_a_batch(seconds, effort, each, warmup, calls, batches):
    made = []

    def call() -> None:
        made.append(each)
        seconds[0] += each

    found = measured(call, CPU, effort)
    assert (calls, batches, pytest.approx(each)) == (found.calls, found.batches, found.seconds)
    assert warmup + 1 + batches * calls == len(made)


def test_batches_of_a_gpu(torch):
    """Events state milliseconds; the device is waited for before the first batch and in each."""
    now = [0.0]

    class Event:
        def __init__(self, *, enable_timing):
            assert enable_timing

        def record(self):
            self.at = now[0]

        def elapsed_time(self, end):
            return end.at - self.at

    def call() -> None:
        now[0] += 2.0

    torch.cuda.Event = Event
    found = measured(call, GPU, Effort(warmup=1, batches=3, least=8e-3))
    assert (4, pytest.approx(2e-3), 5) == (found.calls, found.seconds, torch.cuda.synchronize.call_count)


@pytest.mark.parametrize("device", [CPU, GPU])
def test_rates_of_kernels_of_one_microsecond(torch, monkeypatch, device):
    one = Timing(seconds=1e-6, low=1e-6, high=1e-6, calls=1, batches=1)
    monkeypatch.setattr(kernels, "measured", lambda *_: one)
    shapes = evolve(SMALL, dtypes=("bf16", "tf32", "fp32"), gemms=((16, 64, 32),))
    widths = {"bf16": 2, "tf32": 4, "fp32": 4}
    if device is CPU:
        del widths["tf32"]
    gemms = [*kernels.gemms(device, shapes)]
    assert widths == {row["precision"]: int(row["bytes"]) / (16 * 32 + 64 * 32 + 16 * 64) for row in gemms}
    assert {2 * 16 * 64 * 32 / 1e6} == {float(row["tflops_per_chip"]) for row in gemms}
    assert [2 * 2**16 / 1e3] == [float(row["achieved"]) for row in kernels.copies(device, shapes)]
    for row, shape in zip(kernels.attention(device, shapes), shapes.attention, strict=True):
        pairs = sum(shape.keys - later for later in range(shape.queries))
        assert 4 * shape.batch * shape.heads * shape.size * pairs / 1e6 == pytest.approx(float(row["tflops_per_chip"]))
        assert ("bf16" if device is GPU else "fp32") == row["precision"] == row["kv_precision"]


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize(("effort", "calls"), [(QUICK, (1, 1, 1)), (Effort(), (100, 16, 1))])
def test_rates_of_collectives(torch, monkeypatch, ranks, effort, calls):
    """A batch of calls takes one millisecond."""
    monkeypatch.setattr(collectives, "measured", lambda *_: Timing(seconds=1e-3, low=0.0, high=0.0, calls=1, batches=3))
    torch.multiprocessing.spawn.side_effect = lambda run, args, nprocs: run(0, *args)
    shapes = evolve(SMALL, effort=effort, collectives=(2**10, 2**20, 2**26))
    rows = collectives.collectives(CPU, shapes, ranks)
    expected = [(kind, *pair) for kind in collectives.KINDS for pair in zip(shapes.collectives, calls, strict=True)]
    for row, (kind, size, number) in zip(rows, expected, strict=True):
        rate = size * number / 1e6
        bus = rate * (2.0 if kind == "all_reduce" else 1.0) * (ranks - 1) / ranks
        assert (kind, str(size), f"median of 3 batches of {number} calls") == (
            row["collective"],
            row["size_bytes"],
            row["note"],
        )
        assert (f"{1e3 / number:.6g}", f"{rate:.6g}", f"{bus:.6g}") == (
            row["time_us"],
            row["algbw_GBps"],
            row["busbw_GBps"],
        )
    counts = [number for _, size, _ in expected for number in (size // 4, size // 4 // ranks)]
    assert counts == [call.args[0] for call in torch.ones.call_args_list]
    assert [] == collectives.collectives(CPU, shapes, 1)


def test_flop_of_a_layer():
    """Two for each weight and token, and four for each element of a head, query and key before it."""
    for one in (*FULL.layers, *SMALL.layers):
        size = one.hidden // one.heads
        weights = one.hidden * (2 * one.heads + 2 * one.kv_heads) * size + 3 * one.hidden * one.width
        pairs = one.seq * (one.seq + 1) // 2
        assert flops(one) == one.batch * (2 * one.seq * weights + 4 * pairs * one.heads * size)


def test_a_layer_of_some_microseconds(torch, monkeypatch):
    """The backward computation takes what both take longer than the forward one; its limits are the furthest apart.

    If noise makes both shorter than the forward one, there is no row of it.
    """
    taken = (1.0, 3.0, 2.0, 1.0)
    times = [Timing(seconds=s * 1e-6, low=s * 5e-7, high=s * 2e-6, calls=2, batches=3) for s in taken]
    monkeypatch.setattr(layer, "measured", lambda *_: times.pop(0))
    monkeypatch.setattr(layer._LayerWeights, "forward", lambda *_: None)
    torch.cuda.max_memory_allocated.return_value = 3 * 2**19
    shape, flop = "1x32x64-h4-2-f128", flops(SMALL.layers[0])
    for row, (name, rate, us, spread) in zip(
        layer.layers(GPU, SMALL),
        [("layer_forward", flop, "1", "0.5 to 2"), ("layer_backward", 2 * flop / 2, "2", "0 to 5.5")],
        strict=True,
    ):
        assert row == {
            "id": f"{name}-bf16-{shape}", "op": name, "precision": "bf16", "shape": shape, "time_us": us, "peak_mib": "1.5",
            "tflops_per_chip": f"{rate / 1e6:.6g}", "saved_mib": "0", "note": f"median of 3 batches of 2 calls; {spread} us",
        }  # fmt: skip
    # Queries, keys and values; output; gate and up; down; then the input.
    sizes = [(128, 64), (64, 64), (256, 64), (64, 128), (1, 32, 64)]
    assert sizes == [call.args for call in torch.randn.call_args_list]
    scales = [call.args for call in torch.randn.return_value.__mul__.call_args_list]
    assert [(columns**-0.5,) for columns in (64, 64, 64, 128)] == scales
    assert ["layer_forward"] == [row["op"] for row in layer.layers(GPU, SMALL)]


@pytest.mark.parametrize("least", [0.0, 1e-3])
def test_rates_of_collectives_of_one_millisecond(torch, monkeypatch, tmp_path, least):
    """Bus bandwidth is 2 (n - 1) / n of the algorithm's for an all-reduce, and (n - 1) / n for the others."""

    def timed(call, device, effort):
        assert (0.0, 3, 1) == (effort.least, effort.batches, effort.warmup)
        before = torch.distributed.all_reduce.call_count
        call()
        made.append(torch.distributed.all_reduce.call_count - before)
        return Timing(seconds=each, low=0.0, high=0.0, calls=1, batches=3)

    sizes = {2**3: 100, 2**20: 16, 2**30: 1}
    monkeypatch.setattr(collectives, "measured", timed)
    for size, most in sizes.items():
        calls, made = most if least else 1, []
        each = 1e-3 * calls
        collectives._rank(0, 4, "cpu", "x", str(tmp_path), (size,), (1, 3, least))
        rows = json.loads((tmp_path / "rows.json").read_text())
        assert [calls, 0, 0, 0] == made
        assert ("gloo",) == torch.distributed.init_process_group.call_args.args
        assert {1000.0} == {float(row["time_us"]) for row in rows}
        rate = size / 1e-3 / 1e9
        expected = {name: rate * 0.75 * (2 if name == "all_reduce" else 1) for name in collectives.KINDS}
        assert pytest.approx(expected, rel=1e-5) == {row["collective"]: float(row["busbw_GBps"]) for row in rows}
        assert pytest.approx(rate, rel=1e-5) == float(rows[0]["algbw_GBps"])
        # A whole number of elements of 4 bytes, of at least one for each rank.
        assert max(size // 4, 4) == torch.ones.call_args_list[-2].args[0] == 4 * torch.ones.call_args.args[0]


def test_the_device_that_is_there(torch):
    torch.cuda.is_available.return_value = False
    assert "cpu" == device_of().kind
    with pytest.raises(UsageError, match="PyTorch sees no CUDA device"):
        device_of("cuda")
    torch.cuda.is_available.return_value = True
    torch.cuda.get_device_name.return_value, torch.cuda.device_count.return_value = "NVIDIA H200", 8
    assert [("cuda", "NVIDIA H200", 8)] * 2 == [(d.kind, d.name, d.count) for d in (device_of(), device_of("cuda"))]
    assert ("cpu", 1) == (device_of("cpu").kind, device_of("cpu").count)
    assert ("", "h200") == tuple(chip_of(everything(), device) for device in (CPU, GPU))


@pytest.mark.parametrize(
    ("names", "name"), [(("Xeon", "x86_64"), "Xeon"), (("", "x86_64"), "x86_64"), (("", ""), "cpu")]
)
def test_the_name_of_a_processor(torch, monkeypatch, names, name):
    for function, found in zip(("processor", "machine"), names, strict=True):
        monkeypatch.setattr(f"platform.{function}", lambda found=found: found)
    assert name == device_of("cpu").name


@pytest.mark.parametrize(("status", "facts"), [(0, {"driver_version": "570.1", "clocks.max.sm": "1980 MHz"}), (1, {})])
def test_facts_of_the_driver(torch, tmp_path, monkeypatch, status, facts):
    (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\necho '570.1, 1980 MHz'\nexit {status}\n")
    (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    torch.cuda.get_device_name.return_value, torch.version.cuda = "NVIDIA H200", "12.8"
    found = device_of("cuda").facts
    assert {"CUDA": "12.8", **facts} == {name: found[name] for name in found.keys() - {"PyTorch", "Python", "system"}}
