"""Samples: shipped models on several systems, and random valid layouts of them."""

import functools
import random
from typing import Any

from attrs import evolve

from tests.support.engine import everything
from trnspec.errors import RefusalError
from trnspec.model.transformers.counting import dimensions
from trnspec.perf.training.estimator import Estimator, prepare
from trnspec.perf.work.layout import OPTIMIZERS, SCHEDULES, V_SHAPED, Layout
from trnspec.perf.work.transformer import transformer
from trnspec.perf.work.validity import check

SYSTEMS = ("trn1.32xlarge*2", "trn1.32xlarge*32", "trn2.48xlarge*2", "trn2-ultraserver", "p5.48xlarge*4")
CALIBRATIONS = ("none", "auto")


@functools.cache
def estimators() -> tuple[Estimator, ...]:
    """Every model on every system, ideal and calibrated."""
    graph = everything()
    models = [node for node in graph.nodes.values() if node.kind == "Model"]
    machines = [
        prepare(graph, models[0].name, on, calibration=calibration) for on in SYSTEMS for calibration in CALIBRATIONS
    ]
    dims = {node.name: dimensions(node.spec) for node in models}
    return tuple(evolve(on, name=name, dims=d, model=transformer(d)) for name, d in dims.items() for on in machines)


EXECUTED = 2048
"""Stages times chunks of the model up to which schedules of unequal stages are executed; beyond, bubbles are those of mean stages."""


def drawn(draw: random.Random) -> tuple[Estimator, Layout]:
    """A valid layout of one of them; half of the pipelines have very few microbatches."""
    while True:
        e = draw.choice(estimators())
        ranks = int(e.system.ranks)
        degrees: dict[str, int] = {}
        left = ranks
        for name in draw.sample(["tp", "pp", "cp"], 3):
            degrees[name] = draw.choice([n for n in (1, 1, 2, 3, 4, 8, 16, 32) if left % n == 0])
            left //= degrees[name]
        microbatch = draw.choice([1, 2])
        microbatches = draw.choice([1, 2, 3, degrees["pp"], 2 * degrees["pp"], 8 * degrees["pp"]])
        schedule = draw.choice(list(SCHEDULES)) if degrees["pp"] > 1 else "1f1b"
        fields: dict[str, Any] = {
            **degrees, "dp": left, "ep": draw.choice([1, 1, 2, 4, 8]) if e.dims.experts else 1,
            "seq": draw.choice([512, 2048, 4096, 8192]), "microbatch": microbatch,
            "global_batch": left * microbatch * microbatches, "schedule": schedule,
            "interleave": draw.choice([2, 4]) if schedule == "interleaved" else 1, "zero": draw.choice([0, 1, 2, 3]),
            "recompute": draw.choice(["none", "selective", "operators", "full"]), "optimizer": draw.choice([*OPTIMIZERS]),
            "sequence_parallel": draw.random() < 0.5, "overlap": draw.random() < 0.5, "flash": draw.random() < 0.5,
            "uneven": draw.random() < 0.5,
        }  # fmt: skip
        if e.dims.experts:
            fields |= {
                "expert_tp": draw.choice([None, 1]), "dispatch": draw.choice(["per-node", "per-copy"]),
                "dispatch_dtype": draw.choice(["bf16", "fp8"]), "node_limit": draw.choice([0, 0, 4]),
                "expert_overlap": draw.random() < 0.5,
            }  # fmt: skip
        layout = Layout(**fields)
        # V-shaped schedules are extended from 4 pp microbatches, which is not exact in one of thousands of cases.
        extended = schedule in V_SHAPED and microbatches > 4 * layout.pp
        if layout.uneven and (layout.pp**2 * layout.interleave > EXECUTED or extended):
            continue
        try:
            check(layout, e.dims, ranks)
        except RefusalError:
            continue
        return e, layout
