"""Names of models as tables and model hubs write them."""

from __future__ import annotations

import pytest

from trnspec.model.transformers.names import name_key


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("Qwen/Qwen3-32B", "qwen3-32b"),
        ("nvidia/Llama-3.1-70B-Instruct-FP8", "llama-3.1-70b"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
        ("Ministral-8B-Instruct-2410", "ministral-8b"),
        ("Nemotron_3_Super", "nemotron-3-super"),
        ("Nemotron-3-Nano-30B-A3B", "nvidia-nemotron-3-nano-30b-a3b"),
        ("DeepSeekV3 (w/o MTP)", "deepseek-v3"),
        ("HuggingFace BERT-Large Ph1 pre-training", "bert-large"),
        ("gemma-2b-it", "gemma-2b"),
        ("Llama-2-7b-hf", "llama-2-7b"),
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-r1"),
        ("nvidia/DeepSeek-R1-0528-NVFP4-v2", "deepseek-r1"),
        ("deepseek-ai/DeepSeek-V3.1-Terminus", "deepseek-v3.1"),
        ("amd/Llama-3.3-70B-Instruct-FP8-KV", "llama-3.3-70b"),
        ("Qwen/Qwen3-4B-2507", "qwen3-4b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3"),
        ("mistralai/Mixtral-8x22B-Instruct-v0.1", "mixtral-8x22b-v0.1"),
    ],
)
def test_the_same_model(written, name):
    assert name_key(name) == name_key(written)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("qwen3-0.6b", "qwen3-06b"),
        ("llama-3-8b", "llama-3.1-8b"),
        ("gpt2", "gpt2-xl"),
        ("mistral-7b-v0.3", "mistral-7b"),
    ],
)
def test_other_models(one, other):
    assert name_key(one) != name_key(other)
