"""Layers of stages where they are not divisible, and the time and the memory that follow from them."""

import itertools

from attrs import evolve
from hypothesis import example, given
from hypothesis import strategies as st

from tests.perf.oracles.pipelines import chunks
from tests.support.engine import LATENT, layout
from trnspec.perf.work.layout import extreme_layers, stage_layers
from trnspec.perf.work.memory import peak_memory, training_memory

SPLITS = st.builds(
    lambda pp, kind: layout(pp=pp, interleave=max(1, kind), schedule="1f1b" if kind else "zbv"),
    st.integers(1, 12), st.integers(0, 4),
)  # fmt: skip


@given(st.integers(1, 130), st.integers(0, 130), SPLITS)
def test_every_stage_has_the_layers_of_its_chunks(layers, dense, split):
    dense = min(dense, layers)
    d = evolve(LATENT, layers=float(layers), expert_layers=float(layers - dense))
    expected = []
    for stage in range(int(split.pp)):
        mine = list(itertools.chain(*chunks(split, stage, layers)))
        expected.append((sum(i < dense for i in mine), sum(i >= dense for i in mine)))
    assert expected == [stage_layers(d, split, float(k)) for k in range(int(split.pp))]
    each = [a + b for a, b in expected]
    last = 0 if split.pipeline.v_shape else -1
    assert (max(each), each[last]) == extreme_layers(float(layers), split.pp, split.interleave, split.pipeline.v_shape)[
        :2
    ]


def test_modules_of_multi_token_prediction_are_with_the_output():
    d = evolve(LATENT, layers=24.0, expert_layers=19.0, mtp_layers=2.0)
    # Two modules and three outputs count as five layers: 7, 8, 7 and 2 + 2.
    assert [(5, 2), (0, 8), (0, 7), (0, 4)] == [stage_layers(d, layout(pp=4), float(k)) for k in range(4)]
    is_v_shaped = layout(pp=4, schedule="zbv")
    assert [(3, 5), (2, 4), (0, 6), (0, 6)] == [stage_layers(d, is_v_shaped, float(k)) for k in range(4)]
    dense = evolve(d, expert_layers=0.0)
    assert [(7, 0), (8, 0), (7, 0), (4, 0)] == [stage_layers(dense, layout(pp=4), float(k)) for k in range(4)]


@given(st.integers(1, 70), st.integers(0, 70), SPLITS, st.integers(1, 40), st.sampled_from(["none", "full"]))
@example(8, 6, layout(pp=6, schedule="zbv"), 1, "none")
def test_the_peak_is_that_of_all_stages(layers, dense, split, microbatches, recompute):
    dense = min(dense, layers)
    d = evolve(LATENT, layers=float(layers), expert_layers=float(layers - dense))
    asked = evolve(split, seq=4096, global_batch=microbatches, recompute=recompute)
    every = [training_memory(d, asked, stage=float(k)).total for k in range(split.pp)]
    assert max(every) == peak_memory(d, asked)
