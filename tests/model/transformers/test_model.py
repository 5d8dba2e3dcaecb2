"""The models of the catalog: their counts against print, and how they are asked for."""

import csv

import pytest
from attrs import evolve

import trnspec
from tests.support.programs import DATA
from trnspec.model.rounded import RoundedCount
from trnspec.model.transformers.counting import active_parameters_of, parameters_of

CATALOG = trnspec.load()
SPECS = {m.name: m.node.spec for m in CATALOG.models.values()}

# Of models whose documents state no total, a rounded one or one that others contradict: the rule on exact ones compares the rest.
COUNTS = {
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-70b": 70_553_706_496,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "deepseek-v2": 235_741_434_880,
    "deepseek-v3": 671_026_419_200,
    "bert-large": 336_226_108,
    # Equation 2 of Narayanan and others leaves the final norm out, 2 h: 174,615,822,336 and 24,576.
    "gpt-3-175b": 174_615_822_336 + 2 * 12_288,
}

BILLIONS = {
    "gpt-1.7b": 1.652,
    "gpt-3.6b": 3.562,
    "gpt-7.5b": 7.468,
    "gpt-18.4b": 18.450,
    "gpt-39.1b": 39.096,
    "gpt-76.1b": 76.051,
    "gpt-145.6b": 145.622,
    "gpt-310.1b": 310.131,
    "gpt-529.6b": 529.601,
    "gpt-1008b": 1008.039,
    "gpt-22b": 22.074,
}

# What the publishers print, without the embedding: OpenAI 5.13 and 3.61, DeepSeek 36.6 with 0.9 of the output matrix.
ACTIVE_BUT_EMBEDDING = {"gpt-oss-120b": 5.13, "gpt-oss-20b": 3.61, "deepseek-v3": 36.63}


def mpt() -> list[tuple[str, int, int]]:
    with (DATA / "mpt_parameters.csv").open(encoding="utf-8") as file:
        return [(r["model"], int(r["context"]), int(r["parameters"])) for r in csv.DictReader(file)]


@pytest.mark.parametrize(("name", "count"), COUNTS.items(), ids=COUNTS)
def test_parameters_are_those_in_print(name, count):
    assert count == parameters_of(SPECS[name])


@pytest.mark.parametrize(("name", "billions"), BILLIONS.items(), ids=BILLIONS)
def test_parameters_round_to_those_in_print(name, billions):
    assert billions == round(parameters_of(SPECS[name]) / 1e9, 3)


@pytest.mark.parametrize(("name", "context", "count"), mpt(), ids=str)
def test_learned_positions_grow_with_the_context(name, context, count):
    """LLM Foundry prints the parameters of each size at each length."""
    assert count == parameters_of(evolve(SPECS[name], context=context))


def test_active_parameters():
    assert 12_879_925_248 == active_parameters_of(SPECS["mixtral-8x7b"])
    # All 58 x 256 biases of the routers count: they decide which experts are visited.
    assert 37_552_297_472 == active_parameters_of(SPECS["deepseek-v3"])
    for name, billions in ACTIVE_BUT_EMBEDDING.items():
        spec = SPECS[name]
        found = active_parameters_of(spec) - spec.vocabulary * spec.hidden
        assert billions == round(found / 1e9, 2), name


def test_parts_of_a_cluster():
    """The chips, where servers are not named."""
    for cluster in CATALOG.clusters.values():
        spec = cluster.node.spec
        whole = [(spec.part_chips(), spec.chip)] if spec.chip and not spec.servers else []
        assert [*spec.parts()] == [*((None, server) for server in spec.servers), *whole], cluster.name


def test_stated_counts_have_sources():
    """A total is in a document only where a source prints it; a claim that is of something else is not adopted.

    What another source rounds, such as ``47B``, is a claim beside it.
    """
    own = {"llm-foundry-benchmarking", "nxd-inference-mistral-dense-2026-04"}
    for model in CATALOG.models.values():
        stated = model.node.spec.parameters
        total = None if stated is None else stated.total
        adopted = [c.says for c in model.node.claims if c.verdict is None and c.at == "spec.parameters.total"]
        said = {says for says in adopted if isinstance(says, int)}
        if model.node.metadata.source.name not in own and not isinstance(total, RoundedCount):
            assert said == (set() if total is None else {total}), model.name
