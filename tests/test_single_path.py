"""The package has one way to validate, and stores nothing; ruff bans pickles, audit hooks and patches of Python."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs import ROOT, environment

CHIP = ROOT / "catalog" / "chips" / "trainium2.yaml"

STAGES = (
    ("trnspec.cli.validate", "command"), ("trnspec.api", "validate"), ("trnspec.api", "select"),
    ("trnspec.api", "load_documents"), ("trnspec.yaml.reader", "read_file"),
    ("trnspec.loading.pipeline", "load_document"), ("trnspec.loading.renamed", "upgrade"),
    ("trnspec.loading.structure", "structure"), ("trnspec.loading.pipeline", "link"),
    ("trnspec.graph.graph", "build"), ("trnspec.checks.runner", "run"), ("trnspec.checks.runner", "apply_waivers"),
    ("trnspec.output.reporters", "render"),
)  # fmt: skip
"""The functions of the one path, in the order in which each is first called."""

PROFILE = """
import json, sys
seen = {}
def profile(frame, event, argument):
    if event == "call":
        code = frame.f_code
        seen.setdefault((frame.f_globals.get("__name__", ""), code.co_name), len(seen))
from trnspec.__main__ import main
sys.argv = ["trnspec", *sys.argv[1:]]
sys.setprofile(profile)
try:
    main()
except SystemExit:
    pass
sys.setprofile(None)
print(json.dumps([key for key, _ in sorted(seen.items(), key=lambda item: item[1])]))
"""


@pytest.mark.parametrize("arguments", [(), ("--skip-others", "--format", "json", "--no-cache", "--jobs", "2", CHIP)])
def test_every_run_takes_the_same_path(tmp_path: Path, arguments) -> None:
    """Each stage, in this order: for a folder with errors, and as a hook with former options."""
    (tmp_path / "wire.yaml").write_text("api_version: trnspec/v1\nkind: Link\nmetadata: {name: wire}\nspec: {is: 1}\n")
    program = [sys.executable, "-c", PROFILE, "--no-plugins", "validate", *(arguments or [tmp_path])]
    done = subprocess.run(program, cwd=ROOT, env=environment(), capture_output=True, check=True, text=True)
    called = [tuple(one) for one in json.loads(done.stdout.splitlines()[-1])]
    assert [one for one in called if one in STAGES] == list(STAGES)


def test_a_run_writes_no_file(tmp_path: Path) -> None:
    """Not in the folders of caches and temporary files either: no later run can read what this one found."""
    done = subprocess.run(
        [sys.executable, "-B", "-m", "trnspec", "--no-plugins", "validate", str(CHIP)],
        cwd=ROOT,
        env=environment(HOME=str(tmp_path), TMPDIR=str(tmp_path), XDG_CACHE_HOME=str(tmp_path / "cache")),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, list(tmp_path.rglob("*"))) == (0, [])
