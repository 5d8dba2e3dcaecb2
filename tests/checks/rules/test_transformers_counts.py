"""Stated numbers of parameters, compared with the dimensions of a model and with its name."""

from __future__ import annotations

import math

import pytest
from attrs import evolve

from tests.support.rules import bare, findings, put, shipped
from trnspec.checks.rules import transformers
from trnspec.checks.rules.transformers import MOST_PADDING, _misprints, _round_numbers
from trnspec.model.rounded import rounded
from trnspec.model.transformers.counting import parameters_of
from trnspec.model.transformers.model import Parameters

LLAMA = shipped().named("llama-3-8b").spec
DEEPSEEK = shipped().named("deepseek-v3").spec


@pytest.mark.parametrize(
    ("base", "stated", "cause"),
    [
        ("gpt2", 124_439_808 + 50_257 * 768, "the output matrix is counted although it is tied to the embedding"),
        ("gpt2", 124_439_808 - 1_024 * 768, "the positions are left out"),
        ("gpt2", 124_439_808 - 12 * 4 * 768, "the biases of attention are left out"),
        ("gpt2", 124_439_808 - 12 * 9 * 768, "every bias is left out"),
        ("gpt2", 124_439_808 - 2 * 768, "the final norm is left out"),
        ("gpt2", 124_439_808 + 47 * 768, "padding is counted; a vocabulary of 50,304 rows gives this number"),
        ("llama-2-7b", 6_738_417_664, "the rotary frequencies stored with each layer are counted"),
        ("llama-3-8b", 8_030_261_248 - 256 * 2 * 4096, "padding is left out; a vocabulary of 128,000 rows"),
        ("llama-3-8b", 8_030_261_248 - 128_256 * 4096, "the output matrix is left out or the embedding is left out"),
        ("llama-3-8b", 8_030_261_248 - 2 * 128_256 * 4096, "the embedding and the output matrix are left out"),
        ("llama-3-8b", 8_030_261_248 + 32 * 2 * 24 * 128 * 4096, "keys and values are counted for every query head"),
        ("llama-3-8b", 8_030_261_248 + 32 * (4096 + 2 * 1024), "biases of queries, keys and values are counted"),
        ("qwen3-8b", 8_190_735_360 - 36 * 2 * 128, "the norms of queries and keys are left out"),
        ("bert-large", 335_141_888, "the heads of pretraining are left out"),
        ("bert-large", 335_141_888 - 1_024 * 1_025, "the layers after the last transformer layer are left out"),
        ("llama-3-8b", 8_030_261_247, None),
        ("llama-3-8b", 8_000_000_001, None),
    ],
)
def test_a_count_that_differs_is_explained(base, stated, cause):
    (finding,) = findings("TRN405", put(bare(), base, "parameters", Parameters(total=stated)))
    counted = parameters_of(shipped().named(base).spec)
    assert f"total is {stated:,}, but the dimensions give {counted:,}, {stated - counted:+,}" == finding.message
    assert (cause or "") in finding.hint
    assert bool(cause) == bool(finding.hint)


@pytest.mark.parametrize(
    ("base", "total", "times", "fitting", "places"),
    [
        ("llama-3-8b", "16B", "0.502", "8,192 for hidden", ["hidden", "parameters.total"]),
        ("mixtral-8x7b", "11B", "4.25", "8 for layers or 1,024 for hidden", ["parameters.total", "layers", "hidden"]),
        # Half or twice the right value is the likeliest, another size of the vocabulary the least.
        ("gpt2", "150M", "0.83", "128 for attention.head_size or 16 for layers or 81,920 for vocabulary",
         ["parameters.total", "attention.head_size", "layers", "vocabulary"]),
        # Of many values three are in the hint; every dimension is named once.
        ("llama-3-8b", "7B", "1.15", "16 for attention.heads or 4 for attention.kv_heads or 64 for attention.head_size",
         ["parameters.total", "attention.heads", "attention.kv_heads", "attention.head_size", "feed_forward.width",
          "layers", "hidden", "vocabulary"]),
        # No round number fits: those of most influence.
        ("llama-3-8b", "1T", "0.00803", "", ["parameters.total", "hidden", "layers", "feed_forward.width"]),
        ("mixtral-8x7b", "16B", "2.92", "", ["parameters.total", "hidden", "layers", "experts.count"]),
    ],
)  # fmt: skip
def test_dimensions_behind_a_rounded_total(base, total, times, fitting, places):
    """The dimension is reported if only one fits, else the count."""
    (finding,) = findings("TRN405", put(bare(), base, "parameters", Parameters(total=rounded(total))))

    assert f" {times} times " in finding.message
    assert finding.hint.removeprefix("likely cause: a wrong dimension: ") == fitting or not fitting
    assert [finding.where.path, *(s.path for s in finding.see)] == [("spec", *p.split(".")) for p in places]


GPT2 = shipped().named("gpt2").spec


@pytest.mark.parametrize(
    ("spec", "path", "word"),
    [
        (evolve(GPT2, positions="rotary"), "positions", "learned"),
        (evolve(GPT2, norm="rms"), "norm", "layer"),
        (evolve(GPT2, feed_forward=evolve(GPT2.feed_forward, form="gated")), "feed_forward.form", "plain"),
        (evolve(LLAMA, embeddings="tied"), "embeddings", "untied"),
    ],
)
def test_a_wrong_word_is_named(spec, path, word):
    name = "gpt2" if spec.layers == GPT2.layers else "llama-3-8b"
    hints = [f.hint for f in findings("TRN405", bare().replace(name, spec))]

    assert len(hints) == 1
    assert f"'{word}' for {path} gives this number" in hints[0]


@pytest.mark.parametrize("active", ["73B", "370B", "3.7B"])
def test_a_misprinted_count_is_named(active):
    spec = evolve(DEEPSEEK, parameters=evolve(DEEPSEEK.parameters, active=rounded(active)))
    hints = [f.hint for f in findings("TRN405", bare().replace("deepseek-v3", spec))]

    assert ["likely cause: a wrong digit or decimal point: 37B was meant"] == hints


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
