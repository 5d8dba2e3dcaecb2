"""Tables of cases in a YAML file next to the test module that has its name."""

from pathlib import Path
from typing import Any

from trnspec.yaml import read_file


def tables(module: str) -> dict[str, Any]:
    """The tables of a test module: lists of rows by name."""
    document = read_file(Path(module).with_suffix(".yaml"))
    assert [p for p in document.problems if p.code < "TRN050"] == []  # those from there on are doubts
    assert document.data is not None
    return document.data
