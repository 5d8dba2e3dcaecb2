"""Published measurements of training: every row of a table as a case that can be computed, or skipped with a reason."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from attrs import evolve, field, frozen

from trnspec.errors import RefusalError, UsageError
from trnspec.graph.graph import Graph
from trnspec.loading.measured import UNSTATED, is_stated
from trnspec.model.transformers.dimensions import Dimensions
from trnspec.perf.calibration.fit_range import training_inputs
from trnspec.perf.calibration.measured.case import ModelCase, Part, Skipped, cases
from trnspec.perf.calibration.measured.cells import Record, RowCells, dtype_of, first
from trnspec.perf.frameworks import ALLOCATED, Runtime, runtime, training_settings
from trnspec.perf.lowering.machine import IDEAL, LoweredSystem, machine
from trnspec.perf.training.step import UNUSED, step
from trnspec.perf.work.layout import Layout
from trnspec.perf.work.transformer import model_flops_per_token, transformer
from trnspec.perf.work.validity import check


@frozen(kw_only=True)
class TrainingCase(ModelCase):
    """One measurement of a training step that can be computed.

    Attributes:
        layout: Its layout; where the row leaves a setting open, the likeliest.
        alternatives: The other layouts that it may have been.
        seconds: Measured time of a step [s].
        memory: Measured memory of a rank [B]; 0 where none was published.
        microbatch_stated: Whether the row states the microbatch, on which memory depends most; 1 is assumed otherwise.
        blocking: Whether gradients are exchanged after the last backward pass.
        runtime: What the framework needs of memory besides the layout; measured memory has no reserve.
    """

    PARTS: ClassVar[Mapping[Part, str]] = {"step": "seconds", "memory": "memory"}

    layout: Layout
    alternatives: tuple[Layout, ...] = field(default=(), repr=False)
    seconds: float
    memory: float
    microbatch_stated: bool = True
    blocking: bool = False
    runtime: Runtime = ALLOCATED

    @property
    def ranks(self) -> float:
        """Ranks of the layout."""
        return float(self.layout.ranks)

    @property
    def inputs(self) -> dict[str, float]:
        """The inputs of a training step."""
        return training_inputs(self.dims, self.layout)

    @property
    def cluster(self) -> str:
        """Model, hardware and layout."""
        names = ("tp", "pp", "cp", "ep", "dp", "seq", "recompute")
        return " ".join(map(str, (self.model, self.system.name, *(getattr(self.layout, name) for name in names))))


def training_cases(graph: Graph, rows: Sequence[Record]) -> Iterator[TrainingCase | Skipped]:
    """Every row of training as a case, or as skipped."""
    return cases(graph, rows, "train", _case)


@frozen(kw_only=True)
class _Source:
    """Settings that a source or its software implies for all of its rows; a row that states a setting has its own.

    Attributes:
        framework: The framework.
        era: Release era; empty where a row names its release.
        zero: ZeRO stage.
        overlap: Whether tensor-parallel collectives overlap with computation.
        flash: Whether attention scores are not written to memory.
        sequence_parallel: Whether norms and residuals are split over tensor-parallel ranks.
        optimizer: The optimizer, if it differs from that of the framework.
        dispatch: How tokens are sent to experts.
        whole_experts: Whether tensor-parallel ranks hold whole experts.
        blocking: Whether gradients are exchanged after the last backward pass, so that nothing overlaps with them.
    """

    framework: str
    era: str = ""
    zero: int = 0
    overlap: bool = False
    flash: bool = True
    sequence_parallel: bool = True
    optimizer: str = ""
    dispatch: str = "per-copy"
    whole_experts: bool = False
    blocking: bool = False


_SOURCES: tuple[tuple[str, _Source], ...] = (
    # Flash attention (Dao et al. 2022) and sequence parallelism (Korthikanti et al. 2022) are newer.
    (r"zero-3.*2104\.04473", _Source(framework="deepspeed", era="2021", flash=False, sequence_parallel=False)),
    (r"2104\.04473", _Source(framework="megatron", era="2021", flash=False, sequence_parallel=False)),
    (r"2205\.05198", _Source(framework="megatron", era="2022", flash=False)),
    # Without ZeRO, DeepSpeed all-reduces gradients in their own dtype, fp16, after the last backward pass
    # (DeepSpeedEngine.allreduce_gradients; the source states that there are no buckets).
    (
        r"megatron-deepspeed",
        _Source(
            framework="megatron", era="2022", flash=False, sequence_parallel=False, optimizer="adam", blocking=True
        ),
    ),
    # Recipes overlap collectives of tensor parallelism, split no expert and send tokens with HybridEP.
    (
        r"megatron-?bridge",
        _Source(framework="megatron", zero=1, overlap=True, dispatch="per-node", whole_experts=True),
    ),
    # Distributed optimizer with gradients in bf16 (grad_sync_dtype) and userbuffers, as in the submitted configurations.
    (r"mlcommons|nemo", _Source(framework="megatron", zero=1, overlap=True, optimizer="adam")),
    (r"simumax", _Source(framework="megatron", era="2026-02", zero=1, whole_experts=True)),
    (r"megatron", _Source(framework="megatron")),
    (r"torchtitan", _Source(framework="torchtitan", era="2024", zero=3)),
    (r"llm-foundry", _Source(framework="llm-foundry", era="2024", zero=3)),
    (r"deepspeed", _Source(framework="deepspeed")),
    (r"neuronx-distributed|nxd|neuron-sdk", _Source(framework="nxd")),
)
"""Settings that source, software and note of a row imply; the first pattern that matches."""

_RELEASES = (
    (r"\b(2[0-9])\.(0[1-9]|1[0-2])\b(?:\.\d+)? *(?:nemo|container)", "20{}-{}"),
    (r"nemo-(2[0-9])\.(0[1-9]|1[0-2])", "20{}-{}"),
    (r"training_results_v3\.", "2023"),
    (r"training_results_v4\.", "2024"),
    (r"training_results_v5\.", "2025"),
    (r"training_results_v6\.", "2026"),
    (r"neuron 2\.(?:1[0-9]|20|21)\b", "2024"),
    (r"neuron 2\.2[2-6]\b", "2025"),
    (r"neuron 2\.2[7-9]\b", "2026"),
)
"""Releases as rows name them, and their era."""


def _case(row: RowCells) -> TrainingCase:
    text = row.texts("id", "source", "software", "config", "note")
    if re.search(r"\blora\b", text.lower()):
        raise RefusalError("unstated", "fine-tuning of adapters (LoRA), whose frozen weights have no gradients")
    chips = row.integer("n_chips", needed=True)
    model, dims = _model(row)
    system = row.hardware(chips)
    source = _source(row, text)
    layout = _layout(row, dims, system, source)
    chunks = layout.pp * layout.interleave
    if layout.pp > 1 and dims.layers % chunks and (dims.layers + 2) % chunks:
        # Stages have different numbers of layers; their mean is computed.
        layout = evolve(layout, uneven=True)
    dtype = _dtype(row, system)
    if dims.positions and layout.seq > dims.context:
        dims = evolve(dims, context=float(layout.seq))
    check(layout, dims, int(system.ranks))
    layout, alternatives = _interleaved(row, layout, dims, int(system.ranks))
    seconds = _seconds(row, layout, chips, dims)
    _check_links(dims, layout, system, dtype)
    return TrainingCase(
        model=model,
        dims=dims,
        system=system,
        layout=layout,
        alternatives=alternatives,
        framework=source.framework,
        era=source.era,
        dtype=dtype,
        seconds=seconds,
        memory=row.number("mem_gib") * 2**30,
        microbatch_stated=_states_microbatch(row),
        source_text=row.texts("source", "note", "precision"),
        blocking=source.blocking,
        # Asynchronous tensor parallelism gathers the inputs once more in the backward pass.
        runtime=runtime(
            system.capacity,
            framework=source.framework,
            reserve="0 B",
            gathered_inputs=False if layout.overlap else None,
        ),
    )


def _source(row: RowCells, text: str) -> _Source:
    """Settings implied by the source of a row; the columns ``framework``, ``era`` and ``release`` win.

    Raises:
        UsageError: The column names an unknown framework.
    """
    found = first(_SOURCES, text) or _Source(framework="")
    stated = row.get("framework").strip().lower()
    if stated not in UNSTATED:
        training_settings(stated)
        found = evolve(found, framework=stated)
    era = (row.get("era") or row.get("release")).strip()
    if era not in UNSTATED:
        return evolve(found, era=era)
    if not found.era:
        for pattern, form in _RELEASES:
            if match := re.search(pattern, text.lower()):
                return evolve(found, era=form.format(*match.groups()))
    return found


def _model(row: RowCells) -> tuple[str, Dimensions]:
    """The model of a row: cut to fewer layers, or with multi-token prediction, where it is trained so."""
    text = row.cell("model")
    cut = re.fullmatch(r"(.+) cut to (\d+) layers", text)
    if cut is not None:
        base, dims = _whole(row, cut[1])
        dense = min(dims.layers - dims.expert_layers, 1.0) if dims.expert_layers else 0.0
        layers = float(cut[2])
        dims = evolve(dims, layers=layers, expert_layers=layers - dense if dims.expert_layers else 0.0)
        return f"{base}-{cut[2]}-layers", dims
    model, dims = _whole(row)
    if model == "deepseek-v3" and "w/o mtp" not in text.lower() and "bridge" in row.get("source").lower():
        # One module of multi-token prediction, as in the recipe and in the FLOPs of the row.
        hidden = dims.hidden
        dims = evolve(dims, mtp_layers=1.0, mtp_weights=2.0 * hidden * hidden, mtp_small=3.0 * hidden)
    return model, dims


def _whole(row: RowCells, name: str = "") -> tuple[str, Dimensions]:
    """The model that a row names, with all of its layers.

    Raises:
        RefusalError: ``unstated``: the row states experts, and the catalog has no such model.
    """
    model, dims = row.model(name)
    stated = row.get("experts_topk")
    if is_stated(stated) and stated.split("/")[0].strip() not in (f"{dims.experts:.0f}", "0"):
        raise RefusalError(
            "unstated", f"the catalog has no model like {name or row.cell('model')!r} with {stated} experts"
        )
    return model, dims


def _dtype(row: RowCells, system: LoweredSystem) -> str:
    text = row.get("precision")
    if re.search(r"fp8 or nvfp4|nvfp4 or fp8", text.lower()):
        raise RefusalError("unstated", f"the precision is one of two: {text}")
    return dtype_of(text, system)


def _layout(row: RowCells, dims: Dimensions, system: LoweredSystem, source: _Source) -> Layout:
    ranks = int(system.ranks)
    tp, pp, cp, ep = (row.integer(name) or 1 for name in ("tp", "pp", "cp", "ep"))
    dp = row.integer("dp") or max(1, ranks // (tp * pp * cp))
    interleave = row.integer("vp") or 1
    # A column that counts every model, dense ones too.
    ep = ep if dims.experts else 1
    whole = ep > 1 and (source.whole_experts or (dp * cp) % ep > 0)
    zero = row.get("zero").lower()
    stage = 3 if "fsdp" in zero else row.integer("zero") if zero.strip() not in UNSTATED else None
    if stage is not None and stage > 3:
        raise UsageError(f"zero is {stage}; expected a ZeRO stage from 0 to 3")
    stage = source.zero if stage is None else stage
    microbatch = row.integer("microbatch") or 1
    if not row.integer("global_batch"):
        raise RefusalError("unstated", "the row states no global batch")
    text = row.texts("precision", "note").lower()
    settings, recompute = training_settings(source.framework), row.get("recompute").lower()
    if recompute.strip() in UNSTATED:
        recompute = settings.recompute
    overlap = row.flag("overlap", source.overlap or "async" in text)
    return Layout(
        tp=tp, pp=pp, dp=dp, cp=cp, ep=ep, seq=row.integer("seq", needed=True),
        global_batch=row.integer("global_batch", needed=True), microbatch=microbatch if _states_microbatch(row) else 1,
        schedule="interleaved" if interleave > 1 else "1f1b", interleave=interleave, zero=stage,
        recompute=_recompute(recompute),
        sequence_parallel=tp > 1 and row.flag("sequence_parallel", source.sequence_parallel),
        overlap=overlap, flash=row.flag("flash", source.flash),
        fused_loss=settings.fused_loss, optimizer=source.optimizer or settings.optimizer,
        expert_tp=1 if whole else None, dispatch=source.dispatch, expert_overlap=True,
    )  # fmt: skip


def _states_microbatch(row: RowCells) -> bool:
    return bool(row.get("microbatch")) and "microbatch size inside PP not stated" not in row.get("note")


_CHUNK = 2.0
"""Layers of a model chunk where a row does not state the interleaving: the median of the rows that do."""


def _interleaved(row: RowCells, layout: Layout, dims: Dimensions, ranks: int) -> tuple[Layout, tuple[Layout, ...]]:
    """The likeliest interleaving of a row that leaves it open, and the others that are possible.

    A cell ``n/a`` says that the pipeline is not interleaved; an empty one in a table that has the column says nothing.
    """
    if layout.pp == 1 or row.row.get("vp") is None or row.get("vp").strip():
        return layout, ()
    each = dims.layers / layout.pp
    possible = []
    for chunks in range(1, int(each) + 1):
        one = evolve(layout, interleave=chunks, schedule="interleaved" if chunks > 1 else "1f1b")
        try:
            check(one, dims, ranks)
        except RefusalError:
            continue
        possible.append(one)
    likely = min(possible, key=lambda one: abs(each / one.interleave - _CHUNK))
    return likely, tuple(one for one in possible if one != likely)


def _recompute(text: str) -> str:
    """The recompute that a lower-case description names; torchtitan's option "op" is ``operators``."""
    if "full" in text:
        return "full"
    if re.search(r"operator|selective *\(? *op\b", text):
        return "operators"
    return "selective" if "selective" in text else "none"


def _seconds(row: RowCells, layout: Layout, chips: int, dims: Dimensions) -> float:
    seconds, rate, flops = (row.number(n) for n in ("step_time_s", "tokens_per_s_per_chip", "tflops_per_chip"))
    if seconds:
        return seconds
    if rate:
        return float(layout.tokens) / (rate * chips)
    if flops and "2104.04473" in row.get("source"):
        # The rates of this paper are based on its own FLOP count.
        work = model_flops_per_token(dims, float(layout.seq), "sc21") * layout.tokens
        return float(work) / (flops * 1e12 * chips)
    raise UsageError("the row states neither a step time nor tokens per second")


def _check_links(dims: Dimensions, layout: Layout, system: LoweredSystem, dtype: str) -> None:
    """Reject layouts that use a link without a published rate, which would count as taking no time."""
    if step(transformer(dims), layout, machine(system, IDEAL, dtype)).unknown > UNUSED:
        raise RefusalError("unknown-figure", f"the layout needs a link of {system.name} whose rate is not published")
