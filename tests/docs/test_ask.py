"""docs/tutorial/ask.md: the answers to five questions stay short."""

import re

import pytest

from tests.support.programs import ROOT

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
