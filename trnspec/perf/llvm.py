"""Machine code from LLVM's assembly language, where llvmlite is installed (the extra ``fast``)."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from typing import Any

LANES = 8
"""Numbers of a vector."""


@cache
def available() -> bool:
    """Whether llvmlite is installed."""
    return find_spec("llvmlite") is not None


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
