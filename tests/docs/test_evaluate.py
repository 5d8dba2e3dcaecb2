"""docs/tutorial/write-an-evaluator.md does what it says, block by block; docs/reference/evaluate.md reports all there is."""

import ast
import re
import sys

import attrs
import pytest

from tests.docs.conftest import Runner, blocks
from tests.support.programs import ROOT, Here, written
from trnspec.cli.eval import MOST
from trnspec.evaluation.result import Answer, Assumption, Evaluation, Part, Table
from trnspec.evidence import UsedFigure
from trnspec.perf.work.validity import REASONS

TUTORIAL = ROOT / "docs" / "tutorial" / "write-an-evaluator.md"
REFERENCE = ROOT / "docs" / "reference" / "evaluate.md"


@pytest.fixture
def runner(tmp_path, monkeypatch, capsys):
    """The command line where ``trnspec-acme``, once it is written, is installed."""
    monkeypatch.delenv("COLUMNS", raising=False)
    info = tmp_path / "site" / "trnspec_acme-0.1.0.dist-info"
    written(info / "METADATA", "Metadata-Version: 2.1\nName: trnspec-acme\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[trnspec.plugins]\nacme = trnspec_acme:plugin\n")
    # It leads nowhere until the page has written the package.
    (tmp_path / "site" / "trnspec_acme").symlink_to(tmp_path / "trnspec-acme" / "src" / "trnspec_acme")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield Runner(Here(tmp_path, monkeypatch, capsys))
    for name in [n for n in sys.modules if n.partition(".")[0] == "trnspec_acme"]:
        del sys.modules[name]


def test_tutorial(runner) -> None:
    found = blocks(TUTORIAL)

    assert len(found) == TUTORIAL.read_text(encoding="utf-8").count("\n```") // 2
    for block in found:
        runner.run(block)


def test_conformance_of_the_tutorial(runner) -> None:
    """All tests of the class that the page shows, but for the command line, which needs an installed module."""
    for block in blocks(TUTORIAL):
        runner.run(block)
    shown = runner.names["TestToken"]()
    tests = [n for n in dir(shown) if n.startswith("test_") and n != "test_runs_from_the_command_line"]

    assert 9 == len(tests)
    for test in tests:
        getattr(shown, test)()


def test_reference_runs(tmp_path, monkeypatch, capsys) -> None:
    *_, block = blocks(REFERENCE)
    done = Here(tmp_path, monkeypatch, capsys)("eval", "no-such-thing")
    shown, _, rest = block.text.partition("; ...\n")

    assert "[exit 2]\n" == rest
    assert (2, True) == (done.status, done.err.startswith(shown.splitlines()[1] + "; "))


REFUSING = (
    *("evaluators/training", "evaluators/memory", "evaluators/fit", "perf/roofline"),
    *(
        "evaluators/inference", "evaluators/deployment", "evaluators/software", "perf/work/validity",
        "perf/training/estimator", "perf/lowering/lower", "perf/training/timeline", "evaluation/amounts",
        "evaluation/analysis",
    ),
)  # fmt: skip
"""The modules that refuse questions about training, memory and serving, and analyses."""


def test_reference_reports_every_reason() -> None:
    calls = [
        node
        for module in REFUSING
        for node in ast.walk(ast.parse((ROOT / "trnspec" / f"{module}.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and "RefusalError" == node.func.id
    ]
    # A reason that is computed is one of those of layouts; slower ones are valid.
    given = {call.args[0].value for call in calls if isinstance(call.args[0], ast.Constant)} | set(REASONS[1:]) - {
        "slower"
    }
    rows = re.findall(r"^\| (`[a-z`, -]+`) \|.*\|.*\|$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)

    assert len(calls) > 30
    assert given == {name for row in rows for name in re.findall(r"`([a-z-]+)`", row)}


def test_reference_reports_every_field() -> None:
    reported = set(re.findall(r"`(\w+)`", REFERENCE.read_text(encoding="utf-8")))

    for kind in (Evaluation, Answer, Part, Assumption, UsedFigure, Table):
        assert {f.name for f in attrs.fields(kind)} - reported == set()
    assert f"{MOST:,} combinations" in REFERENCE.read_text(encoding="utf-8")
