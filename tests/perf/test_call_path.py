"""The path of one training evaluation through the engine does not become longer."""

import re
import subprocess
import sys

from tests.support.programs import ROOT

MOST = {"": (291, 47), "perf/": (165, 17), "perf/training/": (33, 4)}
"""Functions and files that an evaluation may pass, by folder; lower them when the path becomes shorter."""


def test_functions_of_a_training_evaluation() -> None:
    program = [sys.executable, str(ROOT / "benchmarks" / "call_path.py"), "training"]
    printed = subprocess.run(program, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    found = {
        folder: (int(functions), int(files))
        for functions, files, folder in re.findall(
            r"^(\d+) functions in (\d+) files of trnspec/(\S*)$", printed, re.MULTILINE
        )
    }

    assert set(MOST) == set(found)
    assert {} == {folder: n for folder, n in found.items() if n[0] > MOST[folder][0] or n[1] > MOST[folder][1]}
    # The all-reduce of tensor parallelism is one function.
    assert 1 == printed.count("perf/training/microbatch.py: tensor_parallel_all_reduce")
