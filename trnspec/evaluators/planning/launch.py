"""Commands that start a replica of a plan, with the options of the framework that serves it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from trnspec.catalog.catalog import Catalog
from trnspec.evaluators.deployment import InferenceQuestion
from trnspec.evaluators.planning.deployments import Deployed
from trnspec.model.software import Software
from trnspec.perf.lowering.lower import model_named

PORT = 8000
"""The port of the first replica on a server."""


def launch(catalog: Catalog, model: str, one: Deployed, *, longest: int, running: int, pool: str = "") -> str | None:
    """The command that starts the first replica on a server, or the first expert-parallel group of them.

    MODEL is the name of the weights where the catalog has none of the Hugging Face Hub.

    Args:
        catalog: The catalog.
        model: The name of the model.
        one: The deployment.
        longest: The longest prompt with its output [tokens].
        running: Most requests that run at the same time.
        pool: ``prefill`` or ``decode`` of separate pools.

    Returns:
        ``None`` where the framework needs a file of options besides, or is not known.
    """
    q = one.setup.question
    weights = _weights(catalog, model, "MODEL")
    draft = None if q.draft is None else _weights(catalog, q.draft, "DRAFT")
    neuron = bool(one.setup.pool.system.lnc)
    write = _WRITERS.get(serving_framework(one))
    if write is None or (found := write(q, longest, running, draft, pool)) is None:
        return None
    command, options = found
    group, alone = _share(one)
    dash = "_" if command == "trtllm-serve" else "-"
    options |= {} if alone else {"port": PORT}
    words = [
        f"--{name.replace('-', dash)}" + ("" if value is None else f" {shlex.quote(str(value))}")
        for name, value in options.items()
    ]
    devices = f"0-{group - 1}" if neuron else ",".join(map(str, range(group)))
    pinned = [] if alone else [f"{'NEURON_RT_VISIBLE_CORES' if neuron else 'CUDA_VISIBLE_DEVICES'}={devices}"]
    return " ".join([*pinned, command, weights, *words])


def serving_framework(one: Deployed) -> str:
    """The framework of the question; without one the default of the device."""
    return one.setup.question.framework or ("nxd-inference" if one.setup.pool.system.lnc else "vllm")


def next_replica(one: Deployed) -> str:
    """Placement of the next replica on the same server; empty where a replica takes whole servers."""
    group, alone = _share(one)
    if alone:
        return ""
    what = "cores" if one.setup.pool.system.lnc else "GPUs"
    return f"; the next one has {what} {group} to {2 * group - 1} and port {PORT + 1}"


def status_note(catalog: Catalog, framework: str, chip: str) -> str:
    """The end of the support of a framework on a chip, by release of the SDK; empty where none is announced."""
    for node in catalog.graph.of(Software):
        spec = node.spec
        if (spec.framework, spec.chip.name) == (framework, chip) and (spec.maintenance or spec.ended):
            stages = [f"maintenance from SDK {spec.maintenance}"] if spec.maintenance else []
            stages += [f"no support from SDK {spec.ended}"] if spec.ended else []
            then = f"; successor: {spec.successor.name}" if spec.successor else ""
            return f"; {node.metadata.title}: {', '.join(stages)}{then}"
    return ""


def _share(one: Deployed) -> tuple[int, bool]:
    """The ranks of a replica, or of an expert-parallel group, and whether it takes whole servers."""
    group, system = int(one.ranks) * one.setup.question.ep, one.setup.pool.system
    return group, group >= int(system.ranks / system.servers)


Written = tuple[str, dict[str, Any]] | None
"""A command, and its options; those without a value are ``None``."""


def _vllm(q: InferenceQuestion, longest: int, running: int, draft: str | None, pool: str) -> Written:
    """The command of vLLM: https://docs.vllm.ai, engine arguments."""
    options = _vllm_options(q, longest, running, draft, pool)
    if q.chunk:
        # The budget of a step: a chunk, and a token of each running request.
        options["max-num-batched-tokens"] = q.chunk + running
    if (weights := q.weight_dtype or q.dtype) in ("fp8", "int8"):
        options["quantization"] = "fp8" if weights == "fp8" else "compressed-tensors"
    return "vllm serve", options


