"""The device that is measured: its name, and what a measurement depends on besides the kernel."""

from __future__ import annotations

import platform
import re
import subprocess
from collections.abc import Mapping
from typing import Any, Literal

from attrs import field, frozen

from trnspec.errors import UsageError, library
from trnspec.graph.graph import Graph

DeviceKind = Literal["cuda", "cpu"]

_QUERY = ("driver_version", "clocks.max.sm", "clocks.max.mem", "clocks.sm", "power.limit")
"""Fields that nvidia-smi is queried for."""


@frozen(kw_only=True)
class Device:
    """A device.

    Attributes:
        kind: How PyTorch names its type.
        name: Its name, as the driver reports it.
        count: How many there are.
        facts: Driver, clocks and versions by name.
    """

    kind: DeviceKind
    name: str
    count: int
    facts: Mapping[str, str] = field(factory=dict)

    def synchronize(self) -> None:
        """Waits until the device is idle."""
        if self.kind == "cuda":
            torch().cuda.synchronize()


def torch() -> Any:
    """The module; ``UsageError`` where it is not installed."""
    return library("torch", "measure")


def device_of(kind: DeviceKind | None = None) -> Device:
    """The device to measure.

    Args:
        kind: Its type; that of the GPU where there is one, when left out.

    Raises:
        UsageError: PyTorch is not installed, or sees no such device.
    """
    module = torch()
    available = module.cuda.is_available()
    if kind == "cuda" and not available:
        raise UsageError("PyTorch sees no CUDA device; --device cpu measures the CPU")
    facts = {"PyTorch": str(module.__version__), "Python": platform.python_version(), "system": platform.platform()}
    if available and kind != "cpu":
        facts |= {"CUDA": str(module.version.cuda)} | _driver()
        return Device(kind="cuda", name=module.cuda.get_device_name(0), count=module.cuda.device_count(), facts=facts)
    return Device(
        kind="cpu", name=_processor(), count=1, facts=facts | {"threads": str(module.get_num_threads())}
    )  # fmt: skip


def _driver() -> dict[str, str]:
    """Driver and clocks by nvidia-smi; empty where it is missing."""
    command = ["nvidia-smi", f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader", "-i", "0"]
    try:
        done = subprocess.run(command, capture_output=True, check=True, text=True, timeout=30)  # noqa: S603  # fixed
    except (OSError, subprocess.SubprocessError):
        return {}
    values = [text.strip() for text in done.stdout.strip().split(",")]
    return dict(zip(_QUERY, values, strict=False))


def _processor() -> str:
    return platform.processor() or platform.machine() or "cpu"


_SOLD_IN_FORMS = re.compile(r"pcie|nvl\b|h800|a800|h20\b", re.IGNORECASE)
"""Names of boards and variants whose figures are not those of the SXM module."""


def chip_of(graph: Graph, device: Device, name: str | None = None) -> str:
    """The chip of the catalog that a device is; empty if it has none.

    Raises:
        UsageError: The catalog has no such chip.
    """
    from trnspec.model.chip import Chip
    from trnspec.perf.calibration.fit_range import chip_named

    if name is not None:
        known = next((n.name for n in graph.of(Chip) if name in (n.name, *n.metadata.aliases)), None)
        if known is None:
            raise UsageError(f"--chip: the catalog has no chip named {name!r}")
        return known
    if device.kind == "cpu" or _SOLD_IN_FORMS.search(device.name):
        return ""
    return chip_named(graph, device.name, "")
