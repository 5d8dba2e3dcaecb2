"""The living plugins, each installed as its own distribution beside the wheel; their tests run in the checkout."""

import json

import pytest

from tests.support.programs import ROOT, built

pytestmark = pytest.mark.slow

PLUGINS = sorted(p.name for p in (ROOT / "plugins").iterdir() if (p / "pyproject.toml").is_file())


def test_installed_plugins(tmp_path):
    """Used, without findings together, and complete; one test, so that they are installed once."""
    elsewhere = built(tmp_path / "living")
    elsewhere.pip("install", "--no-deps", "--no-build-isolation", *(ROOT / "plugins" / name for name in PLUGINS))
    (site,) = (elsewhere.folder / "env" / "lib").glob("python*/site-packages")
    for source in (ROOT / "plugins").glob("*/src/trnspec_*"):
        files = [f for f in source.rglob("*") if f.is_file() and "__pycache__" not in f.parts]
        assert [] == [f for f in files if f.read_bytes() != (site / f.relative_to(source.parent)).read_bytes()]
        assert len(files) > 1

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
