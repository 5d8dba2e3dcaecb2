"""Former ids and names of codes: settings, waivers, baselines and explanations accept them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from trnspec.api import registry, validate
from trnspec.checks.baseline import read
from trnspec.cli import group
from trnspec.diagnostics import FORMER_IDS, FORMER_NAMES, Severity
from trnspec.loading.settings import Settings

WRONG = """\
api_version: trnspec/v1
kind: Power
metadata:
  name: trainium2-tdp-example
  title: Example
  source: semianalysis-2024-12
{allow}spec: {{of: trainium2, type: tdp, power: 5 kW}}
"""
ALLOW = "  allow: [{code: TRN815, reason: A test.}]\n"


def codes(folder: Path, allow: str = "", **settings: object) -> list[tuple[str, Severity]]:
    file = folder / "power" / "trainium2-tdp-example.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(WRONG.format(allow=allow), encoding="utf-8")
    report = validate([file], settings=Settings(**settings)).report
    return [(d.code, d.severity) for d in report.diagnostics if d.code != "TRN806"]


def test_former_ids_and_names_lead_to_codes_that_exist() -> None:
    known = registry()

    assert {known.code(former).id for former in [*FORMER_IDS, *FORMER_NAMES]} <= set(known.codes)
    assert not {*FORMER_IDS, *FORMER_NAMES} & {*known.codes, *(c.name for c in known.codes.values())}
    assert {former: known.code(former).id for former in FORMER_IDS} == FORMER_IDS


def test_former_id_in_waiver_and_settings(tmp_path) -> None:
    found = ("TRN805", Severity.ERROR)

    assert codes(tmp_path) == [found]
    assert codes(tmp_path, ALLOW) == []
    assert codes(tmp_path, ignore=["TRN815"]) == []
    assert codes(tmp_path, select=["TRN815"]) == [found]
    assert codes(tmp_path, severity={"TRN815": Severity.WARNING}) == [("TRN805", Severity.WARNING)]


def test_former_id_in_baseline(tmp_path) -> None:
    file = tmp_path / "baseline.json"
    row = {"code": "TRN815", "document": "Power/x", "path": "spec.power"}
    file.write_text(json.dumps({"version": 1, "findings": [row]}), encoding="utf-8")

    assert list(read(file).findings) == [("TRN805", "Power/x", "spec.power")]


@pytest.mark.parametrize("topic", ["TRN815", "trn815", "implausible-power", "TRN805", "implausible-quote"])
def test_former_id_is_explained(topic) -> None:
    printed = CliRunner().invoke(group, ["explain", topic])

    assert printed.exit_code == 0
    assert printed.output.startswith("TRN805 implausible-quote (error)")
