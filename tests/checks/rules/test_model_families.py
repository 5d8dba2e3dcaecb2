"""trnspec.checks.rules.model_families: dimensions that are unusual alone, in a family, or beside those of a base."""

from typing import Any

import pytest
from attrs import evolve

from tests.support.rules import findings, linked, put
from trnspec.checks.rules.model_families import family_of
from trnspec.graph.graph import Graph
from trnspec.model.reflection import dotted

MODELS = linked()
DENSE = "fam-1-8b"


def found(code: str, graph: Graph, name: str) -> dict[str, tuple[str, str]]:
    """Path, message and hint of what a rule finds in a model."""
    file = graph.named(name).document.file
    return {
        dotted(d.where.path).removeprefix("spec."): (d.message, d.hint)
        for d in findings(code, graph)
        if d.where.file == file
    }


def changed(name: str, **values: Any) -> Graph:
    """The catalog with other values in one model; ``attention__window`` represents the path."""
    graph = MODELS
    for path, value in values.items():
        graph = put(graph, name, path.replace("__", "."), value)
    return graph


@pytest.mark.parametrize("layers", [12, 61])
def test_layers_with_a_window_alternate_in_a_pattern(layers: int) -> None:
    """Every second to eighth layer has a window or has none, counted from either end; the last layer may lack a partner."""
    some = {n for period in range(2, 9) for n in (layers // period, -(-layers // period))}
    graph = {
        n: changed(DENSE, layers=layers, attention__window=1024, attention__windowed=n) for n in range(1, layers + 1)
    }
    reported = {n for n, made in graph.items() if "attention.windowed" in found("TRN410", made, DENSE)}

    assert reported == set(range(1, layers)) - some - {layers - n for n in some}
    for one in reported:
        assert found("TRN410", graph[one], DENSE) == {
            "attention.windowed": (
                f"{one} of {layers} layers have a window, which no pattern of layers gives",
                "every second, third, ... layer has or lacks one",
            )
        }


@pytest.mark.parametrize(
    ("name", "family"),
    [("llama-3-8b", "llama-3"), ("fam-1-8b-long", "fam-1"), ("gpt-145.6b", "gpt"), ("mixtral-8x7b", "mixtral"), ("phi-mini", "phi"),
     ("qwen3-30b-a3b", "qwen3"), ("kimi-k2", "kimi-k2"), ("x-a3b-y", "x"), ("grok", "grok"), ("m-7bx", "m-7bx"), ("m-70", "m-70")],
)  # fmt: skip
def test_family_of(name: str, family: str) -> None:
    assert family_of(name) == family


def family(*contexts: int, base: bool = False) -> Graph:
    """Models of one family, ``f-1b`` and so on, with these contexts."""
    node = MODELS.named(DENSE)
    nodes = {}
    for number, context in enumerate(contexts, 1):
        name = f"f-{number}b"
        document = evolve(node.document, file=f"models/{name}.yaml")
        spec = evolve(node.spec, context=context, base=MODELS.named("fam-1-8b-long").spec.base if base else None)
        nodes[name] = evolve(node, metadata=evolve(node.metadata, name=name), spec=spec, document=document)
    return Graph(nodes)


@pytest.mark.parametrize(
    ("contexts", "usual"),
    [
        ((1024, 8192), None),
        ((1024, 8192, 8192), (8192, 2)),
        ((1024, 1024, 8192, 8192), None),
        ((1024, 2048, 8192, 8192), None),  # another one stands out as well
        ((1024, 2048, 2048, 8192, 8192, 8192), (8192, 3)),
        ((1024, 1024, 1024), None),
    ],
)
def test_the_odd_one_of_a_family(contexts: tuple[int, ...], usual: tuple[int, int] | None) -> None:
    graph = family(*contexts)
    reported = found("TRN409", graph, "f-1b")
    if usual is None:
        assert reported == {}
        return
    value, number = usual

    assert reported == {
        "context": (
            f"context is 1,024, but {value:,} in {number} other models of the family f",
            f"{value:,}? if 1,024 is right, name its place in the source with where",
        )
    }
    (finding,) = (d for d in findings("TRN409", graph) if d.where.file == "models/f-1b.yaml")
    same = [f"models/f-{n}b.yaml" for n, context in enumerate(contexts, 1) if context == value]
    assert [where.file for where in finding.see] == same[:3]
