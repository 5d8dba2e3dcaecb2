"""What cites a source: values that a document states, and conflicting ones; not the defaults of fields."""

from tests.support.rules import document, graph, source
from trnspec.graph.citations import citations


def test_citations() -> None:
    claim = "{at: spec.memory.capacity, says: 2 GiB, source: other, where: p, verdict: rejected, reason: old}"
    chip = document("Chip", "one", f"spec: {{memory: {{capacity: 1 GiB}}, dies: 2}}\nclaims: [{claim}]", "source: page")
    found = citations(graph(source("page", "2024"), source("other", "2023"), chip), {"page", "other"})

    assert {("page", "dies", "2"), ("page", "memory.capacity", "1 GiB"), ("other", "memory.capacity", "2 GiB")} == {
        (each.source, each.at, each.says) for each in found
    }


def test_defaults_of_fields_are_not_cited() -> None:
    spec = "{layers: 2, hidden: 8, vocabulary: 9, context: 7, positions: rotary, embeddings: tied, norm: rms"
    spec += ", attention: {heads: 2, kv_heads: 1, head_size: 4}, feed_forward: {width: 8, form: gated}}"
    found = citations(
        graph(source("page", "2024"), document("Model", "one", f"spec: {spec}", "source: page")), {"page"}
    )

    assert {"attention", "embeddings", "positions"} < {each.at.partition(".")[0] for each in found}
    assert {"head", "norms", "attention.gate", "attention.bias", "feed_forward.bias"}.isdisjoint(
        each.at for each in found
    )
