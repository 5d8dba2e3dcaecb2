"""Serving frameworks: what each sets, in place of the options that describe it.

A value is an assumption with an origin.  An option that is given explicitly replaces the framework's value.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen


@frozen
class Setting:
    """What a framework sets an option to.

    Attributes:
        value: The value of the option; of buckets the smallest, which all powers of two follow.
        origin: Where the value is from.
    """

    value: str | int
    origin: str


@frozen
class Framework:
    """A serving framework.

    Attributes:
        neuron: Whether it runs on Neuron devices, or on GPUs.
        settings: Settings by the name of the option.
        mixed: Whether passes have prompts and decoded tokens, or prefill stops decoding.
    """

    neuron: bool
    settings: Mapping[str, Setting]
    mixed: bool = True


_AUTOBUCKETING = "generate_buckets of its autobucketing: powers of two from 128 to the longest context"

FRAMEWORKS: Mapping[str, Framework] = {
    "nxd-inference": Framework(
        neuron=True,
        settings={
            "batching": Setting("continuous", "its vLLM integration, with one prompt per prefill (ctx_batch_size 1)"),
            "prefill_batch": Setting(1, "ctx_batch_size of its vLLM integration"),
            "prefill_attention": Setting("flash", "NKI flash attention kernel of its context encoding"),
            "experts": Setting("selective-loading", "its expert_mlps: all experts from a threshold of T k / E = 1 on"),
            "context_buckets": Setting(128, _AUTOBUCKETING),
            "batch_buckets": Setting(1, "vllm-neuron compiles one graph per batch bucket; powers of two assumed"),
            "tile": Setting("core", "compiled shards take whole tiles of the tensor engine's array"),
        },
    ),
    "transformers-neuronx": Framework(
        neuron=True,
        settings={
            "batching": Setting("static", "generate() of its sampling API"),
            "prefill_attention": Setting("materialized", "measured first tokens of prompts up to 4,096 tokens"),
            "experts": Setting("all", "its Mixtral multiplies each token by all experts and masks the rest"),
            "context_buckets": Setting(128, "its bucket lists: powers of two from 128 to n_positions"),
            "batch_buckets": Setting(1, "compiled for the given batch sizes; powers of two assumed"),
            "tile": Setting("core", "compiled shards take whole tiles of the tensor engine's array"),
        },
    ),
    "optimum-neuron": Framework(
        neuron=True,
        settings={
            "batching": Setting("continuous", "its server, TGI or vLLM, with one prompt per prefill"),
            "prefill_batch": Setting(1, "its continuous batching: one prompt per prefill"),
            "prefill_attention": Setting("flash", "NKI flash attention kernel of its decoder models"),
            "experts": Setting("all", "static shapes: every expert of the compiled graph"),
            "context_buckets": Setting(4096, "one graph of the exported sequence length; 4,096 assumed"),
            "tile": Setting("core", "compiled shards take whole tiles of the tensor engine's array"),
        },
    ),
    "vllm": Framework(
        neuron=False,
        settings={
            "batching": Setting("continuous", "its scheduler"),
            "chunk": Setting(8192, "max_num_batched_tokens of its API server on GPUs of 70 GiB or more"),
            "prefill_attention": Setting("flash", "FlashAttention or FlashInfer backend"),
            "experts": Setting("selected", "fused_moe kernels"),
        },
    ),
    "trtllm": Framework(
        neuron=False,
        settings={
            "batching": Setting("continuous", "in-flight batching"),
            "chunk": Setting(8192, "its default max_num_tokens"),
            "prefill_attention": Setting("flash", "context FMHA kernels"),
            "experts": Setting("selected", "grouped GEMM kernels"),
        },
    ),
    "sglang": Framework(
        neuron=False,
        mixed=False,
        settings={
            "batching": Setting("continuous", "its scheduler"),
            "chunk": Setting(8192, "chunked_prefill_size on GPUs of 80 GB or more"),
            "prefill_attention": Setting("flash", "FlashAttention or FlashInfer backend"),
            "experts": Setting("selected", "fused_moe kernels"),
        },
    ),
}
"""The frameworks by name."""

DEFAULTS: Mapping[str, str] = {"batching": "continuous", "experts": "selected"}
"""The values of options without a framework."""
