"""Command lines and what they print: parts of it from ``outputs.yaml``, and whole pages from ``pages/``.

``python tests/cli/test_outputs.py`` writes the pages; a status other than 0 is their last line. Those of ``narrow.txt`` have
44 columns, so that they wrap cells and hide columns; of the others ``narrow.yaml`` has the lines and characters with 44.
"""

import re
import shlex
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.programs import NVIDIA, SOUND, Result, apart
from trnspec.yaml import read_file

TABLE = read_file(Path(__file__).with_name("outputs.yaml")).data
PAGES = Path(__file__).with_name("pages")
NARROW = Path(__file__).with_name("narrow.yaml")
FILES = {
    f: re.split(r"^\$ trnspec (.*)\n", f.read_text("utf-8"), flags=re.MULTILINE)[1:]
    for f in sorted(PAGES.glob("*.txt"))
}
COLUMNS = {"narrow": "44"}
STORED = [(f.stem, *pair) for f, parts in FILES.items() for pair in zip(parts[::2], parts[1::2], strict=True)]


@pytest.mark.parametrize(("line", "expected"), TABLE.items(), ids=[*TABLE])
def test_output(here, line, expected) -> None:
    (here.folder / "wire.yaml").write_text(SOUND)
    done = here(*shlex.split(line.replace("NVIDIA", str(NVIDIA))))
    words = " ".join(done.out.split())

    assert (done.status, done.err) == (0, "")
    if isinstance(expected, str):
        assert words == expected
    else:
        assert [] == [part for part in expected if (part.removeprefix("!") in words) == part.startswith("!")]
    assert "--format" in line or [] == [each for each in done.out.splitlines() if len(each) > 80]


def page(line: str, run: Callable[..., Result]) -> str:
    done = run(*shlex.split(line))
    return re.sub(r"python -m (pytest\.)?trnspec", "trnspec", f"{done.out}{done.err}") + (
        f"exit status {done.status}\n" if done.status else ""
    )


@pytest.mark.parametrize(("file", "line", "expected"), STORED, ids=[line for _, line, _ in STORED])
def test_whole_page(here, monkeypatch, file, line, expected) -> None:
    monkeypatch.setenv("COLUMNS", COLUMNS.get(file, "80"))
    shutil.copytree(PAGES, here.folder, dirs_exist_ok=True)

    assert expected == page(line, here), file


def size(text: str) -> list[int]:
    """The lines, and the characters without spaces."""
    return [text.count("\n"), len("".join(text.split()))]


@pytest.mark.parametrize(("line", "expected"), read_file(NARROW).data.items())
def test_size_of_narrow_page(here, monkeypatch, line, expected) -> None:
    monkeypatch.setenv("COLUMNS", "44")
    shutil.copytree(PAGES, here.folder, dirs_exist_ok=True)

    assert expected == size(page(line, here))


if __name__ == "__main__":
    wide = [i for f, i, _ in STORED if f != "narrow" and not {"--format", "--help"} & {*i.split()}]
    rows = (f"{i!r}: {size(page(i, partial(apart, cwd=PAGES, COLUMNS='44')))}\n" for i in wide)
    NARROW.write_text(
        "# Lines of pages with 44 columns, and their characters without spaces.\n" + "".join(rows), "utf-8"
    )
    for path in FILES:
        texts = (
            f"$ trnspec {i}\n{page(i, partial(apart, cwd=PAGES, COLUMNS=COLUMNS.get(f, '80')))}"
            for f, i, _ in STORED
            if f == path.stem
        )
        path.write_text("".join(texts), "utf-8")