def _neuron(q: InferenceQuestion, longest: int, running: int, draft: str | None, pool: str) -> Written:
    """The command of vLLM with its plugin for Neuron, and the compiled lengths that the times are of.

    Source:
        AWS Neuron documentation 2.28, NxD Inference API reference: ``NeuronConfig``, and its vLLM user guide:
        ``override_neuron_config``.
    """
    options = _vllm_options(q, longest, running, draft, pool)
    if q.chunk:
        options["max-num-batched-tokens"] = q.chunk
    if q.context_buckets:
        buckets = dict.fromkeys(("context_encoding_buckets", "token_generation_buckets"), q.context_buckets)
        options["additional-config"] = json.dumps({"override_neuron_config": buckets})
    return "vllm serve", options


def _vllm_options(q: InferenceQuestion, longest: int, running: int, draft: str | None, pool: str) -> dict[str, Any]:
    options: dict[str, Any] = {"tensor-parallel-size": q.tp}
    if q.pp > 1:
        options["pipeline-parallel-size"] = q.pp
    if q.ep > 1:
        options |= {"data-parallel-size": q.ep, "enable-expert-parallel": None}
    options |= {"max-model-len": longest, "max-num-seqs": running}
    if (q.kv_dtype or q.dtype) == "fp8":
        options["kv-cache-dtype"] = "fp8"
    if not q.prefix_hit:
        options["no-enable-prefix-caching"] = None
    if draft is not None:
        model = {"model": draft, "num_speculative_tokens": q.speculate, "method": "draft_model"}
        options["speculative-config"] = json.dumps(model)
    if pool:
        options["kv-transfer-config"] = json.dumps({"kv_connector": "NixlConnector", "kv_role": "kv_both"})
    return options


def _sglang(q: InferenceQuestion, longest: int, running: int, draft: str | None, pool: str) -> Written:
    """The command of SGLang: https://docs.sglang.io, server arguments; its tensor-parallel ranks are those of the group."""
    if draft is not None:
        return None
    options: dict[str, Any] = {"tp-size": (q.tp or 1) * q.ep}
    if q.pp > 1:
        options["pp-size"] = q.pp
    if q.ep > 1:
        options |= {"dp-size": q.ep, "enable-dp-attention": None, "ep-size": q.ep}
    options |= {"context-length": longest, "max-running-requests": running}
    if q.chunk:
        options["chunked-prefill-size"] = q.chunk
    if (q.weight_dtype or q.dtype) == "fp8":
        options["quantization"] = "fp8"
    if (q.kv_dtype or q.dtype) == "fp8":
        options["kv-cache-dtype"] = "fp8_e4m3"
    if not q.prefix_hit:
        options["disable-radix-cache"] = None
    if pool:
        options["disaggregation-mode"] = pool
    return "python -m sglang.launch_server --model-path", options


def _trtllm(q: InferenceQuestion, longest: int, running: int, draft: str | None, pool: str) -> Written:
    """The command of TensorRT-LLM: https://nvidia.github.io/TensorRT-LLM, trtllm-serve.

    Data-parallel attention, a draft model, a KV cache of another dtype than the weights and separate pools need a file of
    options.
    """
    if draft is not None or pool or q.ep > 1 or (q.kv_dtype or q.dtype) != q.dtype:
        return None
    options: dict[str, Any] = {"tp-size": q.tp}
    if q.pp > 1:
        options["pp-size"] = q.pp
    options |= {"max-seq-len": longest, "max-batch-size": running}
    if q.chunk:
        options["max-num-tokens"] = q.chunk
    return "trtllm-serve", options


_WRITERS: Mapping[str, Callable[..., Written]] = {
    "vllm": _vllm,
    "nxd-inference": _neuron,
    "sglang": _sglang,
    "trtllm": _trtllm,
}
"""The writers of the commands of frameworks."""


def _weights(catalog: Catalog, model: str, otherwise: str) -> str:
    """The name of the weights: that of a hub, if the model has one."""
    names = model_named(catalog.graph, model).metadata.aliases
    return next((name for name in names if "/" in name), otherwise)
