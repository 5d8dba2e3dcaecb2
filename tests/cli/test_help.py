"""Help with groups and examples, and the examples of every evaluator."""

from __future__ import annotations

import json
import shlex
import shutil

import click
import pytest
from click.testing import CliRunner

from tests.support.programs import DATA, ROOT, Here
from trnspec.builtin import plugin as builtin
from trnspec.cli.eval import evaluator_command
from trnspec.cli.help import GroupedCommand, GroupedOption
from trnspec.evaluation.result import Suggestion, command


def help_of(tool: click.Command, **more: object) -> str:
    return CliRunner().invoke(tool, ["--help"], **more).output


def test_groups_and_examples():
    tool = GroupedCommand(
        "tool",
        params=[
            click.Option(["--plain"], help="Without a group."),
            GroupedOption(["--tp"], group="Parallelism", metavar="RANKS", help="Tensor-parallel degree."),
            GroupedOption(["--out"], group="Output", metavar="FILE"),
            GroupedOption(["--pp"], group="Parallelism", metavar="RANKS"),
        ],
        help="Do it.",
        examples=(("tool --tp 8 --out 'a b'", "With eight ranks:"), ("tool", "")),
    )

    assert (
        "Usage: tool [OPTIONS]\n\n  Do it.\n\n"
        "Parallelism:\n  --tp RANKS  Tensor-parallel degree.\n  --pp RANKS\n\n"
        "Output:\n  --out FILE\n\n"
        "Options:\n  --plain TEXT  Without a group.\n  --help        Show this message and exit.\n\n"
        "Examples:\n  With eight ranks:\n    tool --tp 8 --out 'a b'\n\n    tool\n"
    ) == help_of(tool)


def test_the_command_of_a_suggestion():
    inputs = {"on": "trn1.32xlarge*2", "tp": 8, "dp": None, "flash": False, "overlap": True, "host_link": "1,000 GB/s",
              "schedule": ("1f1b", "zbv")}  # fmt: skip

    assert (
        "trnspec eval training --on 'trn1.32xlarge*2' --tp 8 --no-flash --overlap --host-link '1\\,000 GB/s' "
        "--schedule '1f1b,zbv' --as-of 2026-01"
    ).replace("'1f1b,zbv'", "1f1b,zbv") == command(Suggestion("training", inputs), {"as_of": "2026-01"})
    assert command(Suggestion("plan-train", {"tokens": "10T"}), {}) == "trnspec plan train --tokens 10T"


EVALUATORS = {e.name: evaluator_command(e, "trnspec") for e in builtin.evaluators}
EXAMPLES = [
    pytest.param(line, id=f"{name} {number}", marks=[pytest.mark.slow] if name == "accuracy" else [])
    for name, tool in EVALUATORS.items()
    for number, (line, _) in enumerate(tool.examples)
]


@pytest.mark.parametrize("name", EVALUATORS)
def test_every_evaluator_has_groups_and_examples(name):
    text = help_of(EVALUATORS[name])
    heads = [line[:-1] for line in text.splitlines() if line.endswith(":") and not line.startswith(" ")]

    assert len(text.partition("\nExamples:\n")[2].splitlines()) >= 10
    assert all(explanation.endswith(":") for _, explanation in EVALUATORS[name].examples)
    assert {"Catalog", "Output", "Options", "Examples"} <= set(heads)
    assert max(map(len, text.splitlines())) <= 80
    assert not any(word in {"TEXT", "INTEGER", "NUMBER"} for word in text.split())


@pytest.mark.parametrize("line", EXAMPLES)
def test_examples_run(line, tmp_path, monkeypatch, capsys):
    (tmp_path / ".git").mkdir()
    # The tables and the model that examples name.
    for name, table in {"mine": "training_trn1", "theirs": "training_torchtitan"}.items():
        shutil.copy(ROOT / "catalog" / "measured" / f"{table}.csv", tmp_path / f"{name}.csv")
    model = json.loads((DATA / "config_json_models.json").read_text())["llama-3.1-8b"]["config"]
    (tmp_path / "config.json").write_text(json.dumps(model))
    done = Here(tmp_path, monkeypatch, capsys)(*shlex.split(line)[1:])

    assert (0, "") == (done.status, done.err)
    assert done.out
