"""A large run keeps documents in less memory, and finds the same."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from trnspec import api
from trnspec.loading.files import shipped
from trnspec.output.reporters import render
from trnspec.yaml.reader import CompactDocument

SLIPS = (
    ("chips/trainium2.yaml", "667 / 191 = 3.5", "667 / 191 = 4.5"),
    ("chips/trainium2.yaml", "8 / 2 = 4", "8 / 3 = 4"),
    ("chips/trainium2.yaml", "engines: {value: 128, ", "engines: {value: 128, note: 2 x 64 = 129., "),
    ("chips/trainium2.yaml", "  note: >-\n", "  note: >-\n    It is 2 x 2 = 5.\n"),
    ("servers/trn2.48xlarge.yaml", "derived: 96 GiB / (8 / 2)", "derived: 96 GiB / (8 / 4)"),
    ("servers/trn2.48xlarge.yaml", "verdict: superseded", "verdict: agrees"),
    ("links/neuronlink-v3.yaml", "kind: Link", "kind: Link\nkind: Link"),
    ("chips/trainium1.yaml", "source: neuron", "source: neuro"),
)


def test_a_large_run_finds_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, old, new in SLIPS:
        file = tmp_path / name
        text = (file if file.exists() else shipped() / name).read_text("utf-8")
        assert old in text, name
        file.parent.mkdir(exist_ok=True)
        file.write_text(re.sub(re.escape(old), lambda _, new=new: new, text, count=1), "utf-8")
    reports = []
    for most in (1_000, 0):
        monkeypatch.setattr(api, "MANY", most)
        checked = api.validate([str(tmp_path)])
        documents = [node.document for node in checked.graph if node.target]
        assert any(isinstance(document, CompactDocument) for document in documents) is (most == 0)
        reports.append([render(checked.report, kind, color=False, texts=checked.texts) for kind in ("json", "text")])
    assert reports[0] == reports[1]
    assert {"TRN313", "TRN404", "TRN201", "TRN005"} <= set(re.findall(r"TRN\d{3}", reports[0][0]))
