"""trnspec.evidence: kinds of answers, and inputs outside the range of a fit."""

import pytest
from attrs import asdict

from trnspec.evaluation.result import Answer, Evaluation, marked
from trnspec.evaluation.runner import unsound
from trnspec.evidence import IDEAL, KINDS, Evidence, GroupError, Outside, mixed, rank_class, weakest

ANSWERS = (
    Answer("step_time", 1.0, "s"), Answer("memory", 1.0, "B"), Answer("fits", True), Answer("ratio", 2.0),
    Answer("ideal_step_time", 0.5, "s", kind="ideal"),
)  # fmt: skip


def test_only_predictions_are_marked() -> None:
    assert ["estimate", "", "", "", "ideal"] == [a.kind for a in marked(ANSWERS, "estimate")]


def test_the_weakest_evidence() -> None:
    several = [Evidence(kind=kind, reason="") for kind in KINDS if kind]

    for i, each in enumerate(several):
        assert each is weakest(several[: i + 1])
    assert IDEAL is weakest([several[0], IDEAL])


def test_classes_of_a_ranking() -> None:
    assert {"estimate": 0, "extrapolated": 0, "transferred": 0, "ideal": 1, "": 2} == {k: rank_class(k) for k in KINDS}
    assert 2 == rank_class(None)
    assert [False, False, True] == [mixed(k) for k in (["ideal", "", None], [], ["estimate", "", "transferred"])]


@pytest.mark.parametrize(
    ("outside", "text"),
    [
        (Outside(input="seq", value=131072, low=128, high=8192, factor=16.0), "seq 131,072 is 16x above 8,192"),
        (Outside(input="size", value=1024, low=163840, high=2**30, factor=160.0), "size 1,024 is 160x below 163,840"),
        (Outside(input="tp", value=1, low=24, high=32, factor=24.0), "tp 1 is 24x below 24"),
        (
            Outside(input="parameters", value=70.6e9, low=3.4e8, high=8e9, factor=8.8),
            "parameters 70.6B is 8.8x above 8B",
        ),
        (Outside(input="dtype", value="fp8", low="bf16, fp32"), "dtype fp8, fitted on bf16, fp32"),
    ],
)
def test_how_far_outside(outside, text) -> None:
    assert text == str(outside)
    is_text = isinstance(outside.value, str)
    assert is_text is (outside.factor == 1.0)
    assert is_text is Evidence(kind="extrapolated", reason="", outside=(outside,)).is_elsewhere


def test_an_estimate_without_a_near_row_is_extrapolated() -> None:
    far = (Outside(input="tp", value=1, low=24, high=32, factor=24.0),)
    for kind in KINDS:
        each = Evidence(kind=kind, reason="fitted")
        assert each is each.without_row(())
        found = each.without_row(far)
        assert (("extrapolated", far) if kind == "estimate" else (kind, ())) == (found.kind, found.outside)


def test_errors_of_a_group() -> None:
    whole = GroupError(phase="step", rows=7, mean=0.05, median=0.04)
    some = GroupError(phase="tpot", rows=54, clusters=9, mean=0.091, median=0.04, scale="cluster", models="dense")

    assert {"clusters": 0, "scale": "", "models": ""}.items() <= asdict(whole).items()
    assert ["step 5.0% on 7 rows", "TPOT 9.1% on 54 rows (cluster, dense)"] == [str(whole), str(some)]


def test_an_unknown_kind_is_a_fault() -> None:
    found = Evaluation(evaluator="x", title="x", answers=(Answer("time", 1.0, "s", kind="guess"),))

    assert ["time has the kind 'guess'; expected one of estimate, extrapolated, transferred, ideal"] == list(
        unsound(found, "x")
    )
    assert ["its evidence is not an Evidence"] == list(
        unsound(Evaluation(evaluator="x", title="x", answers=ANSWERS, evidence="ideal"), "x")
    )


@pytest.mark.parametrize(("name", "values"), [("bytes_per_rank", ("4 GB", "2 GB")), ("tokens_per_rank", ("4B", "2B"))])
def test_bytes_per_rank_are_gigabytes_and_tokens_are_counts(name, values) -> None:
    outside = Outside(input=name, value=4e9, low=1e9, high=2e9, factor=2.0)
    assert str(outside) == "{} {} is 2x above {}".format(name, *values)
