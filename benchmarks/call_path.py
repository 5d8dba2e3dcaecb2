"""Functions of trnspec that one evaluation passes, in the order of their first call: how much a reader must follow.

    python benchmarks/call_path.py [training|inference]

Start-up, imports and loading of the catalog are not counted, nor are bodies of classes, lambdas, generators and
comprehensions.
"""

from __future__ import annotations

import argparse
import inspect
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trnspec

if TYPE_CHECKING:
    from types import FrameType

ROOT = Path(trnspec.__file__).parent
INPUTS: dict[str, dict[str, Any]] = {
    "training": {
        "model": "llama-3.1-8b", "on": "trn1.32xlarge*8", "seq": 8192, "global_batch": 1024, "tp": 32, "zero": 1,
    },
    "inference": {"model": "llama-3.1-8b", "on": "trn1.32xlarge", "prompt": 2048, "output": 256, "batch": 4, "tp": 32},
}  # fmt: skip


def path_of(evaluator: str) -> Counter[tuple[str, str]]:
    """The number of calls of each function, by its file and its name, in the order of the first calls."""
    catalog = trnspec.load()
    evaluate = trnspec.evaluate
    for module in (f"evaluators.{evaluator}", "evaluation.runner"):
        import_module(f"trnspec.{module}")
    calls: Counter[tuple[str, str]] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        is_function = code.co_flags & inspect.CO_OPTIMIZED and not code.co_name.startswith("<")
        if event == "call" and is_function and code.co_filename.startswith(f"{ROOT}/"):
            calls[str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname] += 1

    sys.setprofile(count)
    try:
        evaluate(evaluator, catalog, **INPUTS[evaluator])
    finally:
        sys.setprofile(None)
    return calls


def counts(calls: Counter[tuple[str, str]], folder: str = "") -> tuple[int, int]:
    """The number of functions and of files, those of a folder."""
    functions = [(file, name) for file, name in calls if file.startswith(folder)]
    return len(functions), len({file for file, _ in functions})


def main() -> None:
    """Print the functions and their number."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("evaluator", choices=sorted(INPUTS), nargs="?", default="training")
    calls = path_of(parser.parse_args().evaluator)
    for (file, name), number in calls.items():
        print(f"{number:6,} {file}: {name}")
    for folder in ("", "perf/", "perf/training/"):
        functions, files = counts(calls, folder)
        print(f"{functions:,} functions in {files:,} files of trnspec/{folder}")


if __name__ == "__main__":
    main()
