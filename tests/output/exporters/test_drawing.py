"""The elements of small pictures, after their styles, as in ``drawings.txt``; run as a program, this module writes them."""

import json
import re
from pathlib import Path

import pytest

from tests.support.outputs import CAT

FILE = Path(__file__).with_name("drawings.txt")
STORED = re.findall(r"^(\{.*)\n((?:<.*\n)*)", FILE.read_text("utf-8"), re.MULTILINE)


def elements(changes: str) -> str:
    changed = CAT.replace("trn3-gen1-server", json.loads(changes))
    return changed["trn3-gen1-server"].export("svg").text.partition("</style>\n")[2]


@pytest.mark.parametrize(("changes", "expected"), STORED, ids=[changes for changes, _ in STORED])
def test_elements(changes, expected) -> None:
    assert expected == elements(changes)


if __name__ == "__main__":
    FILE.write_text("".join(f"{changes}\n{elements(changes)}" for changes, _ in STORED), "utf-8")
