"""Stated numbers of parameters, compared with the dimensions of a model and with its name."""

import math

import pytest
from attrs import evolve

from tests.support.rules import bare, findings, put, shipped
from trnspec.checks.rules import transformers
from trnspec.checks.rules.transformers import MOST_PADDING, _misprints, _round_numbers
from trnspec.model.transformers.counting import parameters_of
from trnspec.model.transformers.model import Parameters

LLAMA = shipped().named("llama-3-8b").spec


@pytest.mark.parametrize(
    ("text", "misprints"),
    [
        ("37B", ["73B", "3.7B", "370B"]),
        ("6.71 B", ["7.61 B", "6.17 B", "0.671 B", "67.1 B"]),
        ("~1,335M", ["~3135M", "~1353M", "~133.5M", "~13350M"]),
        ("7B", ["0.7B", "70B"]),
        ("a lot", []),
    ],
)
def test_misprints_of_a_rounded_count(text, misprints):
    assert misprints == list(_misprints(text))


@pytest.mark.parametrize("present", [1, 8, 61, 96])
def test_round_numbers_near_a_dimension(present):
    """Small multiples of powers of two, up to a factor of 4, the nearest first."""
    near = {n for n in range(1, 5 * present) if n // (n & -n) <= 7 and present <= 4 * n <= 16 * present}
    near |= {2 * present} | ({present // 2} - {present / 2 - 0.5})
    numbers = _round_numbers(present)

    assert near - {present} == set(numbers)
    assert numbers == sorted(numbers, key=lambda n: abs(math.log(n / present)))


@pytest.mark.parametrize("off", [1, MOST_PADDING, MOST_PADDING + 1, -1, -MOST_PADDING, -MOST_PADDING - 1])
def test_rows_of_padding(off):
    rows = LLAMA.vocabulary + off
    total = parameters_of(evolve(LLAMA, vocabulary=rows))
    (finding,) = findings("TRN405", put(bare(), "llama-3-8b", "parameters", Parameters(total=total)))
    padding = f"padding is {'counted' if off > 0 else 'left out'}; a vocabulary of {rows:,} rows gives this number"
    wrong = f"a wrong dimension: {rows:,} for vocabulary gives this number"

    assert (padding in finding.hint, wrong in finding.hint) == (abs(off) <= 1024, abs(off) > 1024)


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        # One digit, two, three; active parameters, whose embedding may be left out.
        ("small-3b", 2_500_000_000, 4_050_000_000),
        ("small-30b", 27_777_777_778, 32_400_000_000),
        ("small-350m", 339_805_826, 360_500_000),
        ("small-1.5t", 1_388_888_888_889, 1_620_000_000_000),
        ("small-8b-a3b", 2_500_000_000, 4_050_000_000 + 128_256 * 4096),
    ],
)
def test_how_far_a_count_may_be_from_the_size_in_a_name(monkeypatch, name, least, most):
    def reported(count):
        monkeypatch.setattr(transformers, "parameters", lambda _: 8e9 if "8b-" in name else count)
        monkeypatch.setattr(transformers, "active_parameters", lambda _: count)
        node = bare().named("llama-3-8b")
        spec = evolve(node.spec, parameters=None)
        other = evolve(node, spec=spec, metadata=evolve(node.metadata, name=name, aliases=()))
        return [*transformers.name_size_mismatch.check(other, bare())] != []

    assert [reported(n) for n in (least - 1, least, most, most + 1)] == [True, False, False, True]


@pytest.mark.parametrize(("name", "is_reported"), [("llama-3.1-8b-1m", False), ("llama-3.1-8m", True)])
def test_context_length_in_a_name_is_no_size(name, is_reported):
    node = bare().named("llama-3-8b")
    other = evolve(node, spec=evolve(node.spec, parameters=None), metadata=evolve(node.metadata, name=name, aliases=()))

    assert is_reported == ([*transformers.name_size_mismatch.check(other, bare())] != [])
