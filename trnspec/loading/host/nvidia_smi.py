"""``nvidia-smi -q -x``: an XML document with an element for each GPU.

The parser expands no entities and opens no files: a document type that declares an entity is an error. The reference
to the document type of nvidia-smi itself is in every real output, and is ignored.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any
from xml.parsers import expat

from attrs import define, field

from trnspec.errors import UsageError
from trnspec.loading.host.machine import EXPECTED, MOST_DEVICES, Accelerator, HostMachine, HostText

_ROOT = "nvidia_smi_log"
_MOST_DEPTH = 16
_MOST_ELEMENTS = 500_000
_MOST_TEXT = 2_000
"""Characters of one element; the longest texts of nvidia-smi are command lines and lists of rows."""

KNOWN = frozenset(
    """
    accounted_processes accounting_mode accounting_mode_buffer_size active_sessions addressing_mode applications_clocks
    attached_vgpus bar1_memory_usage board_id board_part_number capabilities cc_protected_memory_usage clock_policy clocks
    clocks_event_reasons clocks_event_reasons_counters clocks_throttle_reasons compute_mode creatable_vgpus
    cuda_compute_capability current_gom default_applications_clocks deferred_clocks deferred_clocks display_active
    display_attached display_mode driver_model dram_encryption_mode ecc_errors ecc_mode edpp_multiplier encoder_stats fabric
    fan_speed fb_memory_usage fbc_stats gpu_fabric_guid gpu_fru_part_number gpu_memory_usage gpu_module_id
    gpu_operation_mode gpu_part_number gpu_pdi gpu_power_readings gpu_power_smoothing gpu_recovery_action gpu_reset_status
    gpu_virtualization_mode gsp_firmware_version hostname ibmnpu inforom_bbx_flush inforom_version infiniband_guid
    max_clocks max_customer_boost_clocks memory_usage mig_devices mig_mode minor_number module_power_readings multigpu_board
    nvlink_temp_power_readings pci performance_state persistence_mode platformInfo power_profiles
    power_readings power_smoothing processes product_architecture product_brand product_name recent_processes remapped_rows
    retired_pages row_remapper sdr serial sparse_operation_mode supported_clocks supported_gpu_target_temp supported_vgpus
    temperature utilization uuid vbios_version vgpu_device_capability voltage vgx_processes
    """.split()  # noqa: SIM905  # a list of this length is read more easily as text
)
"""Elements of a GPU; those that are not compared identify it or describe its present state."""


@define
class _Element:
    name: str
    line: int
    text: str = ""
    children: list[_Element] = field(factory=list)

    def at(self, *path: str) -> _Element | None:
        """The first element at a path below this one."""
        element: _Element | None = self
        for name in path:
            element = next((c for c in element.children if c.name == name), None) if element is not None else None
        return element

    def first(self, *paths: tuple[str, ...]) -> _Element | None:
        """The first element at one of several paths that has a value; nvidia-smi prints N/A where it has none."""
        for path in paths:
            element = self.at(*path)
            if element is not None and element.text not in ("", "N/A", "[N/A]", "Unknown Error", "Not Supported"):
                return element
        return None


def read(source: HostText) -> HostMachine:
    """The machine that nvidia-smi describes.

    Raises:
        UsageError: The text is not its output; the message has the line, a code and what is expected.
    """
    root = _parsed(source)
    if root.name != _ROOT:
        message = f"the document is <{root.name[:40]}>, not <{_ROOT}>; {EXPECTED}"
        raise source.problem(root.line, "TRN103 wrong-type", message)
    gpus = [child for child in root.children if child.name == "gpu"]
    if not gpus:
        raise source.problem(root.line, "TRN102 missing-field", f"<{_ROOT}> has no <gpu>; {EXPECTED}")
    if len(gpus) > MOST_DEVICES:
        raise source.problem(root.line, "TRN012 excessive-size", f"more than {MOST_DEVICES} devices")
    driver = root.first(("driver_version",))
    unknown: dict[str, int] = {}
    for gpu in gpus:
        for child in gpu.children:
            if child.name not in KNOWN:
                unknown.setdefault(child.name, child.line)
    return HostMachine(
        tool="nvidia-smi",
        file=source.file,
        devices=tuple(_device(source, gpu, n) for n, gpu in enumerate(gpus)),
        attached=_number(source, root.first(("attached_gpus",)), "", whole=True),
        driver=driver.text if driver is not None else "",
        unknown=unknown,
    )


def _device(source: HostText, gpu: _Element, n: int) -> Accelerator:
    name = gpu.first(("product_name",))
    if name is None:
        raise source.problem(gpu.line, "TRN102 missing-field", f"<gpu> number {n} has no <product_name>")
    link = ("pci", "pci_gpu_link_info")
    generation = _number(
        source,
        gpu.first((*link, "pcie_gen", "max_device_link_gen"), (*link, "pcie_gen", "max_link_gen")),
        "",
        whole=True,
    )
    lanes = _number(source, gpu.first((*link, "link_widths", "max_link_width")), "x", whole=True)
    memory = _number(source, gpu.first(("fb_memory_usage", "total")), "MiB", whole=True)
    limits = [(block, "default_power_limit") for block in ("gpu_power_readings", "power_readings")]
    mig = gpu.first(("mig_mode", "current_mig"))
    return Accelerator(
        index=n,
        line=gpu.line,
        name=name.text,
        memory=None if memory is None else memory * 2**20,
        power=_number(source, gpu.first(*limits), "W"),
        pcie=None if generation is None or lanes is None else (generation, lanes),
        partitioned=mig is not None and mig.text == "Enabled",
    )


def _number(source: HostText, element: _Element | None, unit: str, *, whole: bool = False) -> Any:
    """The number of an element, without its unit: an ``int`` if it must be whole, else a ``Fraction``."""
    if element is None:
        return None
    pattern = r"([0-9]{1,12})" if whole else r"([0-9]{1,12}(?:\.[0-9]{1,6})?)"
    match = re.fullmatch(rf"{pattern} ?{unit}", element.text)
    if match is None:
        wanted = f"a number{f' of {unit}' if unit else ''}"
        message = f"<{element.name}>: expected {wanted}, found {element.text[:40]!r}"
        raise source.problem(element.line, "TRN103 wrong-type", message)
    return int(match[1]) if whole else Fraction(match[1])


def _parsed(source: HostText) -> _Element:
    source.text()
    parser = expat.ParserCreate()
    builder = _Builder(source, parser)
    parser.StartElementHandler = builder.start
    parser.EndElementHandler = builder.end
    parser.CharacterDataHandler = builder.characters
    parser.EntityDeclHandler = builder.entity
    parser.buffer_text = True
    try:
        parser.Parse(source.raw, True)  # noqa: FBT003  # the method has no keywords
    except expat.ExpatError as error:
        message = f"not XML: {expat.errors.messages[error.code]}; {EXPECTED}"
        raise source.problem(error.lineno, "TRN004 syntax-error", message) from None
    assert builder.root is not None  # the parser rejects a document without an element
    return builder.root


@define
class _Builder:
    """Builds the elements of a document, and stops at everything that nvidia-smi does not print."""

    source: HostText
    parser: expat.XMLParserType
    root: _Element | None = None
    path: list[_Element] = field(factory=list)
    elements: int = 0

    def start(self, name: str, _: dict[str, str]) -> None:
        self.elements += 1
        if len(self.path) >= _MOST_DEPTH:
            raise self._error("TRN011 excessive-depth", f"more than {_MOST_DEPTH} elements inside each other")
        if self.elements > _MOST_ELEMENTS:
            raise self._error("TRN012 excessive-size", f"more than {_MOST_ELEMENTS:,} elements")
        element = _Element(name, self.parser.CurrentLineNumber)
        if self.path:
            self.path[-1].children.append(element)
        else:
            self.root = element
        self.path.append(element)

    def end(self, _: str) -> None:
        element = self.path.pop()
        element.text = element.text.strip()

    def characters(self, text: str) -> None:
        # Surplus text is left out: no value that is compared is as long.
        if self.path and len(self.path[-1].text) < _MOST_TEXT:
            self.path[-1].text += text[:_MOST_TEXT]

    def entity(self, name: str, *_: object) -> None:
        message = f"the document type declares the entity {name[:40]!r}; nvidia-smi declares none"
        raise self._error("TRN004 syntax-error", message)

    def _error(self, code: str, message: str) -> UsageError:
        return self.source.problem(self.parser.CurrentLineNumber, code, message)
