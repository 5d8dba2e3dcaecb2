"""Names of models as tables and model hubs write them."""

from __future__ import annotations

import re
from functools import lru_cache

_WORDS = re.compile(
    r"\(.*?\)|pre-?training|fine-?tuning|huggingface|\bph[12]\b"
    # Formats and tuned variants have the dimensions of their model; the release of a variant may follow as four digits.
    r"|[-_ ](?:instruct|chat|thinking|it|hf|fp8|nvfp4|mxfp4|bf16|int4)(?:[-_ ]\d{4})?\b"
)


@lru_cache(maxsize=4096)
def name_key(text: str) -> str:
    """The letters and digits that identify a model: without organisation, number format and variant.

    ``nvidia/Llama-3.1-70B-Instruct-FP8`` and ``llama-3.1-70b`` have the same key.
    """
    name = re.sub(r"^[\w.-]+/", "", _WORDS.sub("", text.lower()))
    return re.sub(r"[^a-z0-9.]", "", name)
