"""docs/how-to/search-on-a-cluster.md: the recipes run as plain processes: the last part of each, by Ray all."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import ROOT

PAGE = (ROOT / "docs" / "how-to" / "search-on-a-cluster.md").read_text(encoding="utf-8")

RAY = """
def remote(**options):
    def of(function):
        class Task:
            @staticmethod
            def remote(*args):
                return function(*args)
        return Task
    return of


def init():
    pass


def get(results):
    return results
"""
"""What the recipe uses of Ray, in one process."""


def scripts() -> dict[str, str]:
    """What each element of an array runs, by the variable with its number."""
    found = {
        name: text for text in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for name in VARIABLES if name in text
    }
    (job,) = re.findall(r"args:\n\s+- >-\n(.*?)\n\s+volumeMounts", PAGE, re.DOTALL)
    return found | {"JOB_COMPLETION_INDEX": " ".join(job.split())}


VARIABLES = {"SLURM_ARRAY_TASK_ID": 1, "AWS_BATCH_JOB_ARRAY_INDEX": 0, "JOB_COMPLETION_INDEX": 0}
"""The first number of each."""


def environment(folder: Path) -> dict[str, str]:
    """One in which ``trnspec`` is the program under test, and ``ray`` runs tasks at once."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "trnspec"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m trnspec "$@"\n')
    program.chmod(0o755)
    (folder / "bin" / "ray.py").write_text(RAY)
    path = os.pathsep.join([str(ROOT), str(folder / "bin")])
    return os.environ | {"PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": path}


@pytest.mark.slow
def test_recipes_write_the_same_results(tmp_path) -> None:
    env, found = environment(tmp_path), {}
    for variable, first in VARIABLES.items():
        folder = tmp_path / variable
        folder.mkdir()
        script = ["bash", "-c", scripts()[variable]]
        subprocess.run(script, cwd=folder, env=env | {variable: str(first + 3)}, check=True, capture_output=True)
        found[variable] = {f.name: f.read_bytes() for f in (folder / "results").iterdir()}
    (recipe,) = re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "ray").mkdir()
    subprocess.run([sys.executable, "-c", recipe], cwd=tmp_path / "ray", env=env, check=True, capture_output=True)
    found["ray"] = {f.name: f.read_bytes() for f in (tmp_path / "ray" / "results").iterdir()}

    assert [2, 2, 2, 8] == [len(files) for files in found.values()]
    assert all(files.items() <= found["ray"].items() for files in found.values())
