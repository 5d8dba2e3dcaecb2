"""Command lines and what they print, from ``outputs.yaml``; no line of a page is wider than 80 columns."""

import shlex
from pathlib import Path

import pytest

from tests.support.programs import ROOT, SOUND
from trnspec.yaml import read_file

NVIDIA = str(ROOT / "plugins" / "trnspec-nvidia" / "src" / "trnspec_nvidia" / "catalog")
TABLE = read_file(Path(__file__).with_name("outputs.yaml")).data


@pytest.mark.parametrize(("line", "expected"), TABLE.items(), ids=[*TABLE])
def test_output(here, line, expected) -> None:
    (here.folder / "wire.yaml").write_text(SOUND)
    done = here(*shlex.split(line.replace("NVIDIA", NVIDIA)))
    words = " ".join(done.out.split())

    assert (done.status, done.err) == (0, "")
    if isinstance(expected, str):
        assert words == expected
    else:
        assert [] == [part for part in expected if (part.removeprefix("!") in words) == part.startswith("!")]
    assert "--format" in line or [] == [each for each in done.out.splitlines() if len(each) > 80]
