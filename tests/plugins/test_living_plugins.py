"""The living plugins, each installed as its own distribution beside the wheel, and its tests run there."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.programs import ROOT, Elsewhere, built

pytestmark = pytest.mark.slow

PLUGINS = sorted(p.name for p in (ROOT / "plugins").iterdir() if (p / "pyproject.toml").is_file())


@pytest.fixture(scope="module")
def elsewhere(tmp_path_factory) -> Elsewhere:
    """An environment with the wheel, every living plugin, and what this environment's tests need beside them."""
    made = built(tmp_path_factory.mktemp("living"))
    made.pip("install", "--no-deps", *(ROOT / "plugins" / name for name in PLUGINS))
    # pytest and what the tests import come from here, after all that is installed there.
    here = Path(pytest.__file__).parents[1]
    (site,) = (made.folder / "env" / "lib").glob("python*/site-packages")
    found = [p for p in here.iterdir() if not p.name.lower().startswith(("trnspec", "_trnspec", "__editable__"))]
    borrowed = made.folder / "borrowed"
    borrowed.mkdir()
    for path in found:
        if path.suffix != ".pth":
            (borrowed / path.name).symlink_to(path)
    (site / "borrowed.pth").write_text(f"{borrowed}\n")
    return made


def test_every_one_is_installed_and_works(elsewhere):
    found = json.loads(elsewhere.trnspec("plugin", "list", "--format", "json"))
    names = {name.removeprefix("trnspec-"): "ok" for name in PLUGINS}

    assert names == {p["name"]: p["status"] for p in found["plugins"] if p["name"] != "trnspec"}


def test_their_catalogs_have_no_findings_together(elsewhere):
    assert "no findings" in elsewhere.trnspec("validate")


def test_the_engine_scores_measurements_on_their_chips(elsewhere):
    found = json.loads(
        elsewhere.trnspec(
            "eval", "accuracy", "--data", str(ROOT / "catalog" / "measured" / "training_mpt.csv"), "--format", "json"
        )
    )
    (summary, *_) = found["tables"]
    rows = {row[0]: row for row in summary["rows"]}

    assert 102 == rows["training_mpt"][2]
    # The calibrations were fitted on these rows, so this shows that they are found and used, not how good they are.
    assert 0.0 < rows["training_mpt"][3] < 10.0


CORE = {
    "trnspec-cost": "test_cost.py",
    "trnspec-ec2": "test_ec2_import.py::TestConformance",
    "trnspec-energy": "test_energy.py",
    "trnspec-inferentia": "test_inferentia.py",
    "trnspec-nvidia": "test_nvidia.py",
}
"""All of their tests run in the checkout; these once more where they are installed."""


@pytest.mark.parametrize("name", PLUGINS)
def test_its_own_tests_pass_there(elsewhere, name, tmp_path):
    tests = tmp_path / name
    subprocess.run(["cp", "-r", str(ROOT / "plugins" / name), str(tests)], check=True)
    # What is installed is tested, not the sources beside the tests.
    subprocess.run(["rm", "-rf", str(tests / "src")], check=True)
    only = f"TRNSPEC_PLUGINS={name.removeprefix('trnspec-')}"
    done = elsewhere.run(
        "env", only, elsewhere.python, "-m", "pytest", "-q", "-p", "no:cacheprovider",
        "-o", "pythonpath=tests", f"tests/{CORE[name]}", cwd=tests,
    )  # fmt: skip

    assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-2000:]
    assert " passed" in done.stdout
