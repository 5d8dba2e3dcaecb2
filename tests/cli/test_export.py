"""``trnspec export``."""

import json

import pytest

import trnspec
from trnspec.builtin import plugin

CAT = trnspec.load()
FORMATS = {e.name: e for e in plugin.exporters}


@pytest.mark.parametrize("format", [f.name for f in FORMATS.values() if f.inline])
def test_export_command_equals_python_api(here, format) -> None:
    done = here("export", format, "trn2-ultraserver")

    assert (0, "") == (done.status, done.err)
    assert CAT["trn2-ultraserver"].export(format).text == done.out


def test_assumptions_that_the_file_cannot_hold_go_to_standard_error(here) -> None:
    done = here("export", "llm-analysis", "trn2.48xlarge")
    made = CAT["trn2.48xlarge"].export("llm-analysis")

    assert (0, made.text) == (done.status, done.out)
    assert [f"assumed: {a}" for a in made.assumptions] == done.err.splitlines()


def test_assumptions_are_written_beside_the_file(here) -> None:
    done = here("export", "llm-analysis", "trn2.48xlarge", "--output", here.folder / "out" / "gpu.json")
    page = (here.folder / "out" / "trn2.48xlarge.assumptions.md").read_text(encoding="utf-8")

    assert (0, "") == (done.status, done.out)
    assert ["gpu.json", "trn2.48xlarge.assumptions.md"] == sorted(f.name for f in (here.folder / "out").iterdir())
    assert "trn2.48xlarge" == json.loads((here.folder / "out" / "gpu.json").read_text(encoding="utf-8"))["name"]
    made = CAT["trn2.48xlarge"].export("llm-analysis")
    assert [] == [a for a in made.assumptions if f"- `{a.field}`: {a.says}" not in page]
