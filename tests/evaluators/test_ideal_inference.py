"""The times without a calibration are bounds of those with one."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tests.support.engine import FOLDERS
from tests.support.evaluations import keywords
from trnspec.api import load
from trnspec.errors import RefusalError
from trnspec.evaluators.inference import run
from trnspec.loading.files import shipped

CATALOG = load([*FOLDERS, str(shipped())])
MODELS = ["llama-3.1-8b", "llama-3.1-70b", "mixtral-8x7b", "qwen3-30b-a3b", "gpt-oss-120b"]
SYSTEMS = ["p5.48xlarge", "p5en.48xlarge", "dgx-b200", "trn1.32xlarge", "trn2.48xlarge"]
POWERS = [1 << i for i in range(9)]
inference: Any = keywords(run)  # type: ignore[no-untyped-call]
CASES = st.fixed_dictionaries(
    {
        "model": st.sampled_from(MODELS),
        "on": st.sampled_from(SYSTEMS),
        "tp": st.sampled_from(POWERS[:5]),
        "dp": st.sampled_from(POWERS[:3]),
        "batch": st.sampled_from(POWERS),
        "prompt": st.sampled_from([16, 64, 128, 1024, 8192]),
        "output": st.sampled_from([1, 2, 16, 64, 512]),
        "dtype": st.sampled_from(["bf16", "fp8"]),
        "chunk": st.sampled_from([None, None, 64, 512]),
    }
)
P5: dict[str, Any] = {"on": "p5.48xlarge", "chunk": None}
SHORT_PROMPTS: dict[str, Any] = {
    **P5, "model": "gpt-oss-120b", "tp": 8, "dp": 1, "batch": 256, "prompt": 64, "output": 64, "dtype": "bf16",
}  # fmt: skip
SHORT_OUTPUTS: dict[str, Any] = {
    **P5, "model": "mixtral-8x7b", "tp": 4, "dp": 2, "batch": 4, "prompt": 128, "output": 2, "dtype": "bf16",
}  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(asked=CASES)
@example(asked=SHORT_PROMPTS)
@example(asked=SHORT_OUTPUTS)
@example(asked={**SHORT_OUTPUTS, "tp": 1, "dp": 8, "batch": 128, "dtype": "fp8"})
def test_no_estimate_is_better_than_the_ideal(asked: dict[str, Any]) -> None:
    try:
        ideal, estimate = (inference(CATALOG, **asked, calibration=known) for known in ("none", "auto"))
    except RefusalError:
        assume(False)

    for name in ("time_to_first_token", "time_per_output_token", "latency"):
        if name in ideal.names:
            assert ideal.number(name) <= estimate.number(name) * (1.0 + 1e-9), name
    assert ideal.number("throughput") >= estimate.number("throughput") * (1.0 - 1e-9)
