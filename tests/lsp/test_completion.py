"""Completion of keys, words, names, units, paths and codes."""

import pytest

from tests.lsp.conftest import edited, session
from trnspec.lsp.completion import complete
from trnspec.yaml import Place

HEAD = "api_version: trnspec/v1\nkind: Chip\n"


@pytest.mark.parametrize(
    ("text", "some", "none", "typed"),
    [
        ("", {"metadata", "spec", "claims"}, {"kind", "api_version"}, ""),
        ("spec:\n  memory:\n    capacity: 1 GiB\n    ba", {"bandwidth", "technology"}, {"capacity", "peak"}, "ba"),
        ("spec:\n  cores: {core: neuroncore-v3, ", {"count"}, {"core"}, ""),
        ("spec:\n  cores: {core: neuron", {"neuroncore-v2", "neuroncore-v3"}, {"trainium2"}, "neuron"),
        ("spec:\n  memory:\n    bandwidth: 2.9 T", {"TB/s", "TiB/s"}, {"GiB", "TFLOPS"}, "T"),
        ("spec:\n  memory:\n    bandwidth: {value: 2.9 ", {"TB/s"}, {"GiB"}, ""),
        ("spec:\n  memory:\n    bandwidth:\n      ", {"value", "source", "derived"}, {"capacity"}, ""),
        ("metadata:\n  source: neuron-tr", {"neuron-trainium2-2026-08"}, {"trainium2"}, "neuron-tr"),
        ("claims:\n  - ", {"at", "says", "verdict"}, {"name"}, ""),
        ("claims:\n  - at: spec.mem", {"spec.memory.bandwidth", "spec.peak.dense.bf16"}, {"spec.memory"}, "spec.mem"),
        ("claims:\n  - {at: spec.sbuf, verdict: r", {"rounded", "rejected"}, set(), "r"),
        ("metadata:\n  allow:\n    - code: TRN4", {"TRN402", "TRN404"}, set(), "TRN4"),
        ("metadata:\n  aliases: [", set(), {"name", "trainium2"}, ""),
    ],
)
def test_completion(text, some, none, typed) -> None:
    lines = (HEAD + text).split("\n")
    done = complete(lines, Place(len(lines), len(lines[-1]) + 1), edited().graph, session().known)
    labels = {item.label for item in done.items}

    assert some <= labels
    assert set() == none & labels
    assert typed == done.typed
    inserted = {(i.insert, i.detail) for i in done.items if i.label in ("technology", "count")}
    assert inserted <= {("technology: ", "text"), ("count: ", "integer >= 1, required")}
    assert {"stacks:"} >= {item.insert for item in done.items if item.label == "stacks"}


def test_without_a_kind() -> None:
    done = complete(["kind: "], Place(1, 7), edited().graph, session().known)

    assert list(session().known.kinds) == [item.label for item in done.items]
