"""Collectives between the devices of one server: NCCL between GPUs, Gloo between processes on the CPU."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from attrs import evolve

from trnspec.measure.device import Device, torch
from trnspec.measure.kernels import Cells
from trnspec.measure.shapes import Shapes
from trnspec.measure.timing import Effort, measured

KINDS = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all")

_ELEMENT = 4
"""Bytes of an element: float32."""

_FACTORS = {"all_reduce": 2.0}
"""Bus bandwidth over algorithm bandwidth, over (n - 1) / n; 1 for the others (nccl-tests, PERFORMANCE.md)."""


def collectives(device: Device, shapes: Shapes, ranks: int) -> list[Cells]:
    """Collectives among some ranks, one process for each.

    Args:
        device: The device; rank i uses the i-th.
        shapes: Buffers and effort.
        ranks: Number of ranks; none are measured below 2.
    """
    if ranks < 2:
        return []
    with tempfile.TemporaryDirectory() as folder:
        effort = shapes.effort
        numbers = effort.warmup, effort.batches, effort.least
        torch().multiprocessing.spawn(
            _rank, args=(ranks, device.kind, device.name, folder, shapes.collectives, numbers), nprocs=ranks
        )
        rows = json.loads((Path(folder) / "rows.json").read_text(encoding="utf-8"))
    return [dict(row) for row in rows]


def _rank(  # noqa: PLR0917  # what another process needs
    rank: int, ranks: int, kind: Any, name: str, folder: str, sizes: tuple[int, ...], numbers: tuple[int, int, float]
) -> None:
    """One rank; the first one writes the rows."""
    module = torch()
    device = Device(kind=kind, name=name, count=ranks)
    if kind == "cuda":
        module.cuda.set_device(rank)
    backend = "nccl" if kind == "cuda" else "gloo"
    distributed = module.distributed
    distributed.init_process_group(backend, init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    rows = []
    effort = Effort(warmup=numbers[0], batches=numbers[1], least=numbers[2])
    try:
        for collective in KINDS:
            for size in sizes:
                call = _call(collective, size, ranks, device)
                # All ranks make the same number of calls.
                calls = 1 if not effort.least else max(1, min(100, 2**24 // size))
                time = measured(_repeated(call, calls), device, evolve(effort, least=0.0))
                seconds = time.seconds / calls
                algorithm = 1e-9 * size / seconds
                bus = algorithm * _FACTORS.get(collective, 1.0) * (ranks - 1) / ranks
                rows.append({
                    "id": f"{collective}-n{ranks}-{size}", "ranks": str(ranks), "collective": collective,
                    "size_bytes": str(size), "dtype": "fp32", "time_us": f"{1e6 * seconds:.6g}",
                    "algbw_GBps": f"{algorithm:.6g}", "busbw_GBps": f"{bus:.6g}", "kernel": backend,
                    "note": f"median of {time.batches} batches of {calls} calls",
                })  # fmt: skip
        if rank == 0:
            (Path(folder) / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
        distributed.barrier()
    finally:
        distributed.destroy_process_group()


def _repeated(call: Any, calls: int) -> Any:
    def every() -> None:
        for _ in range(calls):
            call()

    return every


def _call(collective: str, size: int, ranks: int, device: Device) -> Any:
    """A collective of a buffer [B]: the output of an all-gather, the input of a reduce-scatter, what a rank sends to all."""
    module = torch()
    distributed = module.distributed
    count = max(size // _ELEMENT // ranks, 1) * ranks
    whole = module.ones(count, device=device.kind)
    part = module.ones(count // ranks, device=device.kind)
    other = module.empty_like(whole)
    calls = {
        "all_reduce": lambda: distributed.all_reduce(whole),
        "all_gather": lambda: distributed.all_gather_into_tensor(whole, part),
        "reduce_scatter": lambda: distributed.reduce_scatter_tensor(part, whole),
        "all_to_all": lambda: distributed.all_to_all_single(other, whole),
    }
    return calls[collective]
