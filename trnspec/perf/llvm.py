"""Machine code from LLVM's assembly language, where llvmlite is installed (the extra ``fast``)."""

from __future__ import annotations

import ctypes
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from attrs import define, field

if TYPE_CHECKING:
    from collections.abc import Sequence

LANES = 8
"""Numbers of a vector."""


@cache
def available() -> bool:
    """Whether llvmlite is installed."""
    return find_spec("llvmlite") is not None


@cache
def has(feature: str) -> bool:
    """Whether the processor has a feature, by its name in LLVM."""
    from llvmlite import binding

    return bool(binding.get_host_cpu_features().get(feature))


def compiled(text: str) -> Any:
    """The engine that owns the machine code of some functions; it must live as long as they are called.

    Operations on floating-point numbers are those of IEEE 754: none is contracted or reassociated.

    Args:
        text: The functions.
    """
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features().flatten()
    target = binding.Target.from_default_triple()
    engine = binding.create_mcjit_compiler(
        binding.parse_assembly(text),
        target.create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=2),
    )
    engine.finalize_object()
    return engine


@define(eq=False)
class Function:
    """A function in machine code, which is made once a process has computed enough to repay it.

    It has the bits of what is computed without it.

    Attributes:
        name: Its name in the text.
        text: The text: whole numbers, then arrays.
        numbers: How many whole numbers it takes.
        arrays: How many arrays.
        least: What a process computes without it.
        computed: What it has computed so far.
    """

    name: str
    text: str
    numbers: int
    arrays: int
    least: int
    computed: int = 0
    _code: Any = field(default=None, repr=False)

    def is_ready(self, more: int) -> bool:
        """Whether the function is used for so much more to compute."""
        self.computed += more
        return self.computed >= self.least and available()

    def __call__(self, numbers: Sequence[int], arrays: Sequence[Any]) -> None:
        """Call it; arrays are contiguous."""
        if self._code is None:
            engine = compiled(self.text)
            kind = ctypes.CFUNCTYPE(None, *[ctypes.c_int64] * self.numbers, *[ctypes.c_void_p] * self.arrays)
            self._code = kind(engine.get_function_address(self.name)), engine  # which owns the code
        self._code[0](*numbers, *(array.ctypes.data for array in arrays))
