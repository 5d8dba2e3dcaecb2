"""Command lines that are wrong usage, from ``wrong_usage.yaml``: exit status 2 and a message on standard error."""

import shlex
import shutil
from pathlib import Path

import pytest

from tests.support.evaluations import install
from tests.support.programs import DATA, ROOT, SOUND
from trnspec.yaml import read_file

TABLE = read_file(Path(__file__).with_name("wrong_usage.yaml")).data
MEASURED, LOGS = str(ROOT / "catalog" / "measured"), str(DATA / "imports")
CASES = [(f"{head} {line}", says) for head, lines in TABLE.items() for line, says in lines.items()]


@pytest.mark.parametrize(("line", "says"), CASES, ids=[line for line, _ in CASES])
def test_wrong_usage(here, line, says, tmp_path_factory, monkeypatch) -> None:
    (here.folder / "wire.yaml").write_text(SOUND)
    for name in ("plan.yaml", "config.json"):
        shutil.copy(Path(__file__).with_name("pages") / name, here.folder)
    if line.startswith("eval"):
        install(tmp_path_factory.mktemp("site"), monkeypatch)
    done = here(*shlex.split(line.replace("MEASURED", MEASURED).replace("LOGS", LOGS)))
    said = f"{done.err}\n{' '.join(done.err.split())}"

    assert (done.status, done.out) == (2, "")
    assert [] == [part for part in ([says] if isinstance(says, str) else says or ()) if part not in said]
    assert "Traceback" not in done.err
    assert {".git", "config.json", "plan.yaml", "wire.yaml"} == {file.name for file in here.folder.iterdir()}
