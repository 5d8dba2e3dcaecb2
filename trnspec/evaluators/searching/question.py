"""The inputs of a search, for training and for inference."""

from __future__ import annotations

from typing import Any, Literal, get_args

from attrs import frozen

from trnspec.errors import UsageError
from trnspec.evaluation import questions
from trnspec.evaluation.questions import axis, like
from trnspec.evaluators.deployment import InferenceQuestion
from trnspec.evaluators.layouts import RECOMPUTE_UNSET, LayoutChoices, Splits
from trnspec.evaluators.software import resolve_training
from trnspec.perf.frameworks import check_framework

Mode = Literal["training", "inference"]
Objective = Literal["step_time", "tokens_per_s_per_chip", "usd", "energy", "ttft", "tpot"]
AnySchedule = Literal[questions.PipelineSchedule, "all"]
AnyRecompute = Literal[questions.Recompute, "all"]
BATCHES = tuple(1 << i for i in range(11))
"""The batch sizes of serving that are evaluated where none is given."""
LENGTH = 1024
"""Tokens of a prompt and of an output where none are given."""


@frozen(kw_only=True, slots=False)
class SearchQuestion(
    Splits,
    questions.SoftwareInputs,
    questions.MeasuredEfficiency,
    questions.SpeculativeDecoding,
    questions.AnyPrices,
    questions.ListLength,
):
    """The inputs of the evaluator; see :mod:`trnspec.evaluation.questions`."""

    mode: Mode | None = axis(
        "Training or inference.", group="Workload", unset="training if seq and global_batch are given"
    )
    model: str = like(questions.TrainingWorkload, "model")
    seq: int | None = like(questions.TrainingWorkload, "seq", unset="required for training")
    global_batch: int | None = like(questions.TrainingWorkload, "global_batch", unset="required for training")
    attention: questions.Attention = like(questions.TrainingWorkload, "attention")
    prompt: int | None = like(questions.ServingWorkload, "prompt", unset=str(LENGTH))
    output: int | None = like(questions.ServingWorkload, "output", unset=str(LENGTH))
    batch: tuple[int, ...] | None = like(
        questions.ServingWorkload, "batch", unset=f"powers of two up to {BATCHES[-1]:,}"
    )
    on: tuple[str, ...] = like(questions.System, "on")
    reserve: str | None = like(questions.Reserve, "reserve")
    chips: int | None = like(questions.System, "chips")
    lnc: int | None = like(questions.System, "lnc")
    dtype: tuple[str, ...] = like(questions.TrainingPrecision, "dtype", default=("bf16",))
    optimizer: questions.OptimizerName | None = like(questions.TrainingPrecision, "optimizer")
    weight_dtype: tuple[str, ...] | None = like(questions.ServingPrecision, "weight_dtype")
    kv_dtype: tuple[str, ...] | None = like(questions.ServingPrecision, "kv_dtype")
    schedule: tuple[AnySchedule, ...] = like(questions.ScheduleInputs, "schedule", default=("1f1b", "interleaved"))
    recompute: tuple[AnyRecompute, ...] | None = like(
        questions.ScheduleInputs, "recompute", unset=f"{RECOMPUTE_UNSET}; all for every one"
    )
    overlap: tuple[bool, ...] | None = like(questions.StepSchedule, "overlap")
    offload: tuple[questions.Offload, ...] = like(questions.ScheduleInputs, "offload", default=("none",))
    host_link: str | None = like(questions.StepSchedule, "host_link")
    batching: Literal["continuous", "static"] | None = like(questions.ServingSchedule, "batching")
    chunk: tuple[int, ...] | None = like(questions.ServingSchedule, "chunk")
    prefix_hit: float = like(questions.ServingSchedule, "prefix_hit")
    prefill_on: str | None = like(InferenceQuestion, "prefill_on")
    objective: Objective | None = axis(
        "What is best: the least time of a step, TTFT or TPOT, the most tokens/s per chip, the least cost (usd) or "
        "energy of a million tokens (in serving of output tokens).",
        group="Goal",
        unset="step_time; in serving tokens_per_s_per_chip",
    )
    where: str | None = axis(
        "A condition on measures and degrees, such as 'memory < 80 GiB and tpot < 30 ms'; see the reference.",
        "CONDITION",
        group="Goal",
        unset="none",
    )
    pareto: tuple[str, ...] | None = axis(
        "Also the Pareto front of two or three measures: time, cost, energy, memory, throughput, or measures by name.",
        "MEASURE",
        group="Goal",
        unset="none",
    )

    @property
    def of(self) -> Mode:
        """Training or inference."""
        if self.mode is not None:
            return self.mode
        return "inference" if self.seq is None and self.global_batch is None else "training"

    def checked(self) -> SearchQuestion:
        """The question, if what its mode needs is given and nothing of the other mode is.

        Raises:
            UsageError: An input is missing or belongs to the other mode.
            RefusalError: The framework has no part in the mode.
        """
        given = self.given()
        foreign = [name for name in (_SERVING if self.of == "training" else _TRAINING) if name in given]
        if foreign:
            why = "" if self.mode else "; seq and global_batch make it one of training"
            raise UsageError(f"{foreign[0]} is not an input of a search for {self.of}{why}")
        if self.of == "training":
            missing = [name for name in ("seq", "global_batch") if getattr(self, name) is None]
            if missing:
                raise UsageError(f"the evaluator search needs {' and '.join(missing)} for training")
        self.check_draft()
        if not self.on:
            raise UsageError("on: a system is expected, such as trn2.48xlarge*16")
        if self.framework is not None:
            check_framework(self.framework, self.of)
        return self

    def used(self) -> dict[str, Any]:
        """The inputs of the mode by name."""
        unused = _SERVING if self.of == "training" else _TRAINING
        return {name: value for name, value in self.values().items() if name not in unused}

    def choices(self, dtype: str) -> LayoutChoices:
        """Space of layouts of training with one compute dtype; settings of the framework are resolved."""
        values = self.common(LayoutChoices)
        values |= {"dtype": dtype, "overlap": None}
        for name, every in (("schedule", questions.PipelineSchedule), ("recompute", questions.Recompute)):
            values[name] = get_args(every) if "all" in (values[name] or ()) else values[name]
        return resolve_training(LayoutChoices(**values))

    def inference(self, **values: Any) -> InferenceQuestion:
        """The question of the evaluator inference about one deployment."""
        names = ("model", "chips", "lnc", "calibration", "era", "framework", "reserve", "batching", "prefix_hit",
                 "prefill_on", "draft", "acceptance", "speculate")  # fmt: skip
        same = {name: getattr(self, name) for name in names}
        same |= {"prompt": self.prompt or LENGTH, "output": self.output or LENGTH}
        return InferenceQuestion(**same | values)


_TRAINING = (
    "seq", "global_batch", "attention", "cp", "expert_tp", "zero", "microbatch", "schedule", "recompute", "overlap",
    "offload", "host_link", "optimizer", "flash", "fused_loss", "gathered_inputs", "bucket", "imbalance",
    "capacity_factor", "dispatch", "dispatch_dtype", "node_limit", "expert_overlap",
)  # fmt: skip
_SERVING = (
    "prompt", "output", "batch", "weight_dtype", "kv_dtype", "batching", "chunk", "prefix_hit", "prefill_on", "draft",
    "acceptance", "speculate",
)  # fmt: skip
