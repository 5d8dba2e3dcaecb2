"""A machine as a tool of its driver describes it, and the errors of such a description."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path as FilePath
from typing import BinaryIO, Literal

from attrs import field, frozen

from trnspec.errors import UsageError
from trnspec.short_repr import ShortRepr
from trnspec.text_table import escape

MOST_BYTES = 16 * 2**20
"""The largest input; 64 devices with all their clocks are about 2 MB."""

MOST_DEVICES = 4096

EXPECTED = "expected what neuron-ls --json-output or nvidia-smi -q -x prints"


@frozen(kw_only=True, repr=False)
class Accelerator(ShortRepr):
    """One accelerator.

    Attributes:
        index: Its number on the machine.
        line: The line that describes it.
        name: The product name, where the tool prints one.
        memory: Device memory in bytes.
        cores: The cores that programs see.
        cores_in_one: Physical cores in each of them.
        neighbours: The devices that it is linked to.
        power: The default power limit in W.
        pcie: Generation and lanes of its host link, at most.
        partitioned: Whether it is split into instances (MIG).
    """

    index: int
    line: int
    name: str = ""
    memory: int | None = None
    cores: int | None = None
    cores_in_one: int | None = None
    neighbours: tuple[int, ...] | None = None
    power: Fraction | None = None
    pcie: tuple[int, int] | None = None
    partitioned: bool = False


@frozen(kw_only=True, repr=False)
class HostMachine(ShortRepr):
    """The accelerators of one machine.

    Attributes:
        tool: The command that printed the description.
        file: The file it was read from.
        devices: The devices, at least one, in the order of the description.
        instance_type: The EC2 instance type, where the tool prints it.
        attached: The number of devices on the machine, where the tool prints it; fewer may be described.
        driver: The version of the driver, where the tool prints it.
        unknown: Names of fields that the reader does not know, with the line of the first of each.
    """

    tool: Literal["neuron-ls", "nvidia-smi"]
    file: str
    devices: tuple[Accelerator, ...]
    instance_type: str = ""
    attached: int | None = None
    driver: str = ""
    unknown: Mapping[str, int] = field(factory=dict)


@frozen(repr=False)
class HostText(ShortRepr):
    """A text of unknown origin, and the errors about it.

    Attributes:
        file: The file, as messages name it.
        raw: Its bytes, at most one more than :data:`MOST_BYTES`.
    """

    file: str
    raw: bytes = field(repr=False)

    @classmethod
    def read(cls, file: str, stream: BinaryIO | None = None) -> HostText:
        """The beginning of a file, or of a stream.

        Raises:
            UsageError: It cannot be read.
        """
        try:
            if stream is not None:
                return cls(file, stream.read(MOST_BYTES + 1))
            with FilePath(file).open("rb") as opened:
                return cls(file, opened.read(MOST_BYTES + 1))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise UsageError(f"{file}: error TRN001 unreadable-file: {reason}") from error

    def text(self) -> str:
        """Its text.

        Raises:
            UsageError: It is too large, is not UTF-8, or is empty.
        """
        if len(self.raw) > MOST_BYTES:
            raise self.problem(1, "TRN012 excessive-size", f"more than {MOST_BYTES // 2**20} MiB")
        try:
            text = self.raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = self.raw.count(b"\n", 0, error.start) + 1
            raise self.problem(line, "TRN002 wrong-encoding", f"byte {error.start + 1} is not UTF-8") from None
        if not text.strip():
            raise self.problem(1, "TRN013 empty-file", f"it is empty; {EXPECTED}")
        return text

    def problem(self, line: int, code: str, message: str) -> UsageError:
        """The error for a line.

        Args:
            line: Its number, from 1.
            code: A code with its name: ``TRN004 syntax-error``.
            message: What is wrong, and what is expected.
        """
        return UsageError(f"{self.file}:{line}: error {code}: {escape(message)}")
