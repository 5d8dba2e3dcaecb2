"""The help of the commands: groups, metavars, and examples that run."""

import json
import re
import shlex
import shutil
from importlib import import_module
from importlib.util import find_spec

import click
import pytest

from tests.support.programs import DATA, NVIDIA, ROOT, Here, few_plans, written
from trnspec.builtin import plugin as builtin
from trnspec.cli import COMMANDS, calibrate_import
from trnspec.cli.eval import evaluator_command
from trnspec.cli.help import GroupedCommand
from trnspec.evaluation.page import LINES


def commands() -> dict[str, click.Command]:
    found: dict[str, click.Command] = {}
    for name in COMMANDS:
        command = import_module(f"trnspec.cli.{name}").command
        group = command.commands if isinstance(command, click.Group) and name != "eval" else {"": command}
        found |= {f"{name} {sub}".strip(): c for sub, c in group.items()}
    del found["eval"]
    found |= {f"eval {e.name}": evaluator_command(e, "trnspec") for e in builtin.evaluators}
    return found | {"calibrate import": calibrate_import.command}


SLOW = pytest.mark.slow
TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="measuring needs PyTorch, the extra measure")
MATPLOTLIB = pytest.mark.skipif(find_spec("matplotlib") is None, reason="charts need matplotlib, the extra plot")
MARKS = {
    "calibrate": [SLOW],
    "calibrate import": [],
    "eval accuracy": [SLOW],
    "eval plan-serve": [SLOW],
    "measure": [SLOW, TORCH],
    "plot": [MATPLOTLIB],
    "site build": [SLOW],
}
ENDLESS = ("lsp", "mcp", "site serve")
EXAMPLES = [
    pytest.param(line, id=f"{name} {number}", marks=MARKS.get(name, MARKS.get(name.partition(" ")[0], [])))
    for name, command in commands().items()
    if name not in ENDLESS
    for number, (line, _) in enumerate(getattr(command, "examples", ()))
    if "--watch" not in line
]

DOCUMENT = """api_version: trnspec/v1
kind: {kind}
metadata: {{name: {name}, title: Acme}}
spec: {spec}
"""
SCENARIOS = (
    "{scenarios: {now: {evaluator: roofline, inputs: {on: trainium2, intensity: 100}}, "
    "faster: {base: now, assume: {trainium2.memory.bandwidth: 4 TB/s}}}}"
)
SOURCE = "{publisher: Acme, as_of: 2026-10, rank: vendor-chip-page, address: 'https://acme.example/1'}"


@pytest.fixture
def here(tmp_path, monkeypatch, capsys) -> Here:
    """A folder with the files that examples name."""
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / ".git").mkdir()
    for folder in (tmp_path / "my-catalog", tmp_path):
        (folder / "chips").mkdir(parents=True)
        (folder / "sources").mkdir()
        chip = DOCUMENT.format(
            kind="Chip",
            name="acme-1",
            spec="{peak: {dense: {bf16: 100 TFLOPS}}, memory: {capacity: 32 GiB, bandwidth: 1 TB/s}}",
        )
        chip = chip.replace("title: Acme}", "title: Acme, source: acme-2026-10}")
        (folder / "chips" / "acme-1.yaml").write_text(chip)
        (folder / "sources" / "acme-2026-10.yaml").write_text(
            DOCUMENT.format(kind="Source", name="acme-2026-10", spec=SOURCE)
        )
    (tmp_path / "trnspec-baseline.json").write_text('{"version": 1, "findings": []}')
    for name, table in {"steps": "training_trn1", "mine": "training_trn1", "theirs": "training_torchtitan"}.items():
        shutil.copy(ROOT / "catalog" / "measured" / f"{table}.csv", tmp_path / f"{name}.csv")
    shutil.copy(DATA / "imports" / "nccom_all_gather.log", tmp_path / "run.log")
    shutil.copy(DATA / "imports" / "torchtitan.log", tmp_path / "train.log")
    shutil.copy(DATA / "host" / "neuron_ls_trn2.3xlarge.json", tmp_path / "neuron-ls.json")
    (tmp_path / "plan.yaml").write_text(DOCUMENT.format(kind="Scenarios", name="plan", spec=SCENARIOS))
    models = json.loads((DATA / "config_json_models.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(models["llama-3.1-8b"]["config"]))
    for name in ("training", "plans", "fleet", "errors"):
        shutil.copy(DATA / "plots" / f"{name}.json", tmp_path / f"{name}.json")
    return Here(tmp_path, monkeypatch, capsys)


PAGED = ("eval", "search", "plan", "show", "compare", "list", "audit")
"""Commands that print a first page, which fits a screen."""
WHOLE = re.compile(
    r"--(format|full|details|reasons|verdict|stale|host|pages|rows|refit|trace|plot|part|results|redo)|merge"
)

STEP = ("--model", "llama-3.1-8b", "--on", "trn2.48xlarge", "--seq", "4096", "--global-batch", "16", "--tp", "8")


def prepare(here: Here, line: str) -> None:
    """Writes the results of other commands that an example names."""
    commands = {
        "sweep.json": ("eval", "training", *STEP, "--pp", "1,2", "--zero", "1,2", "--format", "json"),
        "step.json": ("eval", "training", *STEP, "--pp", "4", "--zero", "1", "--trace", "step.json"),
        "merge results": ("search", *STEP, "--part", "1/1", "--results", "results"),
    }
    if "--out mine.csv" in line:
        (here.folder / "mine.csv").unlink()
    if "--pages pages" in line:
        written(here.folder / "pages" / "aiwiki-trainium2-2026-05.txt", "It was launched on December 3, 2024.\n")
    for name, args in commands.items():
        if name in line:
            done = here(*args)
            assert 0 == done.status
            if name == "sweep.json":
                (here.folder / name).write_text(done.out)


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_run(here, line, monkeypatch) -> None:
    prepare(here, line)
    few_plans(monkeypatch)
    # A system that only a plugin describes.
    plugin = ("--catalog", NVIDIA) if "p5.48xlarge" in line else ()
    done = here(*shlex.split(line)[1:], *plugin)
    # Differences, and nothing else, make the status 1.
    differs = line.startswith("trnspec diff") and "working working" not in line
    status = int(differs or line == "trnspec check trainium1 peak.dense.bf16 '210 TFLOPS'")

    # A command that writes files names them on standard error; a fit to few rows warns.
    expected = ("wrote ", "trnspec: warning: ")
    assert (status, []) == (done.status, [line for line in done.err.splitlines() if not line.startswith(expected)])
    lines = done.out.splitlines()
    if line.split()[1] in PAGED and not WHOLE.search(line):
        assert 0 < len(lines) <= LINES
        assert max(map(len, lines)) <= 80


@pytest.mark.parametrize("name", commands())
def test_help(here, name) -> None:
    """Examples; every option in a group, with a help text and a metavar that is not a type of click."""
    command = commands()[name]
    text = here(*name.split(), "--help").out

    assert isinstance(command, GroupedCommand)
    options = [o for o in command.params if isinstance(o, click.Option) and not o.hidden]
    assert len(text.partition("\nExamples:\n")[2].splitlines()) >= (10 if len(options) > 2 else 5)
    assert all(explanation.endswith(":") for _, explanation in command.examples)
    assert [
        o.name for o in command.params if isinstance(o, click.Option) and not (o.hidden or getattr(o, "group", ""))
    ] == []
    assert [o.name for o in command.params if isinstance(o, click.Option) and not (o.hidden or o.help)] == []
    assert not {"INTEGER", "FLOAT"} & set(text.split())
    assert max(map(len, text.splitlines())) <= 80
