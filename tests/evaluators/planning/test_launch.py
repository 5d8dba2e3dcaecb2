"""trnspec.evaluators.planning.launch: the options of each framework."""

import pytest

from tests.support.tables import tables
from trnspec.evaluators.deployment import InferenceQuestion
from trnspec.evaluators.planning.launch import _WRITERS


@pytest.mark.parametrize(("framework", "given", "draft", "pool", "command"), tables(__file__)["commands"])
def test_options_of_a_command(framework, given, draft, pool, command) -> None:
    question = InferenceQuestion(model="llama-3.1-8b", on="trn2.48xlarge", **{"tp": 8} | given)
    written = _WRITERS[framework](question, 2304, 16, draft, pool)

    assert command == (written and list(written))
