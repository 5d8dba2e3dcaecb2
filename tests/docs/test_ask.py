"""docs/tutorial/ask.md does what it says, block by block; and the answers to five questions stay short."""

import re

import pytest

from tests.docs.conftest import Runner, blocks
from tests.support.programs import ROOT, Here

PAGE = ROOT / "docs" / "tutorial" / "ask.md"

QUESTIONS = (
    "Which system has the most HBM per chip?",
    "How many bf16 FLOPs per byte of HBM bandwidth does each chip have?",
    "What changed for Trn1 between March 2023 and March 2024, and according to which source?",
    "What is the bisection bandwidth of an UltraServer?",
    "Which figures come from third parties?",
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_answers_are_short(question) -> None:
    """At most two lines of code for each question, counted in its first block."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {question}\n")[2].partition("\n## ")[0]
    first = re.search(r"```\w+\n(.*?)```", section, re.DOTALL)

    assert first is not None
    assert 1 <= len(re.findall(r"^(?:>>>|\.\.\.|\$) ", first[1], re.MULTILINE)) <= 2


# The runner itself.


@pytest.fixture
def runner(tmp_path, monkeypatch, capsys) -> Runner:
    return Runner(Here(tmp_path, monkeypatch, capsys))


def page(folder, text):
    file = folder / "page.md"
    file.write_text(text)
    return blocks(file)


@pytest.mark.parametrize(
    "text",
    [
        "```python\n>>> 1 + 1\n3\n```\n", "```python\n>>> 1 + 1\n```\n", "```python\nassert False\n```\n",
        "```console\n$ trnspec --version\ntrnspec 0\n```\n", "```console\n$ trnspec show nothing\n```\n",
        "```console\n$ ls\n```\n",
    ],
)  # fmt: skip
def test_runner_sees_a_difference(runner, tmp_path, text) -> None:
    (block,) = page(tmp_path, text)

    with pytest.raises(AssertionError):
        runner.run(block)
