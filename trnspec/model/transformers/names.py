"""Names of models as tables and model hubs write them."""

from __future__ import annotations

import re
from functools import lru_cache

_WORDS = re.compile(
    r"\(.*?\)|pre-?training|fine-?tuning|huggingface|\bph[12]\b"
    # Formats and tuned variants have the dimensions of their model; a version of the format, or the year and month or the month
    # and day of a variant may follow.
    r"|[-_ ](?:instruct|chat|thinking|terminus|it|hf|fp8|fp4|nvfp4|mxfp4|bf16|int4|int8|awq|gptq)(?:[-_ ](?:kv|v\d|\d{4})(?![.\w]))?(?!\w)"
    # A size, such as that of bert-base, does not follow another one or a version.
    r"|(?<=\db|v\d)[-_ ]base(?!\w)"
    r"|[-_ ](?:2[3-9](?:0[1-9]|1[0-2])|(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01]))(?![\w.])"
)


@lru_cache(maxsize=4096)
def base_name(text: str) -> str:
    """The name without organisation, number format and variant: ``llama-3.1-70b`` of ``nvidia/Llama-3.1-70B-Instruct-FP8``."""
    name = re.sub(r"^(?:[\w.-]+/)?(?:meta-(?=llama)|nvidia-(?=nemotron))?", "", _WORDS.sub("", text.lower()))
    return re.sub(r"[^a-z0-9.]+", "-", name).strip("-")


def name_key(text: str) -> str:
    """The letters and digits that identify a model: those of :func:`base_name`."""
    return base_name(text).replace("-", "")
