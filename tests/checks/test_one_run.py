"""Nine mistakes in one copy of the catalog: one run reports each with its code, line and column."""

import shutil
from pathlib import Path

from trnspec.api import validate
from trnspec.loading.files import shipped

# file, what is there, what is written instead, the code, and what the place of the finding begins with
MISTAKES = [
    ("chips/trainium3.yaml", "memory:\n    capacity:", "memory:\n    capacty:", "TRN102", "capacty"),
    ("servers/trn1.32xlarge.yaml", "cfp8: 3,040 TFLOPS", "cfp8: 3,040 GB/s", "TRN112", "3,040 GB/s"),
    ("servers/trn1.32xlarge.yaml", "fp32: 760 TFLOPS", "fp32: 760\n", "TRN110", "760"),
    ("servers/trn1.32xlarge.yaml", "tf32: 3,040 TFLOPS", "tf32: 2,850 TFLOPS", "TRN402", "2,850 TFLOPS"),
    ("servers/trn1.32xlarge.yaml", "{capacity: 512 GiB}", "{capacity: 512 GB}", "TRN402", "512 GB"),
    ("servers/trn1.32xlarge.yaml", "  network:", "  network: {link: efa}\n  network:", "TRN005", "network:"),
    ("servers/trn2.48xlarge.yaml", "chip: trainium2", "chip: trainum2", "TRN201", "trainum2"),
    ("servers/trn1n.32xlarge.yaml", "link: neuronlink-v2", "link: trainium1", "TRN202", "trainium1"),
]


def _damaged(folder: Path) -> Path:
    """A copy of the catalog with every mistake in it."""
    root = folder / "catalog"
    shutil.copytree(shipped(), root)
    for name, old, new in dict.fromkeys(m[:3] for m in MISTAKES):
        file = root / name
        text = file.read_text(encoding="utf-8")
        assert old in text, (name, old)
        file.write_text(text.replace(old, new, 1), encoding="utf-8")
    return root


def _place(text: str, written: str, begins: str) -> tuple[int, int]:
    """Line and column of the last place inside what was written that begins so."""
    at = text.index(written) + written.rindex(begins)
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)


def test_every_mistake_is_reported_at_its_place_in_one_run(tmp_path: Path) -> None:
    root = _damaged(tmp_path)

    report = validate([str(root)]).report
    found = {
        (Path(d.where.file).relative_to(root).as_posix(), d.code, d.where.place.line, d.where.place.column)
        for d in report.diagnostics
        if d.where.place is not None
    }
    expected = set()
    for name, _, new, code, begins in MISTAKES:
        text = (root / name).read_text(encoding="utf-8")
        expected.add((name, code, *_place(text, new, begins)))

    assert expected <= found, expected - found
    assert not [d for d in report.diagnostics if d.code in ("TRN190", "TRN900")]
