"""The format for programs."""

import json
from pathlib import Path as FilePath

import jsonschema
from hypothesis import given
from hypothesis import strategies as st

from tests.support.outputs import AGGREGATE, CHECKED, CHIP, FULL, SERVER, reports, texts
from trnspec._version import __version__
from trnspec.diagnostics import Report
from trnspec.output.reporters import render
from trnspec.output.reporters.common import pointer

HERE = FilePath(__file__).parents[2]
SCHEMA = json.loads((HERE.parent / "schemas/v1/report.schema.json").read_text("utf-8"))
REPORT = jsonschema.Draft202012Validator(SCHEMA)


class TestJson:
    def test_golden(self) -> None:
        text = render(FULL, "json", docs="https://example.org/codes/")
        data = json.loads(text)
        assert text == json.dumps(data, indent=2)
        expected = {
            "code": "TRN402",
            "name": "aggregate-mismatch",
            "severity": "error",
            "message": AGGREGATE.message,
            "file": SERVER,
            "line": 2,
            "column": 18,
            "path": ["spec", "stated", "bf16"],
            "pointer": "/spec/stated/bf16",
            "text": "3.4 PFLOPS",
            "hint": AGGREGATE.hint,
            "see": [
                {"file": CHIP, "line": 14, "column": 20, "path": ["spec", "peak", "dense", "bf16"], "pointer": "/spec/peak/dense/bf16", "text": "190 TFLOPS"},
            ],
            "url": "https://example.org/codes/TRN402",
        }  # fmt: skip
        assert expected == data["diagnostics"][1]
        summary = {"errors": 1, "warnings": 1, "infos": 1, "waived": 3}
        assert summary | {"files": 14, "documents": 14, "checked": CHECKED} == data["summary"]
        assert [1, {"name": "trnspec", "version": __version__}, False] == [data[k] for k in ("version", "tool", "ok")]

    @given(reports)
    def test_schema(self, report: Report) -> None:
        data = json.loads(render(report, "json"))
        REPORT.validate(data)
        assert report.ok is data["ok"]
        assert set(SCHEMA["properties"]) == set(data)
        assert set(SCHEMA["properties"]["summary"]["properties"]) == set(data["summary"])
        keys = {name: set(SCHEMA["$defs"][name]["properties"]) for name in ("diagnostic", "location")}
        assert all(keys["diagnostic"] | keys["location"] == set(d) for d in data["diagnostics"])
        assert [d.message for d in report.diagnostics] == [d["message"] for d in data["diagnostics"]]
        assert [list(d.where.path) for d in report.diagnostics] == [d["path"] for d in data["diagnostics"]]

    def test_schema_refuses(self) -> None:
        jsonschema.Draft202012Validator.check_schema(SCHEMA)
        data = json.loads(render(FULL, "json"))
        assert not REPORT.is_valid(data | {"version": 2})
        data["diagnostics"][0]["line"] = 0
        assert not REPORT.is_valid(data)

    @given(st.lists(texts | st.integers(0, 99)))
    def test_pointer(self, path: list[str | int]) -> None:
        parts = pointer(tuple(path)).split("/")[1:]
        assert [str(p) for p in path] == [p.replace("~1", "/").replace("~0", "~") for p in parts]
