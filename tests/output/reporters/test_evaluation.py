"""An evaluation as one flat record."""

from trnspec.evaluation.result import Answer, Evaluation
from trnspec.output.reporters.evaluation import record


def test_record() -> None:
    """An interval has both ends, of which one may be open; an answer named as an input says so."""
    answers = (
        Answer("step_time", 2.0, "s", 1.0, None), Answer("tp", 8), Answer("mfu", 40.0, "%", None, 50.0), Answer("fits", True),
    )  # fmt: skip
    found = Evaluation(evaluator="training", title="a", inputs={"tp": 4}, answers=answers)

    assert record(found) == {
        "tp": 4, "step_time [s]": 2.0, "step_time low [s]": 1.0, "step_time high [s]": None, "answer tp": 8,
        "mfu [%]": 40.0, "mfu low [%]": None, "mfu high [%]": 50.0, "fits": True,
    }  # fmt: skip
