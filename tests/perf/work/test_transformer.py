"""The numbers of an average layer, by hand: sums over the layers of a model."""

from __future__ import annotations

import pytest

from tests.support.engine import MODELS
from trnspec.perf.work.transformer import transformer

LOCAL = {"layers": 20, "heads": 96, "kv_heads": 8, "width": 96 * (160 + 128), "cached": 8 * 288, "projected": 8 * 288}
FULL = {"layers": 4, "heads": 64, "kv_heads": 4, "width": 64 * (192 + 128), "cached": 4 * 320, "projected": 4 * 192}


def test_layers_with_heads_of_their_own() -> None:
    """24 layers, of which 20 have a window and other heads, 23 have experts, and one a network of width 16,384."""
    found = transformer(MODELS["local"])

    def mean(name: str) -> float:
        return sum(kind["layers"] * kind[name] for kind in (LOCAL, FULL)) / 24

    assert (found.local_heads, found.local_kv_heads, found.window) == (96, 8, 128)
    expected = {
        "scores": mean("width"), "absorbed": mean("width"), "projected": mean("projected"), "kv_elements": mean("cached"),
        "local_scores": 20 / 24 * LOCAL["width"], "local_kv": 20 / 24 * LOCAL["cached"],
        "local_projected": 20 / 24 * LOCAL["projected"],
        "score_window": 20 / 24 * LOCAL["width"], "score_full": 4 / 24 * FULL["width"], "score_chosen": 0.0,
        "rows_window": 20 / 24 * 96, "rows_full": 4 / 24 * 64, "kept_window": 20 / 24 * LOCAL["cached"],
        "kept_full": 4 / 24 * FULL["cached"], "read_full": 4 / 24 * FULL["cached"], "read_window": 20 / 24 * LOCAL["cached"],
        "moe": 23 / 24, "dispatched": 23 / 24 * 8, "routed": 23 / 24 * 256 * 3 * 4096 * 2048,
        "routed_split": 23 / 24 * 8 * 2048 * 3, "results": 1 + 1 / 24, "attended": 1.0, "inner": 1.0, "shared": 0.0,
        "split": mean("width") + mean("projected") + (16384 / 24 + 23 / 24 * 8 * 2048) * 3,
    }  # fmt: skip
    assert {name: getattr(found, name) for name in expected} == pytest.approx(expected, rel=1e-12)
