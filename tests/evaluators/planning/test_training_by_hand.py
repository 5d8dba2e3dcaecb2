"""A training run, from its tokens to days, dollars and joules, computed by hand."""

import math

import pytest

import trnspec
from tests.support.engine import everything
from trnspec.catalog.catalog import Catalog


@pytest.mark.parametrize(("servers", "tokens", "mtbf"), [(4, "100B", 50_000), (16, "2.5T", 20_000), (16, "2.5T", 200)])
def test_a_run(servers, tokens, mtbf) -> None:
    """Daly 2006, equations 20 and 37: the time of a run with checkpoints, failures and restarts, and its interval.

    A checkpoint has weights, master copy and two moments, 14 bytes per parameter (Rajbhandari et al. 2020, section 3.1).
    Spares are those that are away at the same time with a probability of 5 % at most, of a Poisson distribution.
    """
    found = trnspec.evaluate(
        "plan-train", Catalog(everything()), model="llama-3.1-8b", tokens=tokens, on=["p5.48xlarge"], count=[servers], seq=8192,
        global_batch=256, calibration="none", price="98.32 USD/h", mtbf=f"{mtbf}h", restart="10min", repair="24h",
        checkpoint_rate="20 GB/s",
    )  # fmt: skip

    chips, hour = 8 * servers, 3600.0
    count = {"100B": 100e9, "2.5T": 2.5e12}[tokens]
    steps = math.ceil(count / (256 * 8192))
    between = mtbf * hour / chips
    writing = 14 * 8_030_261_248 / 20e9
    root = math.sqrt(writing / (2 * between))
    interval = math.sqrt(2 * writing * between) * (1 + root / 3 + root**2 / 9) - writing
    work = steps * found["step_time"]
    total = between * math.exp(600 / between) * math.expm1((interval + writing) / between) * work / interval
    away, spares, share = chips * 24 / mtbf, 0, 0.0
    while (share := share + math.exp(-away) * away**spares / math.factorial(spares)) < 0.95:
        spares += 1
    expected = {
        "steps": steps,
        "checkpoint_time": writing,
        "checkpoint_interval": interval,
        "run_time": total,
        "goodput": 100 * work / total,
        "failures": total / between,
        "chip_hours": total / hour * chips,
        "run_cost": total / hour * 98.32 * (servers + spares),
        # The design power of an H100 SXM, NVIDIA 2023, data sheet.
        "energy": total * chips * 700.0,
    }
    assert {name: pytest.approx(value, rel=1e-9) for name, value in expected.items()} == {
        name: found[name] for name in expected
    }
