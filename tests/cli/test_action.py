"""The GitHub Action: its steps, run by a shell."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs import ROOT
from trnspec.yaml import read_text

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="the steps are scripts of bash")


def action() -> dict[str, Any]:
    document = read_text((ROOT / "action.yml").read_text(encoding="utf-8"))

    assert document.problems == ()
    assert document.data is not None
    return document.data


def run(name: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A step, with ``trnspec`` and ``python`` on the path that print their arguments or do what they do."""
    step = next(step for step in action()["runs"]["steps"] if step.get("name") == name)
    tools = folder / "tools"
    tools.mkdir()
    for tool, line in (("trnspec", f'"{sys.executable}" -m trnspec "$@"'), ("python", 'printf "%s\\n" "$@"')):
        (tools / tool).write_text(f"#!/bin/sh\nexec {line}\n")
        (tools / tool).chmod(0o755)
    env = {"PYTHONPATH": str(ROOT), **os.environ, **env, "PATH": f"{tools}:{os.environ['PATH']}"}
    # As GitHub runs them.
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(shell, cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_form() -> None:
    """What GitHub requires of a composite action; every variable of a step comes from an input that there is."""
    data = action()

    assert {"name", "description", "inputs", "runs"} <= data.keys()
    assert data["runs"]["using"] == "composite"
    for step in data["runs"]["steps"]:
        assert ("uses" in step) != ("run" in step)
        assert "run" not in step or step["shell"] == "bash"
        for value in step.get("env", {}).values():
            assert value.removeprefix("${{ inputs.").removesuffix(" }}") in data["inputs"]


def test_install(tmp_path) -> None:
    """Plugins of the repository come from it, others from an index; an input is never a command."""
    done = run("Install", tmp_path, GITHUB_ACTION_PATH=str(ROOT), PLUGINS="trnspec-nvidia acme>=1 $(touch,x)")

    assert ["-m", "pip", "install", "--quiet", str(ROOT)] == done.stdout.splitlines()[:5]
    assert [f"{ROOT}/plugins/trnspec-nvidia", "acme>=1", "$(touch,x)"] == done.stdout.splitlines()[5:]


@pytest.mark.slow
def test_annotations_and_sarif(tmp_path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "dbt.yml").write_text("version: 2\n")
    document = "api_version: trnspec/v1\nkind: Link\nmetadata: {name: wire, title: Wire}\nspec: {connects: chip}\n"
    (tmp_path / "links" / "wire.yaml").write_text(document)
    done = run("Check", tmp_path, PATHS="links dbt.yml", ARGUMENTS="--ignore TRN3")

    assert done.returncode == 1, done.stdout + done.stderr
    assert ["::error file=links/wire.yaml,line=4"] == [
        ",".join(line.split(",")[:2]) for line in done.stdout.splitlines() if line.startswith("::error")
    ]

    shutil.rmtree(tmp_path / "tools")
    done = run("Write SARIF", tmp_path, PATHS="links dbt.yml", ARGUMENTS="", RUNNER_TEMP=str(tmp_path))

    assert done.returncode == 0, done.stderr
    assert len(json.loads((tmp_path / "trnspec.sarif").read_text())["runs"][0]["results"]) == 1
