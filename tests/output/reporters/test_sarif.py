"""The format of code-scanning services."""

import json
from pathlib import Path as FilePath
from typing import Any

import jsonschema
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from tests.support.outputs import AGGREGATE, CHIP, CLEAN, CODE, FULL, SERVER, one, reports
from trnspec._version import __version__
from trnspec.diagnostics import Diagnostic, Location, Report
from trnspec.output.reporters import render
from trnspec.output.reporters.sarif import FINGERPRINT, uri
from trnspec.yaml import Place

HERE = FilePath(__file__).parents[2]
SARIF = jsonschema.Draft202012Validator(json.loads((HERE / "data/sarif-2.1.0.schema.json").read_text("utf-8")))


def sarif_run(report: Report, **options: Any) -> dict[str, Any]:
    """The only run of the log, after the log was validated."""
    log = json.loads(render(report, "sarif", **options))
    SARIF.validate(log)
    [run] = log["runs"]
    return dict(run)


def fingerprints(report: Report) -> list[str]:
    """By what each result is recognised."""
    return [r["partialFingerprints"][FINGERPRINT] for r in sarif_run(report)["results"]]


class TestSarif:
    def test_result(self) -> None:
        run = sarif_run(FULL)
        result = run["results"][1]
        chip, server = [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": file},
                    "region": {"startLine": line, "startColumn": column} | end,
                },
                "logicalLocations": [{"name": "bf16", "fullyQualifiedName": path}],
            }
            for file, line, column, end, path in [
                (CHIP, 14, 20, {}, "spec.peak.dense.bf16"),
                (SERVER, 2, 18, {"endColumn": 28}, "spec.stated.bf16"),
            ]
        ]
        result.pop("partialFingerprints")
        expected = {
            "ruleId": "TRN402",
            "ruleIndex": 0,
            "level": "error",
            "message": {"text": f"{AGGREGATE.message}\nhint: {AGGREGATE.hint}"},
            "locations": [server],
            "relatedLocations": [{"id": 0, **chip, "message": {"text": "190 TFLOPS"}}],
        }
        assert expected == result
        assert ["note", "error", "warning"] == [r["level"] for r in run["results"]]
        assert "unicodeCodePoints" == run["columnKind"]

    def test_rules(self) -> None:
        """A rule explains itself, also in a run without findings; unexplained codes get a bare one."""
        rule = {
            "id": "TRN402",
            "name": "aggregate-mismatch",
            "shortDescription": {"text": "A total is not the sum. Of its parts."},
            "fullDescription": {"text": "A total is not the sum. Of its parts."},
            "help": {"text": CODE.doc},
            "helpUri": "https://example.org/TRN402",
            "defaultConfiguration": {"level": "error"},
        }
        run = sarif_run(CLEAN, docs="https://example.org")
        assert ({"name": "trnspec", "version": __version__, "rules": [rule]}, []) == (
            run["tool"]["driver"],
            run["results"],
        )
        assert ["TRN402", "TRN950", "TRN901"] == [r["id"] for r in sarif_run(FULL)["tool"]["driver"]["rules"]]

    @given(reports)
    def test_schema(self, report: Report) -> None:
        run = sarif_run(report)
        rules = run["tool"]["driver"]["rules"]
        ids = [r["id"] for r in rules]
        assert len(ids) == len(set(ids))
        assert [d.code for d in report.diagnostics] == [rules[r["ruleIndex"]]["id"] for r in run["results"]]
        prints = fingerprints(report)
        assert len(prints) == len(set(prints))

    @given(reports, st.integers(1, 50))
    def test_fingerprint_survives_lines(self, report: Report, shift: int) -> None:
        def moved(found: Diagnostic) -> Diagnostic:
            place = found.where.place and Place(found.where.place.line + shift, found.where.place.column)
            return evolve(found, where=evolve(found.where, place=place))

        assert sorted(fingerprints(report)) == sorted(
            fingerprints(evolve(report, diagnostics=tuple(map(moved, report.diagnostics))))
        )

    def test_message_is_literal(self) -> None:
        [result] = sarif_run(one(Location("f"), "{bf16: 1} [a](b) [c]"))["results"]
        assert r"{{bf16: 1}} \[a](b) [c]" == result["message"]["text"]

    @pytest.mark.parametrize(
        ("file", "expected"),
        [
            ("./catalog/a b.yaml", "catalog/a%20b.yaml"),
            ("a:b#ü%.yaml", "a%3Ab%23%C3%BC%25.yaml"),
            ("/srv/x.yaml", "file:///srv/x.yaml"),
            ("//srv/x.yaml", "file:////srv/x.yaml"),
            (r"C:\cat\x.yaml", "file:///C:/cat/x.yaml"),
            ("<stdin>", "%3Cstdin%3E"),
            ("\udcff", "%FF"),
        ],
    )
    def test_uri(self, file: str, expected: str) -> None:
        assert expected == uri(file)
