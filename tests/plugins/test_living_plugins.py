"""The living plugins, each installed as its own distribution beside the wheel, and its tests run there."""

import json
import shutil
from pathlib import Path

import pytest

from tests.support.programs import ROOT, Elsewhere, built

pytestmark = pytest.mark.slow

PLUGINS = sorted(p.name for p in (ROOT / "plugins").iterdir() if (p / "pyproject.toml").is_file())


@pytest.fixture
def elsewhere(tmp_path) -> Elsewhere:
    """An environment with the wheel, every living plugin, and what this environment's tests need beside them."""
    made = built(tmp_path / "living", "hatchling")
    made.pip("install", "--no-deps", "--no-build-isolation", *(ROOT / "plugins" / name for name in PLUGINS))
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


CORE = {
    "trnspec-cost": "test_cost.py",
    "trnspec-ec2": "test_ec2_import.py::TestConformance",
    "trnspec-energy": "test_energy.py",
    "trnspec-inferentia": "test_inferentia.py",
    "trnspec-nvidia": "test_nvidia.py",
}
"""All of their tests run in the checkout; these once more where they are installed."""


def test_installed_plugins(elsewhere, tmp_path):
    """Used, without findings together, and tested; one test, so that they are installed once."""
    found = json.loads(elsewhere.trnspec("plugin", "list", "--format", "json"))
    names = {name.removeprefix("trnspec-"): "ok" for name in PLUGINS}
    assert names == {p["name"]: p["status"] for p in found["plugins"] if p["name"] != "trnspec"}
    assert "no findings" in elsewhere.trnspec("validate")

    # The calibrations were fitted on these rows, so this shows that they are found and used, not how good they are.
    table = ROOT / "catalog" / "measured" / "training_mpt.csv"
    (summary, *_) = json.loads(elsewhere.trnspec("eval", "accuracy", "--data", str(table), "--format", "json"))[
        "tables"
    ]
    (row,) = (row for row in summary["rows"] if row[0] == "training_mpt")
    assert (102, True) == (row[2], 0.0 < row[3] < 10.0)

    assert set(PLUGINS) == set(CORE)
    for name in PLUGINS:
        tests = tmp_path / name
        # What is installed is tested, not the sources beside the tests.
        shutil.copytree(ROOT / "plugins" / name, tests, ignore=shutil.ignore_patterns("src"))
        only = f"TRNSPEC_PLUGINS={name.removeprefix('trnspec-')}"
        done = elsewhere.run(
            "env", only, elsewhere.python, "-m", "pytest", "-q", "-p", "no:cacheprovider",
            "-o", "pythonpath=tests", f"tests/{CORE[name]}", cwd=tests,
        )  # fmt: skip
        assert 0 == done.returncode, done.stdout[-3000:] + done.stderr[-2000:]
        assert " passed" in done.stdout
