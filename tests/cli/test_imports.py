"""Imports of commands: start-up is cheap, and libraries are imported where they are used."""

import json
import subprocess
import sys

import pytest

from tests.support.programs import SOUND, WRONG, environment

PROBE = """
import json, sys
from trnspec.cli import main
prefixes, sys.argv = json.loads(sys.argv[1]), ["trnspec", *sys.argv[2:]]
try:
    main()
except SystemExit as end:
    found = [m for m in sys.modules if any(m == p or m.startswith(p if p[-1] == "." else p + ".") for p in prefixes)]
    print(json.dumps([end.code or 0, sorted(found)]), file=sys.stderr)
"""
TABLES = ("numpy", "pyarrow", "pandas", "polars", "duckdb", "rich")
COMMANDS = ("trnspec.cli.", "trnspec.api", "trnspec.plugins.api", "cattrs", "ruamel")
DISPATCH = ["trnspec.cli.dispatch", "trnspec.cli.help"]
SCHEMA = ["trnspec.loading.schema", "trnspec.loading.schema.check", "trnspec.loading.schema.prune"]
VALIDATE = ("numpy", "rich", "networkx", "trnspec.loading.schema", "trnspec.testing", "trnspec.catalog.system_table")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "prefixes", "found"),
    [
        (["--help"], COMMANDS, [0, DISPATCH]),
        (["validate", "wire.yaml"], (*VALIDATE, "jsonschema"), [0, []]),
        (["validate", "bad"], VALIDATE, [1, SCHEMA]),
        (["query", "server where chips.count = 16"], TABLES, [0, []]),
        (["export", "svg", "trn2-ultraserver"], (*TABLES, "jsonschema", "xml.sax"), [0, []]),
        (["eval"], ("numpy", "matplotlib"), [0, []]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) and isinstance(value[0], str) else "",
)
def test_imported_modules(tmp_path, line, prefixes, found) -> None:
    """The list of commands imports none of them; an unsound file shows that the probe sees what is imported."""
    for folder in (".git", "bad"):
        (tmp_path / folder).mkdir()
    (tmp_path / "wire.yaml").write_text(SOUND)
    (tmp_path / "bad" / "wire.yaml").write_text(WRONG)
    done = subprocess.run(
        [sys.executable, "-c", PROBE, json.dumps(prefixes), *line],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        check=True,
    )

    assert found == json.loads(done.stderr.splitlines()[-1])
